"""``learn --validate holdout``: its lines, its files, its page and what it refuses."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.e2e.command import assert_refused, learn, outputs, write
from vertibayes.network import read_model


def records_file(folder, count=400, unbalanced=False):
    generator = np.random.default_rng(8)
    ill = generator.random(count) < (0.02 if unbalanced else 0.4)
    rows = [
        (int(x), *(int(generator.random() < (0.8 if x else 0.3)) for _ in range(3)), "abc"[i % 3])
        for i, x in enumerate(ill)
    ]
    return write(folder / "records.csv", ["ill", "u", "v", "w", "kind"], rows)


@pytest.mark.parametrize("sites", [1, 3])
def test_a_run_says_how_it_predicts_records_that_it_has_not_learned_from(tmp_path, capsys, sites):
    data = ["--data", records_file(tmp_path), "--sites", sites, "--target", "ill"]
    out = tmp_path / "out"
    code, told, _ = learn(capsys, out, *data, "--validate", "holdout", "--holdout", 0.3)
    assert code == 0 and "280 records and 120 held out" in told
    assert "holdout, 120 held-out records: AUC 0." in told and "over the folds" not in told
    assert "log-loss of these records: 0." in told and "Brier score of these records: 0." in told
    assert ", a score table of the held-out records, and nothing else" in told
    found = json.loads((out / "validation.json").read_text())["holdout"]
    assert found["test_records"] == "held-out" and found["scored"] == 120
    for measure in ("log_loss", "brier"):
        value, low, high = found[measure]
        assert low < value < high
    low, high = found["auc_interval"]
    assert low < found["auc"] < high and not found["auc_by_fold"]
    (curve,) = [found["calibration"][state] for state in ("1",)]
    shares = zip(curve["low"], curve["observed"], curve["high"], strict=True)
    assert all(low <= share <= high for low, share, high in shares)
    assert sum(curve["records"]) == 120
    summary = outputs(out)[1]
    assert summary["records"] == 280 and summary["holdout"]["records"] == 120
    assert summary["options"]["holdout"] == 0.3 and summary["holdout"]["brier"] == found["brier"]
    text = "".join(ElementTree.parse(out / "validation-holdout.svg").getroot().itertext())
    assert "ill, HOLDOUT on 120 held-out records: AUC 0." in text
    page = (out / "report.html").read_text()
    assert "The sites left these records out when the network was learned" in page
    assert "log-loss of the shares of the states alone" in page
    assert "of all, those held out too" in page


def test_of_three_states_a_table_is_revealed_and_counted(tmp_path, capsys):
    data = ["--data", records_file(tmp_path), "--sites", 2, "--target", "kind"]
    code, told, _ = learn(capsys, tmp_path / "out", *data, "--validate", "holdout")
    assert code == 0 and "score table" not in told
    found = json.loads((tmp_path / "out" / "validation.json").read_text())["holdout"]
    assert found["revealed"] == "table of the Markov blanket" and found["scored"] == 80
    rows = {table["rows"]["last"] for table in outputs(tmp_path / "out")[2]["tables"]}
    assert rows == {80, 400}, "the held-out records, and all others"


def test_other_validations_are_of_the_records_that_are_left(tmp_path, capsys):
    data = ["--data", records_file(tmp_path), "--sites", 2, "--target", "ill", "--folds", 4]
    code, *_ = learn(capsys, tmp_path / "out", *data, "--validate", "holdout,scv,svdg")
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert code == 0 and list(found) == ["holdout", "scv", "svdg"]
    assert [found[method]["scored"] for method in found] == [80, 320, 320]
    assert read_model(tmp_path / "out" / "model.bif").structure.nodes


def test_a_table_too_large_is_not_asked_and_the_network_is_written(tmp_path, capsys):
    generator = np.random.default_rng(3)
    first = generator.integers(0, 8, 400)
    columns = [(first + (generator.random(400) < 0.1)) % 8 for _ in range(8)]
    names = [f"v{k}" for k in range(9)]
    path = write(tmp_path / "wide.csv", names, zip(first, *columns, strict=True))
    structure = tmp_path / "structure.json"
    structure.write_text(
        json.dumps({"nodes": names, "edges": [["v0", name] for name in names[1:]]})
    )
    code, told, warned = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 2, "--structure", structure,
        "--target", "v0", "--validate", "holdout", "--categorical", ",".join(names),
    )  # fmt: skip
    assert code == 0 and "held-out records: AUC" not in told
    assert "the validation holdout was not done: the table of v0 and the 8 variables" in warned
    assert (tmp_path / "out" / "model.bif").is_file()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--holdout", "0.01"], "--holdout 0.01 holds out 4 of 400 records: at least 10 must be"),
        (["--holdout", "1"], "--holdout must be a number"),
        (["--release", "cut"], "--validate holdout needs tables of some of the records"),
    ],
)
def test_what_cannot_be_held_out_is_refused(tmp_path, capsys, options, reason):
    data = ["--data", records_file(tmp_path), "--sites", 2, "--target", "ill"]
    assert_refused(capsys, tmp_path, reason, *data, "--validate", "holdout", *options)


def test_too_few_records_of_a_class_are_refused(tmp_path, capsys):
    data = ["--data", records_file(tmp_path, unbalanced=True), "--sites", 2, "--target", "ill"]
    code, _, errors = learn(capsys, tmp_path / "out", *data, "--validate", "holdout")
    assert code == 2 and "two states need 10 records each: hold out more by --holdout" in errors
