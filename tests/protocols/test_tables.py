import time
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import (
    committed,
    count,
    data_of,
    memories,
    plain,
    refusal,
    refusal_of,
    seeded,
    study_of,
)
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Commit
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.study import MOST_SELECTIONS, Joined
from vertibayes_protocols.variables import Family, Rows

DATA = data_of(a="xy", b="z", c="w")
STUDY = study_of(DATA)


def query_of(*families, rows=Rows(), study=STUDY, **changes):
    asked = [Family(child, tuple(parents)) for child, *parents in families]
    query = ask_tables(Joined(study, commitments=None, seed=None), asked, False, rows)[0]
    return replace(query, **{"number": 1000, **changes})


@pytest.mark.parametrize("rows", [Rows(), Rows(1, 0, 20), Rows(1, 20), Rows(2, 5, 35)])
@pytest.mark.parametrize("column_memory", [1 << 30, 0])
def test_tables_are_those_of_the_sites_data(rows, column_memory):
    with seeded(DATA) as federation:
        for role in federation.roles.values():
            role.column_memory = column_memory
        study = federation.session.ask(Commit.of(STUDY)).study
        families = ["xz", "w", "xyzw", "xyw", "z"]
        tables = count(federation, study, *families, rows=rows)
        chosen = federation.roles["b"].joined.selection(rows).indices
        places = slice(None) if chosen is None else chosen
        for family, table in zip(families, tables, strict=True):
            assert np.array_equal(table, plain(DATA, *family, places=places))


def test_tables_before_a_commitment_are_refused():
    assert "has not committed to this study" in refusal(seeded(DATA), query_of("xz"))
    federation, _ = committed(DATA)
    assert "has not committed" in refusal(
        federation, query_of("xz", study=replace(STUDY, id=b"other"))
    )


def places(*lists):
    return tuple(np.array(numbers, np.uint32) for numbers in lists)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (lambda: query_of("xz", variables=("x", "v")), "the study has no variable 'v'"),
        (lambda: query_of("xz", prefixes=places([2])), "places beyond the query's variables"),
        (lambda: query_of("xz", lasts=places([2])), "places beyond the query's variables"),
        (lambda: query_of("xz", prefixes=(np.ones(1) * 2,)), "places beyond the query's variables"),
        (
            lambda: query_of("xz", prefixes=(np.zeros((1, 1), np.uint32),)),
            "places beyond the query's variables",
        ),
        (
            lambda: query_of("xz", prefixes=(np.array(0, np.uint32),)),
            "places beyond the query's variables",
        ),
        (lambda: query_of("xz", lasts=()), "prefixes and of last parents must be equal"),
        (lambda: query_of("xz", lasts=places([0])), "a variable appears twice"),
        (lambda: query_of("xz", lasts=places([1, 1])), "a variable appears twice"),
        (lambda: query_of("xz", prefixes=places([])), "must have a child"),
        (lambda: query_of("xz", prefixes=places([0, 1]), lasts=places([])), "must have a last one"),
        (
            lambda: query_of("xz", parties=("a", "b", "c", "dealer")),
            "other parties than the holders and the dealer",
        ),
        (
            lambda: query_of("xz", parties=("a", "b")),
            "other parties than the holders and the dealer",
        ),
        (lambda: query_of("xyzw"), "a table of 4 variables, at most 3"),
        (
            lambda: query_of("xz", "xw", "yz", "yw", "zw", "xy", "x"),
            "tables of 57 cells, at most 54",
        ),
        (lambda: query_of("xz", rows=Rows(0, 0, 9)), "over 9 records, at least 10 are required"),
        (lambda: query_of("xz", rows=Rows(0, 9)), "would leave out 9"),
        (lambda: query_of("xz", rows=Rows(0, 0, 41)), "does not lie within 40 records"),
        (lambda: query_of("xz", rows=Rows(-1, 0, 20)), "does not lie within 40 records"),
    ],
)
def test_tables_that_a_site_does_not_count_are_refused_and_not_noted(query, reason):
    federation, _ = committed(
        DATA, policy=Policy(most_variables=3, most_cells=54, free_tables=True)
    )
    assert reason in refusal_of(federation, query)
    ledgers = [role.ledger for role in (*federation.roles.values(), federation.session.role)]
    assert not any(ledger.tables for ledger in ledgers)
    assert len(count(federation, STUDY, "xz", "xyz")) == 2


def test_a_variable_that_appears_a_million_times_is_refused_at_once():
    """The number of its cells alone would have as many factors, and take minutes."""
    federation, _ = committed(DATA)
    again = (np.zeros(1_000_000, np.uint32),)
    start = time.perf_counter()
    assert "a variable appears twice" in refusal_of(
        federation, lambda: query_of("xz", prefixes=again)
    )
    assert time.perf_counter() - start < 1


def test_a_number_that_does_not_ascend_is_refused():
    federation, _ = committed(DATA)
    count(federation, STUDY, "xz")
    for number in (1, 0, -1):
        assert "masks are used once" in refusal(federation, query_of("xz", number=number))
    assert len(count(federation, STUDY, "xz")) == 1
    assert federation.session.role.joined.asked == federation.roles["a"].holder.last == 2


def test_choices_of_records_that_are_refused_do_not_pile_up():
    federation, study = committed(DATA, policy=Policy(most_row_sets=1, free_tables=True))
    wanted = count(federation, study, "xz", rows=Rows(1, 0, 20))[0]
    role = federation.roles["a"]
    for seed in range(2, MOST_SELECTIONS + 10):
        assert "no more are allowed" in refusal(federation, query_of("xz", rows=Rows(seed, 0, 20)))
    assert len(role.joined._selections) == MOST_SELECTIONS
    assert np.array_equal(count(federation, study, "xz", rows=Rows(1, 0, 20))[0], wanted)


@pytest.mark.parametrize(
    ("first", "second", "answered"),
    [
        (Rows(1, 0, 20), Rows(1, 0, 21), False),
        (Rows(1, 0, 20), Rows(1, 0, 29), False),
        (Rows(1, 0, 20), Rows(1, 0, 30), True),
        (Rows(1, 0, 20), Rows(1, 1, 21), False),
        (Rows(1, 0, 20), Rows(1, 10, 30), True),
        (Rows(1, 0, 20), Rows(1, 20, 40), True),
        (Rows(), Rows(1, 0, 30), True),
        (Rows(1, 0, 20), Rows(1, 0, 20), True),
    ],
)
def test_records_that_would_be_singled_out_are_not_counted(first, second, answered):
    federation, study = committed(DATA)
    count(federation, study, "xz", rows=first)
    query = query_of("yz", rows=second)
    if answered:
        assert federation.session.ask(query)[0].sum() == second.count(40)
    else:
        assert "single out fewer than 10" in refusal(federation, query)


def test_three_sets_single_out_what_no_two_do():
    federation, study = committed(
        data_of(60, a="xy", b="z"), policy=Policy(fewest_records=10, free_tables=True)
    )
    for rows in (Rows(1, 0, 40), Rows(1, 20, 60)):
        count(federation, study, "xz", rows=rows)
    query = query_of("xz", rows=Rows(1, 15, 45), study=study)  # of 40: 5, 20 and 15
    assert "single out fewer than 10" in refusal(federation, query)


@pytest.mark.parametrize(
    ("fewer", "reason"), [(0, None), (1, "fewer than 10"), (9, "fewer than 10"), (10, None)]
)
@pytest.mark.parametrize("same_study", [True, False])
def test_records_that_another_session_counted_but_for_a_few(fewer, reason, same_study):
    """The second session commits other columns: the first one's could not be committed again."""
    remembered = memories("a", "b")

    def session_over(records, names, study):
        ids = TextColumn.of([f"person {i}" for i in range(records)])
        drawn = data_of(records, a=names[0], b=names[1])
        data = {site: replace(found, ids=ids) for site, found in drawn.items()}
        return committed(data, study_of(data, study), memories=remembered)

    count(*session_over(40, "xz", b"first"), "xz")
    federation, study = session_over(40 - fewer, "yw", b"first" if same_study else b"second")
    query = query_of("yw", study=study)
    if reason is None:
        assert federation.session.ask(query)[0].sum() == 40 - fewer
    else:
        assert reason in refusal(federation, query)
