"""A site that lies learns a bit per run from whether the analyst's check ends the run.

b adds a large number to one element of a masked column that it commits. If the record has x = 1 at
the other site, then the table of x and z has a cell below 0, which no records have, and the run
ends. Otherwise the table is right. b repeats this for each record. All that limits it is the number
of runs: the error therefore says no more than that the run has ended.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import committed, count, packets, sealed, study_of
from tests.worlds import put_together, taken_apart
from vertibayes_mpc.commitments import Commitments, Operand
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.ring import Ring
from vertibayes_protocols.queries.tables.tables import uniform_errors
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.transports.control import Abort
from vertibayes_protocols.variables import Variable

RECORDS = 60
BITS = 20  # that b reads; it could read all
NAMES = ("z", "w")  # b's columns
HELD_BY_B = Commitments(
    b"",
    Ring.holding(RECORDS),
    RECORDS,
    tuple(Operand(bytes([k]), 1, ("b",)) for k in range(len(NAMES))),
)


def data():
    rng = np.random.default_rng(5)

    def one(*names):
        codes = {name: rng.integers(0, 2, RECORDS).astype(np.uint8) for name in names}
        return SiteData({name: Variable(name, ("no", "yes")) for name in names}, codes)

    return {"a": one("x"), "b": one(*NAMES), "c": one("y")}


def lying(columns, record, more=1000):
    """Return what changes, of b's message of columns, those in `columns` at one record."""

    def change(sent, packet):
        if sent.sender != "b" or not isinstance(sent.message, Columns):
            return packet
        changed = taken_apart(HELD_BY_B, "b", sent.message.values)
        for place in columns:
            changed["indicators", place][0, record : record + 1] += np.uint16(more)
        return sealed(packet, replace(sent.message, values=put_together(HELD_BY_B, "b", changed)))

    return change


def honest(sent, packet):
    """Change nothing."""
    del sent
    return packet


def run(monkeypatch, asked, change):
    """Run a study of some tables; return how it ended, and the analyst's ledger."""
    with packets(monkeypatch, change):
        federation, study = committed(data(), study_of(data(), block_rows=64))
        error = None
        try:
            with federation:
                count(federation, study, *asked)
        except ImpossibleTablesError as caught:
            error = caught
    return error, federation.session.role.ledger


@pytest.mark.parametrize("lies", [True, False])
def test_under_free_tables_a_lying_site_reads_a_bit_in_each_run(monkeypatch, lies):
    ended = [
        run(monkeypatch, [("z", "x")], lying([0], record) if lies else honest)[0] is not None
        for record in range(BITS if lies else 2)
    ]
    assert ended == ((data()["a"].codes["x"][:BITS] == 1).tolist() if lies else [False] * 2)


def test_which_table_is_impossible_reaches_the_ledger_of_the_analyst_alone(monkeypatch):
    """Otherwise b would read the values of x and y in one run."""
    errors, facts = [], []
    for name in ("x", "y"):
        change = lying([0, 1], only_yes(name))
        error, ledger = run(monkeypatch, [("z", "x"), ("w", "y")], change)
        errors.append((str(error), error.parties, error.check, Abort.of(error, "analyst")))
        facts += [fact for fact in ledger.facts if fact.what.startswith("a check failed")]
    assert errors[0] == errors[1]
    assert [fact.to for fact in facts] == [("analyst",)] * 2
    assert "the table of z, x counts" in facts[0].what
    assert "the table of w, y counts" in facts[1].what


def only_yes(name):
    """Return a record for which one of x and y is yes, this one."""
    codes = {n: columns.codes[n] for columns in data().values() for n in columns.codes}
    other = "y" if name == "x" else "x"
    return int(np.flatnonzero(codes[name] > codes[other])[0])


def test_all_checks_of_a_study_raise_the_same_error():
    analyst, study, texts = AnalystRole(), study_of(data()), set()
    for parties, check in ((("a", "b"), "codes"), (("a", "b", "c"), "counts")):
        with (
            pytest.raises(ImpossibleTablesError) as caught,
            uniform_errors(analyst, study),
        ):
            raise ImpossibleTablesError(parties, "dealer", check)
        texts.add((str(caught.value), caught.value.check))
    assert texts == {("a, b, c or dealer: a table that no records have: one of them lies", "")}
    assert [fact.what for fact in analyst.ledger.facts] == [
        "a check failed: codes",
        "a check failed: counts",
    ]
