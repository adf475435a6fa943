"""Several protocols that step together: what they send each other goes into one message.

A `Lookup` is the part of a site in the lookups of one batch. It yields what it sends to whom and
how many bytes it expects from whom, and is sent the bytes; all batches do their rounds together.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, Packed, labelled_bytes
from vertibayes_mpc.lookups.plan import LookupPlan
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange


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
