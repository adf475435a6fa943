"""The aggregator's view of a masked sum: by enumeration in small rings, by chi-square at full size.

Beside each test the variant that it must reject: no self-masks, small masks.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.randomness import SeededRandomness
from tests.sums import World
from vertibayes_mpc.masked_sum.aggregator import Collection
from vertibayes_mpc.masked_sum.messages import MaskedVector
from vertibayes_mpc.masked_sum.party import Contribution
from vertibayes_mpc.masked_sum.seeds import own_mask, pair_masks
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all

VICTIM = "p01"
NAMES = ("p", "q", "r")
PAIRS = (("p", "q"), ("p", "r"), ("q", "r"))


class Fixed:
    """A stream of one element."""

    value = 0

    def elements(self, ring, name, shape, start=0):
        return np.full(shape, self.value, ring.dtype)


def views_of(vectors, late, seen_pairs=(), with_self_masks=True, limit=2):
    """Return the distribution of all that an aggregator sees in Z_2 or Z_4, over all masks.

    The aggregator sees the masked vectors, the keys of who is late, the others' self-masks, and
    the keys of the pairs of a corrupt party.
    """
    plan = SimpleNamespace(ring=Ring(int(math.log2(limit))), label=b"", length=1)
    streams = {key: Fixed() for key in [*PAIRS, *NAMES]}
    found = Counter()
    for values in product(range(limit), repeat=len(streams)):
        for stream, value in zip(streams.values(), values, strict=True):
            stream.value = value
        view = []
        for name, vector in zip(NAMES, vectors, strict=True):
            peers = {q: streams[min(name, q), max(name, q)] for q in NAMES if q != name}
            masked = np.array([vector], np.uint8) + pair_masks(plan, name, peers)
            if with_self_masks:
                masked = masked + own_mask(plan, streams[name])
            view.append(int(plan.ring.reduce(masked)[0]))
            view += [] if name in late else [streams[name].value]
        opened = [pair for pair in PAIRS if set(pair) & set(late) or pair in seen_pairs]
        view += [streams[pair].value for pair in opened]
        found[tuple(view)] += 1
    return found


@pytest.mark.parametrize(
    ("limit", "vectors"),
    [
        (2, list(product(range(2), repeat=3))),
        (4, [(0, 0, 1), (0, 1, 0), (3, 3, 3), (2, 0, 0), (1, 3, 2)]),
    ],
)
def test_the_view_of_an_aggregator_depends_on_the_sum_alone(limit, vectors):
    by_sum = {}
    for each in vectors:
        by_sum.setdefault(sum(each) % limit, []).append(views_of(each, (), limit=limit))
    assert all(view == views[0] for views in by_sum.values() for view in views)
    assert (
        max(map(len, by_sum.values())) > 2 and by_sum[1][0] != by_sum[min(by_sum.keys() - {1})][0]
    )


def test_with_a_corrupt_party_it_depends_on_the_sum_of_the_others():
    seen = [("p", "r"), ("q", "r")]
    same = [views_of(vectors, (), seen) for vectors in ((0, 1, 0), (1, 0, 0))]
    other = views_of((1, 1, 0), (), seen)
    assert same[0] == same[1] != other


def test_of_who_is_late_it_sees_nothing():
    assert views_of((0, 1, 1), ("p",)) == views_of((1, 1, 1), ("p",))


def test_without_self_masks_the_view_of_who_is_late_is_its_vector():
    views = [views_of((x, 1, 1), ("p",), with_self_masks=False) for x in (0, 1)]
    assert views[0] != views[1]


# ---- at full size --------------------------------------------------------------------------------


class SmallMasks(Contribution):
    """A real mistake, made in the field: masks as small as the data."""

    def mask(self, delivered, elements):
        masked = super().mask(delivered, elements)
        return MaskedVector(masked.context, elements + (masked.values - elements) % 10)


def masked_vector(cls, value):
    """Return the victim's masked vector, when all its values are one."""
    w = World(4, length=5000)
    w.vectors[VICTIM] = np.full(5000, value)
    w.randomness = SeededRandomness(b"view %d" % value)
    aggregator = Collection(w.plan)
    aggregator._checked = lambda values: None  # small masks do not cancel
    programs = {"aggregator": aggregator.converse()}
    for party, member in w.members.items():
        ours = cls(w.plan, member, "aggregator", w.randomness)
        programs[party] = ours.converse(w.plan.encode(w.vectors[party]))
    _, transcript = run_all(programs)
    (found,) = [
        s.message.values
        for s in transcript
        if s.sender == VICTIM and type(s.message) is MaskedVector
    ]
    return found


def p_value(views, shift):
    table = np.array([np.bincount((v >> shift) & 15, minlength=16) for v in views])
    return chi2_contingency(table[:, table.any(axis=0)]).pvalue


@pytest.mark.parametrize("shift", [0, 12])
def test_a_masked_vector_does_not_depend_on_the_vector(shift):
    assert p_value([masked_vector(Contribution, value) for value in (0, 100)], shift) > 1e-3


def test_small_masks_are_rejected():
    assert p_value([masked_vector(SmallMasks, value) for value in (0, 100)], 0) < 1e-9
