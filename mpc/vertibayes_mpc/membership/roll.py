"""A sum over those who are present: the aggregator calls a roll, the parties encrypt for it.

    aggregator -> j     the time, who is absent
    j -> aggregator     (1 + x_j N) H(t, absent)^sk_j(present) mod N^2

Security and leakage: see `vertibayes_mpc.membership`.
Cost: 2 rounds; the names of the absent to each party, 2 |N| bits a packet from each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.aggregation import OVERHEAD_CELLS, Counts, check_time, collect
from vertibayes_mpc.errors import UnexpectedMessageError
from vertibayes_mpc.membership.pair_keys import Aggregator, Member
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send

NAME_CELLS = 256


@dataclass(frozen=True, slots=True)
class Roll(Message, kind="roll"):
    """Which members are absent from one sum."""

    label: bytes
    time: int
    absent: tuple[Party, ...]


def answer_roll(member: Member, counts: Counts, time: int) -> Program[None]:
    """Wait for the roll of a time and encrypt for it: a party's program.

    A ProtocolError names the aggregator if the roll is of other parameters or another time, or
    `Member.encrypt` refuses it.
    """
    cells = OVERHEAD_CELLS + NAME_CELLS * member.parameters.most
    expect = {member.aggregator: Expect(Roll, cells)}
    roll = (yield from exchange({}, expect))[member.aggregator]
    if roll.label != member.parameters.label:
        raise UnexpectedMessageError(member.aggregator, "a roll under other parameters")
    check_time(roll.time, time, member.aggregator, "the roll")
    yield from send({member.aggregator: member.encrypt(counts, time, roll.absent)})


def call_roll(
    aggregator: Aggregator, absent: Collection[Party], time: int, count: int
) -> Program[NDArray[np.int64]]:
    """Ask all who are not absent for a sum, and decrypt it: the aggregator's program.

    `absent` are gone before the roll, as the transport knows. A party that fails after the roll
    ends the program with an error that names it; the caller may call another roll, of a later time.
    Returns what `Aggregator.decrypt` returns, and raises what it raises.
    """
    present = sorted(set(aggregator.parties) - set(absent))
    roll = Roll(aggregator.parameters.label, time, tuple(sorted(set(absent))))
    yield from send(dict.fromkeys(present, roll))
    received = yield from collect(present, aggregator.parameters.expected(time, count))
    return aggregator.decrypt(received, time, count, absent)
