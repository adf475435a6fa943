"""The commands of docs/tutorial.md as they are written, and what the page says that they print."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.documents import ROOT
from tests.e2e.processes import LIMIT, free_address
from tests.page_commands import assert_shown, blocks, commands_of, fails, run_here

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
ONE_MACHINE, SEVERAL_PROCESSES = PAGE.split("\n## Part 2")
EDGES = {
    frozenset(pair)
    for pair in (
        ("age", "pressure"), ("smoker", "infarct"), ("pressure", "infarct"), ("smoker", "cough")
    )
}  # fmt: skip


def edges_of(results):
    assert (results / "report.html").is_file(), "the page says that it can be opened"
    edges = json.loads((results / "structure.json").read_text())["edges"]
    return {frozenset(edge) for edge in edges}


def test_the_first_part_runs_as_it_is_written(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    found = blocks(ONE_MACHINE)
    assert len(found) == 5 and not any(map(fails, found))
    for block in found:
        codes, printed = run_here(block, capfd, tmp_path)
        assert not any(codes), printed
        assert_shown(block, printed)
    assert edges_of(tmp_path / "second") == edges_of(tmp_path / "third") == EDGES


@pytest.mark.machines
def test_the_second_part_runs_as_it_is_written(tmp_path):
    trial = tmp_path / "trial"
    trial.mkdir()
    tools = "".join(c for b in blocks(ONE_MACHINE) for c in commands_of(b.commands) if is_tool(c))
    shell(tools, tmp_path)
    found = blocks(SEVERAL_PROCESSES)
    parts = shell(script(found), tmp_path).split("@@@ next\n")
    assert len(parts) == len(found) + 1 == 7
    for block, printed in zip(found, parts, strict=False):
        assert_shown(block, printed)
    assert edges_of(trial / "parties" / "analyst" / "results") == EDGES


def is_tool(command):
    return not command.startswith("vertibayes ")


def script(found):
    """Return all blocks as one script, which marks where each of them ends."""
    text = "\necho '@@@ next'\n".join([*(block.commands for block in found), ""])
    return text.replace("127.0.0.1:8102", free_address())


def shell(commands, folder):
    """Run a script in the folder `trial`; return what it prints, errors included."""
    program = folder / "vertibayes"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m vertibayes "$@"\n')
    program.chmod(0o755)
    said = folder / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            ["sh", "-c", commands], cwd=folder / "trial", stdout=file, stderr=subprocess.STDOUT,
            env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(timeout=LIMIT)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the parties that the page has started
    return said.read_text()
