"""Missing cells and validation on the command line."""

from __future__ import annotations

import json
import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.e2e.command import learn, outputs, predict, read_rows, write
from vertibayes.network import read_model


@pytest.fixture(scope="module")
def gaps_file(tmp_path_factory, gaps):
    """Ten columns of ALARM, a tenth of the cells of eight of them empty."""
    texts = [np.array([*v.states, ""])[gaps.codes[n]] for n, v in gaps.variables.items()]
    path = tmp_path_factory.mktemp("gaps") / "gaps.csv"
    return write(path, list(gaps.variables), zip(*texts, strict=True))


def test_missing_cells_filled_by_em(tmp_path, capsys, gaps_file):
    data = ["--data", gaps_file, "--sites", 3]
    code, output, _ = learn(capsys, tmp_path / "em", *data)
    assert code == 0 and "CPTs: the counts that EM estimates from the exact tables, 0.5" in output
    code, output, _ = learn(capsys, tmp_path / "available", *data, "--missing", "available")
    assert code == 0 and "CPTs: the exact counts, 0.5 added to each" in output
    em, available = (read_model(tmp_path / n / "model.bif") for n in ("em", "available"))
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
    assert (
        found["public"]["left_out"] == lost > 0
        and sum(found["public"][k] for k in ("scored", "left_out")) == 2000
    )
    for method, folds in (("public", 0), ("scv", 4), ("svdg", 4)):
        assert 0.5 < found[method]["auc"] <= 1 and len(found[method]["auc_by_fold"]) == folds
        assert found[method]["aic"] == outputs(tmp_path / "out")[1]["scores"]["aic"]
        picture = ElementTree.parse(tmp_path / "out" / f"validation-{method}.svg")
        text = "".join(picture.getroot().itertext())
        assert f"{header[0]}, {method.upper()} on " in text
        assert ("synthetic records" in text) == (method != "public")
        assert found[method]["test_records"] == ("public" if method == "public" else "synthetic")
        low, high = found[method]["auc_interval"] or (0, 0)
        assert (low < found[method]["auc"] < high) == (method != "public")
        assert ("over the folds" in text) == (method != "public")
    states = sorted(gaps.variables[header[0]].states)
    assert found["scv"]["confusion"]["states"] == states
    assert len(states) == 2 and set(found["scv"]["roc"]) == set(states[-1:]), "not its mirror too"
    assert set(found["scv"]["roc_band"]) == set(states[-1:]) and not found["public"]["roc_band"]
    counts = np.array(found["public"]["confusion"]["records_by_true_and_predicted"])
    assert counts.sum() == found["public"]["scored"]


def test_no_figure_is_not_a_number(tmp_path, capsys):
    """Folds with one class, a state no record has, records impossible under the model."""
    rows = [[*"axxx"]] * 110 + [[*"byyy"]] * 3 + [["", *"xxx"]] * 12
    path = write(tmp_path / "rare.csv", [*"tuvw"], rows)
    structure = tmp_path / "structure.json"
    structure.write_text(
        '{"nodes": ["t", "u", "v", "w"], "edges": [["t", "u"], ["u", "v"], ["u", "w"]]}'
    )
    known = [["a", "", *"xy"], ["b", "", *"yx"], [*"axxx"], [*"byyy"]]
    public = write(tmp_path / "public.csv", [*"tuvw"], known)
    code, _, warned = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 2, "--target", "t",
        "--validate", "public,scv,svdg", "--public", public, "--structure", structure,
        "--pseudo-count", 0,
    )  # fmt: skip
    assert code == 0, warned
    for file in (tmp_path / "out").iterdir():
        text = re.sub(r"<script>.*?</script>", "", file.read_text(), flags=re.DOTALL)  # code may
        assert not re.search(r"\b(nan|inf|infinity)\b", text, re.IGNORECASE), file
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert None in found["svdg"]["auc_by_fold"], "a fold with one class has no AUC"
    assert found["public"]["impossible"] == 2 and found["public"]["scored"] == 4
    assert "2 records of the validation public had values that are impossible together" in warned
    code, told = predict(
        capsys, "--model", tmp_path / "out" / "model.bif", "--data", public,
        "--target", "t", "--out", tmp_path / "p.csv",
    )  # fmt: skip
    assert code == 0 and "2 records have values that are impossible together" in told
    header, *rows = read_rows(tmp_path / "p.csv")
    assert header == ["t", "P(t=a)", "P(t=b)", "note"]
    assert [row[3] for row in rows] == [*["impossible under the model"] * 2, "", ""]
    assert all(float(row[1]) + float(row[2]) == pytest.approx(1) for row in rows)


def test_a_misspelt_column_is_told(tmp_path, capsys, gaps_file, gaps):
    header = list(gaps.variables)
    typo = tmp_path / "typo.csv"
    typo.write_text(gaps_file.read_text().replace(header[1], "Typo", 1))
    code, told, warned = learn(
        capsys, tmp_path / "out", "--data", gaps_file, "--sites", 2, "--target", header[0],
        "--validate", "public,scv", "--public", typo,
    )  # fmt: skip
    doubt = f"has no column {header[1]}: taken as missing in all records; it has Typo"
    assert code == 0 and doubt in warned
    assert "public, public records: AUC 0." in told
    assert "(how well the network predicts records of its own kind): AUC 0." in told
    code, warned = predict(
        capsys, "--model", tmp_path / "out" / "model.bif", "--data", typo,
        "--target", header[0], "--out", tmp_path / "p.csv",
    )  # fmt: skip
    assert code == 0 and doubt in warned


def test_an_empty_field_is_the_state_missing_of_a_model_that_has_it(tmp_path, capsys):
    """Where a cell is missing, t is b."""
    rows = [["a", "x"], ["a", "y"], ["b", ""]] * 20
    path = write(tmp_path / "f.csv", ["t", "u"], rows)
    code, *_ = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 2, "--missing", "state",
        "--target", "t", "--validate", "public,svdg", "--public", path, "--folds", 4,
    )  # fmt: skip
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert code == 0 and found["public"]["auc"] == found["svdg"]["auc"] == 1
    told = []
    for option in ([], ["--missing-state"]):
        out = tmp_path / f"p{len(option)}.csv"
        predict(
            capsys, "--model", tmp_path / "out" / "model.bif", "--data", path,
            "--target", "t", "--out", out, *option,
        )  # fmt: skip
        told.append([row[0] for row in read_rows(out)[1:4]])
    assert told == [["a", "a", "a"], ["a", "a", "b"]]


def test_validation_learns_as_the_options_say(tmp_path, capsys, gaps_file, gaps):
    """A pseudo-count that drowns all counts leaves nothing to predict by."""
    areas = []
    for pseudo_count in (1, 1e18):
        out = tmp_path / str(pseudo_count)
        learn(
            capsys, out, "--data", gaps_file, "--sites", 2, "--pseudo-count", pseudo_count,
            "--algorithm", "k2", "--target", list(gaps.variables)[1], "--validate", "scv,svdg",
            "--folds", 3,
        )  # fmt: skip
        areas.append(outputs(out)[1]["auc"])
    assert min(areas[0].values()) > 0.9
    assert areas[1] == pytest.approx({"scv": 0.5, "svdg": 0.5}, abs=0.05)


def test_a_column_with_hardly_a_value_is_doubted(tmp_path, capsys):
    rows = [[i % 2, "" if i > 3 else i % 2] for i in range(100)]
    path = write(tmp_path / "f.csv", ["a", "b"], rows)
    code, _, warned = learn(capsys, tmp_path / "out", "--data", path, "--sites", 2)
    assert code == 0 and "  b: only 4.0% of the records have a value; its edges" in warned
