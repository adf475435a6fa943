"""Whether what a coalition sees of lookups can be simulated: by enumeration, in one run.

In each part, a batch has as many lookups as the secret streams have settings: lookup s of it has
setting s. The programs treat lookups alike and apart from each other, so this is as good as a run
for each setting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tests.randomness import HashStream
from tests.worlds import world
from vertibayes_mpc.labelled import unpacked
from vertibayes_mpc.lookups import Batch, LookupPlan, PublicFunction, deal_lookups, look_up
from vertibayes_mpc.lookups.plan import Slice
from vertibayes_mpc.lookups.rounds import Dealt
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all

PLAN_NAME = b"the same for any number of settings"
COUNTS = range(4)
MOST_SETTINGS = 1 << 22
# f~ = 1, 3, 2, 2 modulo 4: every value counts, and all four counts are looked up.
FUNCTION = PublicFunction(np.array([[1], [2]]), np.array([[1], [3]]), 0, 3, 0.0)


@dataclass
class Settings:
    """The values of secret elements in each setting; 0 unless the test sets them."""

    count: int = 1
    values: dict = field(default_factory=dict)
    sizes: dict = field(default_factory=dict)

    def of(self, key, size):
        self.sizes[key] = size
        return self.values.get(key, np.zeros(self.count, np.uint8))


@dataclass(frozen=True)
class LookupStream:
    """A stream whose elements are the same for all lookups of a batch, or set for each.

    salt: the streams that the coalition knows; None for a secret one.
    """

    settings: Settings
    pair: tuple
    salt: str | None

    def elements(self, ring, name, shape, start=0):
        assert not start
        first = shape[0] == self.settings.count and (len(shape) == 1 or self.settings.count > 1)
        per = math.prod(shape) // self.settings.count
        drawn = np.zeros((per, self.settings.count), ring.dtype)
        for place in range(per):
            drawn[place] = self._element(ring, name, place)
        return np.ascontiguousarray(drawn.T if first else drawn).reshape(shape)

    def _element(self, ring, name, place):
        if self.salt is None:
            return self.settings.of((self.pair, name, place), 2**ring.bits)
        stream = HashStream(f"{self.pair} {self.salt}".encode())
        return stream.elements(ring, name, (place + 1,))[place]


class Case(NamedTuple):
    """Who looks up, in which batches, and who of them is outside the coalition of all others.

    salt: chooses the streams that the coalition knows. data: the honest site's shares of the counts
    of all batches, each part's after the other; all counts of one batch by default. bits: of the
    ring of values.
    """

    batches: tuple
    honest: str
    salt: str = "1"
    data: tuple = ()
    parts: int = 1
    bits: int = 2


def view_of(case, counts, settings):
    """Run the lookups of all settings; return what the coalition is sent: (settings, elements).

    counts: the honest site's share of the count of each part of each batch; all others' are 0.
    """
    sites = sorted({site for holders in case.batches for site in holders})
    secret = {case.honest, "dealer"}

    def stream(a, b):
        return LookupStream(settings, (a, b), None if {a, b} == secret else case.salt)

    w = world([(1, False, {site: [0] * 3}) for site in sites], 3, 2, stream=stream)
    pieces = ((FUNCTION, case.parts * settings.count),)
    batches = tuple(Batch(tuple(holders), pieces) for holders in case.batches)
    plan, ends = LookupPlan(b"view", Ring(case.bits), batches), settings.count
    vars(plan)["name"] = PLAN_NAME
    vars(plan)["parts"] = tuple(
        tuple(Slice(index, at * ends, (at + 1) * ends) for index in range(len(batches)))
        for at in range(case.parts)
    )

    def shares(site):
        own = np.array(counts, np.uint8).reshape(len(batches), case.parts) * (site == case.honest)
        return {
            index: np.repeat(own[index], settings.count)
            for index, batch in enumerate(batches)
            if site in batch.holders
        }

    programs = {site: look_up(w.holders[site], plan, shares(site)) for site in sites}
    _, sent = run_all(programs | {"dealer": deal_lookups(w.dealer_keys, plan)})
    seen = [m for m in sent if m.receiver != case.honest and m.sender in secret]
    seen.sort(key=lambda m: (m.sender, m.receiver, m.depth))
    sums = {(m.sender, m.depth, m.message.values.tobytes()): m for m in seen}
    seen = list(sums.values())  # what one site sends to several, once
    columns = [each for m in seen for each in elements_of(plan, m, settings.count)]
    return np.stack([np.broadcast_to(c, settings.count) for c in columns], axis=1)


def elements_of(plan, sent, count):
    """Return the elements of a message, each for all settings."""
    if isinstance(sent.message, Dealt):
        values, at = sent.message.values, 0
        labels = [plan.part_label(number, 0) for number in range(len(plan.parts))]
        for each in plan.parts[labels.index(sent.message.label)]:
            if plan.dealt_to(each) == sent.receiver:
                layout = plan.dealt(each)
                size = sum(piece.size for piece in layout)
                for array in unpacked(layout, values[at : at + size], sent.sender):
                    yield from array.reshape(count, -1).T
                at += size
    else:
        yield from sent.message.values.reshape(-1, count)


def distributions(case):
    """Return for each count of the honest site the distribution of the view: its sorted words."""
    data, total = case.data or [(count,) for count in COUNTS], 1
    for _ in range(2):  # labels name where a part starts: at the number of settings
        found = Settings(total)
        view_of(case, data[0], found)
        total = math.prod(found.sizes.values())
        assert total <= MOST_SETTINGS, f"{total} settings of {len(found.sizes)} elements"
    values, before = {}, 1
    for key, size in found.sizes.items():
        values[key] = (np.arange(total) // before % size).astype(np.uint8)
        before *= size
    settings = Settings(total, values)
    for counts in data:
        yield np.sort(words(view_of(case, counts, settings)))


def words(views):
    """Return each row of elements of two bits as one word."""
    assert views.max(initial=0) < 4 and views.shape[1] <= 32
    whole = np.zeros(len(views), np.uint64)
    for column in views.T:
        whole = whole << np.uint64(2) | column
    return whole


def is_simulatable(case):
    """Whether the view has the same distribution for all counts of the honest site."""
    views = distributions(case)
    first = next(views)
    return all(np.array_equal(view, first) for view in views)
