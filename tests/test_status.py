"""docs/status.md: each row names a test that exists, and each value of an option has a row."""

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
