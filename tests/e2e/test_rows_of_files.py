"""Files of different people with the same columns, beside a file of everybody: learned as one."""

import csv
import json

import numpy as np
import pytest

from tests.e2e.command import learn

PEOPLE = {"a": range(90), "b": range(90, 180), "c": range(180)}
COLUMNS = {"a": "xy", "b": "xy", "c": "z", "pooled": "xyz"}


def write(folder, values):
    """Write the files of the three sites, and of all together; each in an order of its own."""
    for number, (site, names) in enumerate(COLUMNS.items()):
        people = np.random.default_rng(number).permutation(PEOPLE.get(site, range(180)))
        with (folder / f"{site}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", *names])
            rows.writerows([[f"p{who}", *(values[n][who] for n in names)] for who in people])
    sites = [each for site in "abc" for each in ("--data", f"{site}={folder / site}.csv")]
    return [*sites, "--id-column", "id", "--align", "exact"]


@pytest.fixture
def values():
    draw = np.random.default_rng(3)
    x = draw.integers(0, 3, 180)
    y = np.where(draw.random(180) < 0.7, x, draw.integers(0, 3, 180))
    z = np.where(draw.random(180) < 0.7, y, draw.integers(0, 3, 180))
    states = np.array(["low", "mid", "top"])
    return {"x": states[x], "y": states[y], "z": states[z]}


def test_files_with_rows_of_one_column_are_learned_as_their_pooled_file(capsys, tmp_path, values):
    files = write(tmp_path, values)
    pooled = ["--data", tmp_path / "pooled.csv", "--id-column", "id", "--sites", 2]
    found = []
    for out, given in ((tmp_path / "rows", files), (tmp_path / "whole", pooled)):
        code, _, error = learn(capsys, out, *given, "--algorithm", "k2")
        assert code == 0, error
        summary = json.loads((out / "summary.json").read_text())
        structure = json.loads((out / "structure.json").read_text())
        found.append((structure, summary["scores"], summary["records"]))
    assert found[0] == found[1]


def test_a_state_that_only_one_file_has_is_named(capsys, tmp_path, values):
    values["y"][100] = "new"
    code, output, error = learn(capsys, tmp_path / "out", *write(tmp_path, values))
    assert code == 2 and not output and not (tmp_path / "out").exists()
    assert "a and b declare the column 'y' with different states" in error
    assert "only b has 'new'" in error
