"""Studies of naive Bayes from their files, all parties in one process."""

from __future__ import annotations

import csv
import json
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from tests.e2e.command import run
from tests.protocols.deployment.parties import without_release
from vertibayes.contract import steps_of_contract
from vertibayes.naive_bayes.model_file import read_naive_bayes
from vertibayes_protocols.deployment.files import DealerFile, SiteFile, StudyFile, own_keys
from vertibayes_protocols.deployment.running import dealer_role, site_role
from vertibayes_protocols.deployment.templates import Names, init
from vertibayes_protocols.parties import serve
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import Session
from vertibayes_protocols.transports.local import LocalTransport

RECORDS = 120


def write(folder, columns, rows):
    with (folder / "records.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *columns])
        writer.writerows([f"p{place:03}", *row] for place, row in enumerate(rows))


def deployment(folder, sites, policy, learning, address=None):
    """Write the folders of sites with columns, and a study."""
    draw = np.random.default_rng(4)
    y = draw.integers(0, 2, RECORDS)
    table = {"y": np.array(["no", "yes"])[y]}
    for name in ("a", "b", "c"):
        table[name] = np.array(["u", "v"])[(y + (draw.random(RECORDS) < 0.2)) % 2]
    names = Names(tuple(sites))
    init(folder, names, practice=True, variables=sites, relay_address=address)
    for site, columns in sites.items():
        write(folder / site, columns, zip(*(table[name] for name in columns), strict=True))
        path = folder / site / "site.toml"
        path.write_text(
            path.read_text().replace("[policy]", f"[policy]\nfree_tables = true\n{policy}", 1)
        )
    path = folder / "analyst" / "study.toml"
    without_release(path)
    text = path.read_text()
    start, end = text.index("\n[learning]"), text.index("\n[relay]")
    counts = np.bincount(y).tolist()
    learning = learning.format(no=counts[0], yes=counts[1])
    path.write_text(text[:start] + "\n" + learning + text[end:])
    return path


@pytest.fixture
def in_one_process(monkeypatch):
    """Have the sessions of a study run all parties from their files."""

    @contextmanager
    def parties(file):
        folder = file.source.path.parent.parent
        role = AnalystRole(
            file.party, public_keys=dict(file.pinned), signing_keys=dict(file.signing),
            keys=own_keys(file),
        )  # fmt: skip
        with ExitStack() as held:
            roles = {"dealer": dealer_role(DealerFile.read(folder / "dealer" / "dealer.toml"))}
            for site in file.sites:
                found = SiteFile.read(folder / site / "site.toml")
                roles[site] = held.enter_context(site_role(found, steps_of_contract))
            programs = {p: serve(found, file.party, KINDS) for p, found in roles.items()}
            with Session(role, LocalTransport(file.party, programs)) as session:
                yield session

    @contextmanager
    def star(file, *_, **__):
        with parties(file) as session:
            yield session, frozenset()

    module = "vertibayes.cli.machines"
    monkeypatch.setattr(f"{module}.study_session", lambda file, *_, **__: parties(file))
    monkeypatch.setattr(f"{module}.star_session", star)


COLUMNS = {"one": ("a", "y"), "two": ("b", "c", "y")}
NOISY = """
[class_counts]
no = {no}
yes = {yes}

[learning]
learner = "naive_bayes"
method = "vdpnb"
target = "y"
epsilon = 3
predict = 20
"""

SUMS = """
[states]
y = ["no", "yes"]
a = ["u", "v", "w"]
b = ["u", "v"]

[learning]
learner = "naive_bayes"
method = "hdpnb"
target = "y"
epsilon = 0.6
via = "masked"
most_records = 120
"""


def learn(capsys, study, out):
    code, _, error = run(capsys, "learn", str(study), "--out", str(out), "--quiet")
    return code, error


def test_columns_are_learned_with_noise_and_records_predicted(capsys, tmp_path, in_one_process):
    policy = "most_epsilon = 3\nmost_scores = 20"
    study = deployment(tmp_path / "all", COLUMNS, policy, NOISY)
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    rows = (tmp_path / "out" / "predictions.csv").read_text().splitlines()
    assert rows[0] == "record,class,no,yes" and len(rows) == 21
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["promise"]["eps"] == pytest.approx(3)
    beside = summary["promise"]["uncovered"]
    assert ["class" in beside[0], "records, as the sites" in beside[1]] == [True, True]
    assert "the scores of the predicted records" in beside[2]
    assert "<svg" in (tmp_path / "out" / "structure.svg").read_text()
    code, error = learn(capsys, study, tmp_path / "again")
    assert code == 2 and "refuses" in error and "is left of most_epsilon = 3" in error


def test_more_predictions_than_records_are_refused_before_a_table(capsys, tmp_path, in_one_process):
    learning = NOISY.replace("predict = 20", "predict = 121")
    study = deployment(tmp_path / "all", COLUMNS, "most_scores = 200", learning)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "learning.predict: must be at most 120" in error
    ledger = SiteFile.read(tmp_path / "all" / "one" / "site.toml").ledger
    assert not ledger.exists() or "with discrete" not in ledger.read_text()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"most_records = 120": ""}, "learning.most_records: declare the most records of a site"),
        ({"most_records = 120": "most_records = 120\ndropouts = 0.9"}, "at most 1 together, got"),
        ({'target = "y"': 'target = "q"'}, "learning.target: 'q' is not among y, a, b"),
        ({"[learning]": "[class_counts]\nno = 1\n[learning]"}, "hdpnb does not use it"),
        ({"most_records = 120": "most_records = 120\npredict = 3"}, "learning.predict: hdpnb"),
        ({"most_records = 120": 'most_records = 120\ntest = "no.csv"'}, "learning.test: "),
        ({"hdpnb": "gossip"}, "via masked: gossip has additive"),
        ({"hdpnb": "federated", "epsilon = 0.6": 'noise = "diluted"'}, "federated has polya or"),
        ({"hdpnb": "ldp", 'via = "masked"': 'noise = "none"'}, "ldp has the noise of"),
        ({'via = "masked"': "iterations = 3"}, "iterations is an option of gossip"),
        ({'via = "masked"': 'oracle = "de"'}, "oracle is an option of ldp"),
    ],
)
def test_check_and_learn_refuse_settings_that_do_not_fit(capsys, tmp_path, changes, reason):
    learning = SUMS
    for old, new in changes.items():
        learning = learning.replace(old, new)
    sites = dict.fromkeys(("one", "two"), ("a", "b", "c", "y"))
    study = deployment(tmp_path / "all", sites, "most_epsilon = 1", learning)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and reason in error and not (tmp_path / "out").exists()
    _, shown, _ = run(capsys, "check", str(study))
    assert reason in shown


def test_records_are_summed_and_the_budget_is_refused_when_spent(capsys, tmp_path, in_one_process):
    sites = dict.fromkeys(("one", "two", "three"), ("a", "b", "c", "y"))
    study = deployment(tmp_path / "all", sites, "most_epsilon = 1", SUMS)
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert set(summary["variables"]) == {"y", "a", "b"}
    code, error = learn(capsys, study, tmp_path / "again")
    assert code == 2 and "epsilon 0.6: 0.4 is left of most_epsilon = 1" in error
    assert StudyFile.read(study).states["a"] == ("u", "v", "w")


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("federated", 'via = "masked"', "against the aggregator alone"),
        ("federated", 'noise = "laplace"', "against the aggregator and all other members"),
        ("federated", 'noise = "gaussian"', "by zCDP"),
        ("gossip", "iterations = 7", "against the aggregator and all other members"),
        ("ldp", 'oracle = "oue"', "all that one person reports"),
        ("ldp", 'reports = "all_at_full_eps"', "(1.8, 0)-differentially"),
    ],
)
def test_each_method_learns_over_sites_and_charges_their_budgets(
    capsys, tmp_path, in_one_process, method, settings, words
):
    sites = dict.fromkeys(("one", "two", "three"), ("a", "b", "c", "y"))
    learning = SUMS.replace("hdpnb", method).replace('via = "masked"', settings)
    study = deployment(tmp_path / "all", sites, "most_epsilon = 2", learning)
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert words in summary["promise"]["sentence"]
    cost = summary["promise"]["cost"]["eps"]
    assert cost == pytest.approx(1.8 if "full" in settings else 0.6)
    ledger = SiteFile.read(tmp_path / "all" / "one" / "site.toml").ledger.read_text()
    assert f"so far cost epsilon {cost:.4g}" in ledger
    again = [learn(capsys, study, tmp_path / f"again {place}") for place in range(11)]
    permitted = [code for code, _ in again].index(2)
    assert permitted == (9 if "gaussian" in settings else 0 if "full" in settings else 2)
    assert all(code == 2 and "of most_" in error for code, error in again[permitted:])


@pytest.mark.parametrize("declared", [True, False])
def test_what_sites_described_is_named_in_the_promise_and_noted_once(
    capsys, tmp_path, in_one_process, declared
):
    sites = dict.fromkeys(("one", "two", "three"), ("a", "b", "c", "y"))
    settings = SUMS if declared else SUMS[SUMS.index("[learning]") :]
    study = deployment(tmp_path / "all", sites, "most_epsilon = 1", settings)
    code, told, error = run(capsys, "learn", str(study), "--out", str(tmp_path / "out"))
    assert code == 0
    summary, ledger = (
        json.loads((tmp_path / "out" / f"{name}.json").read_text())
        for name in ("summary", "ledger")
    )
    records = "the sites' numbers of records"
    assert len(summary["promise"]["uncovered"]) == (not declared)
    for text in (summary["promise"]["sentence"], told + error):
        assert text.count(records) == (not declared)
    assert not summary["warnings"]
    whats = [fact["what"] for fact in ledger["revealed"]]
    assert sum("record count" in what for what in whats) == (0 if declared else 3)


NUMBERS = """
[states]
y = ["no", "yes"]
a = ["u", "v"]

[numbers]
age = [20, 80]

[learning]
learner = "naive_bayes"
method = "hdpnb"
target = "y"
noise = "none"
via = "masked"
most_records = 120
"""


def with_ages(folder, learning, bounds="[0, 120]", address=None):
    """Write a study whose sites have other ages, and other bounds than the study."""
    sites = dict.fromkeys(("one", "two", "three"), ("a", "b", "y"))
    policy = "exact_sums = true\nmost_epsilon = 50"
    study = deployment(folder, sites, policy, learning, address)
    ages = []
    for place, site in enumerate(sites):
        path = folder / site / "records.csv"
        header, *rows = path.read_text().splitlines()
        own = np.random.default_rng(place).normal(50 + 5 * place, 25, len(rows)).round(1).tolist()
        ages += [*own[:-1], np.nan]
        texts = [*map(str, own[:-1]), ""]  # one age is missing at each site
        lines = [f"{row},{age}" for row, age in zip(rows, texts, strict=True)]
        path.write_text("\n".join([f"{header},age", *lines]) + "\n")
        site_file = folder / site / "site.toml"
        text = site_file.read_text()
        site_file.write_text(text.replace('"a" = {}', f'"a" = {{}}\nage = {{ bounds = {bounds} }}'))
    return study, np.array(ages)


def test_numbers_are_summed_between_the_bounds_of_the_study(capsys, tmp_path, in_one_process):
    study, ages = with_ages(tmp_path / "all", NUMBERS)
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    out = tmp_path / "out"
    model = read_naive_bayes(out / "naive_bayes.json")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["variables"]["age"] == {"bounds": [20, 80]}
    assert summary["model"] == ["naive_bayes.json"] and not (out / "model.bif").exists()
    known = ~np.isnan(ages)
    table = np.array([row.split(",") for row in (tmp_path / "all" / "one" / "records.csv")
                      .read_text().splitlines()[1:]])  # fmt: skip
    y = np.tile(table[:, 3] == "yes", 3)
    means = [np.clip(ages[known & (y == c)], 20, 80).mean() for c in (False, True)]
    assert model.theta_["age"] == pytest.approx(means, abs=1e-3)
    assert "moments of age" in (out / "ledger.json").read_text()


def test_noise_covers_numbers_of_the_study(capsys, tmp_path, in_one_process):
    learning = NUMBERS.replace('noise = "none"', "epsilon = 40")
    study, ages = with_ages(tmp_path / "all", learning)
    assert learn(capsys, study, tmp_path / "out") == (0, "")
    model = read_naive_bayes(tmp_path / "out" / "naive_bayes.json")
    assert model.theta_["age"] == pytest.approx([np.nanmean(ages)] * 2, abs=15)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["promise"]["eps"] == pytest.approx(40)
    assert summary["promise"]["tables"] == 4  # y, a, and the sum and the squares of ages


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({'method = "hdpnb"': 'method = "vdpnb"', '[states]\ny = ["no", "yes"]\na = ["u", "v"]': "",
          'via = "masked"\nmost_records = 120': ""}, "numbers: vdpnb publishes tables of states"),
        ({'target = "y"': 'target = "age"'}, "learning.target: 'age' is in [numbers]"),
        ({'learner = "naive_bayes"': ""}, "numbers: Bayesian networks have states alone"),
        ({"age = [20, 80]": "age = [80, 20]"}, "numbers.age: must be two ascending numbers"),
        ({"age = [20, 80]": "weight = [20, 80]"}, "it does not show weight"),
        ({'a = ["u", "v"]': 'age = ["u", "v"]', "age = [20, 80]": ""},
         "the column 'age' has numbers, and its states are asked for"),
        ({'a = ["u", "v"]': "", "age = [20, 80]": "a = [20, 80]"},
         "the column 'a' has states, and its numbers are asked for"),
    ],
)  # fmt: skip
def test_studies_refuse_numbers_that_do_not_fit(capsys, tmp_path, in_one_process, changes, reason):
    learning = NUMBERS
    for old, new in changes.items():
        assert learning.count(old) == 1
        learning = learning.replace(old, new)
    study, _ = with_ages(tmp_path / "all", learning)
    code, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and reason in error, error
