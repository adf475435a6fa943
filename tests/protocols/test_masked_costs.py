"""Which tables are counted by shuffle, and what a query takes: functions of public sizes."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes.structure.k2 import k2_widest
from vertibayes.structure.learners import k2, search_of
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.queries.tables.counting import batches, grouped
from vertibayes_protocols.queries.tables.masked import MaskedPlan
from vertibayes_protocols.queries.tables.masked_costs import Load, MaskedCosts, choose_shuffled
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows, Variable

MIB = 1 << 20


def study_of(states, sites, records, memory, missing=()):
    """Return a study of variables of these numbers of states, dealt to sites in turn."""
    variables = {
        f"v{i}": Variable(f"v{i}", tuple(map(str, range(count))), i in missing)
        for i, count in enumerate(states)
    }
    holders = {name: (f"s{i % sites}",) for i, name in enumerate(variables)}
    return Study(b"study", variables, holders, records, "dealer", 1 << 15, memory)


@st.composite
def studies(draw):
    """Studies of any width, and the families of a search over them."""
    states = draw(st.lists(st.integers(2, 120), min_size=2, max_size=12))
    records = draw(st.sampled_from([0, 1, 100, 5_000, 50_000, 600_000]))
    missing = draw(st.sets(st.integers(0, len(states) - 1)))
    least = 110 * max(records, 10_000)
    memory = draw(st.integers(least, 20 * least))
    study = study_of(states, draw(st.integers(1, 5)), records, memory, missing)
    names = list(study.variables)
    families = [Family(names[0])]
    for place, child in enumerate(names):
        for parents in range(min(3, place)):
            given = tuple(names[:parents])
            families += [Family(child, (*given, name)) for name in names[parents:place]]
    return study, families, draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(studies())
def test_no_query_is_planned_above_the_memory(drawn):
    study, families, missing = drawn
    costs = MaskedCosts(study, study.records, missing)
    planned = list(batches(costs, families))
    assert sorted(f for batch in planned for f in batch) == sorted(families)
    for batch in planned:
        loads = [choose_shuffled(costs, group).load for group in grouped(batch)]
        load = reduce(Load.plus, loads)
        assert costs.products_memory(load.columns) <= study.memory or not load.columns.rows
        assert costs.shuffling_memory + load.shuffle_bytes <= study.memory or not load.shuffled
        wide = [len(g.lasts) > 1 for g in grouped(batch)]
        assert sum(x.cells for x in loads) <= 10_000_000 or not any(wide)


def test_all_parties_choose_alike_whatever_they_hold():
    """The order in which variables are told, and other variables, do not matter."""
    states = [4, 12, 30, 3, 16, 17]
    study = study_of(states, 3, 50_000, 256 * MIB)
    turned = Study(
        b"other", dict(reversed(study.variables.items())), dict(reversed(study.holders.items())),
        50_000, "d", 1 << 15, 256 * MIB,
    )  # fmt: skip
    families = [Family("v0", ("v3", z)) for z in ("v1", "v2", "v4", "v5")]
    (group,) = grouped(families)
    chosen = [choose_shuffled(MaskedCosts(s, 50_000, False), group) for s in (study, turned)]
    assert chosen[0] == chosen[1]


def test_a_wide_column_is_always_shuffled_and_a_pair_of_narrow_ones_multiplied():
    study = study_of([2, 3, 17], 3, 10_000, 256 * MIB)
    costs = MaskedCosts(study, 10_000, False)
    (group,) = grouped([Family("v0", ("v1",)), Family("v0", ("v2",))])
    assert choose_shuffled(costs, group).shuffled == (False, True)


def test_a_missing_state_may_make_a_column_too_wide_for_indicators():
    study = study_of([2, 8], 2, 1000, 256 * MIB, missing={1})
    assert study.variables["v1"].codes == 9
    (group,) = grouped([Family("v0", ("v1",))])
    assert choose_shuffled(MaskedCosts(study, 1000, True), group).shuffled == (True,)


def drawn(states, records, seed=0):
    generator = np.random.default_rng(seed)
    variables = {
        f"v{i}": Variable(f"v{i}", tuple(map(str, range(q)))) for i, q in enumerate(states)
    }
    dtype = [np.uint8 if q < 256 else np.uint16 for q in states]
    codes = {
        f"v{i}": generator.integers(0, q, records).astype(d)
        for i, (q, d) in enumerate(zip(states, dtype, strict=True))
    }
    return SiteData(variables, codes)


@pytest.mark.parametrize("budget", [24 * MIB, 96 * MIB])
@pytest.mark.parametrize("states", [[40, 30, 20, 10, 5, 2], [12] * 7, [2, 3] * 5])
def test_a_run_takes_no_more_memory_than_its_budget(states, budget):
    """All parties are in this process: their columns, queries and messages together."""
    data = drawn(states, 20_000)
    parts = split_columns(data, 3)
    k2(PlainCounter(data))  # imports are not counted
    tracemalloc.start()
    try:
        with federate(parts, memory_budget=budget) as federation:
            counter = SecureCounter.of(federation, order=list(data.variables))
            structure = k2(counter)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert structure == k2(PlainCounter(data))
    assert peak <= budget


def test_a_run_that_cannot_end_opens_nothing():
    """Six parents of 20,000 records need more than these 2 MiB at each party."""
    data = drawn([30, 20, 10, 5], 20_000)
    with federate(split_columns(data, 2), memory_budget=4 * MIB) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        with pytest.raises(ValueError, match="allow more memory or fewer parents"):
            k2(counter)
        assert not counter.ledger.tables and not counter.calls
        assert all(not role.ledger.tables for role in federation.roles.values())


def test_a_candidate_whose_table_nobody_could_hold_is_none():
    """300 x 300 x 300 cells are more than ten million: third variables are not considered."""
    data = drawn([300, 300, 300], 500)
    plain = PlainCounter(data)
    families = k2_widest(search_of(plain, "k2", max_parents=2))
    assert Family("v2", ("v0", "v1")) not in families
    with federate(split_columns(data, 3)) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        assert k2(counter) == k2(plain)


def test_a_plan_mixes_products_and_shuffles_and_keeps_the_order_of_the_query():
    data = drawn([3, 4, 40, 2], 3000)
    families = [Family("v0", ("v2",)), Family("v0", ("v1",)), Family("v2"), Family("v3", ("v1",))]
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        joined = federation.roles["site-1"].joined
        plan = MaskedPlan(joined, tuple(grouped(families)), Rows(), False, 9)
        assert plan.shuffles.tables and plan.products.groups
        for got, wanted in zip(
            counter.tables(families), PlainCounter(data).tables(families), strict=True
        ):
            assert np.array_equal(got, wanted)


def test_a_query_that_takes_more_memory_than_a_party_allows_is_refused_there():
    """An analyst who cuts its queries otherwise than `batches` does."""
    data = drawn([20] * 8, 5000)
    names = list(data.variables)
    families = [Family(a, (b, c)) for a in names for b in names for c in names if a < b < c]
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation, order=names)
        role = federation.roles["site-1"]
        role.policy = replace(role.policy, most_memory=1_000_000)
        with pytest.raises(
            QueryRefusedError, match=r"site-1 refuses: the query takes up to [\d,]+ byte"
        ):
            counter.tables(families)
        assert not role.ledger.tables
