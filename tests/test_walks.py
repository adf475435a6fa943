"""The walks of docs/design.md, from a command to its arithmetic, are the calls that happen."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from vertibayes.cli import main

ROOT = Path(__file__).parents[1]
RECORDS = np.random.default_rng(0).integers(0, 2, (200, 4))


def walks():
    """Return the walks by command: the numbered names below each heading."""
    text = (ROOT / "docs" / "design.md").read_text()
    parts = re.split(r"^### The walk of `vertibayes ([^`]+)`$", text, flags=re.M)[1:]
    commands = dict(zip(parts[::2], parts[1::2], strict=True))
    return {
        command: re.findall(r"^\d+\. `([\w.]+)`", part.split("\n#")[0], flags=re.M)
        for command, part in commands.items()
    }


def name_of(frame):
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT):
        return ""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return f"{module}.{frame.f_code.co_qualname}"


def stacks_at(last, run):
    """Return the names of all callers, outermost first, each time that a function is called."""
    stacks = set()

    def note(frame, event, _):
        if event == "call" and last.endswith(f".{frame.f_code.co_qualname}"):
            names = []
            while frame is not None:
                names.append(name_of(frame))
                frame = frame.f_back
            stacks.add(tuple(reversed(names)))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return stacks


def goes_through(stack, walk):
    left = iter(stack)
    return all(name in left for name in walk)


def run(command, folder, *options):
    table = folder / "table.csv"
    rows = [",".join("abcd"), *(",".join(f"s{code}" for code in row) for row in RECORDS)]
    table.write_text("\n".join(rows) + "\n")
    arguments = [*command.split(), "--data", table, "--out", folder / "out", "--quiet", *options]
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert not stop.value.code


OPTIONS = {
    "learn": ["--sites", 3, "--bootstrap", 0],
    "learn --release cut": ["--sites", 3, "--algorithm", "k2", "--bootstrap", 0],
    "calibrate": ["--target", "d", "--nodes", 3, "--rounds", 2],
    "nb": ["--target", "d", "--method", "hdpnb", "--parties", 3, "--noise", "none"],
}


@pytest.mark.parametrize("command", OPTIONS)
def test_a_walk_is_a_chain_of_calls(command, tmp_path):
    walk = walks()[command]
    assert 6 <= len(walk) <= 12
    stacks = stacks_at(walk[-1], lambda: run(command, tmp_path, *OPTIONS[command]))
    assert any(goes_through(stack, walk) for stack in stacks)
    assert not any(goes_through(stack, [*walk[1:], walk[0]]) for stack in stacks)
