"""Estimates of the counts that a cut hides, from sums that are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.counting import PlainCounter, hidden_counts
from vertibayes.counting.hidden_counts import HiddenCounts, with_estimates
from vertibayes.counting.released import ReleasedCounter
from vertibayes.dag import Structure
from vertibayes.inference.marginals import divergence
from vertibayes.network import Network
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.sampling import sample
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Variable

FAMILIES = Family("a"), Family("b", ("a",)), Family("c", ("a", "b")), Family("d", ("c", "a"))
VARIABLES = {name: Variable(name, ("0", "1", "2")) for name in "abcd"}


def released(data, rule, families=FAMILIES, missing=False):
    """Apply a rule to the tables of pooled records."""
    tables = PlainCounter(data).tables(families, missing=missing)
    if rule.kind == "cut":
        tables = [np.where(table < rule.fewest, 0, table) for table in tables]
    request = FamilyTables(tuple(families), missing, rule)
    return ReleasedCounter(data.variables, data.records, request, tables)


def drawn(records, seed):
    """Draw records of which some combinations are rare."""
    generator = np.random.default_rng(seed)
    chances = generator.dirichlet([0.3, 0.3, 0.3], len(VARIABLES))
    codes = {n: generator.choice(3, records, p=p) for n, p in zip(VARIABLES, chances, strict=True)}
    return SiteData(VARIABLES, {name: column.astype(np.uint8) for name, column in codes.items()})


@settings(max_examples=25)
@given(st.integers(1, 400), st.integers(0, 2**32), st.sampled_from([3, 10, 40]))
def test_true_counts_have_the_known_sums_and_so_nearly_have_the_estimates(records, seed, fewest):
    data = drawn(records, seed)
    counter = released(data, Rule("cut", fewest=fewest))
    unknown = HiddenCounts(counter)
    places = np.concatenate([cells.ravel() for cells in unknown.places])
    hidden = places >= 0
    truth = np.concatenate([t.ravel() for t in PlainCounter(data).tables(FAMILIES)])
    assert np.array_equal(unknown.matrix @ truth[hidden].astype(float), unknown.totals)
    estimate = np.concatenate([table.ravel() for table in unknown.estimate()])
    shown = np.concatenate([table.ravel() for table in counter.released])
    assert np.array_equal(estimate[~hidden], shown[~hidden])
    assert estimate[hidden].min(initial=0) >= 0
    assert estimate[hidden].max(initial=0) <= fewest - 1
    off = np.abs(unknown.totals - unknown.matrix @ estimate[hidden])
    assert off.max(initial=0) <= max(0.1, 0.1 * np.abs(unknown.totals).max(initial=0))


def test_estimates_far_from_convergence_do_not_exceed_the_number_of_records(monkeypatch):
    """Otherwise the counter of the estimates would say that a site did not follow the protocol."""
    monkeypatch.setattr(hidden_counts, "ROUNDS", 1)
    scaled, exceeding = HiddenCounts._scale_down, 0

    def counted(unknown, values):
        nonlocal exceeding
        scaled(unknown, before := values.copy())
        exceeding += (before < values).any()
        scaled(unknown, values)

    monkeypatch.setattr(HiddenCounts, "_scale_down", counted)
    for seed in range(10):
        estimates = with_estimates(released(drawn(400, seed), Rule("cut", fewest=20))).released
        assert max(table.sum() for table in estimates) <= 400 + 1e-6
    assert exceeding  # without scaling, some of these estimates exceed it


def test_a_missing_value_that_is_a_state_keeps_all_records_in_a_table():
    variables = {name: Variable(name, ("0", "1"), missing=True) for name in "ab"}
    codes = {"a": np.repeat([0, 1, 2], 40), "b": np.repeat([0, 2, 1, 2], [60, 30, 25, 5])}
    data = SiteData(variables, {n: c.astype(np.uint8) for n, c in codes.items()})
    families = Family("a"), Family("b", ("a",))
    counter = released(data, Rule("cut"), families, missing=True)
    truth = PlainCounter(data).tables(families, missing=True)
    assert counter.released[1].min() == 0
    assert np.abs(HiddenCounts(counter).estimate()[1] - truth[1]).max() < 10
    incomplete = released(data, Rule("cut"), families)
    assert with_estimates(incomplete) is incomplete
    with pytest.raises(ValueError, match="different records"):
        HiddenCounts(incomplete)


def test_exact_tables_stay_as_they_are():
    counter = released(drawn(50, 1), Rule("exact"))
    assert with_estimates(counter) is counter
    with pytest.raises(ValueError, match="must be cut, got exact"):
        HiddenCounts(counter)


def test_a_network_from_estimates_is_closer_to_the_truth():
    rule = Rule("cut", fewest=40)
    structure = Structure({family.child: family.parents for family in FAMILIES})
    generator = np.random.default_rng(0)
    cpts = {
        f.child: np.moveaxis(generator.dirichlet([0.5] * 3, (3,) * len(f.parents)), -1, 0)
        for f in FAMILIES
    }
    truth = Network(structure, VARIABLES, cpts)
    as_released, estimated = [], []
    for seed in range(5):
        counter = released(sample(truth, 2_000, seed=seed), rule)
        as_released.append(divergence(truth, fit_cpts(counter, structure)))
        estimated.append(divergence(truth, fit_cpts(with_estimates(counter), structure)))
    assert np.mean(estimated) < 0.9 * np.mean(as_released)
