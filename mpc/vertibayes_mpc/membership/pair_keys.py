"""Keys of a changing set of parties, from secrets of neighbours; a sum over those who are present.

    i, j                e_ij = e_ji in [0, 2^128 N^2), expanded from the key that they agreed
    key                 sk_j(present) = sum over present neighbours i > j of e_ij, minus i < j
    aggregator -> j     the time, who is absent
    j -> aggregator     (1 + x_j N) H(t, absent)^sk_j(present) mod N^2

The aggregator is a neighbour of all. Keys are zero in sum over any set with the aggregator, if each
party takes its pairs within the set. Absent parties are left out; nobody reveals anything for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.additive_scheme.scheme import Parameters, decrypt, encrypt
from vertibayes_mpc.aggregation import (
    OVERHEAD_CELLS,
    Ciphertexts,
    Counts,
    Times,
    check_time,
    collect,
)
from vertibayes_mpc.errors import FaultyPartyError, UnexpectedMessageError
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send


def pair_key(stream: StreamKey, parameters: Parameters) -> int:
    """Expand the secret of two neighbours, `stream`, for one study."""
    stream_label = label("pair key", parameters.modulus, parameters.study)
    size = (parameters.key_bound.bit_length() + 7) // 8
    return int.from_bytes(stream.expand(stream_label, size), "big")


def signed_sum(party: Party, pairs: Mapping[Party, int]) -> int:
    """Return a party's key from its pair keys: zero in sum over all."""
    return sum(pair if peer > party else -pair for peer, pair in pairs.items())


class Member:
    """A party's pair keys, and the times at which it has encrypted.

    `neighbourhood` is its own block and the adjacent ones (`Groups.neighbourhood`), `streams` what
    it agreed with each neighbour and with the aggregator; other streams are ignored. `last_time` is
    the highest time at which it ever encrypted with its key pair, also before it left and came
    back; `NEVER` for a new key pair. After each `encrypt`, the caller stores `times.last` before it
    sends the ciphertexts. A join or leave that changes its neighbours makes it a new member, with
    the old one's last time. A ValueError says that the party is not in its neighbourhood, or that
    the stream of a neighbour is missing.
    """

    def __init__(
        self,
        parameters: Parameters,
        party: Party,
        aggregator: Party,
        neighbourhood: Sequence[frozenset[Party]],
        streams: Mapping[Party, StreamKey],
        *,
        last_time: int,
    ) -> None:
        everyone = frozenset[Party]().union(*neighbourhood)
        if party not in everyone or aggregator in everyone:
            raise ValueError(f"a neighbourhood must contain {party}, and not {aggregator}")
        peers = everyone - {party} | {aggregator}
        if missing := sorted(peers - set(streams)):
            raise ValueError(f"{party} has not agreed on a key with {', '.join(missing)}")
        self.parameters, self.party, self.aggregator = parameters, party, aggregator
        self.neighbourhood, self.times = tuple(neighbourhood), Times(last_time)
        self._pairs = {peer: pair_key(streams[peer], parameters) for peer in peers}

    def __repr__(self) -> str:
        return f"Member({self.party!r}, last_time={self.times.last})"

    def encrypt(self, counts: Counts, time: int, absent: Collection[Party] = ()) -> Ciphertexts:
        """Encrypt this party's counts for the sum over those who are not absent, as the roll says.

        A ProtocolError, before the time is used up, names an aggregator that calls the party
        itself, the aggregator, or more than a third of an adjacent block absent: it could otherwise
        separate the parties, or let anybody read the sum without a key. Further errors are those of
        `additive_scheme.Encryptor.encrypt`.
        """
        gone = frozenset(absent)
        if self.party in gone:
            raise FaultyPartyError(self.aggregator, f"calls {self.party} absent, and asks it")
        if self.aggregator in gone:
            reason = "calls itself absent: anybody could read the sum"
            raise FaultyPartyError(self.aggregator, reason)
        if any(3 * len(block & gone) > len(block) for block in self.neighbourhood):
            raise FaultyPartyError(self.aggregator, "calls more than a third of a block absent")
        pairs = {peer: pair for peer, pair in self._pairs.items() if peer not in gone}
        key = signed_sum(self.party, pairs)
        context = roll_digest(gone)
        return encrypt(self.parameters, self.party, key, counts, self.times, time, context)


def roll_digest(absent: Collection[Party]) -> bytes:
    """Return a digest of who is absent, which is part of every base of the sum.

    So an aggregator cannot call more parties absent than each party accepts by sending each party a
    roll of its neighbours only.
    """
    return label("absent", *sorted(set(absent)))


class Aggregator:
    """The aggregator's pair keys, from the streams that it agreed with each party."""

    def __init__(
        self, parameters: Parameters, party: Party, streams: Mapping[Party, StreamKey]
    ) -> None:
        self.parameters, self.party = parameters, party
        self._pairs = {peer: pair_key(stream, parameters) for peer, stream in streams.items()}

    def __repr__(self) -> str:
        return f"Aggregator({self.party!r}, {len(self._pairs)} parties)"

    @property
    def parties(self) -> tuple[Party, ...]:
        """All with whom it shares a key, sorted."""
        return tuple(sorted(self._pairs))

    def decrypt(
        self,
        received: Mapping[Party, Ciphertexts],
        time: int,
        count: int,
        absent: Collection[Party] = (),
    ) -> NDArray[np.int64]:
        """Decrypt the sums over the two or more who are present; as `additive_scheme.decrypt`."""
        parties = sorted(set(self._pairs) - set(absent))
        if len(parties) < 2:
            raise ValueError(f"at least two parties must be present, got {len(parties)}")
        key = signed_sum(self.party, {party: self._pairs[party] for party in parties})
        context = roll_digest(absent)
        return decrypt(self.parameters, key, parties, received, time, count, context)


NAME_CELLS = 256


@dataclass(frozen=True, slots=True)
class Roll(Message, kind="roll"):
    """Which members are absent from one sum."""

    label: bytes
    time: int
    absent: tuple[Party, ...]


def answer_roll(member: Member, counts: Counts, time: int) -> Program[None]:
    """Wait for the roll of a time and encrypt for it, or blame the aggregator: a party's side."""
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
