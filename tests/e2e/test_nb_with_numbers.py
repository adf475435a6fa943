"""``vertibayes nb`` with columns that stay numbers, as a user types it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from tests.e2e.command import predict, read_rows, write
from tests.e2e.test_nb import assert_refused, nb
from vertibayes.naive_bayes.model_file import read_naive_bayes

FILES = {
    "structure.json", "naive_bayes.json", "structure.svg", "summary.json", "ledger.json",
    "report.html",
}  # fmt: skip
HDPNB = ("--method", "hdpnb", "--target", "y", "--parties", 4, "--via", "masked")
EXACT = (*HDPNB, "--noise", "none")
BOUNDS = ("--bounds", "age=0,100", "--bounds", "pulse=-5,200")
RECORDS = 400
ADULT = Path(os.environ.get("VERTIBAYES_DATA", "missing")) / "uci"


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(8)
    y = draw.integers(0, 2, RECORDS)
    age = np.clip(draw.normal(40 + 15 * y, 10), 0, 100).round(2)
    pulse = np.clip(draw.normal(70 - 8 * y, 12), -5, 200).round(1)
    sex = (y + (draw.random(RECORDS) < 0.3)) % 2
    return y, age, pulse, sex


@pytest.fixture(scope="module")
def data(table, tmp_path_factory):
    y, age, pulse, sex = table
    rows = zip(np.array(["no", "yes"])[y], age, pulse, np.array(["f", "m"])[sex], strict=True)
    return write(tmp_path_factory.mktemp("numbers") / "all.csv", ["y", "age", "pulse", "sex"], rows)


def summary_of(out):
    return json.loads((out / "summary.json").read_text())


@pytest.mark.parametrize("via", ["additive", "masked"])
def test_without_noise_numbers_are_scikit_learns(data, table, tmp_path, capsys, via):
    y, age, pulse, _ = table
    code, shown, error = nb(
        capsys, tmp_path / "out", "--data", data, *EXACT[:-3], via, "--noise", "none", *BOUNDS,
        "--test", data,
    )  # fmt: skip
    assert code == 0, error
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    model = read_naive_bayes(tmp_path / "out" / "naive_bayes.json")
    wanted = GaussianNB().fit(np.array([age, pulse]).T, y)
    for place, (name, width) in enumerate({"age": 100, "pulse": 205}.items()):
        assert model.theta_[name] == pytest.approx(wanted.theta_[:, place], abs=width * 2**-20)
        assert model.var_[name] == pytest.approx(wanted.var_[:, place], rel=1e-4)
    assert model.class_count_.tolist() == np.bincount(y).tolist()
    summary = summary_of(tmp_path / "out")
    assert summary["model"] == ["naive_bayes.json"] and "model: naive_bayes.json" in shown
    assert summary["variables"]["pulse"] == {"bounds": [-5, 200]}
    assert summary["test"]["accuracy"] > 0.8
    edges = json.loads((tmp_path / "out" / "structure.json").read_text())["edges"]
    assert edges == [["y", "age"], ["y", "pulse"], ["y", "sex"]]
    assert "pulse" in (tmp_path / "out" / "structure.svg").read_text()


def test_with_noise_numbers_are_protected(data, tmp_path, capsys):
    code, shown, warned = nb(
        capsys, tmp_path / "out", "--data", data, *HDPNB, "--epsilon", 8, *BOUNDS,
        "--holdout", 0.25,
    )  # fmt: skip
    summary = summary_of(tmp_path / "out")
    assert code == 0 and summary["promise"]["eps"] == pytest.approx(8)
    assert summary["promise"]["tables"] == 6  # y, sex, and two of each number
    assert "as are the --bounds" in warned and summary["promise"]["sentence"] in shown
    assert summary["test"]["accuracy"] > 0.6
    assert "beyond the bounds" not in warned


def test_the_model_predicts_records_as_the_run_did(data, tmp_path, capsys):
    nb(
        capsys, tmp_path / "out", "--data", data, *HDPNB, "--epsilon", 8, *BOUNDS, "--test", data,
        "--quiet",
    )  # fmt: skip
    code, warned = predict(
        capsys, "--model", tmp_path / "out" / "naive_bayes.json", "--data", data, "--target", "y",
        "--out", tmp_path / "p.csv",
    )  # fmt: skip
    assert code == 0 and "has a column of the target" in warned
    header, *rows = read_rows(tmp_path / "p.csv")
    assert header == ["y", "P(y=no)", "P(y=yes)", "note"] and len(rows) == RECORDS
    assert all(float(row[1]) + float(row[2]) == pytest.approx(1) for row in rows)
    truth = [row[0] for row in read_rows(data)[1:]]
    right = np.mean([row[0] == y for row, y in zip(rows, truth, strict=True)])
    assert right == summary_of(tmp_path / "out")["test"]["accuracy"]


def test_the_model_predicts_from_what_a_file_has(data, tmp_path, capsys):
    nb(capsys, tmp_path / "out", "--data", data, *EXACT, *BOUNDS, "--quiet")
    model = tmp_path / "out" / "naive_bayes.json"
    new = write(tmp_path / "new.csv", ["age", "id"], [["20", 1], ["80", 2], ["old", 3], ["", 4]])
    code, warned = predict(
        capsys, "--model", model, "--data", new, "--target", "y", "--out", tmp_path / "p.csv",
        "--id-column", "id",
    )  # fmt: skip
    _, *rows = read_rows(tmp_path / "p.csv")
    assert code == 0 and [row[:2] for row in rows[:2]] == [["1", "no"], ["2", "yes"]]
    assert rows[2][2:] == rows[3][2:]  # the prior: nothing is known of either
    assert "age: 'old' (1 record), expected numbers" in warned
    assert "no column sex, pulse" in warned
    for arguments, reason in (
        (["--target", "sex"], "--target sex: a naive_bayes.json predicts its class, y"),
        (["--target", "q"], "--target q: the model has y, sex"),
    ):
        code, error = predict(
            capsys, "--model", model, "--data", new, "--out", tmp_path / "q.csv", *arguments
        )
        assert code == 2 and reason in error


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model: model.update(version=3), "its version is 3, expected 1 or 2"),
        (lambda model: model.update(version=2), "'covariances' is missing"),
        (lambda model: model.update(version=2, covariances=[[[1, 2], [2, 1]]] * 2), "definite"),
        (lambda model: model.pop("target"), "'target' is missing"),
        (lambda model: model["features"][0].update(bounds=[1, 0]), "bounds must be finite and asc"),
        (lambda model: model["features"][0].update(variance=[0, 1]), "variance of 'age' must be"),
        (lambda model: model["features"][0].update(mean=[1]), "the mean of 'age' must be finite"),
        (lambda model: model["features"][2].update(probabilities=[[0.9, 0.2], [1, 0]]), "add up"),
        (lambda model: model["features"].append(model["features"][0]), "a feature appears twice"),
        (lambda model: model.update(features=3), "not a valid naive_bayes.json"),
    ],
)
def test_a_damaged_model_is_refused(data, tmp_path, capsys, change, reason):
    nb(capsys, tmp_path / "out", "--data", data, *EXACT, *BOUNDS, "--quiet")
    path = tmp_path / "out" / "naive_bayes.json"
    model = json.loads(path.read_text())
    change(model)
    path.write_text(json.dumps(model))
    code, error = predict(
        capsys, "--model", path, "--data", data, "--target", "y", "--out", tmp_path / "p.csv"
    )
    assert code == 2 and reason in error and "naive_bayes.json" in error, error


def test_missing_numbers_and_those_beyond_the_bounds(tmp_path, capsys):
    rows = [["yes", "50"], ["no", "na"], ["yes", "300"], ["no", "10"]] * 5
    path = write(tmp_path / "f.csv", ["y", "age"], rows)
    code, _, warned = nb(capsys, tmp_path / "out", "--data", path, *EXACT, "--bounds", "age=0,100")
    assert code == 0 and "age: 5 of 15 numbers lie beyond the bounds, 0 to 100" in warned
    assert "'na' among numbers is taken as missing (5 records)" in warned
    model = read_naive_bayes(tmp_path / "out" / "naive_bayes.json")
    assert model.theta_["age"] == pytest.approx([10, 75], abs=1e-3)  # no, yes: 300 counts as 100


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--bounds", "age"], "--bounds age: expected COLUMN=LOW,HIGH, two ascending numbers"),
        (["--bounds", "age=1"], "--bounds age=1: expected COLUMN=LOW,HIGH"),
        (["--bounds", "age=1,2,3"], "--bounds age=1,2,3: expected COLUMN=LOW,HIGH"),
        (["--bounds", "age=9,1"], "--bounds age=9,1: expected COLUMN=LOW,HIGH"),
        (["--bounds", "age=nan,1"], "--bounds age=nan,1: expected COLUMN=LOW,HIGH"),
        (["--bounds", "=0,1"], "--bounds =0,1: expected COLUMN=LOW,HIGH"),
        (["--bounds", "q=0,1"], "--bounds q: no such column; there are y, age, pulse, sex"),
        (["--bounds", "sex=0,1"], "sex has text, not numbers, as 'm'; --bounds is for numeric"),
        (["--bounds", "y=0,1", "--target", "y"], "y has text, not numbers"),
        (["--bounds", "age=0,1", "--target", "age"],
         "--target age: --bounds keeps its numbers, and a class has states"),
        (["--bounds", "age=0,1", "--cut", "age=18"], "age: bounds and cut exclude each other"),
        (["--bounds", "age=0,1", "--method", "vdpnb"],
         "--bounds age: vdpnb publishes tables of states; use --method hdpnb, or --cut"),
    ],
)  # fmt: skip
def test_what_is_refused(data, tmp_path, capsys, options, reason):
    base = ["--method", "hdpnb", "--target", "y", "--parties", 3, "--noise", "none"]
    for name in ("--method", "--target"):
        if name in options:
            place = base.index(name)
            del base[place : place + 2]
    assert_refused(capsys, tmp_path, reason, "--data", data, *base, *options)


@pytest.mark.skipif(not ADULT.is_dir(), reason="needs the data sets ($VERTIBAYES_DATA)")
def test_adult_with_six_numbers_is_about_as_good_with_noise_as_without(tmp_path, capsys):
    bounds = {
        "age": "17,90", "fnlwgt": "0,1500000", "education-num": "1,16", "capital-gain": "0,100000",
        "capital-loss": "0,5000", "hours-per-week": "1,99",
    }  # fmt: skip
    given = [text for name, pair in bounds.items() for text in ("--bounds", f"{name}={pair}")]
    accuracy = {}
    for name, noise in {"noisy": ("--epsilon", 10), "exact": ("--noise", "none")}.items():
        code, _, error = nb(
            capsys, tmp_path / name, "--data", ADULT / "adult_train.csv.gz", "--test",
            ADULT / "adult_test.csv.gz", "--method", "hdpnb", "--target", "income", "--parties", 5,
            "--via", "masked", *noise, *given, "--quiet",
        )  # fmt: skip
        assert code == 0, error
        accuracy[name] = summary_of(tmp_path / name)["test"]["accuracy"]
    assert accuracy["exact"] == pytest.approx(0.831, abs=0.002)
    # Of 250 draws of this noise the mean was 0.831, the standard deviation 0.003, the least 0.826.
    assert accuracy["noisy"] > 0.80
