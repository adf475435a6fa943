"""A study that a job of NVIDIA FLARE runs, in a provisioned federation of its proof of concept."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager, suppress
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

pytest.importorskip(
    "nvflare", reason="NVFlare is not installed: pip install ./integrations/nvflare"
)

from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.fuel.flare_api.flare_api import new_secure_session

from tests.e2e.processes import LIMIT, free_address, until
from tests.e2e.test_up import processes_of
from tests.protocols.deployment.parties import SITES, deployment, pooled, without_relay
from vertibayes import PlainCounter, k2
from vertibayes.cli.contracts import contract_of
from vertibayes.cli.up import approve_for_practice
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.transports.carried import CarriedLink

# FLARE's client connects in a thread, whose warning must not become an error: it would not connect.
pytestmark = pytest.mark.filterwarnings("ignore:ssl_context is deprecated:DeprecationWarning")

ROOT = Path(__file__).parents[2]
JOB = ROOT / "integrations" / "nvflare"
CLIENTS = [*SITES, "dealer", "analyst"]
FILES = {**dict.fromkeys(SITES, "site.toml"), "dealer": "dealer.toml", "analyst": "study.toml"}
ALLOWED = {
    "localhost": "controller.StudyController",
    **dict.fromkeys(CLIENTS, "executor.PartyExecutor"),
}
ADMIN = "admin@example.org"
RIGHTS = "submit_job", "manage_job", "download_job", "view", "operate"


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
        rights = json.loads((kit / "local" / "authorization.json.default").read_text())
        for role, own in rights["permissions"].items():
            listed = dict.fromkeys(RIGHTS, "any") if own == "any" else own
            rights["permissions"][role] = {**listed, "byoc": "none"}
        (kit / "local" / "authorization.json").write_text(json.dumps(rights))
        parties = {name: str(folder / name / FILES[name])}
        parties |= {"results to the server": True} if name == "analyst" else {}
        (kit / "local" / "vertibayes.json").write_text(json.dumps(parties))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The parties' folders."""
    folder = deployment(tmp_path_factory.mktemp("parties") / "all", free=False)
    for name in CLIENTS:
        without_relay(folder / name / FILES[name])
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("flare")


@pytest.fixture(scope="module")
def session(folder, place):
    """Run a federation of provisioned startup kits, and log in as its administrator.

    A session of FLARE 2.9 that begins before the server listens may hang for ever: this one waits.
    """
    (place / "project.yml").write_text(json.dumps(project(int(free_address().rpartition(":")[2]))))
    roots = ROOT, ROOT / "mpc", ROOT / "protocols", JOB
    environment = {
        **os.environ,
        "HOME": str(place),
        "NVFLARE_POC_WORKSPACE": str(place / "poc"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, roots)),
    }

    def poc(*arguments):
        with (place / "poc.log").open("a") as log:
            subprocess.run(
                [sys.executable, "-m", "nvflare.cli", "poc", *arguments], cwd=place,
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                check=True, timeout=LIMIT, start_new_session=True,
            )  # fmt: skip

    poc("prepare", "-i", "project.yml")
    kits = place / "poc" / "consortium" / "prod_00"
    for name in ["localhost", *CLIENTS]:
        configure(kits / name, name, folder)
    try:
        poc("start", "--no-wait")
        log = kits / "localhost" / "log.txt"
        until(lambda: log.exists() and all(f"client {c} reg" in log.read_text() for c in CLIENTS))
        session = new_secure_session(ADMIN, str(kits / ADMIN), timeout=60)
        yield session
        session.close()
    finally:
        for name in ["localhost", *CLIENTS]:  # as the startup kit's stop_fl.sh
            (kits / name / "shutdown.fl").touch()
        until(lambda: processes_of(place) == processes_of(folder) == [])


def processes():
    """Yield the number and the command line of each process."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield (
                int(path.parent.name),
                path.read_bytes().replace(b"\0", b" ").decode(errors="replace"),
            )


def submit(session, tmp_path, study):
    """Submit a job that its README describes, and return its id."""
    path = Path(tempfile.mkdtemp(dir=tmp_path)) / "job"  # FLARE signs it where it lies, once
    shutil.copytree(JOB / "job", path)
    server = path / "app" / "config" / "config_fed_server.json"
    config = json.loads(server.read_text())
    config["workflows"][0]["args"] |= {"study": study, "sites": list(SITES), "minutes": 20}
    server.write_text(json.dumps(config))
    return session.submit_job(str(path))


def done(session, tmp_path, job):
    """Wait for a job; return its status, the parties' reports, and its folder."""
    status = session.wait_for_job(job, LIMIT)["status"]
    path = Path(session.download_job_result(job, str(tmp_path / "downloads")))
    (reports,) = path.rglob("vertibayes_reports.json")
    return status, json.loads(reports.read_text()), reports.parent


def test_a_study_that_nobody_has_approved_is_not_run(session, folder, tmp_path):
    status, reports, _ = done(session, tmp_path, submit(session, tmp_path, "ab" * 32))
    assert "EXCEPTION" in status
    refused = [report for report in reports.values() if report["state"] == "refused"]
    assert refused and all("not approved here" in report["reason"] for report in refused)
    assert not any((folder / site / "site.log").exists() for site in SITES)


def test_a_study_whose_job_was_killed_is_released_by_the_next_job(session, folder, place, tmp_path):
    path, log = folder / "analyst" / "study.toml", folder / "east" / "site.log"
    file = StudyFile.read(path)
    files = {site: folder / site / "site.toml" for site in SITES}
    approve_for_practice(file, files, quiet=True)
    study = contract_of(file).digest.hex()

    killed = submit(session, tmp_path, study)
    until(lambda: log.exists() and "answered query=choose" in log.read_text())
    (job,) = [
        pid for pid, line in processes() if "worker_process" in line and "prod_00/south" in line
    ]
    os.kill(job, signal.SIGKILL)
    assert "EXCEPTION" in session.wait_for_job(killed, LIMIT)["status"]
    until(lambda: processes_of(folder) == [])

    status, reports, workspace = done(session, tmp_path, submit(session, tmp_path, study))
    assert status == "FINISHED:COMPLETED", reports
    assert "resuming the run after" in (folder / "analyst" / "study.log").read_text()
    for site in SITES:
        report = reports[site]
        assert (report["party"], report["state"], report["runs"]) == (site, "released", 1)
    plain = k2(PlainCounter(pooled(folder)), ordering=["age", "sex", "pulse", "drug", "outcome"])
    with ZipFile(workspace / "vertibayes_results.zip") as results:
        learned = json.loads(results.read("structure.json"))
    assert sorted(map(tuple, learned["edges"])) == sorted(plain.edges)
    logs = [path.read_text() for path in place.rglob("*log*.txt")]
    assert logs and not any("patient-" in text for text in logs)


class Engine:
    """The engine of a job's client, which hands requests to the other's courier."""

    def __init__(self, works=lambda: True):
        self.works, self.other, self.topics = works, None, {}

    def register_aux_message_handler(self, topic, handler):
        self.topics[topic] = handler

    @contextmanager
    def new_context(self):
        peer = FLContext()
        peer.put("__identity_name__", "clinic", private=False, sticky=False)
        context = FLContext()
        context.set_peer_context(peer)
        yield context

    def send_aux_request(self, names, topic, request, timeout, fl_ctx, optional):
        reply = self.other.topics[topic](topic, request, fl_ctx)
        return {names[0]: reply} if self.works() else {}  # its receipt is lost


def test_a_packet_whose_receipt_is_lost_is_sent_again_and_taken_once(monkeypatch):
    monkeypatch.syspath_prepend(str(JOB))
    from vertibayes_nvflare.courier import Courier

    lost = iter([False])
    near, far = Engine(lambda: next(lost, True)), Engine()
    near.other = far
    sender, receiver = Courier(near), Courier(far)
    pipes = [Pipe(), Pipe()]
    ends = [c.carry(ours) for c, (ours, _) in zip((sender, receiver), pipes, strict=True)]
    clinic, dealer = (CarriedLink(theirs) for _, theirs in pipes)
    with clinic, dealer, closing(ends[0]), closing(ends[1]):
        for packet in (b"one", b"two"):
            assert clinic.deliver({"dealer": packet}, 5.0) == {}
        assert [dealer.receive(5.0) for _ in "12"] == [("clinic", b"one"), ("clinic", b"two")]
        assert dealer.receive(0.0) is None


def test_a_packet_that_a_later_one_has_overtaken_is_handed_over(monkeypatch):
    monkeypatch.syspath_prepend(str(JOB))
    from vertibayes_nvflare.courier import EPOCH, NUMBER, PACKET, TOPIC, Courier

    engine, (ours, theirs) = Engine(), Pipe()
    with closing(Courier(engine).carry(ours)), CarriedLink(theirs) as dealer:
        with engine.new_context() as context:
            for number in (6, 5, 6):
                request = Shareable({EPOCH: bytes(16), NUMBER: number, PACKET: b"%d" % number})
                assert engine.topics[TOPIC](TOPIC, request, context).get_return_code() == "OK"
        received = [dealer.receive(1.0) for _ in "12"]
        assert received == [("clinic", b"6"), ("clinic", b"5")] and dealer.receive(0.0) is None


def test_results_go_to_the_server_only_if_the_analysts_administrator_says_so(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(JOB))
    from vertibayes_nvflare.parties import Parties

    workspace = SimpleNamespace(get_site_config_dir=lambda: str(tmp_path))
    context = SimpleNamespace(get_engine=lambda: SimpleNamespace(get_workspace=lambda: workspace))
    assert Parties.read(context) == Parties({}, False)
    own, sends = {"analyst": "/srv/analyst/study.toml"}, "results to the server"
    for values, expected in [(own, False), ({**own, sends: True}, True)]:
        (tmp_path / "vertibayes.json").write_text(json.dumps(values))
        assert Parties.read(context).sends_results is expected
    for wrong in ({**own, sends: "yes"}, {"analyst": "study.toml"}, ["analyst"]):
        (tmp_path / "vertibayes.json").write_text(json.dumps(wrong))
        with pytest.raises(ValueError, match="is not valid"):
            Parties.read(context)
