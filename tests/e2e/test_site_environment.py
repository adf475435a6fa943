"""Sites, dealer and relay from the packages of `requirements-site.lock` alone."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.e2e.processes import LIMIT, free_address
from tests.protocols.deployment.parties import SITES, deployment, pooled
from vertibayes.bif import write_bif
from vertibayes.counting import PlainCounter
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes_protocols.deployment.certificates import provision

pytestmark = pytest.mark.machines

ROOT = Path(__file__).parents[2]
ANALYSTS = ("pandas", "matplotlib", "pgmpy", "scipy", "networkx", "rich", "docker", "gunicorn")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return the Python of an environment that was installed as docs/deploy.md says."""
    folder = tmp_path_factory.mktemp("site") / "venv"
    venv.create(folder, with_pip=True)
    lock = str(ROOT / "requirements-site.lock")
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True)
    source = folder.parent / "source"
    names = ("mpc", "protocols", "vertibayes", "pyproject.toml", "README.md", "LICENSE")
    source.mkdir()
    for name in names:
        subprocess.run(["cp", "-r", ROOT / name, source / name], check=True)
    subprocess.run([*pip, str(source)], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def folder(tmp_path):
    folder = deployment(tmp_path / "all", address=free_address())
    provision(folder, [*SITES, "dealer", "analyst"], "127.0.0.1")
    for path in folder.glob("*/*.toml"):
        for key in ("root", "certificate", "key"):
            path.write_text(path.read_text().replace(f"# {key} =", f"{key} ="))
    return folder


def start(python, kind, file, until):
    command = [python, "-P", "-m", "vertibayes", kind, str(file)]
    process = subprocess.Popen(command, cwd=file.parent, stderr=subprocess.PIPE, text=True)
    lines = []
    while until not in (line := process.stderr.readline()):
        lines.append(line)
        assert line, f"{kind} ended: {''.join(lines)}"
    return process


def test_the_packages_of_analysts_are_not_installed(environment):
    code = f"import importlib.util as u; print([n for n in {ANALYSTS} if u.find_spec(n)])"
    assert subprocess.check_output([environment, "-P", "-c", code], text=True).strip() == "[]"


def test_sites_dealer_and_relay_run_without_the_packages_of_analysts(environment, folder, tmp_path):
    kinds = {"relay": "relay", "dealer": "dealer", **dict.fromkeys(SITES, "site")}
    started = []
    try:
        for party, kind in kinds.items():
            until = "listening" if kind == "relay" else "connected"
            started.append(start(environment, kind, folder / party / f"{kind}.toml", until))
        study = folder / "analyst" / "study.toml"
        command = [sys.executable, "-m", "vertibayes", "learn", str(study), "--out", "out"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT,
                             env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        status = [environment, "-P", "-m", "vertibayes", "status", str(folder / "relay/relay.toml")]
        assert "relay relay runs" in subprocess.check_output(status, text=True)
    finally:
        for process in started:
            process.terminate()
            process.communicate(timeout=LIMIT)
    plain = learn(PlainCounter(pooled(folder)), Options())
    assert (tmp_path / "out" / "model.bif").read_text() == write_bif(plain.network)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "north/site.toml"], "north/site.toml"),
        (["approve", "--list", "--site", "north/site.toml"], ""),
        (["approve", "analyst/study.toml", "--site", "north/site.toml", "--yes"], "[release]"),
        (["keygen", "--out", "new.key"], ""),
        (["--help"], "status"),
    ],
)
def test_the_commands_of_a_site_run_there_too(environment, folder, arguments, said):
    command = [environment, "-P", "-m", "vertibayes", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode in (0, 2) and "Traceback" not in ran.stderr, ran.stderr
    assert said in ran.stdout + ran.stderr


def test_an_owner_reads_there_what_leaves(environment, tmp_path):
    folder = deployment(tmp_path / "all", free=False)
    command = [environment, "-P", "-m", "vertibayes", "approve", "analyst/study.toml", "--yes"]
    shown = subprocess.check_output([*command, "--site", "north/site.toml"], cwd=folder, text=True)
    assert "What the rule does not protect:" in shown
