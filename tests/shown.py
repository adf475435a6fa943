"""What sites show the analyst: counted in all tests, and held against the effects of their queries.

`watch` wraps the engine's guard of a site's program. Each message to the analyst shows so many
numbers as `NUMBERS` says of its kind; what all messages of a query show together must not exceed
any number that the effects state (`STATED`). What messages in `NOTHING` have is fixed by the query
or hidden, or is the fact that the ledger's sentence names. Messages of other kinds may have single
numbers, texts and truths alone, of which the ledger must have a sentence: a new kind of message
with more enters `NUMBERS`.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from math import log2, prod
from unittest.mock import patch

from vertibayes_protocols import engine
from vertibayes_protocols.engine import _Given

understated: list[str] = []
"""What was shown beyond the effects in the test that runs; the test then fails."""

is_ignored = ContextVar("is_ignored", default=False)

NOTHING = {
    "alignment keys", "begun", "calibration round finished", "committed", "committed key",
    "description", "held", "met", "paillier masks", "recall", "sum-advertisement",
    "sum-confirmation", "sum-revealed", "sum-shared",
}  # fmt: skip


# ---- what messages show --------------------------------------------------------------------------


def _of_codes(message, given):
    """Return the cells of a site's shuffled tables; each record has one code in a table at most."""
    plan = getattr(given.considered.plan, "counted", given.considered.plan).shuffles
    own = [table for table in plan.tables if given.site.party in table.chain]
    ring, records = plan.commitments.ring, plan.selection.records
    local = sum(ring.packed_size(table.cells) for table in own if table.is_local)
    codes = sum(table.ring.packed_size(records) for table in own if not table.is_local)
    assert len(message.values) <= local + codes and len(message.complete) <= len(own)
    return sum(table.cells for table in own)


def _of_share(message, given):
    """Return the number of elements of a share."""
    plan = given.considered.plan
    if not hasattr(plan, "ring") and not hasattr(plan, "joined"):
        return message.values.size  # a query that shows no table: no number is allowed
    ring = plan.ring if hasattr(plan, "ring") else plan.joined.commitments.ring
    return 8 * message.values.size // ring.packed_bits


def _of_decrypted(message, given):
    """Return the number of counts in the plaintexts that an owner has decrypted."""
    plan, owner = given.considered.plan.encrypted, given.site.party
    answers = [
        group for link, groups in plan.answers.items() if link[1] == owner for group in groups
    ]
    assert len(message.values) == len(answers)
    return sum(plan.chains[piece.chain].widths[-1] for group in answers for piece in group)


def _of_reports(message, given):
    """Return the numbers of a person's answers to all questions."""
    most = given.considered.query.most_records
    assert all(len(rows) <= most for rows in message.answers)
    return sum(prod(rows.shape[1:]) for rows in message.answers)


NUMBERS = {
    "ciphertexts": lambda message, given: message.count,
    "codes": _of_codes,
    "gossip step": lambda message, given: message.values.size,
    "kept share": _of_share,
    "own counts": lambda message, given: message.counts.size,
    "paillier counts": _of_decrypted,
    "perturbed reports": _of_reports,
    "published tables": lambda message, given: message.counts.size,
    "share": _of_share,
    "sum-masked": lambda message, given: message.values.size,
    "winners": lambda message, given: 8 * (message.values.size - 1) + 1,  # bits; 7 are padding
}


# ---- what effects state --------------------------------------------------------------------------


def _cells(tables):
    return sum(table.cells for table in tables)


def _counted(effects):
    return sum(cells for _, cells in effects.tables)


def _winners(query, effects):
    """Return the bits of all places, each as long as the longest, if the effects state them."""
    sizes = query.sets.tolist()
    is_stated = effects.leaves.bits >= sum(1 + log2(size) for size in sizes)
    return [len(sizes) * (1 + (max(sizes) - 1).bit_length()) if is_stated else 0]


STATED = {  # of each kind of query: the most numbers, by each of the effects that state them
    "choose": _winners,
    "consensus": lambda query, effects: [_counted(effects) * query.reveal + 5 * query.rounds],
    "predict": lambda query, effects: [effects.leaves.records * (len(query.odds.states) - 1)],
    "publish": lambda query, effects: [_cells(effects.opens)],
    "release": lambda query, effects: [effects.leaves.tables.cells, _cells(effects.opens)],
    "report": lambda query, effects: [_counted(effects)],
    "score table": lambda query, effects: [effects.leaves.tables.cells],
    "scores": lambda query, effects: [effects.leaves.records * len(query.split.class_counts)],
    "sums": lambda query, effects: [_counted(effects)],
    "tables": lambda query, effects: [effects.leaves.tables.cells, _cells(effects.opens)],
    "updates": lambda query, effects: [_counted(effects) * query.iterations],
}


# ---- the check -----------------------------------------------------------------------------------


class _Watched:
    """A site's program, whose messages to the analyst are counted."""

    def __init__(self, given, program):
        self.given, self.program, self.shown = given, program, 0

    def __next__(self):
        return self._seen(next(self.program))

    def send(self, inbox):
        return self._seen(self.program.send(inbox))

    def throw(self, error):
        return self._seen(self.program.throw(error))

    def close(self):
        self.program.close()

    def _seen(self, step):
        message = step.outbox.get(self.given.site.analyst)
        if message is not None and message.kind not in NOTHING:
            self._count(message)
        return step

    def _count(self, message):
        if is_ignored.get():
            return
        query, effects = self.given.considered.query, self.given.considered.effects
        if message.kind not in NUMBERS:
            values = [getattr(message, field.name) for field in fields(message)]
            is_fact = all(type(value) in (bool, int, str) for value in values)
            if not is_fact or not list(effects.says):
                _fail(f"{message.kind!r} of {query.kind!r} is in no table of tests/shown.py")
            return
        self.shown += NUMBERS[message.kind](message, self.given)
        for most in STATED.get(query.kind, lambda *_: [0])(query, effects):
            if self.shown > most:
                _fail(f"{query.kind!r} shows {self.shown} numbers, and its effects state {most}")


def _fail(what):
    understated.append(what)
    raise AssertionError(what)


@contextmanager
def ignored():
    """Count nothing: for a control of another test."""
    token = is_ignored.set(True)
    try:
        yield
    finally:
        is_ignored.reset(token)


def watch():
    """Return a patch of the engine, under which all sites are watched."""
    real = _Given.guard
    guard = lambda given, program: real(given, _Watched(given, program))  # noqa: E731
    return patch.object(engine._Given, "guard", guard)
