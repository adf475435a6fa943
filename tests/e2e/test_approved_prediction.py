"""``vertibayes predict --study`` as the owners of the sites have approved it, from files."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil

import numpy as np
import pytest

from tests.e2e.command import predict, run
from tests.e2e.studies import refused, run_in_one_process
from tests.e2e.test_alignment import common, write_lists
from tests.protocols.deployment.parties import SITES, change, deployment, pooled
from tests.vertibayes.test_prediction_over_sites import some
from vertibayes.cli.contracts import contract_of
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.prediction import predict_proba
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.sampling import sample
from vertibayes.validation.measures import auc
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.files import StudyFile

EVIDENCE = ("age", "sex", "pulse", "drug")


def prediction(folder, *, rule="", more=""):
    """Have a study declare a prediction by a network of the pooled records; return the network."""
    deployment(folder, free=False)
    structure = Structure({"outcome": (), **dict.fromkeys(EVIDENCE, ("outcome",))})
    network = fit_cpts(PlainCounter(pooled(folder)), structure, pseudo_count=1.0)
    network.save(folder / "analyst" / "model.json")
    study = folder / "analyst" / "study.toml"
    text = study.read_text()
    start, end = text.index("[learning]"), text.index("# Without [release]")
    declared = f'learner = "prediction"\nmodel = "model.json"\ntarget = "outcome"\n{more}'
    study.write_text(f"{text[:start]}[learning]\n{declared}\n[release]\n{rule}\n{text[end:]}")
    for site in SITES:
        change(folder / site / "site.toml", "# most_scores = 0 ", "most_scores = 300 #")
    return network


def approve(capsys, folder, site):
    """Approve a study at a site, whose owner has been sent the file and the model."""
    sent = folder / site / "sent"
    sent.mkdir(exist_ok=True)
    for name in ("study.toml", "model.json"):
        shutil.copy(folder / "analyst" / name, sent)
    own = folder / site / "site.toml"
    return run(capsys, "approve", sent / "study.toml", "--site", own, "--yes", "--by", "A. Owner")


def approve_all(capsys, folder):
    for site in SITES:
        code, shown, error = approve(capsys, folder, site)
        assert code == 0, error
    return shown


@pytest.fixture
def folder(tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    return tmp_path / "all"


def predicted(capsys, folder, out, *options):
    return predict(capsys, "--study", folder / "analyst" / "study.toml", "--out", out, *options)


def probabilities(out):
    _, *rows = csv.reader(out.read_text().splitlines())
    return np.array([row[1:3] for row in rows], float)


def test_an_approved_study_predicts_its_records_once(capsys, folder, tmp_path):
    network = prediction(folder)
    shown = " ".join(approve_all(capsys, folder).split())
    digest = hashlib.sha256((folder / "analyst" / "model.json").read_bytes()).hexdigest()
    for words in (
        "analyst learns, once: - the number of records; of each variable the name and the states",
        "- for each record the probabilities of outcome (ill, well), without noise",
        "they are computed from the record's values of ",
        f"The model is the file model.json, SHA-256 {digest[:4]} {digest[4:8]} ",
        "analyst can read the values of these variables from the probabilities: approve a model",
        "The policy of east allows 300 such records, in all studies together.",
    ):
        assert words in shown
    out = tmp_path / "out.csv"
    assert predicted(capsys, folder, out)[0] == 0
    expected = predict_proba(network, some(pooled(folder), EVIDENCE), "outcome")
    assert probabilities(out) == pytest.approx(expected, abs=1e-6)
    code, error = predicted(capsys, folder, tmp_path / "again.csv")
    assert code == 2 and "its one run is used up" in error
    ledger = (folder / "north" / "memory" / "ledger.jsonl").read_text()
    assert "approved by A. Owner on 20" in ledger and "log odds of outcome of 300" in ledger


def test_an_approved_study_reveals_an_auc_alone(capsys, folder, tmp_path):
    network = prediction(folder, rule='rule = "exact"', more="")
    for site in SITES:  # no record's posterior is revealed
        change(folder / site / "site.toml", "most_scores = 300", "most_scores = 0")
    shown = " ".join(approve_all(capsys, folder).split())
    assert "- how many records have each state of outcome (ill, well) in each of " in shown
    assert "by the rule exact: exact" in shown
    assert predicted(capsys, folder, tmp_path / "auc.json")[0] == 0
    data = pooled(folder)
    posteriors = np.round(predict_proba(network, some(data, EVIDENCE), "outcome"), 9)
    expected = auc(data.codes["outcome"], posteriors, ("ill", "well"))
    result = json.loads((tmp_path / "auc.json").read_text())
    assert result["auc"] == pytest.approx(expected.auc, abs=1e-9)
    assert (result["target"], result["scored"], result["left_out"]) == ("outcome", 300, 0)


@pytest.mark.parametrize("level", [1, 2])
def test_an_approved_study_predicts_the_people_whom_all_sites_hold(capsys, folder, tmp_path, level):
    network = prediction(folder)
    write_lists(folder)
    sizes = "sizes = { north = 270, south = 260, east = 300 } #"
    study = folder / "analyst" / "study.toml"
    for path in (study, *(folder / site / "site.toml" for site in SITES)):
        change(path, "# [alignment] ", "[alignment] ")
        change(path, '# rules = ["exact"]', f'rules = ["digits"]\n{"level = 2" * (level == 2)} #')
        if path is study:
            change(path, "# sizes = ", sizes)
        elif level == 2:
            text = path.read_text()
            path.write_text(text.replace("level = 2 #", "#"))
    shown = approve_all(capsys, folder)
    assert f"The lists of people are matched, level {level}, by the rules digits:" in shown
    code, error = predicted(capsys, folder, tmp_path / "out.csv")
    assert code == 0, error
    expected = predict_proba(network, some(common(folder), EVIDENCE), "outcome")
    ours = probabilities(tmp_path / "out.csv")
    order = (lambda rows: rows[np.lexsort(rows.round(5).T)]) if level == 2 else (lambda rows: rows)
    assert order(ours) == pytest.approx(order(expected), abs=1e-5)


def test_another_model_than_the_approved_one_is_refused(capsys, folder, tmp_path, monkeypatch):
    network = prediction(folder)
    approve_all(capsys, folder)
    approved = contract_of(StudyFile.read(folder / "analyst" / "study.toml"))
    data = sample(network, 200, seed=1)
    other = fit_cpts(PlainCounter(data), network.structure, pseudo_count=1.0)
    other.save(folder / "analyst" / "model.json")
    code, error = predicted(capsys, folder, tmp_path / "out.csv")
    assert code == 2 and "is not approved here" in error
    monkeypatch.setattr("vertibayes.cli.predict_study.contract_of", lambda _: approved)
    code, error = predicted(capsys, folder, tmp_path / "out.csv")
    assert code == 2 and "digest of 'predict' is not that of the contract" in error


def test_a_policy_without_scores_does_not_approve_a_prediction(capsys, folder):
    prediction(folder, more="records = 20\n")
    own = folder / "south" / "site.toml"
    change(own, "most_scores = 300", "most_scores = 19")
    code, _, error = approve(capsys, folder, "south")
    assert code == 2 and "learning.target" in error
    assert "needs 20 records with scores: 19 are left of most_scores = 19" in error
    change(own, "most_scores = 19", "most_scores = 20")
    code, shown, _ = approve(capsys, folder, "south")
    assert code == 0 and "for each of 20 records, drawn at random, the probabilities" in shown


def test_missing_values_that_are_not_declared_use_up_no_run(capsys, folder, tmp_path):
    prediction(folder, more='evidence = ["drug", "sex"]\n')
    path = folder / "south" / "records.csv"
    path.write_text(path.read_text().replace(",acme\n", ",\n", 1).replace(",acme\r\n", ",\r\n", 1))
    approve_all(capsys, folder)
    code, error = predicted(capsys, folder, tmp_path / "out.csv")
    assert code == 2 and "values of drug are missing at its site: add it to may_be_missing" in error
    study = folder / "analyst" / "study.toml"
    change(study, '["drug", "sex"]', '["drug", "sex"]\nmay_be_missing = ["drug"]')
    approve_all(capsys, folder)
    assert predicted(capsys, folder, tmp_path / "out.csv")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('target = "outcome"', 'target = "q"', "target q: the model has outcome, age"),
        ('target = "outcome"', 'target = "outcome"\nevidence = ["q"]', "q is missing"),
        ('target = "outcome"', 'target = "outcome"\nfolds = 3', "folds"),
        ('target = "outcome"', 'target = "outcome"\nmay_be_missing = ["q"]', "is not among the"),
        ('"model.json"\ntarget', '"other.json"\ntarget', "other.json: no such file"),
        ('"sex", ', "", "[study] must list the variables"),
    ],
)
def test_settings_that_do_not_fit_are_named(capsys, folder, tmp_path, old, new, reason):
    prediction(folder, more='evidence = ["sex"]\n' if "sex" in old else "")
    change(folder / "analyst" / "study.toml", old, new)
    code, error = predicted(capsys, folder, tmp_path / "out.csv")
    assert code == 2 and reason in error, error
    assert "study.toml" in error and error.count("\n") == 1


def test_options_beside_a_declared_prediction_are_refused(capsys, folder, tmp_path):
    prediction(folder)
    for option, value in (("--model", "model.json"), ("--target", "sex"), ("--auc", "cut")):
        code, error = predicted(capsys, folder, tmp_path / "out.csv", option, value)
        assert code == 2 and f"{option} cannot be combined with a study that declares" in error
    refused(capsys, folder, tmp_path / "out", "vertibayes predict --study")


def test_check_prints_the_digest_and_meets_the_sites(capsys, folder):
    prediction(folder)
    approve_all(capsys, folder)
    study = folder / "analyst" / "study.toml"
    digest = grouped_digest(contract_of(StudyFile.read(study)).digest)
    code, output, _ = run(capsys, "check", study, "--meet")
    assert code == 0 and digest in output and "the sites have approved the study" in output
