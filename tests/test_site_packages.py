"""What sites, dealer and relay are installed with."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "vertibayes.cli.app",
    "vertibayes.cli.approve",
    "vertibayes.cli.check",
    "vertibayes.cli.outputs",  # a site writes its own classifier
    "vertibayes.cli.status",
    "vertibayes.contract",  # a site derives the steps of an approved study
    "vertibayes_protocols.deployment.certificates",
    "vertibayes_protocols.deployment.running",
)
NOT_AT_SITES = ("matplotlib", "networkx", "pandas", "pgmpy", "rich", "scipy", "gmpy2", "opendp")


@pytest.mark.parametrize("blocked", [NOT_AT_SITES, ("numpy",)], ids=["site", "control"])
def test_the_commands_of_a_site_import_no_package_of_analysts(blocked):
    """The control blocks a package that sites need: the test detects an import."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n"
        f"import importlib; [importlib.import_module(name) for name in {COMMANDS}]"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode == 0) == (blocked == NOT_AT_SITES), ran.stderr


def entries(name):
    """Return the packages of a lock, each with its version and hashes."""
    text = (ROOT / name).read_text()
    return set(re.findall(r"^[a-z0-9].*(?:\n    .*)*", text, re.MULTILINE))


def test_the_lock_of_sites_is_a_part_of_the_tested_lock():
    site, whole = entries("requirements-site.lock"), entries("requirements.lock")
    assert site <= whole and len(site) < len(whole) / 5
    assert {entry.split("==")[0] for entry in site} >= {
        "numpy", "cryptography", "jinja2", "typer", "websockets",
    }  # fmt: skip
