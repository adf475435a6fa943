"""What runs on a system without the names that Windows lacks: imports, and the analyst's commands.

A simulation, because the tests run on Linux: it removes modules and names, and changes no paths.
"""

import subprocess
import sys

import pytest

from vertibayes_protocols.deployment.templates import Names, init

WITHOUT = """
import os, signal, sys
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios")))
for module, names in (
    (os, ("O_NOFOLLOW", "fchmod", "fork", "getuid", "geteuid", "killpg")),
    (signal, ("SIGALRM", "SIGHUP", "SIGUSR1")),
):
    for name in names:
        delattr(module, name)
"""
IMPORTS = """
import importlib, pkgutil
for package in ("vertibayes_mpc", "vertibayes_protocols", "vertibayes"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
"""
COMMAND = "from vertibayes.cli import main; main(sys.argv[1:])"


def run(folder, code, *arguments):
    command = [sys.executable, "-c", WITHOUT + code, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_module_is_imported(tmp_path):
    ran = run(tmp_path, IMPORTS)
    assert ran.returncode == 0, ran.stderr


def test_an_analyst_learns_from_a_file(tmp_path):
    rows = [f"{person},{person % 2},{person % 3}" for person in range(60)]
    (tmp_path / "records.csv").write_text("\n".join(["id,a,b", *rows]) + "\n")
    given = ["--data", "records.csv", "--id-column", "id", "--sites", 2, "--out", "out"]
    ran = run(tmp_path, COMMAND, "learn", *given, "--quiet", "--bootstrap", 0)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out" / "model.bif").exists()


@pytest.mark.parametrize(
    "arguments", [("relay", "relay/relay.toml"), ("learn", "analyst/study.toml", "--out", "out")]
)
def test_a_party_does_not_start_and_says_what_to_do(tmp_path, arguments):
    init(tmp_path / "all", Names(("a", "b")), practice=True)
    ran = run(tmp_path / "all", COMMAND, *arguments)
    assert ran.returncode == 2
    assert ran.stderr.startswith("vertibayes: ") and ran.stderr.count("\n") == 1
    assert "cannot be locked on this system: use Linux or macOS" in ran.stderr
