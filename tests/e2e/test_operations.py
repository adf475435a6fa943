"""The commands of docs/operations.md, as they are written, from top to bottom."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vertibayes_protocols.deployment.bundle import roster_in
from vertibayes_protocols.deployment.files import DealerFile, SiteFile, StudyFile, own_keys

ROOT = Path(__file__).parents[2]

DIGEST = r"""digest="$(vertibayes roster show \2 | sed -n 's/^Digest: //p')"
\1\2 --digest "$digest")"""


def blocks():
    """Return the page's commands; a fetch gets the digest that a person would type."""
    text = (ROOT / "docs" / "operations.md").read_text()
    found = "\n".join(re.findall(r"(?ms)^```\n(.*?)^```$", text))
    found = found.replace("approve study.toml)", "approve study.toml --yes)")
    return re.sub(r"(?m)^(for .* vertibayes fetch \.\./)(\S+\.json)\)", DIGEST, found)


@pytest.mark.machines
def test_a_year_of_a_consortium_runs_as_it_is_written(tmp_path, monkeypatch):
    commands = blocks()
    assert commands.count("--digest") == commands.count("vertibayes fetch ") == 5
    (tmp_path / "bin").mkdir()
    (tmp_path / "year").mkdir()
    program = tmp_path / "bin" / "vertibayes"
    python = f"PYTHONPATH={ROOT}:{ROOT}/mpc:{ROOT}/protocols exec {sys.executable}"
    program.write_text(f'#!/bin/sh\n{python} -m vertibayes "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    said = tmp_path / "said"
    with said.open("w") as file:
        shell = subprocess.Popen(
            ["sh", "-e", "-c", commands], cwd=tmp_path / "year", stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            assert shell.wait(timeout=540) == 0, said.read_text()
        finally:
            os.killpg(shell.pid, signal.SIGKILL)  # the parties that the page has started
    printed = said.read_text()
    assert "key changed: site clinic" in printed and "left:        site registry" in printed
    assert "site clinic runs" in printed
    assert "RELEASED  to ana: 3 tables with 12 cells" in printed
    parties = tmp_path / "year"
    assert (parties / "ana" / "results" / "model.json").exists()
    files = {
        party: SiteFile.read(parties / party / "site.toml") for party in ("clinic", "hospital")
    }
    files["dealer"] = DealerFile.read(parties / "dealer" / "dealer.toml")
    files["ana"] = StudyFile.read(parties / "ana" / "study.toml")
    assert files["clinic"].key.name == "clinic.2.key"
    assert files["hospital"].key.name == "hospital.2.key"
    roster = roster_in(parties / "coordinator" / "bundle-5.json")
    assert [old.why for old in roster.retired] == ["rotated", "revoked", "revoked"]
    for party, file in files.items():
        assert file.roster == roster
        assert own_keys(file).public == roster.by_name[party].key
    assert "registry" not in files["clinic"].pinned
