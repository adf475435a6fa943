"""How much memory each party of a federation takes, measured step by step."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

from vertibayes_protocols import wire


@dataclass
class Taken:
    """What one party holds now, and the most that it held at a time, in bytes."""

    held: int = 0
    most: int = 0


@contextmanager
def measured(federation) -> Iterator[dict[str, Taken]]:
    """Measure the parties of a federation, except the analyst, within a block."""
    scheduler = federation.session.transport._scheduler
    taken = {party: Taken() for party in scheduler._programs}
    plain = dict(scheduler._programs)
    for party, program in plain.items():
        scheduler._programs[party] = _resumed(program, taken[party], scheduler._waiting[party])
    tracemalloc.start()
    try:
        yield taken
    finally:
        tracemalloc.stop()
        scheduler._programs.update({p: plain[p] for p in plain if p in scheduler._programs})


def _resumed(program, taken, step):
    """Return a measured program that waits where the given one does."""

    def measured_program():
        yield from _accounted((yield step), program, taken)

    started = measured_program()
    next(started)
    return started


def _accounted(inbox, program, taken):
    while True:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step = program.send(deepcopy(inbox))
        messages = {id(message): message for message in step.outbox.values()}
        bodies = [wire.encode(message) for message in messages.values()]
        taken.most = max(taken.most, taken.held + tracemalloc.get_traced_memory()[1] - before)
        del bodies, messages
        taken.held += tracemalloc.get_traced_memory()[0] - before
        del inbox
        inbox = yield step
        del step
