from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from tests.structure_worlds import binary
from vertibayes.choosing import TableChooser, follow
from vertibayes.counting import PlainCounter
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.learners import search_of
from vertibayes.structure.skeleton import skeleton_bits, skeleton_steps, skeleton_widest
from vertibayes.table_scores import log_likelihoods
from vertibayes_protocols.variables import Family


def skeleton(source, constraints=Constraints(), missing=False, **options):
    search = search_of(source, "k2", constraints=constraints, missing=missing)
    return follow(skeleton_steps(search, **options), TableChooser(source).choose)


def plain_skeleton(source, alpha, levels, records_per_cell=0):
    """PC-stable as printed, with scipy's quantiles and one test at a time."""
    names = sorted(source.variables)
    near = {x: set(names) - {x} for x in names}
    for level in range(levels + 1):
        before = {x: set(others) for x, others in near.items()}
        for x, y in combinations(names, 2):
            for one in (x, y):
                for given in combinations(sorted(before[one] - {x, y}), level):
                    if y not in before[x]:
                        continue
                    (table,) = source.tables([Family(x, (*given, y))])
                    if table.size * records_per_cell > source.records:
                        continue
                    dependent, alone = log_likelihoods([table, table.sum(axis=-1)])
                    degrees = (table.shape[0] - 1) * (table.shape[-1] - 1)
                    degrees *= int(np.prod(table.shape[1:-1]))
                    if chi2.sf(2 * (dependent - alone), degrees) > alpha:
                        near[x].discard(y)
                        near[y].discard(x)
    return {x: tuple(sorted(others)) for x, others in near.items()}


@pytest.mark.parametrize("records_per_cell", [0, 10])
def test_the_skeleton_is_that_of_pc_stable(alarm_data, records_per_cell):
    source = PlainCounter(alarm_data.take(list(alarm_data.variables)[:12]))
    learned = skeleton(source, levels=2, records_per_cell=records_per_cell)
    assert learned.neighbours == plain_skeleton(source, 0.05, 2, records_per_cell)


def test_missing_cells_are_left_out_test_by_test(gaps):
    source = PlainCounter(gaps)
    learned = skeleton(source, levels=1, records_per_cell=0)
    assert learned.neighbours == plain_skeleton(source, 0.05, 1)


def test_one_call_for_each_level_and_one_table_for_each_test(alarm_data):
    source = PlainCounter(alarm_data.take(list(alarm_data.variables)[:10]))
    asked, tables = [], source.tables

    def counted(families, **options):
        asked.append(len(families))
        return tables(families, **options)

    source.tables = counted
    sets, chooser = [], TableChooser(source)
    follow(
        skeleton_steps(search_of(source, "k2")),
        lambda choices: (sets.append(len(choices.sets)), chooser.choose(choices))[1],
    )
    assert asked == sets and len(sets) == 3
    assert 2 * sum(sets) <= skeleton_bits(10, 2)


def test_a_separator_is_the_first_in_order_of_names():
    generator = np.random.default_rng(0)
    hidden = generator.integers(0, 2, 4000)
    noisy = lambda: np.where(generator.random(4000) < 0.1, 1 - hidden, hidden)  # noqa: E731
    codes = {"y": noisy(), "x": noisy(), "b": hidden, "a": hidden}
    data = binary({name: column.astype(np.uint8) for name, column in codes.items()})
    learned = skeleton(PlainCounter(data), alpha=0.001)
    assert learned.separators["x", "y"] == ("a",)
    assert learned.separating["x", "y"] == {"a", "b"}


def test_required_edges_stay_and_forbidden_pairs_are_never_adjacent(alarm_data):
    names = sorted(alarm_data.variables)[:8]
    source = PlainCounter(alarm_data.take(names))
    free = skeleton(source)
    absent = next(iter(free.separators))
    present = free.pairs[0]
    both = (present, present[::-1])
    learned = skeleton(source, Constraints(required=(absent,), forbidden=both))
    assert absent in learned.pairs and absent not in learned.separators
    assert present not in learned.pairs and present not in learned.separators


def test_two_roots_are_never_adjacent(alarm_data):
    source = PlainCounter(alarm_data.take(list(alarm_data.variables)[:4]))
    assert skeleton(source, Constraints(roots=tuple(source.variables))).pairs == []


def test_tests_with_few_records_a_cell_are_not_made(alarm_data):
    source = PlainCounter(alarm_data.take(list(alarm_data.variables)[:6]))
    everything = skeleton(source, records_per_cell=10**6)
    assert len(everything.pairs) == 15 and everything.separators == {}


def test_the_widest_families_cover_every_level(alarm_data):
    source = PlainCounter(alarm_data.take(list(alarm_data.variables)[:6]))
    families = skeleton_widest(search_of(source, "k2"), levels=2, records_per_cell=0)
    assert {len(family.members) for family in families} == {2, 3, 4}
    assert len(families) == 3 * 15
