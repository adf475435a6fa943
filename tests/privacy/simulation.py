"""Whether what a coalition sees can be simulated from the opened tables: by enumeration.

The coalition is the analyst and all sites but one, the honest site. Its view is every message that
it is sent by the honest site and by the dealer. The honest site's secrets are its data and the
streams that it shares with the dealer; everything else the coalition knows, and is fixed. If for
all data of the honest site that open the same tables the view has the same distribution over the
streams, a simulator that knows the tables alone can draw it.

Elements of the view that depend on no common element of a stream are independent. Each such factor
of the view is enumerated by itself: the view's distribution is the product of the factors'.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product

import numpy as np

from mpc.ring import Ring
from tests.randomness import HashStream, TableStream
from tests.worlds import World, world

PROBES = 6  # random settings at which an element is tried for its influence
TINY = {"code_ring": Ring(1), "flag_ring": Ring(1)}


def distributions(columns, records, bits, honest, ask, limit=None, salt=""):
    """Return {opened tables: [distribution of the view, one for each data of the honest site]}.

    Tables that one data alone opens are left out: there is nothing to compare.

    columns: as `tests.worlds.world`; the honest site's codes are replaced by all in turn, where
    they are not 0. ask: World -> (tables, messages). limit: how many values an element of a stream
    takes; all of the ring by default. salt: chooses the streams that the coalition knows.
    """
    same = defaultdict(list)
    for data in data_of(columns, records, honest):
        runs = Runs(data, records, bits, honest, ask, limit, salt)
        same[runs.tables].append(runs)
    alike = {tables: runs for tables, runs in same.items() if len(runs) > 1}
    factors = factors_of([run for runs in alike.values() for run in runs])
    return {
        tables: [[run.distribution(*factor) for factor in factors] for run in runs]
        for tables, runs in alike.items()
    }


def data_of(columns, records, honest):
    """Return the columns with all codes that the honest site may hold."""
    mine = [i for i, (_, _, held) in enumerate(columns) if honest in held]
    cells = [(i, r) for i in mine for r in range(records) if columns[i][2][honest][r]]
    for codes in product(*(range(columns[i][0] + 1) for i, _ in cells)):
        changed = [(w, m, {s: np.array(c) for s, c in held.items()}) for w, m, held in columns]
        for (i, r), code in zip(cells, codes, strict=True):
            changed[i][2][honest][r] = code
        yield changed


class Runs:
    """Runs of one data under all settings of the honest site's streams."""

    def __init__(self, columns, records, bits, honest, ask: Callable, limit, salt):
        self.secret = TableStream(limit)
        self.tables = None

        def stream(a, b):
            known = HashStream(f"{a} {b} {salt}".encode())
            return self.secret if {a, b} == {honest, "dealer"} else known

        def run():
            w: World = world(columns, records, bits, stream=stream, **TINY)
            tables, messages = ask(w)
            seen = [m for m in messages if m.sender in (honest, "dealer") and m.receiver != honest]
            seen.sort(key=lambda m: (m.sender, m.receiver, m.depth, type(m.message).__name__))
            self.tables = tuple(t.tobytes() for t in tables)
            return np.concatenate([m.message.values.ravel() for m in seen])

        self.view = run
        run()

    def influences(self, seed, probes):
        """Return for each element of a stream which elements of the view it changes."""
        generator, values = np.random.default_rng(seed), self.secret.values
        places, found = list(values), defaultdict(set)
        for _ in range(probes):
            values.update({p: int(generator.integers(self.secret.sizes[p])) for p in places})
            before = self.view()
            for place in places:
                kept = values[place]
                values[place] = (kept + 1) % self.secret.sizes[place]
                found[place].update(np.flatnonzero(self.view() != before).tolist())
                values[place] = kept
        values.update(dict.fromkeys(places, 0))
        return found

    def distribution(self, places, elements):
        """Return how often each value of some elements of the view comes."""
        return Counter(self.view()[elements].tobytes() for _ in self.secret.assignments(places))


def factors_of(runs):
    """Return the independent factors: (elements of streams, elements of the view) of each."""
    factors = [(set(), {element}) for element in range(len(runs[0].view()))] if runs else []
    probes = -(-4 * PROBES // max(len(runs), 1))
    for seed, run in enumerate(runs):
        for place, changed in run.influences(seed, probes).items():
            if changed:
                touched = [f for f in factors if f[1] & changed]
                factors = [f for f in factors if not f[1] & changed]
                places = {place}.union(*(f[0] for f in touched))
                factors.append((places, set().union(*(f[1] for f in touched))))
    return [(sorted(places), sorted(elements)) for places, elements in factors]


def influential(secret, run):
    """Return the places whose elements change the view; the others need no enumeration."""
    generator = np.random.default_rng(7)
    asked = list(secret.values)
    found = []
    for place in asked:
        for _ in range(PROBES):
            secret.values.update({p: int(generator.integers(secret.sizes[p])) for p in asked})
            before = run()[1]
            secret.values[place] = (secret.values[place] + 1) % secret.sizes[place]
            if run()[1] != before:
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
