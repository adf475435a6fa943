"""Approved naive Bayes and calibrations: sites answer the queries of the contract alone."""

from dataclasses import replace

import pytest

from tests.e2e import test_calibrate_study, test_naive_bayes_study
from tests.e2e.command import run
from tests.e2e.test_calibrate_study import STUDY, SUMMED
from tests.e2e.test_naive_bayes_study import COLUMNS, NOISY, SUMS, deployment
from tests.protocols.deployment.parties import change
from vertibayes.cli import contracts
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.queries import Publish, Sums
from vertibayes_protocols.storage.memory import SiteMemory

in_one_process = test_naive_bayes_study.in_one_process
away, sites = test_calibrate_study.away, test_calibrate_study.sites

RECORDS = dict.fromkeys(("one", "two", "three"), ("a", "b", "y"))
RUNS = "\n[release]\nruns = 1\n"


def approved(capsys, folder, columns, policy, learning, variables):
    """Write a study, which all its sites approve; return its file."""
    study = deployment(folder, columns, policy, learning + RUNS)
    change(study, '# variables = ["a", "b"] ', f"variables = {variables}")
    for site in columns:
        own = folder / site / "site.toml"
        change(own, "free_tables = true", "free_tables = false")
        code, _, error = run(capsys, "approve", study, "--site", own, "--yes", "--by", "A. Owner")
        assert code == 0, error
    return study


def learn(capsys, study, out):
    code, _, error = run(capsys, "learn", study, "--out", out, "--quiet")
    return code, error


@pytest.mark.parametrize(
    "method",
    [
        'via = "masked"',
        'via = "additive"',
        'method = "federated"\nnoise = "laplace"',
        'method = "gossip"\niterations = 3',
        'method = "ldp"',
    ],
)
def test_sums_and_reports_run_once_as_approved(capsys, tmp_path, in_one_process, method):
    learning = SUMS.replace('via = "masked"\n', f"{method}\n" if "via" in method else "")
    if "method" in method:
        learning = learning.replace('method = "hdpnb"', method)
    study = approved(
        capsys, tmp_path / "all", RECORDS, "most_epsilon = 9", learning, '["y", "a", "b"]'
    )
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    code, error = learn(capsys, study, tmp_path / "again")
    assert code == 2 and "its one run is used up" in error
    ledger = (tmp_path / "all" / "two" / "memory" / "ledger.jsonl").read_text()
    assert "approved by A. Owner on 20" in ledger


def test_columns_are_published_and_predicted_as_approved(capsys, tmp_path, in_one_process):
    policy = "most_epsilon = 3\nmost_scores = 20"
    study = approved(capsys, tmp_path / "all", COLUMNS, policy, NOISY, '["y", "a", "b", "c"]')
    assert learn(capsys, study, tmp_path / "out") == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("epsilon = 3", "epsilon = 2", "eps of 'publish' is not that of the contract"),
        ("epsilon = 3", "epsilon = 3\nalpha = 2", "alpha of 'publish'"),
        ("no = ", "no = 1", "class_counts of 'publish'"),
        ("no = ", "nay = ", "states of 'publish'"),
        ("predict = 20", "predict = 19", "last of 'scores'"),
        ("predict = 20", 'predict = 20\nvia = "product"', "via of 'scores'"),
    ],
)
def test_a_lying_analyst_gets_no_other_tables_or_scores_of_columns(
    capsys, tmp_path, in_one_process, monkeypatch, old, new, reason
):
    policy = "most_epsilon = 9\nmost_scores = 20"
    study = approved(capsys, tmp_path / "all", COLUMNS, policy, NOISY, '["y", "a", "b"]')
    lies(monkeypatch, study)
    change(study, old, new)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and reason in error, error


def test_columns_that_the_contract_does_not_have_are_refused(
    capsys, tmp_path, in_one_process, monkeypatch
):
    policy = "most_epsilon = 9\nmost_scores = 20"
    study = approved(capsys, tmp_path / "all", COLUMNS, policy, NOISY, '["y", "a", "b"]')
    of = Publish.of.__func__

    def other(cls, split, noise):
        features = {"a": split.features["a"], "c": replace(split.features["b"], name="c")}
        holders = {"one": ("a",), "two": ("c",)}
        return of(cls, replace(split, features=features, holders=holders), noise)

    monkeypatch.setattr(Publish, "of", classmethod(other))
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "names variables that the contract does not have" in error


def test_a_calibration_of_several_sessions_is_one_run(capsys, tmp_path, sites):
    study = approved(capsys, tmp_path / "all", RECORDS, SUMMED, STUDY, '["y", "a", "b"]')
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    own, digest = SiteFile.read(tmp_path / "all" / "one" / "site.toml"), digest_of(study)
    memory = SiteMemory(own.memory)
    assert memory.runs.count(digest) == (1, 1)
    memory.close()
    code, error = learn(capsys, study, tmp_path / "again")
    assert code == 2 and "its one run is used up" in error


def digest_of(study):
    return contracts.contract_of(StudyFile.read(study)).digest


def lies(monkeypatch, study):
    """Have the analyst begin with the approved contract, whatever the file says later."""
    contract = contracts.contract_of(StudyFile.read(study))
    monkeypatch.setattr("vertibayes.cli.study.contract_of", lambda _: contract)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("epsilon = 0.6", "epsilon = 0.7", "eps of 'sums' is not that of the contract"),
        ("epsilon = 0.6", 'noise = "none"', "centred of 'sums'"),
        ('a = ["u", "v", "w"]', 'a = ["u", "v"]', "features of 'sums'"),
        ('method = "hdpnb"', 'method = "federated"\nnoise = "laplace"', "kind 'updates'"),
    ],
)
def test_a_lying_analyst_gets_no_other_sum(
    capsys, tmp_path, in_one_process, monkeypatch, old, new, reason
):
    study = approved(capsys, tmp_path / "all", RECORDS, "most_epsilon = 9", SUMS, '["y", "a", "b"]')
    with monkeypatch.context() as patch:
        lies(patch, study)
        change(study, old, new)
        if "federated" in new:
            change(study, 'via = "masked"\n', "")
        code, error = learn(capsys, study, tmp_path / "out")
        assert code == 2 and reason in error, error
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "is not approved here" in error, "the changed file has another digest"


def test_a_sum_over_fewer_members_than_the_contract_is_refused(
    capsys, tmp_path, in_one_process, monkeypatch
):
    study = approved(capsys, tmp_path / "all", RECORDS, "most_epsilon = 9", SUMS, '["y", "a", "b"]')
    of = Sums.of.__func__

    def fewer(cls, analyst, terms, members, absent=()):
        members.leave("three")
        return of(cls, analyst, terms, members, absent)

    lies(monkeypatch, study)
    monkeypatch.setattr(Sums, "of", classmethod(fewer))
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "the contract" in error


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("rounds = 5", "rounds = 50", "last of 'consensus' is not that of the contract"),
        ('target = "y"', 'target = "y"\nrate = 0.1', "rate of 'consensus'"),
    ],
)
def test_a_lying_analyst_gets_no_other_calibration(
    capsys, tmp_path, sites, monkeypatch, old, new, reason
):
    study = approved(capsys, tmp_path / "all", RECORDS, SUMMED, STUDY, '["y", "a", "b"]')
    lies(monkeypatch, study)
    change(study, old, new)
    change(study, "rounds_per_part = 3", "rounds_per_part = 30")
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and reason in error, error


def test_without_an_approval_nothing_is_answered(capsys, tmp_path, in_one_process):
    folder = tmp_path / "all"
    study = deployment(folder, RECORDS, "most_epsilon = 9", SUMS)
    change(folder / "one" / "site.toml", "free_tables = true", "free_tables = false")
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "it answers approved studies alone" in error


@pytest.mark.parametrize(
    ("learning", "reason"),
    [
        (SUMS.replace('[states]\ny = ["no", "yes"]\na = ["u", "v", "w"]\nb = ["u", "v"]', ""),
         "declares the states"),
        (NOISY.replace("epsilon = 3", 'noise = "none"'), "releases no exact tables"),
        (SUMS + '\n[release]\nrule = "cut"\n', "only Bayesian networks and predictions use it"),
    ],
)  # fmt: skip
def test_what_a_contract_cannot_declare_is_refused(capsys, tmp_path, learning, reason):
    columns = COLUMNS if "vdpnb" in learning else RECORDS
    learning += "" if "[release]" in learning else RUNS
    study = deployment(tmp_path / "all", columns, "", learning)
    change(study, '# variables = ["a", "b"] ', 'variables = ["y", "a", "b"]')
    own = tmp_path / "all" / "one" / "site.toml"
    code, _, error = run(capsys, "approve", study, "--site", own, "--yes")
    assert code == 2 and reason in error, error


def test_the_owner_reads_what_a_sum_reveals(capsys, tmp_path):
    study = deployment(tmp_path / "all", RECORDS, "", SUMS + RUNS)
    change(study, '# variables = ["a", "b"] ', 'variables = ["y", "a", "b"]')
    own = tmp_path / "all" / "one" / "site.toml"
    shown = run(capsys, "approve", study, "--site", own, "--yes")[1]
    assert "the sum over all sites of the counts of y, a x y, b x y" in shown
    assert "polya noise, epsilon 0.6 in all, for each record" in shown


def test_the_owner_reads_what_columns_and_people_reveal(capsys, tmp_path):
    policy = "most_epsilon = 3\nmost_scores = 20"
    study = deployment(tmp_path / "columns", COLUMNS, policy, NOISY + RUNS)
    change(study, '# variables = ["a", "b"] ', 'variables = ["y", "a", "b"]')
    own = tmp_path / "columns" / "one" / "site.toml"
    shown = run(capsys, "approve", study, "--site", own, "--yes")[1]
    assert "the counts of y with each of its variables" in shown
    assert "each count with Laplace noise, epsilon 1.5" in shown, "of two features"
    assert "the scores of each y of 20 records, without noise" in shown
    learning = SUMS.replace('method = "hdpnb"', 'method = "ldp"').replace('via = "masked"\n', "")
    study = deployment(tmp_path / "people", RECORDS, "", learning + RUNS)
    change(study, '# variables = ["a", "b"] ', 'variables = ["y", "a", "b"]')
    own = tmp_path / "people" / "one" / "site.toml"
    shown = run(capsys, "approve", study, "--site", own, "--yes")[1]
    assert "for each person a perturbed report (one), epsilon 0.6 for one person" in shown
