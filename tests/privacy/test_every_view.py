"""Exhaustively, on tiny rings: every coalition of the analyst and all sites but one.

Beside it the unsafe variants, which the same test must reject.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import numpy as np
import pytest

import vertibayes_mpc.commitments.columns
import vertibayes_mpc.masked_tables.plan
import vertibayes_mpc.masked_tables.site
from tests.privacy.simulation import distributions, has_choices, is_simulatable
from tests.randomness import HashStream, TableStream
from tests.worlds import Parts, world
from vertibayes_mpc.commitments import Commitments, Holder, PartColumn
from vertibayes_mpc.masked_tables import Group
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.sharing import open_sum, send_share, zero_share

pytestmark = pytest.mark.laws


@pytest.fixture(autouse=True)
def indicators_alone(monkeypatch):
    """Columns are committed as indicators here: masks of codes and flags are in no other message.

    `test_every_shuffle_view` has them, and a column in all forms.
    """
    forms = Commitments.forms.func

    def indicators(commitments):
        return tuple(found for found in forms(commitments) if found[0].name == "indicators")

    found = cached_property(indicators)
    found.__set_name__(Commitments, "forms")
    monkeypatch.setattr(Commitments, "forms", found)


def asking(*queries, missing=False):
    """Commit, then ask each query: a list of groups."""

    def ask(w):
        messages = w.commit()
        opened = []
        for groups in queries:
            tables, sent = w.count(w.plan(groups, missing))
            opened += tables
            messages = messages + sent
        return opened, messages

    return ask


def columns_of(*holders, records=2, width=1, missing=()):
    """Columns of one site each. All others' records are alike, so that tables leave data open."""
    return [(width, i in missing, {site: [1] * records}) for i, site in enumerate(holders)]


WORLDS = {
    "a pair": (columns_of("a", "b", records=3), 2, asking([Group((0,), (1,))])),
    "a pair and its margins": (
        columns_of("a", "b", records=3),
        2,
        asking([Group((0,)), Group((1,)), Group((0,), (1,))]),
    ),
    "three sites": (columns_of("a", "b", "c"), 1, asking([Group((0, 1), (2,))])),
    "overlapping holders": (columns_of("a", "b", "a"), 1, asking([Group((0, 1), (2,))])),
    "two columns of one site": (columns_of("a", "a", "b"), 1, asking([Group((0, 1), (2,))])),
    "repeated and permuted": (
        columns_of("a", "b"),
        2,
        asking([Group((0,), (1,))], [Group((1,), (0,))], [Group((0,), (1,))]),
    ),
    "families that share a prefix": (
        columns_of("a", "b", "c", "b"),
        1,
        asking([Group((0, 2), (1, 3))]),
    ),
    "missing cells hidden": (
        columns_of("a", "b", records=3, missing=[0]),
        2,
        asking([Group((0,), (1,))]),
    ),
    "a missing cell of the last hidden": (
        columns_of("a", "b", records=3, missing=[1]),
        2,
        asking([Group((0,), (1,))]),
    ),
    "three states": (
        columns_of("a", "b", width=2),
        1,
        asking([Group((0,), (1,))]),
    ),
}


def cases():
    for name, (columns, bits, ask) in WORLDS.items():
        for honest in sorted({s for _, _, held in columns for s in held}):
            yield pytest.param(columns, bits, ask, honest, id=f"{name}, {honest} honest")


@pytest.mark.parametrize(("columns", "bits", "ask", "honest"), list(cases()))
def test_a_view_is_simulated_from_the_opened_tables(columns, bits, ask, honest):
    records = len(next(iter(columns[0][2].values())))
    found = distributions(columns, records, bits, honest, ask, salt="1")
    assert has_choices(found)
    assert is_simulatable(found)


# A column held by a in the first two records and by b in the last two.
HYBRID = [(1, False, {"a": [1, 1, 0, 0], "b": [0, 0, 1, 1]}), (1, False, {"c": [1, 1, 1, 1]})]


def hybrid_cases():
    for group in (Group((0,), (1,)), Group((1,), (0,)), Group((0,))):
        for honest in "abc" if group.lasts else "ab":  # c takes no part in a's and b's counts
            yield pytest.param(group, honest, id=f"{group}, {honest} honest")


@pytest.mark.parametrize(("group", "honest"), list(hybrid_cases()))
def test_a_view_of_a_hybrid_column_is_simulated(group, honest):
    found = distributions(HYBRID, 4, 1, honest, asking([group]))
    assert has_choices(found)
    assert is_simulatable(found)


# A column of a and b by rows: each may hold any of the records that the other does not.
PARTS = [
    (1, True, Parts(a=[1, 1], b=[1, 1])),
    (1, False, {"c": [1, 1]}),
]


@pytest.mark.parametrize("honest", "ab")
@pytest.mark.parametrize("group", [Group((0,), (1,)), Group((1,), (0,)), Group((0,))], ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_a_view_does_not_tell_which_rows_a_holder_has(group, honest, missing):
    """Tables tell how many records it holds; which of them nobody holds, nothing tells."""
    found = distributions(PARTS, 2, 1, honest, asking([group], missing=missing))
    assert has_choices(found)
    assert is_simulatable(found)


# ---- unsafe variants, which must be rejected -----------------------------------------------------


def is_rejected(columns, ask):
    """Whether the view of some coalition, with some streams of its own, is not simulatable."""
    salts = map(str, range(4))
    return any(not is_simulatable(distributions(columns, 2, 1, "a", ask, salt=s)) for s in salts)


def test_small_masks_are_rejected():
    columns = columns_of("a", "b", records=3)
    found = distributions(columns, 3, 2, "a", asking([Group((0,), (1,))]), limit=2)
    assert has_choices(found) and not is_simulatable(found)


@pytest.mark.parametrize("honest", "ab")
def test_rows_that_a_holder_does_not_have_without_a_mask_are_rejected(monkeypatch, honest):
    """It hides what it holds, and shows thereby where it holds nothing."""
    masked = Holder.mask

    def where_it_holds(site, form, place, block):
        mask, column = masked(site, form, place, block), site.columns[place]
        return mask * (column.codes != 1) if isinstance(column, PartColumn) else mask

    monkeypatch.setattr(Holder, "mask", where_it_holds)
    found = distributions(PARTS, 2, 1, honest, asking([Group((0,), (1,))]))
    assert has_choices(found) and not is_simulatable(found)


def test_one_mask_for_two_commitments_is_rejected(monkeypatch):
    def without_id(purpose, context, _, form):
        return label(purpose, context, form)

    monkeypatch.setattr(vertibayes_mpc.commitments.columns, "label", without_id)
    ask = asking([Group((0,), (2,)), Group((1,), (2,))])
    columns = columns_of("a", "a", "b")
    assert is_rejected(columns, ask)


def test_one_correction_for_two_tables_is_rejected(monkeypatch):
    """The coalition has the sums of a and b, less the same corrections, from both tables."""

    def without_term(purpose, *parts):
        return label(purpose, *(parts[:1] if purpose == "table" else parts))

    monkeypatch.setattr(vertibayes_mpc.masked_tables.plan, "label", without_term)
    monkeypatch.setattr(vertibayes_mpc.masked_tables.site, "zero_share", no_zero_share)
    columns = columns_of("a", "a", "b")
    ask = asking([Group((0,), (2,)), Group((1,), (2,))])
    assert is_rejected(columns, ask)


def test_extensions_without_a_new_mask_are_rejected(monkeypatch):
    """The product of a and b under the same stream as its correction: the two cancel."""

    def one_stream(purpose, *parts):
        return label("remask" if purpose == "extend" else purpose, *parts)

    monkeypatch.setattr(vertibayes_mpc.masked_tables.plan, "label", one_stream)
    assert is_rejected(columns_of("a", "b", "c"), asking([Group((0, 1), (2,))]))


def no_zero_share(party, peers, ring, name, count):
    return np.zeros(count, ring.dtype)


# ---- the analyst alone: what the holders' shares of a sum say ------------------------------------


def views_of_the_analyst(zero_share):
    """Return the distributions of the shares that two holders send, for two data with one sum."""
    ring, views = Ring(2), []
    for counts in ({"a": 2, "b": 1}, {"a": 0, "b": 3}):
        key, seen = TableStream(), Counter()
        zero_share("a", {"b": key}, ring, b"sum", 1)  # asks for the elements
        for _ in key.assignments(list(key.values)):
            shares = {
                party: ring.reduce(
                    np.array([count], np.uint8) + zero_share(party, {peer: key}, ring, b"sum", 1)
                )
                for (party, count), peer in zip(counts.items(), "ba", strict=True)
            }
            assert run_all({
                **{p: send_share(share, ring, "analyst") for p, share in shares.items()},
                "analyst": open_sum("ab", ring, 1),
            })[0]["analyst"] == 3  # fmt: skip
            seen[shares["a"].tobytes(), shares["b"].tobytes()] += 1
        views.append(seen)
    return views


def test_the_analyst_learns_the_sum_of_the_holders_alone():
    one, other = views_of_the_analyst(zero_share)
    assert one == other


def test_holders_sums_without_zero_shares_are_rejected():
    one, other = views_of_the_analyst(no_zero_share)
    assert one != other


def views_of_a_count(a, b):
    """Return the distribution of what the analyst is sent of a pair's table.

    The stream of both holders takes all values; those of the dealer, which mask columns in every
    query of a study, have one.
    """
    key = TableStream()
    stream = lambda *two: key if two == ("a", "b") else HashStream(repr(two).encode())  # noqa: E731
    whole = world([(1, False, {"a": a}), (1, False, {"b": b})], 3, 2, stream=stream)

    def seen():
        w = whole.again(run_all)
        w.commit()
        _, messages = w.count(w.plan([Group((0,), (1,))]))
        to_analyst = [m for m in messages if m.receiver == "analyst"]
        return tuple((m.sender, m.message.values.tobytes()) for m in to_analyst)

    seen()  # asks for the elements
    return Counter(seen() for _ in key.assignments(list(key.values)))


def test_shares_of_a_table_do_not_depend_on_the_order_of_the_records(monkeypatch):
    one, other = ([1, 0, 0], [1, 0, 0]), ([0, 1, 0], [0, 1, 0])
    assert views_of_a_count(*one) == views_of_a_count(*other)
    assert views_of_a_count(*one) != views_of_a_count([1, 0, 0], [0, 1, 0]), "another table"
    monkeypatch.setattr(vertibayes_mpc.masked_tables.site, "zero_share", no_zero_share)
    assert views_of_a_count(*one) != views_of_a_count(*other)
