"""Missing cells and validation on the command line."""

from __future__ import annotations

import json
import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.e2e.command import learn, outputs, predict, read_rows, write
from vertibayes.bif import read_bif_file


@pytest.fixture(scope="module")
def gaps_file(tmp_path_factory, gaps):
    """Ten columns of ALARM, a tenth of the cells of eight of them empty."""
    texts = [np.array([*v.states, ""])[gaps.codes[n]] for n, v in gaps.variables.items()]
    path = tmp_path_factory.mktemp("gaps") / "gaps.csv"
    return write(path, list(gaps.variables), zip(*texts, strict=True))


def test_missing_cells_filled_by_em(tmp_path, capsys, gaps_file):
    data = ["--data", gaps_file, "--sites", 3]
    assert learn(capsys, tmp_path / "em", *data)[0] == 0, "the default where cells are missing"
    assert learn(capsys, tmp_path / "available", *data, "--missing", "available")[0] == 0
    em, available = (read_bif_file(tmp_path / n / "model.bif") for n in ("em", "available"))
    assert em.structure == available.structure
    assert any(not np.allclose(em.cpts[n], available.cpts[n], atol=1e-4) for n in em.cpts)
    scores = [outputs(tmp_path / n)[1]["scores"] for n in ("em", "available")]
    assert scores[0] == scores[1], "both score the structure over available cases"


def test_wider_tables_open_no_more_cells_than_allowed(tmp_path, capsys, gaps_file):
    data = ["--data", gaps_file, "--sites", 3, "--max-parents", 1]
    summaries = []
    for cells in (0, 500):
        code, *_ = learn(capsys, tmp_path / str(cells), *data, "--wider-cells", cells)
        assert code == 0
        summaries.append(outputs(tmp_path / str(cells))[1])
    steps = summaries[1]["widened"]
    assert not summaries[0]["widened"] and 0 < sum(step["cells"] for step in steps) <= 500
    more = summaries[1]["opened"]["cells"] - summaries[0]["opened"]["cells"]
    assert 0 < more <= sum(step["cells"] for step in steps)


@pytest.mark.parametrize("missing", ["em", "synthetic", "available", "state"])
def test_synthetic_records_are_written(tmp_path, capsys, gaps_file, gaps, missing):
    code, *_ = learn(
        capsys, tmp_path / "out", "--data", gaps_file, "--sites", 2, "--missing", missing,
        "--write-synthetic", "--synthetic-records", 500, "--max-parents", 1,
    )  # fmt: skip
    header, *rows = read_rows(tmp_path / "out" / "synthetic.csv")
    assert code == 0 and header == list(gaps.variables) and len(rows) == 500
    lost = [sum(row[place] == "" for row in rows) for place in range(10)]
    assert min(lost[:8]) > 20 and max(lost[8:]) == 0, "as in the records"
    counts = Counter(row[0] for row in rows)
    assert set(counts) <= {*gaps.variables[header[0]].states, ""}


def test_validation(tmp_path, capsys, gaps, gaps_file):
    header, path = list(gaps.variables), gaps_file
    code, *_ = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 3, "--missing", "synthetic",
        "--synthetic-records", 1000, "--em-restarts", 1, "--target", header[0],
        "--validate", "public,scv,svdg", "--folds", 4, "--public", path, "--max-parents", 2,
    )  # fmt: skip
    assert code == 0
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    lost = int((gaps.codes[header[0]] == len(gaps.variables[header[0]].states)).sum())
    assert found["public"]["left_out"] == lost > 0 and found["public"]["scored"] == 2000 - lost
    for method, folds in (("public", 0), ("scv", 4), ("svdg", 4)):
        assert 0.5 < found[method]["auc"] <= 1 and len(found[method]["auc_by_fold"]) == folds
        assert found[method]["aic"] == outputs(tmp_path / "out")[1]["scores"]["aic"]
        picture = ElementTree.parse(tmp_path / "out" / f"validation-{method}.svg")
        assert f"{header[0]}, {method.upper()}" in "".join(picture.getroot().itertext())
    states = sorted(gaps.variables[header[0]].states)
    assert found["scv"]["confusion"]["states"] == states and set(found["scv"]["roc"]) == set(states)
    counts = np.array(found["public"]["confusion"]["records_by_true_and_predicted"])
    assert counts.sum() + found["public"]["impossible"] == 2000 - lost


def test_no_figure_is_not_a_number(tmp_path, capsys):
    """Folds with one class, a state no record has, records impossible under the model."""
    rows = [["a", "x", "x"]] * 110 + [["b", "y", "y"]] * 3 + [["", "x", "x"]] * 12
    path = write(tmp_path / "rare.csv", ["t", "u", "v"], rows)
    structure = tmp_path / "structure.json"
    structure.write_text('{"nodes": ["t", "u", "v"], "edges": [["t", "u"], ["u", "v"]]}')
    public = write(tmp_path / "public.csv", ["t", "u", "v"], ["axy", "byx", "axx", "byy"])
    code, _, warned = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 2, "--target", "t",
        "--validate", "public,scv,svdg", "--public", public, "--structure", structure,
    )  # fmt: skip
    assert code == 0, warned
    for file in (tmp_path / "out").iterdir():
        assert not re.search(r"\b(nan|inf|infinity)\b", file.read_text(), re.IGNORECASE), file
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert None in found["svdg"]["auc_by_fold"], "a fold with one class has no AUC"
    assert found["public"]["impossible"] == 2 and "ranked last" in warned
    code, told = predict(
        capsys, tmp_path, "--model", tmp_path / "out" / "model.bif", "--data", public,
        "--target", "t", "--out", tmp_path / "p.csv",
    )  # fmt: skip
    assert code == 0 and "2 records have probability zero" in told
    assert "nan" not in (tmp_path / "p.csv").read_text()
