"""The server's side of a sum: it relays, keeps the lists, and takes the masks off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc.errors import FaultyPartyError, UnknownFaultyPartyError
from mpc.masked_sum.masks import own_mask, pair_masks
from mpc.masked_sum.messages import (
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
    array_of,
    as_rows,
    expected,
    of_sum,
    places_of,
)
from mpc.masked_sum.plan import SumPlan
from mpc.masked_sum.roster import Roster, keys_label, transcript
from mpc.masked_sum.seeds import agree, digest_of, seed_of
from mpc.randomness import KEY_BYTES, KeyPair, StreamKey
from mpc.ring import Elements
from mpc.rounds import Party, Program, Round
from mpc.shamir import SHARE_BYTES
from mpc.signing import SIGNATURE_BYTES, is_signed

M = TypeVar("M", bound=SumMessage)


class Sum(NamedTuple):
    """A sum, and whose it is.

    Attributes
    ----------
    values : ndarray of shape (plan.length,), dtype int64
    parties : tuple of Party
        Those whose masked vectors arrived.
    """

    values: NDArray[np.int64]
    parties: tuple[Party, ...]


def collect(plan: SumPlan, present: Iterable[Party] | None = None) -> Program[Sum]:
    """Open the sum of the vectors of all whose masked vectors arrive: 5 rounds.

    Parameters
    ----------
    plan : SumPlan
    present : iterable of Party, optional
        Who is asked at first: those of the plan that have not gone before; all by default.

    Returns
    -------
    sum : Sum

    Raises
    ------
    PartyGoneError
        If too few are left after a round; it names the gone, and who is short of neighbours.
    ProtocolError
        If a party does not follow the protocol; it is named.
    """
    return (yield from Collection(plan, present).converse())


class Collection:
    """What the server has heard, from round to round; each method makes of it what it sends next.

    Parameters
    ----------
    plan : SumPlan
    present : iterable of Party, optional
        As of `collect`.
    """

    def __init__(self, plan: SumPlan, present: Iterable[Party] | None = None) -> None:
        self.plan = plan
        self.asked = plan.parties if present is None else tuple(present)
        self.roster: Roster
        self.shared: dict[int, Shared]
        self.total: Elements
        self.rows: dict[int, dict[int, int]] = {}  # of a sharer's message, by who it is for
        self.sharers: Places
        self.survivors: Places
        self.survived: frozenset[int]

    def converse(self) -> Program[Sum]:
        """Ask the parties round by round."""
        advertised = yield from self._ask({}, Advertisement)
        shared = yield from self._ask(self.tell_keys(advertised), Shared)
        masked = yield from self._ask(self.deliver(shared), MaskedVector)
        confirmed = yield from self._ask(self.tell_survivors(masked), Confirmation)
        revealed = yield from self._ask(self.tell_confirmed(confirmed), Revealed)
        return self.open(revealed)

    def _ask(self, told: Mapping[Party, SumMessage], kind: type[M]) -> Program[dict[int, M]]:
        """Tell parties something (all are asked at first), and hear those that are left of them."""
        expect = dict.fromkeys(told or self.asked, expected(kind, self.plan))
        inbox = yield Round(told, expect, need=self.plan.quorum)
        heard = sorted(inbox)
        return {self.plan.place(p): of_sum(inbox[p], kind, p, self.plan) for p in heard}

    def _to(self, places: Places, message: SumMessage) -> dict[Party, SumMessage]:
        return {self.plan.parties[place]: message for place in places}

    def tell_keys(self, advertised: dict[int, Advertisement]) -> dict[Party, SumMessage]:
        """Make the roster of all who advertised keys."""
        keys, signatures = [], []
        for place, said in advertised.items():
            party, both = self.plan.parties[place], said.mask_key + said.seal_key
            name = keys_label(self.plan, party, both)
            is_whole = len(said.mask_key) == len(said.seal_key) == KEY_BYTES
            if not is_whole or not is_signed(name, said.signature, self.plan.signing_keys[party]):
                raise FaultyPartyError(
                    party, "advertised keys that are none, or that it did not sign"
                )
            keys.append(both)
            signatures.append(said.signature)
        told = as_rows(keys, KEYS_BYTES), as_rows(signatures, SIGNATURE_BYTES)
        message = Keys(self.plan.context, places_of(advertised), *told)
        self.roster = Roster(self.plan, message, "server")
        return self._to(self.roster.places, message)

    def deliver(self, shared: dict[int, Shared]) -> dict[Party, SumMessage]:
        """Hand each sharer what its neighbours sealed for it."""
        self.shared, self.sharers = shared, places_of(shared)
        self.roster.check_left(self.sharers, self.sharers)
        for place, said in shared.items():
            members, party = self.roster.circle.around(place).tolist(), self.plan.parties[place]
            self.rows[place] = {member: row for row, member in enumerate(members)}
            array_of(said.sealed, party, (len(members), SEALED_BYTES))
            array_of(said.digests, party, (len(members), DIGESTS_BYTES))
        return {self.plan.parties[place]: self._delivered(place) for place in shared}

    def _delivered(self, receiver: int) -> Delivered:
        senders = self._members(receiver)
        rows = [(self.shared[sender], self.rows[sender][receiver]) for sender in senders]
        sealed = np.stack([said.sealed[row] for said, row in rows])
        digests = np.stack([said.digests[row] for said, row in rows])
        return Delivered(self.plan.context, self.sharers, sealed, digests)

    def _members(self, place: int) -> list[int]:
        """Return those in a party's neighbourhood who shared, itself included."""
        return [member for member in self.rows[place] if member in self.shared]

    def tell_survivors(self, masked: dict[int, MaskedVector]) -> dict[Party, SumMessage]:
        """Say whose vectors arrived: whose sum it will be."""
        self.survivors, self.survived = places_of(masked), frozenset(masked)
        self.roster.check_left(self.sharers, self.survivors)
        shape, dtype = (self.plan.length,), self.plan.ring.dtype
        self.total = np.zeros(shape, dtype)
        for place, said in masked.items():
            self.total += array_of(said.values, self.plan.parties[place], shape, dtype)
        return self._to(self.survivors, Survivors(self.plan.context, self.survivors))

    def tell_confirmed(self, confirmed: dict[int, Confirmation]) -> dict[Party, SumMessage]:
        """Relay the survivors' signatures."""
        signers = places_of(confirmed)
        self.roster.check_left(self.sharers, signers)
        name = transcript(self.roster, self.sharers, self.survivors)
        for place, said in confirmed.items():
            party = self.plan.parties[place]
            if not is_signed(name, said.signature, self.plan.signing_keys[party]):
                raise FaultyPartyError(party, "did not sign the lists that it was told")
        signatures = as_rows([said.signature for said in confirmed.values()], SIGNATURE_BYTES)
        return self._to(signers, Confirmations(self.plan.context, signers, signatures))

    def open(self, revealed: dict[int, Revealed]) -> Sum:
        """Recover one seed of each sharer, and take the masks off."""
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

    def _shares(self, revealed: dict[int, Revealed]) -> dict[int, list[tuple[int, int]]]:
        """Return the shares of each sharer, as pairs of Shamir's place and value."""
        found: dict[int, list[tuple[int, int]]] = {place: [] for place in self.shared}
        for member, said in revealed.items():
            owners = self._members(member)
            rows = array_of(said.shares, self.plan.parties[member], (len(owners), SHARE_BYTES))
            for owner, row in zip(owners, rows, strict=True):
                share = row.tobytes()
                self._check_share(owner, member, share)
                found[owner].append((member + 1, int.from_bytes(share, "big")))
        return found

    def _check_share(self, owner: int, member: int, share: bytes) -> None:
        digests = self.shared[owner].digests[self.rows[owner][member]].tobytes()
        both = digests[:DIGEST_BYTES], digests[DIGEST_BYTES:]
        if digest_of(share) != both[owner in self.survived]:
            owner_name = self.plan.parties[owner]
            reason = f"revealed a share that {owner_name} did not give it, or of the other seed"
            raise FaultyPartyError(self.plan.parties[member], reason)

    def _masks_left_by(self, place: int, pair: KeyPair) -> Elements:
        """Return the masks that a party, who is gone, would have cancelled."""
        party = self.plan.parties[place]
        if pair.public != self.roster.mask_key(place):
            raise FaultyPartyError(party, "shared out what is not its key")
        neighbours = [member for member in self.rows[place] if member in self.survived]
        peers = {
            self.plan.parties[peer]: agree(
                pair, self.roster.mask_key(peer), "masking", self.plan.parties[peer]
            )
            for peer in neighbours
        }
        return pair_masks(self.plan, party, peers)

    def _checked(self, values: NDArray[np.int64]) -> Sum:
        limit, parties = len(self.survivors) * self.plan.bound, self.plan.parties_at(self.survivors)
        if np.any((values > limit) | (values < -limit)):
            raise UnknownFaultyPartyError(parties, "one of them sent a vector beyond the bound")
        return Sum(values, parties)
