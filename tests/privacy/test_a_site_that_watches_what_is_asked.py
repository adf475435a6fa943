"""One lying site, or a lying dealer, alone, the analyst honest: what is asked next tells records.

b adds 40 to one element of each masked column that it sends when it commits, and is honest in all
else. The opened cell of z_k and x is then 40 higher if, and only if, record k has x = 1: K2 takes x
for a parent of z_k, and asks for tables of z_k, x and another. b is sent that query. The analyst
finds tables that no records have, and ends; a lie that adds up it does not find: see
docs/threat-model.md, outside the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import packets, sealed, seeded
from tests.worlds import put_together, taken_apart
from vertibayes.counting.secure import SecureCounter
from vertibayes.structure.learners import k2
from vertibayes_mpc.commitments import Commitments, Operand
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.masked_tables.dealer import MaskBlock
from vertibayes_mpc.ring import Ring
from vertibayes_protocols.queries.tables.tables import Tables
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

READ = 16
RECORDS = 200
# The forms of b's columns: all that a message of columns is taken apart by.
HELD_BY_B = Commitments(
    b"", Ring.holding(RECORDS), RECORDS, tuple(Operand(bytes([k]), 1, ("b",)) for k in range(READ))
)


@pytest.fixture
def unchecked(monkeypatch):
    possible = "vertibayes_protocols.queries.tables.tables._check_possible"
    monkeypatch.setattr(possible, lambda *_: None)


def test_a_lie_that_does_not_add_up_ends_the_run(monkeypatch):
    with pytest.raises(ImpossibleTablesError, match="a, b or dealer: a table that no records"):
        test_what_k2_asks_next(monkeypatch, None, lies=True)


@pytest.mark.parametrize("lies", [True, False])
def test_what_k2_asks_next(monkeypatch, unchecked, lies):
    rng = np.random.default_rng(5)
    names = [f"z{k}" for k in range(READ)]
    one = lambda: rng.integers(0, 2, RECORDS).astype(np.uint8)  # noqa: E731
    columns = {"a": {"x": one()}, "b": {name: one() for name in names}}
    data = {
        site: SiteData({n: Variable(n, ("no", "yes")) for n in found}, found)
        for site, found in columns.items()
    }
    committing = []

    def change(sent, packet):
        if lies and not committing and sent.sender == "b" and isinstance(sent.message, Columns):
            committing.append(True)
            changed = taken_apart(HELD_BY_B, "b", sent.message.values)
            for k in range(READ):
                changed["indicators", k][0, k] += np.uint16(40)
            values = put_together(HELD_BY_B, "b", changed)
            return sealed(packet, replace(sent.message, values=values))
        return packet

    with packets(monkeypatch, change) as seen:
        k2(SecureCounter.of(seeded(data)), max_parents=2)
    wide = [table - {"x"} for table in asked_of(seen, "b") if len(table) == 3 and "x" in table]
    children = [max(table, key=names.index) for table in wide]  # candidates come before the child
    read = [int(children.count(name) > 1) for name in names[2:]]  # x is a parent: all candidates
    secret = columns["a"]["x"][2:READ].tolist()
    assert (read == secret) == lies


def asked_of(seen, party):
    """Return the variables of the tables that a party was asked for."""
    asked = [s.message for s, _ in seen if s.receiver == party and isinstance(s.message, Tables)]
    return [{*prefix, last} for query in asked for prefix, lasts in query.groups for last in lasts]


PAIRS = 10


@pytest.mark.parametrize("lies", [True, False])
def test_a_lying_dealer_alone(monkeypatch, unchecked, lies):
    """It adds 13 to one record and takes it from another, in its part of the term z_k y_k."""
    rng = np.random.default_rng(8)
    one = lambda: rng.integers(0, 2, RECORDS).astype(np.uint8)  # noqa: E731
    columns = {"a": {"x": one()}, "c": {f"y{k}": one() for k in range(PAIRS)}, "b": {}}
    for k in range(PAIRS):
        flip = (rng.random(RECORDS) < 0.38).astype(np.uint8)
        columns["b"][f"z{k}"] = columns["c"][f"y{k}"] ^ flip
    data = {
        site: SiteData({n: Variable(n, ("no", "yes")) for n in found}, found)
        for site, found in columns.items()
    }
    true = MaskBlock._correction

    def correction(block, term):
        found = true(block, term)
        if lies and len(term) == 2 and term[1] - term[0] == PAIRS and term[0]:
            k = term[0] - 1
            found[0, 2 * k] += np.uint16(13)
            found[0, 2 * k + 1] -= np.uint16(13)
        return found

    monkeypatch.setattr(MaskBlock, "_correction", correction)
    order = ["x", *columns["c"], *columns["b"]]
    with packets(monkeypatch) as seen:
        k2(SecureCounter.of(seeded(data), order=order), max_parents=3)
    tables = asked_of(seen, "dealer")
    known = [{f"z{k}", f"y{k}", "x"} for k in range(PAIRS)]
    told = [int(sum(members < table for table in tables) > 1) for members in known]
    x = columns["a"]["x"][: 2 * PAIRS].reshape(-1, 2)
    differ = (x[:, 0] ^ x[:, 1]).tolist()
    assert all(one <= other for one, other in zip(told, differ, strict=True))
    assert sum(told) == 3 * lies  # of 4 pairs that differ
