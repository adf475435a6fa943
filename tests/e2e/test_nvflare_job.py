"""A study that a job of NVIDIA FLARE runs, in a provisioned federation of its proof of concept."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

pytest.importorskip("nvflare", reason="NVFlare is not installed: pip install ./integrations/nvflare")

from nvflare.fuel.flare_api.flare_api import new_secure_session

from tests.e2e.processes import free_address
from tests.e2e.test_up import processes_of, wait_until
from tests.protocols.deployment.parties import SITES, deployment, pooled
from vertibayes import PlainCounter, k2
from vertibayes.cli.contracts import contract_of
from vertibayes.cli.up import approve_for_practice, party_files
from vertibayes_protocols.deployment.files import StudyFile

ROOT = Path(__file__).parents[2]
JOB = ROOT / "integrations" / "nvflare"
CLIENTS = [*SITES, "dealer", "analyst"]
FILES = {**dict.fromkeys(SITES, "site.toml"), "dealer": "dealer.toml", "analyst": "study.toml"}
ALLOWED = {"server": "controller.StudyController", **dict.fromkeys(CLIENTS, "executor.PartyExecutor")}
ADMIN = "admin@example.org"
SECONDS = 600  # for what takes ten on a machine with nothing else to do
EDGES_ORDER = ["age", "sex", "pulse", "drug", "outcome"]


def project(port):
    """Return a project of FLARE: a server, a client per party, and who submits jobs."""
    return {
        "api_version": 3,
        "name": "consortium",
        "participants": [
            {"name": "localhost", "type": "server", "org": "host", "fed_learn_port": port},
            *({"name": name, "type": "client", "org": name} for name in CLIENTS),
            {"name": ADMIN, "type": "admin", "org": "host", "role": "project_admin"},
        ],
        "builders": [
            {"path": f"nvflare.lighter.impl.{name}", "args": args}
            for name, args in {
                "workspace.WorkspaceBuilder": {"template_file": ["master_template.yml"]},
                "static_file.StaticFileBuilder": {"config_folder": "config"},
                "cert.CertBuilder": {},
                "signature.SignatureBuilder": {},
            }.items()
        ],
    }


def configure(kit, name, folder):
    """Do in a startup kit what docs/integrations.md asks of its administrator."""
    resources = json.loads((kit / "local" / "resources.json.default").read_text())
    resources["class_allow_list"].append(f"vertibayes_nvflare.{ALLOWED[name]}")
    (kit / "local" / "resources.json").write_text(json.dumps(resources))
    if name in FILES:
        parties = {name: str(folder / name / FILES[name])}
        parties |= {"results to the server": True} if name == "analyst" else {}
        (kit / "local" / "vertibayes.json").write_text(json.dumps(parties))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The parties' files, without [relay], at its sites and at the others."""
    folder = deployment(tmp_path_factory.mktemp("parties") / "all", free=False)
    for name in CLIENTS:
        path = folder / name / FILES[name]
        text = path.read_text()
        start = text.index("[relay]")
        end = text.find("\n[", start)
        path.write_text(text[:start] + (text[end:] if end > 0 else ""))
    return folder


@pytest.fixture(scope="module")
def session(folder, tmp_path_factory):
    """Run a federation, and log in as its administrator."""
    place = tmp_path_factory.mktemp("flare")
    (place / "project.yml").write_text(json.dumps(project(int(free_address().rpartition(":")[2]))))
    environment = {
        **os.environ,
        "HOME": str(place),
        "NVFLARE_POC_WORKSPACE": str(place / "poc"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "mpc"), str(ROOT / "protocols"), str(JOB)]),
    }

    def poc(*arguments):
        with (place / "poc.log").open("a") as log:
            command = [sys.executable, "-m", "nvflare.cli", "poc", *arguments]
            subprocess.run(
                command, cwd=place, env=environment, stdout=log, stderr=log, check=True,
                start_new_session=True,
            )  # fmt: skip

    poc("prepare", "-i", "project.yml")
    kits = place / "poc" / "consortium" / "prod_00"
    for name in CLIENTS:
        configure(kits / name, name, folder)
    configure(kits / "localhost", "server", folder)
    try:
        poc("start", "--timeout", str(SECONDS))
        session = new_secure_session(ADMIN, str(kits / ADMIN), timeout=SECONDS)
        yield session
        session.close()
    finally:
        poc("stop")
        wait_until(lambda: not processes_of(folder) and not processes_of(place), SECONDS)


def submit(session, tmp_path, study):
    """Submit a job that its README describes, and return its id."""
    path = tmp_path / f"job-{study[:8]}"
    shutil.copytree(JOB / "job", path, dirs_exist_ok=True)
    server = path / "app" / "config" / "config_fed_server.json"
    config = json.loads(server.read_text())
    config["workflows"][0]["args"] |= {"study": study, "sites": list(SITES), "minutes": 20}
    server.write_text(json.dumps(config))
    return session.submit_job(str(path))


def done(session, tmp_path, job):
    """Wait for a job; return its status, the parties' reports, and its folder."""
    status = session.wait_for_job(job, SECONDS)["status"]
    path = Path(session.download_job_result(job, str(tmp_path / "downloads")))
    (reports,) = path.rglob("vertibayes_reports.json")
    return status, json.loads(reports.read_text()), reports.parent


def test_nobody_has_approved_the_study(session, tmp_path):
    status, reports, _ = done(session, tmp_path, submit(session, tmp_path, "ab" * 32))
    assert "EXCEPTION" in status
    refused = [reports[site] for site in SITES if reports[site]["state"] == "refused"]
    assert refused and all("not approved here" in report["reason"] for report in refused)


def test_a_study_whose_job_is_killed_is_released_by_the_next_job(folder, session, tmp_path):
    path, log = folder / "analyst" / "study.toml", folder / "east" / "site.log"
    file = StudyFile.read(path)
    approve_for_practice(file, party_files(path, file), quiet=True)
    study = contract_of(file).digest.hex()

    killed = submit(session, tmp_path, study)
    wait_until(lambda: log.exists() and " agreed " in log.read_text(), SECONDS)
    print(done(session, tmp_path, killed))
