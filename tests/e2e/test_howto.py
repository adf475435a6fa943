"""The recipes of docs/howto.md as they are written, on small invented files."""

import csv
import re

import numpy as np
import pytest

from tests.documents import ROOT
from tests.e2e.command import write
from tests.page_commands import blocks, run_here

PAGE = (ROOT / "docs" / "howto.md").read_text()
COLUMNS = ["id", "age", "smoker", "pressure", "ill"]


def people(number):
    """Return invented people, of whom some pressures are missing."""
    generator = np.random.default_rng(0)
    old, smokes = generator.random((2, number)) < [[0.5], [0.3]]
    high = generator.random(number) < np.where(old, 0.7, 0.2)
    ill = generator.random(number) < 0.05 + 0.3 * smokes + 0.4 * high
    words = [
        [f"{n + 1}" for n in range(number)],
        np.where(old, "old", "young"),
        np.where(smokes, "yes", "no"),
        np.where(generator.random(number) < 0.1, "", np.where(high, "high", "normal")),
        np.where(ill, "yes", "no"),
    ]
    return list(zip(*words, strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = people(400)
    write(tmp_path / "patients.csv", COLUMNS, rows)
    write(tmp_path / "hospital_a.csv", COLUMNS[:3], [row[:3] for row in rows])
    write(tmp_path / "hospital_b.csv", ["id", *COLUMNS[3:]], [(r[0], *r[3:]) for r in rows[::-1]])
    write(tmp_path / "new.csv", ["age", "pressure"], [("old", "high"), ("young", "")])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_recipes_run_as_they_are_written(folder, capfd):
    found = blocks(PAGE)
    assert len(found) > 12
    for block in found:
        codes, printed = run_here(block, capfd, folder)
        assert not any(codes), f"{block.commands}\n{printed}"
    with (folder / "predicted.csv").open() as file:
        assert [row["ill"] for row in csv.DictReader(file)] == ["yes", "no"]
    for results in ("together", "noisy", "calibrated"):
        assert (folder / results / "report.html").is_file()
    tables = (folder / "small" / "release" / "tables.csv").read_text()
    assert "counts below 10 as 0" in tables
    (code,) = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE)
    exec(compile(code, "docs/howto.md", "exec"), names := {})
    assert set(names["graph"].nodes) == set(COLUMNS[1:]) == set(names["other"].names())
    assert set(names["graph"].edges) == set(names["model"].edges())
