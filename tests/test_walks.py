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
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"


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


def written(path, columns):
    """Write a file of records, each with the number of a person."""
    header = ",".join(["id", *("abcd"[column] for column in columns)])
    rows = [
        ",".join([str(person), *(f"s{code}" for code in row[columns])])
        for person, row in enumerate(RECORDS)
    ]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def files(folder, command):
    """Return the options that name the data: one file, or those of two sites."""
    if "--align" not in command:
        return ["--data", written(folder / "table.csv", [0, 1, 2, 3]), "--exclude", "id"]
    halves = written(folder / "one.csv", [0, 1]), written(folder / "two.csv", [2, 3])
    return ["--data", f"one={halves[0]}", "--data", f"two={halves[1]}", "--id-column", "id"]


def run(command, folder, *options):
    given = [*files(folder, command), "--out", folder / "out", "--quiet", *options]
    if command == "report":
        given = [folder / "out"]
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), *map(str, given)])
    assert not stop.value.code


OPTIONS = {
    "learn": ["--sites", 3, "--bootstrap", 0],
    "learn --count-by scalar-product": ["--sites", 3, "--bootstrap", 0],
    "learn --release cut": ["--sites", 3, "--algorithm", "k2", "--bootstrap", 0],
    "learn --align digits": ["--algorithm", "k2", "--bootstrap", 0],
    "calibrate": ["--target", "d", "--nodes", 3, "--rounds", 2],
    "report": [],
    "nb": ["--target", "d", "--method", "hdpnb", "--parties", 3, "--noise", "none"],
}


@pytest.mark.parametrize("command", OPTIONS)
def test_a_walk_is_a_chain_of_calls(command, tmp_path):
    walk = walks()[command]
    assert 6 <= len(walk) <= 12
    if command == "report":
        run("learn", tmp_path, *OPTIONS["learn"])
    stacks = stacks_at(walk[-1], lambda: run(command, tmp_path, *OPTIONS[command]))
    assert any(goes_through(stack, walk) for stack in stacks)
    assert not any(goes_through(stack, [*walk[1:], walk[0]]) for stack in stacks)
