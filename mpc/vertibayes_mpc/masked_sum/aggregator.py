"""The aggregator's side of a sum: it relays, keeps the lists, and subtracts the masks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import FaultyPartyError, UnknownFaultyPartyError
from vertibayes_mpc.masked_sum.messages import (
    DIGEST_BYTES,
    DIGESTS_BYTES,
    KEYS_BYTES,
    SEALED_BYTES,
    Advertisement,
    Confirmation,
    Confirmations,
    Delivered,
    Keys,
    MaskedVector,
    Places,
    Revealed,
    Shared,
    SumMessage,
    Survivors,
    as_rows,
    expected,
    of_sum,
    places_of,
)
from vertibayes_mpc.masked_sum.plan import SumPlan
from vertibayes_mpc.masked_sum.roster import Roster, keys_label, transcript
from vertibayes_mpc.masked_sum.seeds import agree, digest_of, own_mask, pair_masks, seed_of
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, StreamKey
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program, exchange
from vertibayes_mpc.shamir import SHARE_BYTES
from vertibayes_mpc.sharing import checked
from vertibayes_mpc.signing import SIGNATURE_BYTES, is_signed

M = TypeVar("M", bound=SumMessage)


class Sum(NamedTuple):
    """A sum, and whose it is."""

    values: NDArray[np.int64]  # of shape (plan.length,)
    parties: tuple[Party, ...]  # whose vectors it adds up


def collect(plan: SumPlan, present: Iterable[Party] | None = None) -> Program[Sum]:
    """Compute the sum of all vectors that arrive: 5 rounds.

    At first it asks the parties that are `present`, by default all of the plan. A PartyGoneError
    says that too few are left after a round, and names the parties that are gone and who has too
    few neighbours; another ProtocolError names a party that does not follow the protocol.
    """
    return (yield from Collection(plan, present).converse())


class Collection:
    """What the aggregator received, from round to round; each method returns what it sends next."""

    def __init__(self, plan: SumPlan, present: Iterable[Party] | None = None) -> None:
        self.plan = plan
        self.asked = plan.parties if present is None else tuple(present)
        self.roster: Roster
        self.shared: dict[int, Shared]
        self.total: Elements
        self.rows: dict[int, dict[int, int]] = {}  # of a sharer's message, by receiver
        self.sharers: Places
        self.survivors: Places
        self.survived: frozenset[int]

    def converse(self) -> Program[Sum]:
        """Ask the parties round by round."""
        advertised = yield from self._ask({}, Advertisement)
        shared = yield from self._ask(self.relay_keys(advertised), Shared)
        masked = yield from self._ask(self.relay_shares(shared), MaskedVector)
        confirmed = yield from self._ask(self.announce_survivors(masked), Confirmation)
        revealed = yield from self._ask(self.relay_signatures(confirmed), Revealed)
        return self.open(revealed)

    def _ask(self, outbox: Mapping[Party, SumMessage], kind: type[M]) -> Program[dict[int, M]]:
        """Send messages, and return the answers of those who are left; at first all may answer."""
        expect = dict.fromkeys(outbox or self.asked, expected(kind, self.plan))
        received = yield from exchange(outbox, expect, need=self.plan.quorum)
        return {self.plan.place(p): of_sum(received[p], p, self.plan) for p in sorted(received)}

    def _to(self, places: Places, message: SumMessage) -> dict[Party, SumMessage]:
        return {self.plan.parties[place]: message for place in places}

    def relay_keys(self, advertised: dict[int, Advertisement]) -> dict[Party, SumMessage]:
        """Make the roster of all who advertised keys."""
        keys, signatures = [], []
        for place, said in advertised.items():
            party, both = self.plan.parties[place], said.mask_key + said.seal_key
            signed = keys_label(self.plan, party, both)
            is_whole = len(said.mask_key) == len(said.seal_key) == KEY_BYTES
            if not is_whole or not is_signed(signed, said.signature, self.plan.signing_keys[party]):
                reason = "advertised invalid keys, or keys that it did not sign"
                raise FaultyPartyError(party, reason)
            keys.append(both)
            signatures.append(said.signature)
        rows = as_rows(keys, KEYS_BYTES), as_rows(signatures, SIGNATURE_BYTES)
        message = Keys(self.plan.label, places_of(advertised), *rows)
        self.roster = Roster(self.plan, message, "aggregator")
        return self._to(self.roster.places, message)

    def relay_shares(self, shared: dict[int, Shared]) -> dict[Party, SumMessage]:
        """Relay to each sharer what its neighbours sealed for it."""
        self.shared, self.sharers = shared, places_of(shared)
        self.roster.check_left(self.sharers, self.sharers)
        for place, said in shared.items():
            members, party = self.roster.circle.around(place).tolist(), self.plan.parties[place]
            self.rows[place] = {member: row for row, member in enumerate(members)}
            checked(said.sealed, party, (len(members), SEALED_BYTES), np.uint8)
            checked(said.digests, party, (len(members), DIGESTS_BYTES), np.uint8)
        return {self.plan.parties[place]: self._delivered(place) for place in shared}

    def _delivered(self, receiver: int) -> Delivered:
        senders = self._members(receiver)
        rows = [(self.shared[sender], self.rows[sender][receiver]) for sender in senders]
        sealed = np.stack([said.sealed[row] for said, row in rows])
        digests = np.stack([said.digests[row] for said, row in rows])
        return Delivered(self.plan.label, self.sharers, sealed, digests)

    def _members(self, place: int) -> list[int]:
        """Return those in a party's neighbourhood who shared, itself included."""
        return [member for member in self.rows[place] if member in self.shared]

    def announce_survivors(self, masked: dict[int, MaskedVector]) -> dict[Party, SumMessage]:
        """Announce whose vectors arrived: whose sum it will be."""
        self.survivors, self.survived = places_of(masked), frozenset(masked)
        self.roster.check_left(self.sharers, self.survivors)
        shape, dtype = (self.plan.length,), self.plan.ring.dtype
        self.total = np.zeros(shape, dtype)
        for place, said in masked.items():
            self.total += checked(said.values, self.plan.parties[place], shape, dtype)
        return self._to(self.survivors, Survivors(self.plan.label, self.survivors))

    def relay_signatures(self, confirmed: dict[int, Confirmation]) -> dict[Party, SumMessage]:
        """Relay the survivors' signatures."""
        signers = places_of(confirmed)
        self.roster.check_left(self.sharers, signers)
        signed = transcript(self.roster, self.sharers, self.survivors)
        for place, said in confirmed.items():
            party = self.plan.parties[place]
            if not is_signed(signed, said.signature, self.plan.signing_keys[party]):
                raise FaultyPartyError(party, "did not sign the lists that it received")
        signatures = as_rows([said.signature for said in confirmed.values()], SIGNATURE_BYTES)
        return self._to(signers, Confirmations(self.plan.label, signers, signatures))

    def open(self, revealed: dict[int, Revealed]) -> Sum:
        """Recover one seed of each sharer, and subtract the masks."""
        self.roster.check_left(self.sharers, places_of(revealed))
        shares = self._shares(revealed)
        for place in self.sharers.tolist():
            chosen = dict(shares[place][: self.plan.neighbourhood.threshold])
            seed = StreamKey(seed_of(chosen, self.plan.parties[place]))
            if place in self.survived:
                self.total -= own_mask(self.plan, seed)
            else:
                self.total += self._masks_left_by(place, KeyPair(seed.secret))
        return self._checked(self.plan.decode(self.total))

    def _checked(self, values: NDArray[np.int64]) -> Sum:
        limit, parties = len(self.survivors) * self.plan.bound, self.plan.parties_at(self.survivors)
        if np.any((values > limit) | (values < -limit)):
            raise UnknownFaultyPartyError(parties, "one of them sent a vector beyond the bound")
        return Sum(values, parties)

    def _shares(self, revealed: dict[int, Revealed]) -> dict[int, list[tuple[int, int]]]:
        """Return the shares of each sharer, as pairs of Shamir's place and value."""
        shares: dict[int, list[tuple[int, int]]] = {place: [] for place in self.shared}
        for member, said in revealed.items():
            owners = self._members(member)
            rows = checked(
                said.shares, self.plan.parties[member], (len(owners), SHARE_BYTES), np.uint8
            )
            for owner, row in zip(owners, rows, strict=True):
                share = row.tobytes()
                self._check_share(owner, member, share)
                shares[owner].append((member + 1, int.from_bytes(share, "big")))
        return shares

    def _check_share(self, owner: int, member: int, share: bytes) -> None:
        digests = self.shared[owner].digests[self.rows[owner][member]].tobytes()
        both = digests[:DIGEST_BYTES], digests[DIGEST_BYTES:]
        if digest_of(share) != both[owner in self.survived]:
            owner_name = self.plan.parties[owner]
            reason = f"revealed a share that {owner_name} did not send it, or of the other seed"
            raise FaultyPartyError(self.plan.parties[member], reason)

    def _masks_left_by(self, place: int, pair: KeyPair) -> Elements:
        """Return the masks that a party that is gone would have cancelled."""
        party = self.plan.parties[place]
        if pair.public != self.roster.mask_key(place):
            raise FaultyPartyError(party, "shared out a key that is not its own")
        peers = {}
        for member in filter(self.survived.__contains__, self.rows[place]):
            peer, key = self.plan.parties[member], self.roster.mask_key(member)
            peers[peer] = agree(pair, key, "masking", peer)
        return pair_masks(self.plan, party, peers)
