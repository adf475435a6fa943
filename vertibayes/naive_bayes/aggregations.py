"""Two ways to open sums over parties that come and go: the additive scheme, or masked sums.

Both keep what lasts from release to release (keys, times, names of sums) and hand out, for each
release, how each party encrypts and how the aggregator opens: programs of `mpc.membership` and
`mpc.masked_sum`, whose heads say what they cost and whom they trust.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mpc.additive_scheme import NEVER, Parameters, draw_modulus
from mpc.aggregation import Ciphertexts, Counts
from mpc.errors import ProtocolError
from mpc.masked_sum import Member as MaskedMember
from mpc.masked_sum import (
    Neighbourhood,
    Sum,
    SumPlan,
    collect,
    compromise_probability,
    contribute,
    failure_probability,
    smallest_neighbourhood,
)
from mpc.membership import Aggregator, Groups, Member, answer_roll, call_roll
from mpc.membership.groups import LEAST
from mpc.randomness import KeyPair, Randomness, StreamKey, label
from mpc.rounds import Party, Program
from mpc.signing import SigningKey
from vertibayes.naive_bayes.parties import DataEnc, Terms

AGGREGATOR = "aggregator"
STUDY_BYTES = 16
ALL_TO_ALL = 100  # parties at most that share seeds with all others, where masks are summed
FAILURE = 2.0**-20  # of a masked sum, by drop-outs at random as many as agreed


class Opening(NamedTuple):
    """One release: how each party that is there encrypts, how the aggregator opens.

    Attributes
    ----------
    encryptors : dict of Party to callable
    opened : Program
    fewest : int
        Less than so many are in no sum that the honest parties help to open, whatever the
        aggregator says of who is gone.
    """

    encryptors: Mapping[Party, DataEnc]
    opened: Program[Sum]
    fewest: int


class Aggregation(Protocol):
    """Opens sums over members that come and go."""

    def join(self, party: Party) -> frozenset[Party]:
        """Take a party in; return whose keys change."""
        ...

    def leave(self, party: Party) -> frozenset[Party]:
        """Let a party go; return whose keys change."""
        ...

    def release(self, absent: Collection[Party]) -> Opening:
        """Begin a sum over all but the absent."""
        ...


class CarefulMember(Member):
    """A member that answers no roll which calls more absent than the terms allow.

    Else an aggregator could call away those whose noise the promise needs.
    """

    most_absent = 0

    def encrypt(self, counts: Counts, time: int, absent: Collection[Party] = ()) -> Ciphertexts:
        """Encrypt as `Member`.

        Raises
        ------
        ProtocolError
            If too many are called absent; it names the aggregator.
        """
        if len(set(absent)) > self.most_absent:
            reason = f"calls {len(set(absent))} absent, {self.most_absent} are agreed at most"
            raise ProtocolError(self.aggregator, reason)
        return super().encrypt(counts, time, absent)


class AdditiveSums:
    """The additive scheme: pair keys in interleaved groups, a roll and one message a release.

    Parameters
    ----------
    terms : Terms
    parties : iterable of Party
    randomness : Randomness
    modulus : int, optional
        Of `mpc.additive_scheme.draw_modulus`; one is drawn, and its factors forgotten, if None.
    """

    def __init__(
        self,
        terms: Terms,
        parties: Iterable[Party],
        randomness: Randomness,
        modulus: int | None = None,
    ) -> None:
        self.terms, self.randomness, self.time = terms, randomness, 0
        study = label("hdpnb", randomness.bytes(STUDY_BYTES))
        modulus = draw_modulus() if modulus is None else modulus
        bounds = terms.most_parties, terms.lowest, terms.highest
        self.parameters = Parameters(modulus, study, *bounds)
        most = terms.most_parties
        # So many cannot part the others, wherever they sit: fewer than two whole blocks.
        least = max(LEAST, (terms.colluding(most) + terms.absent(most)) // 2 + 1)
        self.groups = Groups(parties, randomness, least)
        self._pairs = {p: KeyPair.generate(randomness) for p in (*self.groups.parties, AGGREGATOR)}
        self._members: dict[Party, CarefulMember] = {}
        self._last_time = dict.fromkeys(self.groups.parties, NEVER)
        self._aggregator: Aggregator | None = None

    def join(self, party: Party) -> frozenset[Party]:
        """Take a party in, with a new key pair."""
        changed = self.groups.join(party)
        self._pairs[party] = KeyPair.generate(self.randomness)
        self._last_time[party] = NEVER
        return self._renew(changed)

    def leave(self, party: Party) -> frozenset[Party]:
        """Let a party go: its neighbours drop their pairs with it."""
        changed = self.groups.leave(party)
        self._members.pop(party, None)
        del self._pairs[party], self._last_time[party]
        return self._renew(changed)

    def release(self, absent: Collection[Party]) -> Opening:
        """Call the roll of a new time."""
        self.time += 1
        members, length = self.groups.parties, self.terms.counts
        present = [party for party in members if party not in absent]
        encryptors: dict[Party, DataEnc] = {}
        for party in present:
            member = self._member(party)
            member.most_absent = self.terms.absent(len(members))
            encryptors[party] = partial(answer_roll, member, time=self.time)
        if self._aggregator is None:
            self._aggregator = Aggregator(
                self.parameters, AGGREGATOR, self._streams(AGGREGATOR, members)
            )
        rolled = call_roll(self._aggregator, absent, self.time, length)
        fewest = len(members) - self.terms.absent(len(members))
        return Opening(encryptors, _as_sum(rolled, tuple(present)), fewest)

    def _renew(self, changed: frozenset[Party]) -> frozenset[Party]:
        """Forget the keys that change; they are agreed when they are used. Times outlive them."""
        self._aggregator = None
        for party in changed:
            if (member := self._members.pop(party, None)) is not None:
                self._last_time[party] = member.times.last
        return changed

    def _member(self, party: Party) -> CarefulMember:
        if party not in self._members:
            near = self.groups.neighbourhood(party)
            streams = self._streams(party, self.groups.neighbours(party) | {AGGREGATOR})
            self._members[party] = CarefulMember(
                self.parameters, party, AGGREGATOR, near, streams, last_time=self._last_time[party]
            )
        return self._members[party]

    def _streams(self, party: Party, peers: Iterable[Party]) -> dict[Party, StreamKey]:
        own = self._pairs[party]
        return {peer: own.agree(self._pairs[peer].public, "hdpnb") for peer in peers}


class MaskedSums:
    """Masked sums: five rounds a release, fresh masks each, drop-outs at any time.

    Parameters
    ----------
    terms : Terms
    parties : iterable of Party
    randomness : Randomness
    """

    def __init__(self, terms: Terms, parties: Iterable[Party], randomness: Randomness) -> None:
        self.terms, self.randomness = terms, randomness
        names = sorted(parties)
        self._members = {p: MaskedMember(p, SigningKey.generate(randomness)) for p in names}

    def join(self, party: Party) -> frozenset[Party]:
        """Take a party in: its public key is made known, no other changes."""
        self._members[party] = MaskedMember(party, SigningKey.generate(self.randomness))
        return frozenset((party,))

    def leave(self, party: Party) -> frozenset[Party]:
        """Let a party go: no key changes."""
        del self._members[party]
        return frozenset()

    def release(self, absent: Collection[Party]) -> Opening:
        """Plan a sum of a new name."""
        n, keys = len(self._members), {p: m.signing.public for p, m in self._members.items()}
        corrupt, dropped = self.terms.colluding(n), self.terms.absent(n)
        near = _neighbourhood(n, corrupt, dropped, ALL_TO_ALL)
        bound = max(-self.terms.lowest, self.terms.highest)
        name = self.randomness.bytes(STUDY_BYTES)
        plan = SumPlan(name, keys, self.terms.counts, bound, near)
        encryptors: dict[Party, DataEnc] = {
            party: partial(_contribute, member, plan, self.randomness)
            for party, member in self._members.items()
            if party not in absent
        }
        return Opening(encryptors, collect(plan), plan.quorum)


@cache
def _neighbourhood(parties: int, corrupt: int, dropped: int, complete: int) -> Neighbourhood:
    """Return a neighbourhood, with as high a threshold as the agreed drop-outs leave.

    The higher it is, the fewer can an aggregator call away with their noise. In the complete graph,
    that is as few as may be missing; so it is taken up to `complete` parties, for more bytes.
    """
    found = Neighbourhood(parties - 1, parties - dropped)
    if parties > complete or compromise_probability(parties, found, corrupt):
        found = smallest_neighbourhood(parties, corrupt, dropped)
    if not dropped:
        return found._replace(threshold=found.degree + 1)
    while found.threshold <= found.degree:
        higher = found._replace(threshold=found.threshold + 1)
        if failure_probability(parties, higher, dropped) > FAILURE:
            break
        found = higher
    return found


def _contribute(
    member: MaskedMember, plan: SumPlan, randomness: Randomness, values: NDArray[np.int64]
) -> Program[tuple[Party, ...]]:
    return contribute(member, plan, values, AGGREGATOR, randomness)


def _as_sum(rolled: Program[NDArray[np.int64]], parties: tuple[Party, ...]) -> Program[Sum]:
    return Sum((yield from rolled), parties)
