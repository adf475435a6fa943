"""One malicious site against the others' columns; analyst, dealer and the other site are honest.

The streams "extend" and "remask" are named by study, records and term, and by no query or run. What
an honest site sends under them has a factor that another site has sent it: its masked columns, or
its masked product of columns. Who changes that factor when the same term is asked for again
subtracts the two messages, and reads the honest site's mask; it has the masked column. It can take
out again what it has added, so that the tables are right.

The malicious site is played by changing what it sends on its way, as it knows it. Streams are named
by the query too, and ids are drawn anew by each commitment; without either the column is read.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import (
    committed,
    count,
    data_of,
    memories,
    packets,
    sealed,
    seeded,
    study_of,
)
from tests.randomness import SeededRandomness
from tests.worlds import all_of, put_together, taken_apart
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.masked_tables import Plan
from vertibayes_mpc.masked_tables.block import Masked, Part
from vertibayes_protocols.queries import Commit
from vertibayes_protocols.queries.opening.commit import commitments_of

DATA = data_of(a="x", b="yzw")
STUDY = study_of(DATA)
FORMS = commitments_of(STUDY, {name: [name.encode()] for name in STUDY.variables}, b"")
SECRET = np.array([DATA["a"].codes["x"] == code for code in (1, 2)], np.uint16)


def one_more(sent, packet):
    """Add one to all masked indicators, and products of them, that the malicious b sends."""
    if sent.sender != "b" or sent.receiver != "a":
        return packet
    if isinstance(sent.message, Masked):
        values = all_of(FORMS.ring, sent.message.values) + np.uint16(1)
        return sealed(packet, replace(sent.message, values=FORMS.ring.pack(values)))
    if isinstance(sent.message, Columns):
        columns = taken_apart(FORMS, "b", sent.message.values)
        more = {key: v + v.dtype.type(key[0] == "indicators") for key, v in columns.items()}
        return sealed(packet, replace(sent.message, values=put_together(FORMS, "b", more)))
    return packet


def sent_by_a(seen, kind):
    """Put together what a has sent of one kind, block beside block: of columns, indicators."""
    found = [
        s.message.values
        for s, _ in seen
        if (s.sender, s.receiver) == ("a", "b") and type(s.message) is kind
    ]
    if kind is Columns:
        found = [taken_apart(FORMS, "a", values)["indicators", 0] for values in found]
    else:
        rows = [min(FORMS.block_rows, 40 - at) for at in range(0, 40, FORMS.block_rows)]
        found = [
            all_of(FORMS.ring, values).reshape(-1, rows[place % len(rows)])
            for place, values in enumerate(found)
        ]
    return np.concatenate(found, 1)


@pytest.mark.parametrize("numbered", [True, False])
def test_a_term_that_is_asked_for_twice_in_a_session(monkeypatch, numbered):
    asked = []
    if not numbered:
        label = Plan.label.func
        unnamed = property(lambda plan: label(replace(plan, number=0)))
        monkeypatch.setattr(Plan, "label", unnamed)

    def change(sent, packet):
        return one_more(sent, packet) if len(asked) == 2 else packet

    with packets(monkeypatch, change) as seen:
        federation, study = committed(DATA)
        masked = sent_by_a(seen, Columns)
        for _ in range(2):  # as any learner does with a prefix that it extends further
            asked.append("xyz with w")
            with suppress(ImpossibleTablesError):  # it does not trouble to take it out again
                count(federation, study, ("x", "y", "z", "w"))
    # Each part is D + A(T) - A(x) (x) masked(right): 8 rows of (xy), (xz); 8, changed, of (xyz).
    first, second = np.split(sent_by_a(seen, Part), 2, axis=1)
    masks = (first - second)[8:].reshape(2, 4, 40)[:, 0]
    assert np.array_equal(FORMS.ring.reduce(masked - masks), SECRET) != numbered


@pytest.mark.parametrize("new_ids", [True, False])
def test_a_study_that_is_gone_on_with(monkeypatch, new_ids):
    """As after a crash, or once b has ended a run: the sites' memories and keys are the same."""
    kept, columns, parts = memories("a", "b"), [], []

    def change(sent, packet):
        return one_more(sent, packet) if parts else packet

    with packets(monkeypatch, change) as seen:
        for run in range(2):
            federation = seeded(DATA, memories=kept)
            for role in federation.roles.values():
                role.randomness = SeededRandomness(f"{role.party} {run * new_ids}".encode())
            study = federation.session.ask(Commit.of(STUDY)).study
            columns.append(sent_by_a(seen, Columns))
            with suppress(ImpossibleTablesError):
                count(federation, study, ("x", "y", "z"))
            parts.append(sent_by_a(seen, Part))
            federation.session.close()
            seen.clear()
    read = columns[0] - (parts[0] - parts[1]).reshape(2, 2, 40)[:, 0]
    assert np.array_equal(FORMS.ring.reduce(read), SECRET) != new_ids
