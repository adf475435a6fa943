"""Naive Bayes over columns at sites with different lists of people, from the files to the model."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from tests.e2e import test_naive_bayes_study
from tests.e2e.command import run
from tests.e2e.test_calibrate_study import STUDY
from tests.e2e.test_naive_bayes_study import NOISY, SUMS, deployment, learn
from tests.protocols.deployment.parties import change
from vertibayes.cli import naive_bayes_study
from vertibayes.network import read_model

in_one_process = test_naive_bayes_study.in_one_process

EXACT_COLUMNS = {"one": ("a", "y"), "two": ("b", "c")}
NOISY_COLUMNS = {"one": ("a", "y"), "two": ("b", "c", "y")}
EXACT = """
[learning]
learner = "naive_bayes"
method = "vdpnb"
target = "y"
noise = "none"
predict = 20
"""
ALIGNMENT = '[alignment]\nrules = ["digits"]\n'
LISTS = {"one": range(5, 120), "two": range(1, 100)}
COMMON = range(5, 100)


def keep(path, kept, written):
    """Keep some records of a site, in another order; return them by the number of the person."""
    with path.open() as file:
        header, *rows = csv.reader(file)
    people = {int(row[0].removeprefix("p")): row[1:] for row in rows}
    order = np.random.default_rng(len(kept)).permutation(np.array(kept))
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(header)
        lines.writerows([written.format(person), *people[person]] for person in order.tolist())
    return header[1:], people


def aligned(folder, columns, learning, policy="", more=""):
    """Write sites that hold overlapping lists; return the study and the common people's table."""
    study = deployment(folder, columns, policy, learning)
    table = {}
    for site, written in (("one", "{:05d}"), ("two", "nr {}")):
        names, people = keep(folder / site / "records.csv", LISTS[site], written)
        change(folder / site / "site.toml", "# [alignment] ", "[alignment] ")
        change(folder / site / "site.toml", '# rules = ["exact"]', 'rules = ["digits"]')
        for place, name in enumerate(names):
            table[name] = np.array([people[person][place] for person in COMMON])
    change(study, "[learning]", f"{ALIGNMENT}{more}\n[learning]")
    return study, table


def counts(table, name):
    """Return the table of a feature by the class."""
    states = ("u", "v") if name != "y" else ("no", "yes")
    return np.array([
        [((table[name] == state) & (table["y"] == y)).sum() for y in ("no", "yes")]
        for state in states
    ])  # fmt: skip


def posterior(table, places):
    """Return P(yes) of records by naive Bayes on the pooled table, with one pseudo-count."""
    prior = np.array([(table["y"] == y).sum() for y in ("no", "yes")])
    joint = np.tile(prior / prior.sum(), (len(places), 1))
    for name in "abc":
        smoothed = counts(table, name) + 1
        joint *= (smoothed / smoothed.sum(axis=0))[(table[name][places] == "v").astype(int)]
    return joint[:, 1] / joint.sum(axis=1)


def summary_of(out):
    return json.loads((out / "summary.json").read_text())


def test_exact_tables_and_predictions_are_those_of_the_common_people(
    capsys, tmp_path, in_one_process
):
    study, table = aligned(tmp_path / "all", EXACT_COLUMNS, EXACT, "most_scores = 40")
    code, shown, error = run(capsys, "learn", study, "--out", tmp_path / "out")
    assert code == 0, error
    assert "95 people in the study; 95 in all lists, 20 at one alone" in shown
    assert "also in another list (padding lowers it): one 82.6%, two 96.0%" in shown
    cpts = read_model(tmp_path / "out" / "model.bif").cpts
    for name in "abc":
        smoothed = counts(table, name) + 1
        assert np.allclose(cpts[name], smoothed / smoothed.sum(axis=0), rtol=0, atol=1e-12)
    rows = (tmp_path / "out" / "predictions.csv").read_text().splitlines()[1:]
    given = np.array([float(row.split(",")[3]) for row in rows])
    assert given == pytest.approx(posterior(table, range(20)), abs=1e-6)
    assert summary_of(tmp_path / "out")["records"] == 95
    code, shown, error = run(capsys, "learn", study, "--out", tmp_path / "again")
    assert code == 0 and "the people were aligned in an earlier session of this study" in shown


def noisy(folder, *, free=True, release=""):
    """Write a study with noise whose classes are those of the common people."""
    policy = "most_epsilon = 3\nmost_scores = 20"
    study, table = aligned(folder, NOISY_COLUMNS, NOISY + release, policy)
    text = study.read_text()
    start = text.index("[class_counts]")
    end = text.index("\n[", start)
    no, yes = counts(table, "y").sum(axis=1)
    study.write_text(f"{text[:start]}[class_counts]\nno = {no}\nyes = {yes}\n{text[end:]}")
    for site in () if free else NOISY_COLUMNS:
        change(folder / site / "site.toml", "free_tables = true", "free_tables = false")
    return study


def test_columns_are_published_with_noise_over_the_common_people(capsys, tmp_path, in_one_process):
    study = noisy(tmp_path / "all")
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    summary = summary_of(tmp_path / "out")
    assert summary["alignment"]["people"] == summary["records"] == 95
    assert len((tmp_path / "out" / "predictions.csv").read_text().splitlines()) == 21


def test_classes_of_more_people_than_the_study_has_are_refused(capsys, tmp_path, in_one_process):
    policy = "most_epsilon = 3\nmost_scores = 20"
    study, _ = aligned(tmp_path / "all", NOISY_COLUMNS, NOISY, policy)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "class_counts: 120 people together, and 95 are in the study" in error
    ledger = (tmp_path / "all" / "one" / "memory" / "ledger.jsonl").read_text()
    assert "with discrete" not in ledger


def approved(capsys, tmp_path):
    folder = tmp_path / "all"
    study = noisy(folder, free=False, release="\n[release]\nruns = 2\n")
    change(study, '# variables = ["a", "b"] ', 'variables = ["y", "a", "b", "c"]')
    change(study, ALIGNMENT, f"{ALIGNMENT}sizes = {{ one = 115, two = 99 }}\n")
    for site in NOISY_COLUMNS:
        own = folder / site / "site.toml"
        code, shown, error = run(capsys, "approve", study, "--site", own, "--yes", "--by", "A. O.")
        assert code == 0, error
        assert (
            "the study has the people who are in all lists of one, two: at least 10 people" in shown
        )
    return study


def test_an_approved_study_publishes_over_the_people_of_its_alignment(
    capsys, tmp_path, in_one_process
):
    study = approved(capsys, tmp_path)
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    assert summary_of(tmp_path / "out")["alignment"]["people"] == 95


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("another", "the alignment is not that of the contract"),
        ("none", "the contract has an alignment before 'meet'"),
        ("twice", "the contract has no further query of the kind 'align'"),
    ],
)
def test_an_analyst_gets_no_other_alignment_than_the_approved_one(
    capsys, tmp_path, in_one_process, monkeypatch, what, reason
):
    study, honest = approved(capsys, tmp_path), naive_bayes_study.aligned

    def lying(file, contract, session):
        if what == "none":
            return None
        if what == "another":
            contract = replace(contract, alignment=replace(contract.alignment, fewest=11))
        honest(file, contract, session)
        return honest(file, contract, session)

    monkeypatch.setattr(naive_bayes_study, "aligned", lying)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and reason in error, error


@pytest.mark.parametrize(
    ("learning", "more", "reason"),
    [
        (SUMS, "", "alignment: hdpnb learns from sites with different records and counts a person"),
        (SUMS.replace("hdpnb", "gossip").replace('via = "masked"', ""), "", "alignment: gossip"),
        (STUDY, "", "alignment: calibration learns from sites with different records"),
        (EXACT, "level = 2", "alignment.level: vdpnb needs level 1"),
        (EXACT, 'everyone = ["one"]', "alignment.everyone: vdpnb is of people whom all sites hold"),
        (EXACT, 'apart = [["one", "two"]]', "alignment.apart: vdpnb is of people whom all sites"),
    ],
)
def test_alignments_that_do_not_fit_are_refused_with_their_line(
    capsys, tmp_path, learning, more, reason
):
    study, _ = aligned(tmp_path / "all", EXACT_COLUMNS, learning, more=more)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and reason in error and "study.toml, line" in error, error


def test_a_column_at_two_sites_is_refused_before_the_lists_are_matched(
    capsys, tmp_path, in_one_process
):
    study, _ = aligned(tmp_path / "all", NOISY_COLUMNS, EXACT)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "the column 'y' is at one, two, which all hold everybody" in error
    ledger = tmp_path / "all" / "one" / "memory" / "ledger.jsonl"
    assert not ledger.exists() or "an alignment" not in ledger.read_text()
