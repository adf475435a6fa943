"""Exhaustively, on tiny rings: what coalitions see of table lookups is simulated from the sums.

Coalitions are the analyst with all sites except one, and the dealer with the analyst. Beside them
the unsafe variants, each without one mask or with one mask used twice: the same test must reject
them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest

import vertibayes_mpc.table_lookups.rows
from tests.mpc.test_table_lookups import programs_of
from tests.privacy.simulation import distributions, has_choices, is_simulatable
from tests.randomness import HashStream, TableStream
from tests.worlds import world
from vertibayes_mpc.commitments import Selection
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.table_lookups import CountPlan, TableLookupPlan, deal_counts, share_counts
from vertibayes_mpc.unit_vectors import Indices

pytestmark = pytest.mark.laws


def column(site, codes):
    return (1, False, {site: codes})


TWO = [column("a", [1]), column("b", [1])]
THREE = [*TWO, column("c", [1])]
TWICE = [column("a", [1]), column("a", [1]), *TWO[1:], THREE[2]]
RECORDS = [column("a", [1, 1]), column("b", [0, 1])]

OF_A, OF_B, EITHER = [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]  # rows by the codes of two axes
OF_THE_LAST = [0, 1] * 4
BOTH, ALL = ((0, 1),), ((0, 1, 2),)


def ask_of(axes, *rows, bits=1):
    """Look up in tables of one column with these rows."""

    def ask(w):
        plan = TableLookupPlan(b"view", Selection(w.commitments), axes, 1, Ring(bits))
        tables = [np.array(each)[:, None] for each in rows]
        outputs, messages = run_all(programs_of(w, plan, tables))
        return [outputs["analyst"]], messages

    return ask


CASES = {
    "two sites, first": (TWO, 1, "a", ask_of(BOTH, OF_B)),
    "two sites, second": (TWO, 1, "b", ask_of(BOTH, OF_A)),
    "two sites, first, its value shown": (TWO, 1, "a", ask_of(BOTH, OF_A)),
    "two sites, second, its value shown": (TWO, 1, "b", ask_of(BOTH, EITHER)),
    "three sites, first": (THREE, 1, "a", ask_of(ALL, OF_THE_LAST)),
    "a chain of three, middle": (THREE, 1, "b", ask_of(((0, 1), (1, 2)), OF_A, OF_B)),
    "two records, first": (RECORDS, 2, "a", ask_of(BOTH, OF_B)),
    "two tables, first": (TWICE, 1, "a", ask_of(((0, 2), (1, 3)), OF_B, OF_B)),
    "an own table too, second": (TWO, 1, "b", ask_of(((0, 1), (1,)), OF_B, [1, 0])),
}


def views(case, salt=""):
    columns, records, honest, ask = CASES[case]
    return distributions(columns, records, 16, honest, ask, salt=salt)


@pytest.mark.parametrize("case", CASES)
def test_a_view_is_simulated_from_the_sums(case):
    found = views(case)
    assert is_simulatable(found)
    assert has_choices(found) or "shown" in case


# ---- the dealer with the analyst -----------------------------------------------------------------


def of_dealer_and_analyst():
    """Return {sums: [distribution of what the analyst is sent, one for each data of the sites]}."""
    found = defaultdict(list)
    for codes in product([0, 1], repeat=4):
        secret = TableStream()
        data = [column("a", codes[:2]), column("b", codes[2:])]
        sums, _ = sent_to_the_analyst(data, secret)
        settings = secret.assignments(list(secret.values))
        views = Counter(sent_to_the_analyst(data, secret)[1] for _ in settings)
        found[sums].append(views)
    return found


def sent_to_the_analyst(data, secret):
    """Return the sums and the sites' shares; the dealer does not know the keys among sites."""

    def stream(a, b):
        return HashStream(f"{a} {b}".encode()) if "dealer" in (a, b) else secret

    (sums,), sent = ask_of(BOTH, EITHER, bits=2)(world(data, 2, stream=stream))
    seen = [s.message.values.tobytes() for s in sent if s.receiver == "analyst"]
    return sums.tobytes(), tuple(seen)


def test_the_dealer_with_the_analyst_learns_the_sums_alone():
    found = of_dealer_and_analyst()
    assert has_choices(found) and is_simulatable(found)


# ---- counts of shared indices --------------------------------------------------------------------


def counting(w):
    """Count an index of two bits: a's code is the high bit, and b's the low bit."""
    plan = CountPlan(b"view", ("a", "b"), 1, 2, Ring(1))

    def site(holder, place, weight):
        codes = holder.columns[place].codes.astype(np.uint8) * weight
        yield from share_counts(holder, plan, codes.astype(np.uint8))

    programs = {"a": site(w.holders["a"], 0, 2), "b": site(w.holders["b"], 1, 1)}
    _, messages = run_all(programs | {"dealer": deal_counts(w.dealer_keys, plan)})
    return [], messages


@pytest.mark.parametrize("honest", "ab")
def test_nothing_is_learned_from_counts_that_are_not_revealed(honest):
    found = distributions(TWO, 1, 16, honest, counting)
    assert has_choices(found) and is_simulatable(found)


@pytest.mark.parametrize(("mask", "honest"), [("mask", "a"), ("mask", "b"), ("units", "b")])
def test_counts_without_a_mask_are_rejected(mask, honest, monkeypatch):
    drawn = getattr(Indices, mask)
    monkeypatch.setattr(Indices, mask, lambda *parts: np.zeros_like(drawn(*parts)))
    each = [distributions(TWO, 1, 16, honest, counting, salt=salt) for salt in ("", "1", "2")]
    assert not all(map(is_simulatable, each))


# ---- unsafe variants, which must be rejected -----------------------------------------------------


def is_rejected(case):
    """Whether the view, with some streams of the coalition's own, is not simulatable."""
    return any(not is_simulatable(views(case, salt)) for salt in ("", "1", "2", "3"))


@pytest.mark.parametrize(
    ("mask", "case"),
    [
        ("mask", "two sites, first"),
        ("mask", "two sites, second"),
        ("mask", "three sites, first"),
        ("mask", "a chain of three, middle"),
        ("units", "two sites, second"),
        ("units", "a chain of three, middle"),
    ],
)
def test_a_lookup_without_a_mask_is_rejected(mask, case, monkeypatch):
    drawn = getattr(Indices, mask)
    monkeypatch.setattr(Indices, mask, lambda *parts: np.zeros_like(drawn(*parts)))
    assert is_rejected(case)


def test_one_mask_for_two_records_is_rejected(monkeypatch):
    drawn = Indices.mask
    monkeypatch.setattr(Indices, "mask", lambda *parts: np.repeat(drawn(*parts)[:1], 2))
    assert is_rejected("two records, first")


def test_one_mask_for_two_tables_is_rejected(monkeypatch):
    labelled = Indices.label

    def without_table(indices, purpose, *parts):
        return labelled(indices, purpose, *(parts if purpose == "dealt" else parts[1:]))

    monkeypatch.setattr(Indices, "label", without_table)
    assert is_rejected("two tables, first")


def test_sums_without_zero_shares_are_rejected(monkeypatch):
    def no_zeros(party, peers, ring, name, count):
        return np.zeros(count, ring.dtype)

    monkeypatch.setattr(vertibayes_mpc.table_lookups.rows, "zero_share", no_zeros)
    assert not is_simulatable(of_dealer_and_analyst())
