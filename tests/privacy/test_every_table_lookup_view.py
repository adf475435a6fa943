"""Exhaustively, on tiny rings: what coalitions see of table lookups is simulated from the sums.

Coalitions are the analyst with all sites except one, and the dealer with the analyst. Beside them
the unsafe variants, each without one mask or with one mask used twice: the same test must reject
them.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

import mpc.table_lookups.masks
import mpc.table_lookups.site
from mpc.commitments import Selection
from mpc.randomness import label
from mpc.ring import Ring
from mpc.scheduler import run_all
from mpc.table_lookups import TableLookupPlan
from mpc.table_lookups.masks import Masks
from tests.mpc.test_table_lookups import programs_of
from tests.privacy.simulation import data_of, distributions, has_choices, is_simulatable
from tests.randomness import HashStream, TableStream
from tests.worlds import world

pytestmark = pytest.mark.laws

SAME = [[0, 0], [1, 1], [1, 0], [0, 1]]  # two columns: rows of a table of two axes of two values


def column(site, codes, width=1):
    return (width, False, {site: codes})


TWO = [column("a", [1]), column("b", [1])]
WIDE = [column("a", [1], 3), column("b", [0], 0 + 1)]
THREE = [*TWO, column("c", [1])]
RECORDS = [column("a", [1, 1]), column("b", [0, 1])]


def ask_of(axes, bits=1, columns=2):
    """Look up in tables whose rows are 0, 1, 2, .. by their columns, modulo the ring."""

    def ask(w):
        selection = Selection(w.commitments)
        plan = TableLookupPlan(b"view", selection, axes, columns, Ring(bits))
        rows = [np.arange(plan.rows(t))[:, None] for t in range(len(axes))]
        tables = [(each >> np.arange(columns)) % 2**bits for each in rows]
        outputs, messages = run_all(programs_of(w, plan, tables))
        return [outputs["analyst"]], messages

    return ask


BOTH, ALL = ((0, 1),), ((0, 1, 2),)
CASES = {
    "two sites, first": (TWO, 1, "a", ask_of(BOTH)),
    "two sites, second": (TWO, 1, "b", ask_of(BOTH)),
    "two sites, first, one column": (TWO, 1, "a", ask_of(BOTH, columns=1)),
    "two sites, second, one column": (TWO, 1, "b", ask_of(BOTH, columns=1)),
    "three sites, first": (THREE, 1, "a", ask_of(ALL, columns=1)),
    "three sites, last": (THREE, 1, "c", ask_of(ALL, columns=1)),
    "two records, first": (RECORDS, 2, "a", ask_of(BOTH, columns=1)),
    "two tables, first": (THREE, 1, "a", ask_of(((0, 1), (0, 2)), columns=1)),
    "an own table too, first": (TWO, 1, "a", ask_of(((0, 1), (0,)), bits=2, columns=1)),
}


def views(case, salt=""):
    columns, records, honest, ask = CASES[case]
    return distributions(columns, records, 16, honest, ask, salt=salt)


@pytest.mark.parametrize("case", CASES)
def test_a_view_is_simulated_from_the_sums(case):
    found = views(case)
    assert is_simulatable(found)
    if "one column" in case or "three" in case or "records" in case:
        assert has_choices(found)


# ---- the dealer with the analyst -----------------------------------------------------------------


def of_dealer_and_analyst():
    """Return {sums: [distribution of what the analyst is sent, one for each data of the sites]}."""
    found = defaultdict(list)
    for changed in data_of(RECORDS, 2, "a"):
        for data in data_of([(w, m, {s: [1, 1] if s == "b" else c.tolist() for s, c in h.items()})
                             for w, m, h in changed], 2, "b"):  # fmt: skip
            secret = TableStream()

            def stream(a, b, secret=secret):
                return secret if "dealer" not in (a, b) else HashStream(f"{a} {b}".encode())

            def run(data=data, stream=stream):
                (sums,), sent = ask_of(BOTH, bits=2, columns=1)(world(data, 2, stream=stream))
                seen = [s.message.values.tobytes() for s in sent if s.receiver == "analyst"]
                return sums.tobytes(), tuple(seen)

            sums, _ = run()
            seen = Counter(run()[1] for _ in secret.assignments(list(secret.values)))
            found[sums].append(seen)
    return found


def test_the_dealer_with_the_analyst_learns_the_sums_alone():
    found = of_dealer_and_analyst()
    assert has_choices(found) and is_simulatable(found)


# ---- unsafe variants, which must be rejected -----------------------------------------------------


def is_rejected(case):
    """Whether the view, with some streams of the coalition's own, is not simulatable."""
    return any(not is_simulatable(views(case, salt)) for salt in ("", "1", "2", "3"))


@pytest.mark.parametrize(
    ("mask", "case"),
    [
        ("indices", "two sites, first, one column"),
        ("indices", "two sites, second, one column"),
        ("indices", "three sites, last"),
        ("units", "two sites, second, one column"),
        ("units", "three sites, last"),
    ],
)
def test_a_lookup_without_a_mask_is_rejected(mask, case, monkeypatch):
    drawn = getattr(Masks, mask)
    monkeypatch.setattr(Masks, mask, lambda *parts: np.zeros_like(drawn(*parts)))
    assert is_rejected(case)


def test_one_mask_for_two_records_is_rejected(monkeypatch):
    drawn = Masks.indices
    monkeypatch.setattr(Masks, "indices", lambda *parts: np.repeat(drawn(*parts)[:1], 2))
    assert is_rejected("two records, first")


def test_one_mask_for_two_tables_is_rejected(monkeypatch):
    def without_table(purpose, name, table, *parts):
        return label(purpose, name, *parts)

    monkeypatch.setattr(mpc.table_lookups.masks, "label", without_table)
    assert is_rejected("two tables, first")


def test_sums_without_zero_shares_are_rejected(monkeypatch):
    def no_zeros(party, peers, ring, name, count):
        return np.zeros(count, ring.dtype)

    monkeypatch.setattr(mpc.table_lookups.site, "zero_share", no_zeros)
    assert not is_simulatable(of_dealer_and_analyst())
