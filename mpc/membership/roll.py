"""A sum over those who are there: the aggregator calls a roll, the parties encrypt for it.

    aggregator -> j     the time, who is absent
    j -> aggregator     (1 + x_j N) H(t, absent)^sk_j(present) mod N^2

Security and leakage: see `mpc.membership`. Cost: 2 rounds; the names of the absent to each party,
2 |N| bits a packet from each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mpc.aggregation import OVERHEAD_CELLS, Counts, collect
from mpc.errors import ReplayedMessageError, UnexpectedMessageError
from mpc.membership.pair_keys import Aggregator, Member
from mpc.rounds import Expect, Message, Party, Program, Round

NAME_CELLS = 256


@dataclass(frozen=True, slots=True)
class Roll(Message):
    """Which members are absent from one sum."""

    kind: ClassVar[str] = "roll"
    label: bytes
    time: int
    absent: tuple[Party, ...]


def answer_roll(member: Member, counts: Counts, time: int) -> Program[None]:
    """Wait for the roll of a time and encrypt for it: a party's program.

    Raises
    ------
    ProtocolError
        If the roll is of other parameters or another time, or calls absent who must not be, or too
        many (`Member.encrypt`); it names the aggregator.
    """
    cells = OVERHEAD_CELLS + NAME_CELLS * member.parameters.most
    roll = (yield Round({}, {member.aggregator: Expect(Roll, cells)}))[member.aggregator]
    assert isinstance(roll, Roll)  # the transport has checked the kind
    if roll.label != member.parameters.label:
        raise UnexpectedMessageError(member.aggregator, "a roll under other parameters")
    if roll.time < time:
        raise ReplayedMessageError(
            member.aggregator, f"the roll of time {roll.time}, which is past"
        )
    if roll.time > time:
        raise UnexpectedMessageError(
            member.aggregator, f"the roll of time {roll.time}, wanted {time}"
        )
    yield Round({member.aggregator: member.encrypt(counts, time, roll.absent)}, {})


def call_roll(
    aggregator: Aggregator, absent: Collection[Party], time: int, count: int
) -> Program[NDArray[np.int64]]:
    """Ask all but the absent for a sum, and decrypt it: the aggregator's program.

    Parameters
    ----------
    aggregator : Aggregator
    absent : collection of Party
        Who is gone: for the transport to say, before the roll. Who fails after it ends the program
        with an error that names it, and the caller may call another roll, of a later time.
    time, count : int

    Returns
    -------
    sums : ndarray of shape (count,), dtype int64
        Exact and signed.

    Raises
    ------
    ProtocolError
        As `mpc.additive_scheme.decrypt`.
    """
    present = sorted(set(aggregator.parties) - set(absent))
    roll = Roll(aggregator.parameters.label, time, tuple(sorted(absent)))
    yield Round(dict.fromkeys(present, roll), {})
    expected = aggregator.parameters.expected(time, count)
    received = yield from collect(present, expected)
    return aggregator.decrypt(received, time, count, absent)
