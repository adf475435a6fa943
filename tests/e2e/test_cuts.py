"""Supervised discretization by command: ``vertibayes learn --mdlp`` and ``vertibayes cuts``."""

import json

import numpy as np
import pytest

from tests.e2e.command import learn, outputs, run, write
from tests.e2e.studies import run_in_one_process
from tests.protocols.deployment.parties import change, deployment, pooled
from vertibayes import PlainCounter
from vertibayes.discretization import discretize


@pytest.fixture
def patients(tmp_path):
    """Age decides about the illness; income does not; the score has 3 values."""
    generator = np.random.default_rng(0)
    age, score = generator.integers(18, 90, 600), generator.integers(0, 3, 600)
    income = generator.normal(50, 20, 600).round(1)
    ill = np.where(generator.random(600) < np.where(age > 55, 0.9, 0.1), "yes", "no")
    rows = zip(age, income, score, ill, strict=True)
    return write(tmp_path / "patients.csv", ["age", "income", "score", "ill"], rows)


def test_learn_cuts_for_the_class_and_its_ledger_has_the_tables(patients, tmp_path, capsys):
    given = ["--data", patients, "--sites", 3, "--mdlp", "ill"]
    code, output, _ = learn(capsys, tmp_path / "out", *given)
    assert code == 0 and "bins by MDLP for ill: age 2\n" in output
    assert "bins by --binning, as MDLP does not cut them: income\n" in output
    _, summary, ledger = outputs(tmp_path / "out")
    cuts = summary["discretization"]
    assert cuts["cuts"] == {"age": ["56"], "income": []} and cuts["class"] == "ill"
    assert summary["variables"]["age"]["states"] == ["le_56", "gt_56"]
    assert len(summary["variables"]["income"]["states"]) == 10
    first = ledger["tables"][:2]
    assert sorted(sorted(t["variables"]) for t in first) == [["age", "ill"], ["ill", "income"]]
    assert summary["opened"]["tables"] == len(ledger["tables"])
    assert sum(t["cells"] for t in first) == cuts["cells"] and cuts["bytes"] > 0
    code, output, _ = run(capsys, "cuts", *given)
    assert code == 0 and output.splitlines()[:2] == ["--cut age=56", "no cut: income"]
    spaced = tmp_path / "spaced.csv"
    spaced.write_text(patients.read_text().replace("age", "age (years)", 1))
    code, output, _ = run(capsys, "cuts", "--data", spaced, *given[2:])
    assert code == 0 and output.startswith("--cut 'age (years)=56'\n"), "for a shell"
    by_hand = learn(capsys, tmp_path / "hand", *given[:4], "--cut", "age=56")
    assert by_hand[0] == 0
    models = [(tmp_path / name / "model.json").read_text() for name in ("out", "hand")]
    assert models[0] == models[1]


def test_the_ledger_is_kept_if_the_run_fails_after_the_cuts(patients, tmp_path, capsys):
    (tmp_path / "order.json").write_text('["age", "income", "score"]')
    code, _, error = learn(
        capsys, tmp_path / "out", "--data", patients, "--sites", 2, "--mdlp", "ill",
        "--ordering", tmp_path / "order.json",
    )  # fmt: skip
    assert code == 2 and "2 tables were revealed before the run failed" in error
    assert len(json.loads((tmp_path / "out" / "ledger.json").read_text())["tables"]) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--mdlp", "q"], "--mdlp q: no such column"),
        (["--mdlp", "age"], "this column is numeric: declare its bins with --cut age=EDGE,EDGE"),
        (["--mdlp", "ill", "--release", "cut"], "--mdlp reveals exact tables, and --release does"),
        (["--mdlp", "ill", "--pre-bins", 1], "--pre-bins must be a whole number, at least 2"),
        (["--mdlp", "ill", "--exclude", "age,income"], "the data have no numeric column to cut"),
    ],
)
def test_a_class_that_cannot_be_used_is_refused(patients, tmp_path, capsys, arguments, reason):
    code, _, error = learn(capsys, tmp_path / "out", "--data", patients, "--sites", 2, *arguments)
    assert code == 2 and reason in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_class_with_declared_bins_is_accepted(patients, capsys):
    given = ["--data", patients, "--sites", 2, "--mdlp", "age", "--cut", "age=55"]
    code, output, _ = run(capsys, "cuts", *given)
    assert code == 0 and output.startswith("no cut: income\n")


def test_a_study_prints_the_lines_of_each_sites_file(tmp_path, capsys, monkeypatch):
    folder = deployment(tmp_path / "all")
    run_in_one_process(monkeypatch, folder)
    study, file = folder / "analyst" / "study.toml", folder / "north" / "site.toml"
    change(file, "age = { cut = [30, 50, 70] }", "age = {}")
    text = file.read_text()
    file.write_text(text.replace("[data]\n", '[data]\nbinning = "intervals"\nbins = 0.03\n', 1))
    code, output, error = run(capsys, "cuts", study, "--mdlp", "pulse")
    (expected,) = discretize(PlainCounter(pooled(folder)), ["age"], "pulse")["age"]
    assert code == 0, error
    assert output.splitlines()[:2] == [
        "# north, site.toml, [variables]", f"age = {{ cut = [{expected}] }}"
    ]  # fmt: skip
    assert "revealed to the analyst for the cuts: 1 table" in output
    change(file, "age = {}", output.splitlines()[1])
    assert pooled(folder).variables["age"].states == (f"le_{expected}", f"gt_{expected}")
    assert run(capsys, "cuts", study)[0] == 2
