"""``vertibayes predict --study``: a line for each record, whose values lie at several sites."""

from __future__ import annotations

import csv
import json
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from tests.e2e.command import predict, run
from tests.e2e.studies import run_in_one_process
from tests.protocols.deployment.parties import SITES, change, deployment, pooled
from tests.vertibayes.test_prediction_over_sites import any_network, some
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.prediction import predict_proba
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.validation.measures import auc
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import FREE, Policy

NETWORK = any_network({"c": (), "f": ("c",), "g": ("c", "f")}, 1)
DATA = sample(NETWORK, 30, seed=2)


@pytest.fixture
def model(tmp_path):
    (tmp_path / "study.toml").touch()  # `file_of` says what it has
    NETWORK.save(tmp_path / "model.json")
    return tmp_path / "model.json"


def file_of(path):
    """Return what the command reads of a study's file."""
    source = SimpleNamespace(path=path)
    known = {"party": "ana", "sites": (), "dealer": "dealer", "parties": ("dealer",)}
    return SimpleNamespace(source=source, alignment=None, **known)


def sites_with(monkeypatch, policy):
    """Have the sites of every study run in this process, with this policy."""

    @contextmanager
    def connected(path, watch):
        assert path.name == "study.toml"
        with federate(split_columns(DATA, 2), policy=policy) as federation:
            yield SecureCounter.of(federation)

    command = "vertibayes.cli.predict_study"
    monkeypatch.setattr(f"{command}.connect_study", connected)
    monkeypatch.setattr(f"{command}.StudyFile.read", file_of)
    monkeypatch.setattr(f"{command}.learner_of", lambda file: "bayesian_network")


def test_the_records_of_a_study_are_predicted(monkeypatch, capsys, tmp_path, model):
    sites_with(monkeypatch, Policy(free_tables=True, most_scores=30))
    out, study = tmp_path / "out.csv", tmp_path / "study.toml"
    options = "--model", model, "--target", "c", "--out", out
    assert predict(capsys, *options, "--study", study) == (0, "")
    header, *rows = csv.reader(out.read_text().splitlines())
    assert header == ["c", "P(c=x)", "P(c=y)", "P(c=z)", "note"]
    expected = predict_proba(NETWORK, some(DATA, "fg"), "c")
    assert np.array([row[1:4] for row in rows], float) == pytest.approx(expected, abs=1e-9)
    assert [row[0] for row in rows] == ["xyz"[best] for best in expected.argmax(axis=1)]
    code, error = predict(capsys, *options, "--study", study)
    assert code == 2 and "the file exists" in error


def test_a_study_from_its_files(monkeypatch, capsys, tmp_path):
    """The sites' own files allow the prediction, and count it in their memories."""
    folder = deployment(tmp_path / "all")
    for site in SITES:
        change(folder / site / "site.toml", "# most_scores = 0 ", "most_scores = 300 #")
    run_in_one_process(monkeypatch, folder)
    joined = pooled(folder)
    names = tuple(name for name in joined.variables if name != "outcome")
    structure = Structure({"outcome": (), **dict.fromkeys(names, ("outcome",))})
    network = fit_cpts(PlainCounter(joined), structure, pseudo_count=1.0)
    network.save(tmp_path / "model.json")
    (tmp_path / "study.toml").touch()
    options = "--model", tmp_path / "model.json", "--target", "outcome"
    study, out = folder / "analyst" / "study.toml", tmp_path / "out.csv"
    assert predict(capsys, *options, "--study", study, "--out", out)[0] == 0
    _, *rows = csv.reader(out.read_text().splitlines())
    expected = predict_proba(network, some(joined, names), "outcome")
    assert np.array([row[1:3] for row in rows], float) == pytest.approx(expected, abs=1e-9)
    code, error = predict(capsys, *options, "--study", study, "--out", tmp_path / "again.csv")
    assert code == 2 and "0 are left of most_scores = 300" in error
    ledger = (folder / "north" / "memory" / "ledger.jsonl").read_text()
    assert "log odds of outcome of 300 records from their values of" in ledger


def test_the_auc_is_written_alone(monkeypatch, capsys, tmp_path):
    sites_with(monkeypatch, FREE)  # no posterior of a record may be revealed
    network = any_network({"c": (), "f": ("c",), "g": ("c", "f")}, 1, states=2)
    data = sample(network, 30, seed=2)
    monkeypatch.setattr("tests.e2e.test_predict_over_sites.DATA", data)
    network.save(tmp_path / "model.json")
    (tmp_path / "study.toml").touch()
    out = tmp_path / "auc.json"
    given = "--model", tmp_path / "model.json", "--target", "c", "--out", out
    code, output, error = run(
        capsys, "predict", *given, "--study", tmp_path / "study.toml", "--auc", "exact"
    )
    posteriors = np.round(predict_proba(network, some(data, "fg"), "c"), 9)
    expected = auc(data.codes["c"], posteriors, "xy").auc
    assert (code, error) == (0, "") and output == f"AUC {expected:.4f}; 30 records, 0 without c\n"
    assert json.loads(out.read_text())["auc"] == pytest.approx(expected)


def test_a_site_whose_policy_does_not_allow_it_refuses(monkeypatch, capsys, tmp_path, model):
    sites_with(monkeypatch, FREE)
    options = "--model", model, "--target", "c", "--out", tmp_path / "out.csv"
    code, error = predict(capsys, *options, "--study", tmp_path / "study.toml")
    assert code == 2 and "log odds of 30 records: 0 are left of most_scores = 0" in error
    assert not (tmp_path / "out.csv").exists()
    code, error = predict(capsys, *options, "--study", tmp_path / "study.toml", "--target", "q")
    assert code == 2 and "--target q: the model has c, f, g" in error
    code, error = predict(capsys, *options[2:], "--study", tmp_path / "study.toml")
    assert code == 2 and "specify --model and --target, or learner =" in error


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "specify either --data FILE or --study study.toml"),
        (("--data", "a.csv", "--study", "study.toml"), "specify either --data FILE or --study"),
        (("--study", "study.toml", "--id-column", "id"), "--id-column cannot be combined"),
        (("--study", "study.toml", "--missing-state"), "--missing-state cannot be combined"),
        (("--data", "a.csv", "--auc", "cut"), "--auc needs --study"),
        (
            ("--study", "study.toml", "--fewest", "5"),
            "--fewest needs --auc cut or rounded, got no rule",
        ),
    ],
)
def test_options_that_do_not_fit_are_named(capsys, tmp_path, model, options, reason):
    given = "--model", model, "--target", "c", "--out", tmp_path / "out.csv"
    code, error = predict(capsys, *given, *options)
    assert code == 2 and reason in error
