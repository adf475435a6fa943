"""What both protocols of lookups use: a site's shares of factors, and rounds that batches share.

The masked count m = c + r is public; the dealer knows r = (i, j), and the sites hold shares E, F of
the one-hot vectors of i and j. The digits of c = m - r are ``m_h - i`` and ``m_l - j``, or, if
j > m_l, ``m_h - i - 1`` and ``m_l - j + low``: a borrow. So f~(c) is a sum of products of

    X_k = sum_h E[m_h - h] left[h, k]         and with left[h - 1, k], for a borrow
    Y_k = sum_l F[m_l - l] right[l, k]        over l <= m_l; over l > m_l, for a borrow

Of the two halves of Y one is zero: the borrow is resolved, though nobody knows it.

A `Lookup` is the part of a site in the lookups of one batch. It yields what it sends to whom and
how many bytes it expects from whom, and is sent the bytes; all batches do their rounds together,
and what they send each other goes into one message.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_bytes
from vertibayes_mpc.lookups.plan import LookupPlan, Slice
from vertibayes_mpc.ring import Elements, Packed
from vertibayes_mpc.rounds import Expect, Party, Program, exchange
from vertibayes_mpc.unit_vectors import turned

CHUNK = 1024  # lookups whose one-hot vectors are turned at a time: they stay in a cache


def factors(
    plan: LookupPlan,
    part: Slice,
    one_hots: tuple[Elements, Elements],
    masked: Elements,
    bits: int | None = None,
) -> Elements:
    """Return this site's shares of all factors of a slice: X, then Y; (2 * plan.width, counts).

    `one_hots` are the shares E and F, of shapes (counts, high) and (counts, low); `masked` is m.
    With 1 for `bits`, the one-hot vectors are bits, and shares of 1 or -1.
    """
    ring, terms = plan.ring, plan.width // 2
    high, low = plan.digits(masked)
    shares = np.empty((2 * plan.width, part.counts), ring.dtype)
    digits = np.arange(plan.low)
    for function, piece in plan.pieces(part):
        lefts = ring.reduce(function.lefts.astype(ring.dtype))
        rights = ring.reduce(function.rights.astype(ring.dtype))
        for start in range(piece.start, piece.stop, CHUNK):
            at = slice(start, min(start + CHUNK, piece.stop))
            shares[: plan.width, at] = ring.dot(lefts, turned(one_hots[0][at], high[at]), bits=bits)
            ones = turned(one_hots[1][at], low[at])
            stays = digits <= low[at, None]
            y = shares[plan.width :, at]
            y[:terms] = ring.dot(rights, ones * stays, bits=bits)
            y[terms:] = ring.dot(rights, ones * ~stays, bits=bits)
    return shares


class Masked(Labelled, kind="lookup"):
    """What a site sends in a round of lookups: counts, factors or products under masks."""


class Dealt(Labelled, kind="lookup masks"):
    """From the dealer: one-hot vectors and products of masks, of all lookups of a part."""


class Step(NamedTuple):
    """What a lookup sends in a round, and how many bytes it expects."""

    outbox: Mapping[Party, Packed]
    sizes: Mapping[Party, int]


Lookup: TypeAlias = Generator[Step, Mapping[Party, Packed], Elements]


def together(
    lookups: Mapping[int, Lookup], plan: LookupPlan, number: int, dealer: Party
) -> Program[dict[int, Elements]]:
    """Run the lookups of one part to their ends, round by round."""
    steps = {index: next(lookup) for index, lookup in lookups.items()}
    shares: dict[int, Elements] = {}
    rounds = 0
    while steps:
        rounds += 1
        inbox = yield from _exchange(steps, plan, number, rounds, dealer)
        for index in list(steps):
            try:
                steps[index] = lookups[index].send(inbox[index])
            except StopIteration as stop:
                shares[index] = stop.value
                del steps[index]
    return shares


def _exchange(
    steps: Mapping[int, Step], plan: LookupPlan, number: int, rounds: int, dealer: Party
) -> Program[dict[int, dict[Party, Packed]]]:
    """Exchange the messages of a round, and give each lookup its own bytes."""
    outgoing: dict[Party, list[Packed]] = {}
    sizes: dict[Party, int] = {}
    for step in steps.values():
        for receiver, values in step.outbox.items():
            outgoing.setdefault(receiver, []).append(values)
        for sender, size in step.sizes.items():
            sizes[sender] = sizes.get(sender, 0) + size
    name = plan.part_label(number, rounds)
    outbox = {to: Masked(np.concatenate(packed), name) for to, packed in outgoing.items()}
    kinds = {sender: Dealt if sender == dealer else Masked for sender in sizes}
    expect = {s: Expect(kinds[s], size + LABEL_BYTES) for s, size in sizes.items()}
    received = yield from exchange(outbox, expect)
    labels = {s: plan.part_label(number, 0) if s == dealer else name for s in sizes}
    texts = {s: labelled_bytes(m, s, sizes[s], labels[s]) for s, m in received.items()}
    return _taken_apart(steps, texts)


def _taken_apart(
    steps: Mapping[int, Step], values: Mapping[Party, Packed]
) -> dict[int, dict[Party, Packed]]:
    at = dict.fromkeys(values, 0)
    inbox: dict[int, dict[Party, Packed]] = {}
    for index, step in steps.items():
        inbox[index] = {}
        for sender, size in step.sizes.items():
            inbox[index][sender] = values[sender][at[sender] : at[sender] + size]
            at[sender] += size
    return inbox
