"""A study that a job of NVIDIA FLARE runs: relay on the server, sites and dealer on the clients."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("nvflare", reason="NVFlare is not installed: pip install 'vertibayes[nvflare]'")

from tests.e2e.processes import free_address
from tests.e2e.test_up import processes_of, wait_until
from tests.protocols.deployment.parties import SITES, deployment, pooled
from vertibayes import PlainCounter, k2
from vertibayes.cli.contracts import contract_of
from vertibayes.cli.up import approve_for_practice, party_files
from vertibayes_protocols.deployment.files import StudyFile

ROOT = Path(__file__).parents[2]
JOB = ROOT / "integrations" / "nvflare"
COMPONENTS = "controller.StudyController", "executor.PartyExecutor"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(JOB)])}


@pytest.fixture
def folder(tmp_path):
    folder = deployment(tmp_path / "all", address=free_address(), free=False)
    yield folder
    assert processes_of(folder) == []


def approved(folder):
    path = folder / "analyst" / "study.toml"
    file = StudyFile.read(path)
    approve_for_practice(file, party_files(path, file), quiet=True)
    return contract_of(file).digest.hex()


def write_job(path, study, minutes=2.0):
    """Copy the job, and fill in what its README says."""
    shutil.copytree(JOB / "job", path)
    server = path / "app" / "config" / "config_fed_server.json"
    config = json.loads(server.read_text())
    config["workflows"][0]["args"] |= {"study": study, "sites": list(SITES), "minutes": minutes}
    server.write_text(json.dumps(config))
    return path


@contextmanager
def simulated(folder, tmp_path, job):
    """Run a job in FLARE's simulator, where all clients share the folder `local`."""
    files = {site: folder / site / "site.toml" for site in SITES}
    files |= {"dealer": folder / "dealer" / "dealer.toml", "relay": folder / "relay" / "relay.toml"}
    workspace = tmp_path / "flare"
    (workspace / "local").mkdir(parents=True)
    (workspace / "local" / "vertibayes.json").write_text(
        json.dumps({name: str(file) for name, file in files.items()})
    )
    allowed = [f"vertibayes_nvflare.{name}" for name in COMPONENTS]
    (workspace / "local" / "resources.json").write_text(
        json.dumps({"format_version": 2, "class_allow_list": allowed})
    )
    names = [*SITES, "dealer"]
    command = [sys.executable, "-m", "nvflare.cli", "simulator", str(job), "-w", str(workspace)]
    with (tmp_path / "flare.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "-c", ",".join(names), "-t", str(len(names))],
            env=ENVIRONMENT, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def reports_of(tmp_path):
    (path,) = (tmp_path / "flare").rglob("vertibayes_reports.json")
    return json.loads(path.read_text())


def test_a_job_runs_a_study_to_its_release_and_ends(folder, tmp_path):
    study = approved(folder)
    out, log = tmp_path / "out", folder / "east" / "site.log"
    with simulated(folder, tmp_path, write_job(tmp_path / "job", study)) as job:
        wait_until(lambda: log.exists() and " connected " in log.read_text())
        command = [sys.executable, "-m", "vertibayes", "learn", str(folder / "analyst/study.toml")]
        done = subprocess.run(
            [*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert job.wait(60) == 0, (tmp_path / "flare.log").read_text()
    plain = k2(PlainCounter(pooled(folder)), ordering=["age", "sex", "pulse", "drug", "outcome"])
    learned = json.loads((out / "structure.json").read_text())
    assert sorted(map(tuple, learned["edges"])) == sorted(plain.edges)
    reports = reports_of(tmp_path)
    for site in SITES:
        report = reports[site]
        assert (report["party"], report["state"], report["runs"]) == (site, "released", 1)
    assert "patient-" not in (tmp_path / "flare.log").read_text()


def test_a_study_that_no_owner_has_approved_starts_no_site(folder, tmp_path):
    with simulated(folder, tmp_path, write_job(tmp_path / "job", "ab" * 32)) as job:
        assert job.wait(90) == 0
    for report in (reports := reports_of(tmp_path)).values():
        assert report["state"] == "refused" and "not approved here" in report["reason"]
    assert set(SITES) <= set(reports)
    assert not any((folder / site / "site.log").exists() for site in SITES)
