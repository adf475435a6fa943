"""Sums over neighbourhoods: each node learns the sum of what its neighbours hold, and no more.

    for each group of nodes whose neighbourhoods do not overlap, all at once:
      neighbours u of v <-> v    a masked sum (`vertibayes_mpc.masked_sum`) of all u; v opens it

The groups are in one order at all parties, and a party is in one sum at a time: no two parties wait
for each other. A node opens no sum over fewer than two others.

Security: as `vertibayes_mpc.masked_sum`, with the node v as aggregator: v, with all neighbours
except two, learns the sum over these two. A sum over two neighbours shows each to whoever knows the
other. Leakage: the sum, to v; who was in it, to v and its neighbours. Cost: 5 rounds per group; a
chain has 3 groups, a network at most (largest degree)**2 + 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import PartyGoneError, ProtocolError, UnexpectedMessageError
from vertibayes_mpc.masked_sum import Member, Neighbourhood, Sum, SumPlan, collect, contribute
from vertibayes_mpc.masked_sum.messages import Revealed, SumMessage
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Party, Program, R, Round, send
from vertibayes_protocols.calibration.nodes import Attendance
from vertibayes_protocols.roles import SiteRole

LEAST = 2  # neighbours in a sum: a sum over one is its vector
HEADROOM = 16  # bits above 1 that a number may have


@dataclass(frozen=True, slots=True)
class GivenUp(SumMessage):
    """The aggregator cannot compute the sum: too few are left."""

    kind: ClassVar[str] = "sum-given-up"


class Grid(NamedTuple):
    """Fixed-point numbers: integers that no sum over `parties` of them carries beyond 64 bits."""

    parties: int

    @property
    def bits(self) -> int:
        """Binary places."""
        return min(40, 62 - HEADROOM - self.parties.bit_length())

    @property
    def bound(self) -> int:
        """The largest absolute value of an integer."""
        return 1 << (self.bits + HEADROOM)

    def encode(self, party: Party, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest integers."""
        if not (np.abs(numbers) <= 2.0**HEADROOM).all():  # a nan is not
            reason = f"its statistics are above 2**{HEADROOM} times their size, or not finite"
            raise ProtocolError(party, f"{reason}: specify a lower learning rate")
        return np.rint(numbers * 2.0**self.bits).astype(np.int64)

    def decode(self, integers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return numbers."""
        return np.ldexp(integers.astype(np.float64), -self.bits)


def plan_over(name: bytes, keys: Mapping[Party, bytes], length: int, least: int) -> SumPlan:
    """Return the plan of a sum that at least `least` parties, more than half, must finish."""
    near = Neighbourhood(len(keys) - 1, least)
    return SumPlan(name, keys, length, Grid(len(keys)).bound, near)


@lru_cache(maxsize=8)
def schedule(
    network: tuple[tuple[Party, tuple[Party, ...]], ...],
) -> tuple[tuple[Party, ...], ...]:
    """Return groups of nodes whose neighbourhoods do not overlap, in the order of their sums."""
    groups: list[tuple[list[Party], set[Party]]] = []
    for node, peers in sorted(network, key=lambda item: (-len(item[1]), item[0])):
        hood = {node, *peers}
        for members, busy in groups:
            if not busy & hood:
                members.append(node)
                busy |= hood
                break
        else:
            groups.append(([node], hood))
    return tuple(tuple(members) for members, _ in groups)


def summing(there: Attendance) -> dict[Party, tuple[Party, ...]]:
    """Return each node that sums, and whom it sums: those with two senders or more."""
    hoods = {v: there.senders(v) for v in there.network.nodes if v not in there.absent}
    return {node: senders for node, senders in hoods.items() if len(senders) >= LEAST}


def least_of(senders: Sequence[Party]) -> int:
    """Return how many of the senders must be left: two or more, and more than half."""
    return max(LEAST, len(senders) // 2 + 1)


def sum_neighbours(
    site: SiteRole,
    there: Attendance,
    vectors: Mapping[Party, NDArray[np.float64]],
    length: int,
    name: bytes,
) -> Program[tuple[NDArray[np.float64], tuple[Party, ...]]]:
    """Take part in the sums of a round, one after the other."""
    hoods = summing(there)
    own, parties = np.zeros(length), tuple[Party, ...]()
    for group in schedule(tuple(hoods.items())):
        for node in group:
            plan = _plan(site, name, node, hoods[node], length)
            if node == site.party:
                total = yield from _open(plan)
                if total is not None:
                    own, parties = Grid(len(hoods[node])).decode(total.values), total.parties
            elif site.party in hoods[node]:
                values = Grid(len(hoods[node])).encode(site.party, vectors[node])
                member = Member(site.party, site.signing)
                program = contribute(member, plan, values, node, site.randomness)
                yield from _contribute(program, node)
    return own, parties


def _plan(
    site: SiteRole, name: bytes, node: Party, senders: tuple[Party, ...], length: int
) -> SumPlan:
    known = {**site.signing_keys, site.party: site.signing.public}
    keys = {party: known[party] for party in senders}
    name = label("sum of a neighbourhood", name, node.encode())
    return plan_over(name, keys, length, least_of(senders))


def _open(plan: SumPlan) -> Program[Sum | None]:
    """Open a sum, or give it up if too few are left; return None then."""
    program = collect(plan)
    step = next(program)
    while True:
        inbox = yield Round(step.outbox, step.expect, need=0)
        last = any(expect.kind is Revealed for expect in step.expect.values())
        try:
            if len(inbox) < step.needed:
                raise PartyGoneError(tuple(sorted(set(step.expect) - set(inbox))), "gone")
            step = program.send(inbox)
        except StopIteration as stop:
            total: Sum = stop.value
            return total
        except PartyGoneError:
            program.close()
            if not last:  # those who have revealed their shares wait for nothing
                yield from tolerant(send(dict.fromkeys(inbox, GivenUp(plan.label))))
            return None


def _contribute(program: Program[tuple[Party, ...]], node: Party) -> Program[None]:
    """Contribute to a sum until it is opened or given up, or its aggregator is gone."""
    step = next(program)
    try:
        while True:
            expect = {peer: Expect(SumMessage, e.cells) for peer, e in step.expect.items()}
            inbox = yield Round(step.outbox, expect, need=0)
            if expect and isinstance(inbox.get(node), GivenUp | None):
                return
            for peer, message in inbox.items():
                if not isinstance(message, step.expect[peer].kind):
                    raise UnexpectedMessageError(peer, f"sent {message.kind} in a sum")
            step = program.send(inbox)
    except StopIteration:
        return
    finally:
        program.close()


def tolerant(program: Program[R]) -> Program[R]:
    """Run a program that goes on when a party leaves for which it does not wait."""
    step = next(program)
    try:
        while True:
            step = program.send((yield Round(step.outbox, step.expect, step.needed, step.idle)))
    except StopIteration as stop:
        output: R = stop.value
        return output
    finally:
        program.close()
