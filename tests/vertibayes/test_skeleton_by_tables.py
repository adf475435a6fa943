"""The skeleton that bounds leave to few tests, beside all tests of PC-stable."""

from itertools import combinations

import numpy as np
import pytest

from tests.vertibayes.test_k2 import Counting
from tests.vertibayes.test_skeleton import skeleton
from vertibayes.counting import PlainCounter
from vertibayes.structure import skeleton_by_tables
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.family_scores import FamilyScores
from vertibayes.structure.graphs import elements, mask_of
from vertibayes.structure.learners import search_of
from vertibayes.structure.skeleton_by_tables import MOST_TESTS, SkeletonByTables
from vertibayes.structure.table_sums import TableSums
from vertibayes.table_scores import log_likelihoods
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Variable


def found(counter, levels=2, **parameters):
    """The tests' result, and the names of each variable's neighbours."""
    search = search_of(counter, "hybrid", **parameters)
    scores = FamilyScores(search, counter)
    tests = SkeletonByTables(scores.space, scores.sums, scores.ask)
    tests.find(levels)
    near = map(scores.space.named, tests.neighbours)
    return tests, dict(zip(search.names, near, strict=True))


def first(data, variables, records=None):
    part = data.take(list(data.variables)[:variables])
    return SiteData(part.variables, {n: codes[:records] for n, codes in part.codes.items()})


@pytest.mark.parametrize("records", [1000, 10_000])
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_without_a_limit_it_is_pc_stables_for_fewer_tables(
    levels, records, alarm_data, monkeypatch
):
    """What a bound excludes, no test would have separated."""
    monkeypatch.setattr(skeleton_by_tables, "MOST_TESTS", 10**6)
    few, all_ = (Counting(PlainCounter(first(alarm_data, 20, records))) for _ in range(2))
    assert found(few, levels)[1] == skeleton(all_, levels=levels).neighbours
    if levels:
        asked, all_asked = (
            {frozenset(family.members) for call in counter.asked for family in call}
            for counter in (few, all_)
        )
        assert len(asked) < len(all_asked)
    assert len(few.asked) == levels + 1  # one call for each level


def test_with_the_limit_nearly_all_pairs_are_separated_all_the_same(alarm_data):
    near, of_pc = found(PlainCounter(alarm_data))[1], skeleton(PlainCounter(alarm_data)).neighbours
    more = {(x, y) for x, others in near.items() for y in others if y not in of_pc[x]}
    assert not any(y not in near[x] for x, others in of_pc.items() for y in others)
    assert len(more) <= 4  # of 1,332


def test_a_dense_table_costs_a_bounded_number_of_tables():
    """Noisy copies of one hidden column: each pair depends, given whatever."""
    generator = np.random.default_rng(3)
    hidden, size = generator.integers(0, 2, 4000), 16
    noisy = {f"v{i:02}": (generator.random(4000) < 0.3) ^ hidden for i in range(size)}
    variables = {name: Variable(name, ("no", "yes")) for name in noisy}
    data = SiteData(variables, {name: codes.astype(np.uint8) for name, codes in noisy.items()})
    counter = Counting(PlainCounter(data))
    tests, _ = found(counter)
    pairs = size * (size - 1) // 2
    assert sum(map(int.bit_count, tests.neighbours)) > 1.8 * pairs  # dense
    assert all(len(call) <= MOST_TESTS * pairs for call in counter.asked)
    assert len(counter.asked[2]) < 0.5 * 1820  # sets of four


def test_required_edges_stay_and_forbidden_pairs_are_not_asked_for(alarm_data):
    data = first(alarm_data, 8)
    names = sorted(data.variables)
    constraints = Constraints(
        required=((names[0], names[7]),), forbidden=((names[1], names[2]), (names[2], names[1]))
    )
    counter = Counting(PlainCounter(data))
    near = found(counter, constraints=constraints)[1]
    assert names[7] in near[names[0]] and names[2] not in near[names[1]]
    assert not any({*f.members} == {names[1], names[2]} for f in counter.asked[0])


def test_the_strongest_neighbours_are_those_no_test_comes_near_to_separating(alarm_data):
    tests, _ = found(PlainCounter(alarm_data))
    for all_, some in zip(tests.neighbours, tests.strongest(2), strict=True):
        assert some & ~all_ == 0 and some.bit_count() == min(2, all_.bit_count())
    assert tests.strongest(99) == tests.neighbours


@pytest.mark.parametrize("missing", [False, True])
def test_sums_are_those_of_tables(missing, gaps):
    """Also where values are missing, and a table's margins are over its own records."""
    counter = PlainCounter(gaps)
    search = search_of(counter, "hybrid", missing=missing)
    sums = TableSums(search, counter)
    sums.ask([0b1011, 0b11, 0b10100])
    for table in (0b1011, 0b10100):
        members = list(elements(table))
        (counts,) = counter.tables(
            [Family(search.names[members[0]], tuple(search.names[v] for v in members[1:]))],
            missing=missing,
        )
        for size in range(len(members) + 1):
            for kept in combinations(range(len(members)), size):
                others = tuple(axis for axis in range(len(members)) if axis not in kept)
                margin = counts.sum(axis=others).ravel()
                expected = sum(n * np.log(n) for n in margin if n)
                of = sums.of(table, mask_of(members[axis] for axis in kept))
                assert of == pytest.approx(expected, abs=1e-6)
        likelihoods = log_likelihoods([counts, counts.sum(axis=tuple(range(1, counts.ndim)))])
        gain = sums.information(1 << members[0], mask_of(members[1:]))
        assert gain == pytest.approx(likelihoods[0] - likelihoods[1], abs=1e-6)


def test_nothing_that_is_known_is_asked_for_again(alarm_data):
    counter = Counting(PlainCounter(alarm_data))
    sums = TableSums(search_of(counter, "hybrid"), counter)
    sums.ask([0b111, 0b111])
    sums.ask([0b011, 0b100, 0b111])  # margins of what was asked for
    assert [len(call) for call in counter.asked] == [1]
