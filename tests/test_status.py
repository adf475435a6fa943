"""Tests that pages name exist: docs/status.md, docs/guarantees.md, docs/threat-model.md.

Each value of an option has a row in docs/status.md.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from vertibayes import settings
from vertibayes.structure.algorithms import ALGORITHMS

ROOT = Path(__file__).resolve().parents[1]
STATES = {"works", "experimental"}
OPTIONS = [
    *settings.LEARNING, *settings.VALIDATION, *settings.RELEASE_OPTIONS, *settings.NAIVE_BAYES,
    *settings.CALIBRATION,
]  # fmt: skip


class Row(NamedTuple):
    """A method or a feature, its state, the tests that show it, and its limits."""

    what: str
    state: str
    test: str
    limits: str


def rows():
    text = (ROOT / "docs" / "status.md").read_text()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in re.findall(r"(?m)^\|.*\|$", text)]
    found = [[cell.strip() for cell in line] for line in cells]
    return [Row(*line) for line in found if line[0] != "what" and set(line[0]) != {"-"}]


@cache
def functions_of(path):
    """Return the names of the tests in a file, which is read and not run."""
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def unknown(test):
    """Return what is wrong with the name of a test, as `file.py::test_name`; None if it exists."""
    name, _, function = test.partition("::")
    path = ROOT / name if name.startswith("integrations/") else ROOT / "tests" / name
    if not path.is_file():
        return f"{test}: no such file"
    if not function.startswith("test_") or function not in functions_of(path):
        return f"{test}: no such test in the file"
    return None


def test_each_row_has_a_state_and_tests_that_exist():
    assert len(rows()) > 60
    for row in rows():
        assert row.state in STATES, row
        named = re.findall(r"`([^`]+::[^`]+)`", row.test)
        assert named, f"{row.what}: no test is named"
        assert [unknown(test) for test in named] == [None] * len(named)
        assert row.state == "works" or row.limits, f"{row.what} is experimental; say why"


def test_no_feature_has_two_rows():
    named = [row.what for row in rows()]
    assert sorted(set(named)) == sorted(named)


@pytest.mark.parametrize(
    "test", ["test_status.py::test_nothing", "test_nothing.py::test_a", "test_status.py"]
)
def test_a_test_that_does_not_exist_is_found(test):
    assert unknown(test) is not None


def values():
    """Yield each value of each option of which the command line has a list, as a row names it."""
    for setting in OPTIONS:
        yield from (f"--{setting.name.replace('_', '-')} {value}" for value in setting.choices)
    yield from (f"--algorithm {name}" for name in ALGORITHMS)
    yield from (f"--network {name}" for name in settings.NETWORKS)
    yield from (f"--drift {name}" for name in get_args(settings.Drift))
    yield from (f"learner {value}" for value in settings.LEARNER.choices)


def test_each_value_of_an_option_has_a_row():
    described = {value for row in rows() for value in re.findall(r"`([^`]+)`", row.what)}
    assert len(set(values())) > 50
    assert not [value for value in values() if value not in described]


# ---- guarantees and the threat model -------------------------------------------------------------


def files_in(page):
    """Return the files of tests that a page names, by their paths below `tests/`."""
    return re.findall(r"`((?:\w+/)*test_\w+\.py)`", page)


def guarantees():
    return (ROOT / "docs" / "guarantees.md").read_text()


def test_each_test_of_a_guarantee_exists():
    named = files_in(guarantees())
    assert len(named) > 70
    assert not [name for name in named if not (ROOT / "tests" / name).is_file()]


def test_each_row_of_the_guarantees_names_a_test():
    """Of a row, what is in code must all be files of tests: nothing else would be checked."""
    lines = re.findall(r"(?m)^\| (?!\| guarantee|attack|error).*\|$", guarantees())
    assert len(lines) > 30
    for line in lines:
        named = files_in(line)
        assert named and len(named) == len(re.findall(r"`[^`]+`", line)), line


def test_each_file_of_privacy_tests_guards_a_guarantee_or_shows_a_limit():
    named = set(files_in(guarantees()))
    files = {f"privacy/{path.name}" for path in (ROOT / "tests" / "privacy").glob("test_*.py")}
    assert len(files) > 40
    assert not sorted(files - named)


def test_each_test_that_the_threat_model_names_exists():
    """By the name of its file, or of its function."""
    page = (ROOT / "docs" / "threat-model.md").read_text()
    named = set(re.findall(r"`(?:tests/(?:\w+/)*)?(test_\w+)(?:\.py)?`", page))
    paths = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}
    functions = {name for path in paths.values() for name in functions_of(path)}
    assert len(named) > 40
    assert not sorted(named - paths.keys() - functions)


def test_a_file_without_a_folder_is_found_in_a_page():
    """The control of the tests above."""
    page = "| `test_a.py` | `privacy/test_b.py`, `privacy/test_c`, `d.py` |"
    assert files_in(page) == ["test_a.py", "privacy/test_b.py"]
