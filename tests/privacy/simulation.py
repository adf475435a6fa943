"""Whether what a coalition sees can be simulated from the opened tables: by enumeration.

The coalition is the analyst and all sites but one, the honest site. Its view is every message that
it is sent by the honest site and by the dealer. The honest site's secrets are its data and the
streams that it shares with the dealer; everything else the coalition knows, and is fixed. If for
all data of the honest site that open the same tables the view has the same distribution over the
streams, a simulator that knows the tables alone can draw it.

The code of the honest site runs for all its data and streams. That of the others, which is
deterministic in its streams and in what it hears, runs once for each of these; see `Known`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from tests.randomness import HashStream, TableStream
from tests.worlds import is_held_twice, world
from vertibayes_mpc.scheduler import run_all

PROBES = 6  # random settings at which an element is tried for its influence


def distributions(columns, records, bits, honest, ask, limit=None, salt=""):
    """Return {opened tables: [distribution of the view, one for each data of the honest site]}.

    Data whose tables no other data open have no view to be compared with, and are left out.

    columns: as `tests.worlds.world`; the honest site's codes are replaced by all in turn, where
    they are not 0. ask: World -> (tables, messages). limit: how many values an element of a stream
    takes; all of the ring by default. salt: chooses the streams that the coalition knows.
    """
    alike, known = defaultdict(list), defaultdict(Known)
    for data in data_of(columns, records, honest):
        runs = Runs(data, records, bits, honest, ask, limit, salt, known)
        alike[runs.tables].append(runs)
    return {tables: [r.views() for r in all_] for tables, all_ in alike.items() if len(all_) > 1}


def data_of(columns, records, honest):
    """Return the columns with all codes that the honest site may hold."""
    mine = [i for i, (_, _, held) in enumerate(columns) if honest in held]
    cells = [(i, r) for i in mine for r in range(records) if columns[i][2][honest][r]]
    for codes in product(*(range(columns[i][0] + 1) for i, _ in cells)):
        changed = [
            (w, m, type(held)((s, np.array(c)) for s, c in held.items())) for w, m, held in columns
        ]
        for (i, r), code in zip(cells, codes, strict=True):
            changed[i][2][honest][r] = code
        if not is_held_twice(changed):
            yield changed


class Runs:
    """The runs of a world with one data of the honest site, for any values of its streams.

    known: {(party, values of the streams): Known}, which runs of other data may share.
    """

    def __init__(self, columns, records, bits, honest, ask: Callable, limit, salt, known):
        self.secret = TableStream(limit)
        self._honest, self._ask, self._salt, self._known = honest, ask, salt, known
        self._world = world(columns, records, bits, stream=self._stream)
        self.tables = self._run()[0]

    def views(self):
        """Return the distribution of the coalition's view."""
        places = influential(self.secret, self._seen)
        return Counter(self._seen() for _ in self.secret.assignments(places))

    def _stream(self, a, b):
        if {a, b} == {self._honest, "dealer"}:
            return self.secret
        return HashStream(f"{a} {b} {self._salt}".encode())

    def _run(self):
        if not self.secret.values:  # the first run: all ask their streams for what they need
            w = self._world.again(run_all)
        else:
            others = [*self._world.holders, "dealer", "analyst"]
            others.remove(self._honest)
            streams = {"dealer": tuple(self.secret.values.items())}
            w = self._world.again(lambda programs: run_known(programs, at, w.holders))
            at = {party: self._known[party, streams.get(party)] for party in others}
        tables, messages = self._ask(w)
        return tuple(t.tobytes() for t in tables), messages

    def _seen(self):
        """Return the coalition's view of one run."""
        of_view = self._honest, "dealer"
        seen = [m for m in self._run()[1] if m.sender in of_view and m.receiver != self._honest]
        seen.sort(key=lambda m: (m.sender, m.receiver, m.depth, type(m.message).__name__))
        return tuple(m.message.values.tobytes() for m in seen)


class Ended(NamedTuple):
    """The output of a program, and the masked columns that its site keeps then."""

    output: object
    masked: dict


class Known:
    """What a party does after all that it has heard, once it was computed; and what follows."""

    def __init__(self):
        self.step, self.after = None, defaultdict(Known)


def run_known(programs, at, holders):
    """Run programs as `run_all` does, but compute nothing that is known.

    at: {party: the place in what is known of it}; the programs of others just run. It moves on.
    """

    def remembered(party, program):
        unheard, kept = [None], holders[party].masked if party in holders else {}
        while True:
            known = at[party]
            known.step = known.step or next_step(program, unheard, kept)
            if isinstance(known.step, Ended):
                kept.update(known.step.masked)
                at[party] = known.after["the next program"]
                return known.step.output
            inbox = yield known.step
            unheard.append(inbox)
            heard = tuple((peer, sent.values.tobytes()) for peer, sent in inbox.items())
            at[party] = known.after[heard]

    return run_all({p: remembered(p, each) if p in at else each for p, each in programs.items()})


def next_step(program, unheard, kept):
    """Give a program what it has not been given yet; return its next round, or its end."""
    try:
        while unheard:
            step = program.send(unheard.pop(0))
    except StopIteration as stop:
        return Ended(stop.value, dict(kept))
    for message in step.outbox.values():
        message.values.flags.writeable = False  # it may be sent again
    return step


def influential(secret, seen):
    """Return the places whose elements change the view; the others need no enumeration."""
    generator = np.random.default_rng(7)
    asked = list(secret.values)
    found = []
    for place in asked:
        for _ in range(PROBES):
            secret.values.update({p: int(generator.integers(secret.sizes[p])) for p in asked})
            before = seen()
            secret.values[place] = (secret.values[place] + 1) % secret.sizes[place]
            if seen() != before:
                found.append(place)
                break
    secret.values.update(dict.fromkeys(asked, 0))
    return found


def is_simulatable(found):
    """Whether data that open the same tables have views of the same distribution."""
    return all(view == views[0] for views in found.values() for view in views)


def has_choices(found):
    """Whether some tables leave the honest site's data open: else there is nothing to test."""
    return any(len(views) > 1 for views in found.values())
