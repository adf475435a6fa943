"""Small counts that released tables show, against a search over all pairs and margins."""

from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.report.release.differences import differences, small_cells
from vertibayes_protocols.variables import Family

LENGTHS = {"a": 2, "b": 3, "c": 2, "d": 2}


@st.composite
def cut_tables(draw):
    """Records, tables of two to four families with counts below a limit as 0, and the limit."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    records, fewest = draw(st.integers(1, 60)), draw(st.integers(1, 8))
    codes = {name: generator.integers(0, size, records) for name, size in LENGTHS.items()}
    tables = []
    for _ in range(draw(st.integers(2, 4))):
        members = draw(st.permutations(list(LENGTHS)))[: draw(st.integers(1, 3))]
        table = np.zeros([LENGTHS[name] for name in members], np.int64)
        np.add.at(table, tuple(codes[name] for name in members), 1)
        tables.append((Family(members[0], tuple(members[1:])), np.where(table < fewest, 0, table)))
    return tables, records, fewest


def margin_cell(family, table, states):
    """Add up the cells of a table in which the variables have the given states."""
    cells = product(*(range(size) for size in table.shape))
    named = ((cell, dict(zip(family.members, cell, strict=True))) for cell in cells)
    return sum(int(table[cell]) for cell, of in named if states.items() <= of.items())


def assignments(names):
    """Return each combination of states of each set of variables."""
    for size in range(len(names) + 1):
        for chosen in combinations(sorted(names), size):
            for codes in product(*(range(LENGTHS[name]) for name in chosen)):
                yield dict(zip(chosen, codes, strict=True))


def searched(tables, records, fewest):
    """Find the small differences of all pairs, and of all sums and the number of records."""
    pairs = [
        (states, i, j, margin_cell(*tables[i], states) - margin_cell(*tables[j], states))
        for i, j in combinations(range(len(tables)), 2)
        for states in assignments(set(tables[i][0].members) & set(tables[j][0].members))
    ]
    pairs += [({}, None, i, records - int(table.sum())) for i, (_, table) in enumerate(tables)]
    return {
        (tuple(states), tuple(states.values()), *((i, j) if gap > 0 else (j, i)), abs(gap))
        for states, i, j, gap in pairs
        if 1 <= abs(gap) < fewest
    }


@settings(max_examples=60)
@given(cut_tables())
def test_all_small_differences_of_pairs_are_listed(case):
    listed = differences(*case)
    assert set(listed) == searched(*case)
    assert len(set(listed)) == len(listed)


@settings(max_examples=60)
@given(cut_tables())
def test_all_small_cells_of_tables_and_margins_are_listed(case):
    tables, _, fewest = case
    seen = {
        (tuple(states), tuple(states.values()), margin_cell(family, table, states))
        for family, table in tables
        for states in assignments(family.members)
    }
    small = {cell for cell in seen if 1 <= cell[2] < fewest + 3}
    assert {(c.variables, c.codes, c.counted) for c in small_cells(tables, fewest + 3)} == small
    assert small_cells(tables, fewest) == []  # as the rule cuts them


def test_a_sum_can_be_small_where_no_finer_margin_is():
    one = (Family("a", ("b",)), np.array([[30, 0], [20, 50]]))
    other = (Family("a", ("c",)), np.array([[18, 0], [20, 60]]))
    (listed,) = differences([one, other], 112, fewest=10)
    assert listed == ((), (), 0, 1, 2)


def test_the_number_of_records_shows_what_a_table_hides():
    (listed,) = differences([(Family("a"), np.array([93, 0]))], 97, fewest=5)
    assert listed == ((), (), None, 0, 4)


def test_exact_tables_of_complete_records_do_not_differ():
    one = (Family("a", ("b",)), np.array([[1, 2], [3, 4]]))
    assert differences([one, (Family("b"), np.array([4, 6]))], 10, fewest=5) == []
