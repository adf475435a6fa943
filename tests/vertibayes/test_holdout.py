"""Validation on held-out records: the measures, and the tables that give them."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as scikit_log_loss

from tests.randomness import SeededRandomness
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.holdout import TooLargeError, check_classes, held_out, held_out_validation, holdout
from vertibayes.inference.intervals import wilson
from vertibayes.inference.prediction import predict_proba
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.validation.measures import auc_interval, brier, log_loss
from vertibayes.validation.methods import Scored
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable

TARGET = "HYPOVOLEMIA"
NAMES = ["HISTORY", "LVFAILURE", TARGET, "LVEDVOLUME", "CVP", "STROKEVOLUME"]
EDGES = [
    ("LVFAILURE", "HISTORY"),
    ("LVFAILURE", "LVEDVOLUME"),
    (TARGET, "LVEDVOLUME"),
    ("LVEDVOLUME", "CVP"),
    ("LVFAILURE", "STROKEVOLUME"),
    (TARGET, "STROKEVOLUME"),
]


@pytest.mark.parametrize("states", ["ab", "abc"])
def test_log_loss_and_brier_score_equal_scikit_learns(states):
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet(np.ones(len(states)), 300)
    classes = generator.integers(0, len(states), 300)
    every = list(range(len(states)))
    found = log_loss(classes, probabilities, states), brier(classes, probabilities, states)
    chances = probabilities[:, 1] if len(states) == 2 else probabilities
    assert found[0].value == pytest.approx(scikit_log_loss(classes, probabilities, labels=every))
    assert found[1].value == pytest.approx(brier_score_loss(classes, chances, labels=every))
    assert all(low < value < high for value, low, high in found)


def test_a_class_of_probability_zero_has_no_log_loss():
    assert log_loss(np.array([0, 1, 1]), np.array([[1, 0], [1, 0], [0.5, 0.5]]), "ab") is None


def test_the_interval_of_an_area_has_delongs_variance():
    """Structural components by pairs, as DeLong et al. (1988) define them."""
    generator = np.random.default_rng(1)
    classes = generator.integers(0, 2, 80)
    scores = np.round(generator.normal(classes, 1.0), 1)
    chances = np.round(1 / (1 + np.exp(-scores)), 3)  # with ties
    won = (np.sign(chances[classes == 1][:, None] - chances[classes == 0]) + 1) / 2
    ones, zeros = won.shape
    variance = won.mean(axis=1).var(ddof=1) / ones + won.mean(axis=0).var(ddof=1) / zeros
    expected = wilson(won.mean(), won.mean() * (1 - won.mean()) / variance)
    found = auc_interval(classes, np.column_stack([1 - chances, chances]), "ab")
    assert found == pytest.approx(expected)


def test_an_area_of_one_has_an_interval_of_the_rarer_class():
    classes = np.repeat([0, 1], [90, 10])
    found = auc_interval(classes, np.column_stack([classes == 0, classes == 1]) * 1.0, "ab")
    assert found == pytest.approx(wilson(1.0, 10)) and found.low < 0.75


@pytest.mark.parametrize("true", [0.8, 0.95])
def test_intervals_of_three_classes_contain_the_area_of_many_records(true):
    """The coverage of 300 intervals is 95 % within five standard errors of 1.3 %."""
    generator = np.random.default_rng(2)
    spread = 1.0 if true == 0.8 else 2.0

    def drawn(count):
        classes = generator.choice(3, count, p=[0.5, 0.3, 0.2])
        logits = generator.normal(spread * np.eye(3)[classes], 1.0)
        weights = np.exp(logits)
        return classes, weights / weights.sum(axis=1, keepdims=True)

    best = held_out_validation(Variable("t", tuple("abc")), Scored(*drawn(200_000), 0)).overall.auc
    ends = [auc_interval(*drawn(200), "abc") for _ in range(300)]
    assert 0.89 < np.mean([low <= best <= high for low, high in ends]) <= 1


def truth(network, data, target):
    probabilities = np.round(predict_proba(network, data, target), 12)
    return held_out_validation(data.variables[target], Scored(data.codes[target], probabilities, 0))


def test_the_table_of_the_markov_blanket_gives_what_the_records_give(alarm_network):
    data = sample(alarm_network, 2000, seed=3).take(NAMES)
    rest, held = data.rows(np.arange(1500)), data.rows(np.arange(1500, 2000))
    for target in (TARGET, "LVEDVOLUME"):  # of two and of three states
        network = fit_cpts(PlainCounter(rest), Structure.of(NAMES, EDGES), pseudo_count=0.5)
        found, expected = (
            holdout(network, PlainCounter(held), target), truth(network, held, target)
        )  # fmt: skip
        assert found.overall == expected.overall and found.overall.scored == 500
        for name in ("auc_interval", "log_loss", "brier"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name))
        assert (found.curves.confusion == expected.curves.confusion).all()
        assert found.by == "table of the Markov blanket"


@pytest.mark.parametrize("sites", [1, 2, 5])
def test_a_score_table_over_sites_gives_what_the_table_gives(alarm_network, sites):
    data = sample(alarm_network, 2000, seed=4).take(NAMES)
    # The sites draw which records are held out: in another draw, two log odds can share a bin.
    drawn = SeededRandomness(b"which records are held out")
    with federate(split_columns(data, sites), randomness=drawn) as federation:
        counter = SecureCounter.of(federation, order=NAMES)
        rows, left = held_out(counter.records, 0.25, seed=7)
        held, rest = counter.within(rows), counter.within(left)
        network = fit_cpts(rest, Structure.of(NAMES, EDGES), pseudo_count=0.5)
        before = len(counter.ledger.tables)
        found = holdout(network, held, TARGET)
        revealed = len(counter.ledger.tables) - before
        evidence = ("LVEDVOLUME", "LVFAILURE", "STROKEVOLUME")
        (table,) = held.tables([Family(TARGET, evidence)])
        noted = [shown for _, chosen, shown in counter.revealed if chosen == held.rows]
    assert found.by == "score table" and not revealed, "no table of variables"
    scores = noted[-1]  # of few log odds, so that each bin has one combination of the evidence
    pairs = table.reshape(len(table), -1).T
    assert sorted(filter(any, scores.tolist())) == sorted(filter(any, pairs.tolist()))
    assert set(found.evidence) == set(evidence) and table.sum() == found.overall.scored == 500
    codes = dict(zip((TARGET, *evidence), np.nonzero(table), strict=True))
    times = table[np.nonzero(table)]
    records = SiteData(
        {name: data.variables[name] for name in codes},
        {name: np.repeat(column, times).astype(np.uint8) for name, column in codes.items()},
    )
    expected = truth(network, records, TARGET)
    assert found.overall.auc == pytest.approx(expected.overall.auc, abs=1e-3)
    assert found.log_loss == pytest.approx(expected.log_loss, abs=1e-3)
    assert found.brier == pytest.approx(expected.brier, abs=1e-3)


def test_held_out_records_and_all_others_are_all_records(alarm_network):
    data = sample(alarm_network, 500, seed=5).take(NAMES)
    families = [Family("CVP", ("LVEDVOLUME",)), Family(TARGET)]
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation, order=NAMES)
        parts = [counter.within(rows) for rows in held_out(500, 0.2, seed=3)]
        assert [part.records for part in parts] == [100, 400]
        counts = [part.tables(families) for part in parts]
        both = [sum(tables) for tables in zip(*counts, strict=True)]
        assert all((a == b).all() for a, b in zip(both, counter.tables(families), strict=True))
        one, other = (
            parts[1].tables(families, rows=rows) for rows in (Rows(0, 0, 150), Rows(9, 150))
        )
        assert all((a + b == c).all() for a, b, c in zip(one, other, counts[1], strict=True))
        assert parts[1].calls == counter.calls, "they count together"


def test_values_that_are_missing_around_a_target_are_summed_out(gaps):
    data = gaps
    target = next(n for n, v in data.variables.items() if len(v.states) == 2)
    others = [n for n in data.variables if n != target][:3]
    small = data.take([target, *others])
    structure = Structure.of([target, *others], [(target, n) for n in others])
    network = fit_cpts(PlainCounter(small), structure, pseudo_count=0.5)
    found, expected = holdout(network, PlainCounter(small), target), truth(network, small, target)
    assert found.overall == expected.overall and found.overall.left_out > 0
    assert found.log_loss == pytest.approx(expected.log_loss)


def test_a_target_beside_nothing_is_predicted_by_its_shares():
    variables = {n: Variable(n, ("no", "yes")) for n in "ab"}
    generator = np.random.default_rng(6)
    data = SiteData(variables, {n: generator.integers(0, 2, 400).astype(np.uint8) for n in "ab"})
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation)
        rows, left = held_out(400, 0.3)
        network = fit_cpts(counter.within(left), Structure.of("ab", []))
        found = holdout(network, counter.within(rows), "a")
    assert found.overall.auc == 0.5 and not found.evidence
    assert found.log_loss.value == pytest.approx(np.log(2), abs=0.05)


def test_what_cannot_be_held_out():
    with pytest.raises(ValueError, match=r"`holdout` 0\.2 holds out 6 of 30 records: at least 10"):
        held_out(30, 0.2)
    with pytest.raises(ValueError, match="holds out 27 of 30 records"):
        held_out(30, 0.9)
    codes = np.repeat([0, 1], [50, 9]).astype(np.uint8)
    data = SiteData({"a": Variable("a", ("no", "yes"))}, {"a": codes})
    with pytest.raises(ValueError, match="have 50 of no, 9 of yes in a; two states need 10"):
        check_classes(PlainCounter(data), "a")


def test_a_table_that_is_too_large_is_refused():
    names = [f"v{k}" for k in range(9)]
    variables = {n: Variable(n, tuple("abcdefgh")) for n in names}
    data = SiteData(variables, {n: (np.arange(80) % 8).astype(np.uint8) for n in names})
    structure = Structure.of(names, [("v0", n) for n in names[1:]])
    network = fit_cpts(PlainCounter(data), structure)
    with pytest.raises(
        TooLargeError, match="v0 and the 8 variables around it has 134,217,728 cells"
    ):
        holdout(network, PlainCounter(data), "v0")
