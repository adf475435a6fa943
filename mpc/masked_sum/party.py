"""A party's side of a sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc.errors import (
    DealReusedError,
    FaultyPartyError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from mpc.masked_sum.masks import own_mask, pair_masks
from mpc.masked_sum.messages import (
    DIGESTS_BYTES,
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
    list_of,
    of_sum,
)
from mpc.masked_sum.plan import SumPlan
from mpc.masked_sum.roster import Roster, keys_label, transcript
from mpc.masked_sum.seeds import Envelope, SeedShares, agree, split_seeds
from mpc.randomness import KEY_BYTES, KeyPair, Randomness, StreamKey
from mpc.ring import Elements
from mpc.rounds import Party, Program, Round
from mpc.shamir import SHARE_BYTES
from mpc.signing import SIGNATURE_BYTES, SigningKey, is_signed

SIGNATURES_CHECKED = 32  # of a list too long to check them all; see `Contribution.reveal`

M = TypeVar("M", bound=SumMessage)


@dataclass
class Member:
    """A party that takes part in sums: its long-term key, and the names of its sums so far.

    Parameters
    ----------
    party : Party
    signing : SigningKey
    names : set of bytes, optional
        Of the sums that it took part in. Kept in memory alone: to refuse a name after a restart,
        the caller stores them before a sum's first message leaves, and begins with them.
    """

    party: Party
    signing: SigningKey = field(repr=False)
    names: set[bytes] = field(default_factory=set)

    def enter(self, plan: SumPlan) -> None:
        """Note a sum before its first message.

        Raises
        ------
        DealReusedError
            If it took part in a sum of this name.
        ValueError
            If the plan has another public key for it, or none.
        """
        if plan.signing_keys.get(self.party) != self.signing.public:
            raise ValueError(f"the plan has not the public key of {self.party}")
        if plan.name in self.names:
            raise DealReusedError(f"{self.party} took part in a sum of this name")
        self.names.add(plan.name)


def contribute(
    member: Member,
    plan: SumPlan,
    values: NDArray[np.integer],
    server: Party,
    randomness: Randomness,
) -> Program[tuple[Party, ...]]:
    """Add one's vector to a sum: 5 rounds.

    Parameters
    ----------
    member : Member
    plan : SumPlan
    values : ndarray of shape (plan.length,), any integers
        From ``-plan.bound`` to ``plan.bound``.
    server : Party
        Who runs `collect`.
    randomness : Randomness

    Returns
    -------
    parties : tuple of Party
        Whose sum it is: those who agreed with this party on who they are.

    Raises
    ------
    ValueError
        If a value is beyond the bound, or the plan has not this party's key.
    DealReusedError
        If the member took part in a sum of this name.
    ProtocolError
        If the server, or a neighbour, does not follow the protocol; it is named. This party has
        then revealed no share.
    """
    elements = plan.encode(values)
    member.enter(plan)
    ours = Contribution(plan, member, server, randomness)
    return (yield from ours.converse(elements))


class Contribution:
    """A party's keys and what it was told, from round to round; each method answers the server.

    Parameters
    ----------
    plan : SumPlan
    member : Member
    server : Party
    randomness : Randomness
    """

    def __init__(
        self, plan: SumPlan, member: Member, server: Party, randomness: Randomness
    ) -> None:
        self.plan, self.member, self.server, self.randomness = plan, member, server, randomness
        self.me = plan.place(member.party)
        self.mask_pair, self.seal_pair = (KeyPair.generate(randomness) for _ in range(2))
        self.self_mask = StreamKey(randomness.bytes(KEY_BYTES))
        self.seal_keys: dict[int, StreamKey] = {}
        self.shares: dict[int, SeedShares] = {}
        self.roster: Roster
        self.sharers: Places
        self.survivors: Places

    def converse(self, elements: Elements) -> Program[tuple[Party, ...]]:
        """Answer the server round by round; return whose sum it is."""
        keys = yield from self._ask(self.advertise(), Keys)
        delivered = yield from self._ask(self.share(keys), Delivered)
        survivors = yield from self._ask(self.mask(delivered, elements), Survivors)
        confirmations = yield from self._ask(self.confirm(survivors), Confirmations)
        yield Round({self.server: self.reveal(confirmations)}, {})
        return tuple(self.plan.parties[place] for place in self.survivors)

    def _ask(self, message: SumMessage, kind: type[M]) -> Program[M]:
        answer = yield Round({self.server: message}, {self.server: expected(kind, self.plan)})
        return of_sum(answer[self.server], kind, self.server, self.plan)

    def advertise(self) -> Advertisement:
        """Round 1: fresh public keys, signed."""
        keys = self.mask_pair.public, self.seal_pair.public
        name = keys_label(self.plan, self.member.party, b"".join(keys))
        return Advertisement(self.plan.context, *keys, self.member.signing.sign(name))

    def share(self, keys: Keys) -> Shared:
        """Round 2: a share of both seeds to each member of the neighbourhood."""
        self.roster = Roster(self.plan, keys, self.server)
        self._check_named(self.roster.places)
        members = self.roster.circle.around(self.me).tolist()
        self.roster.check_keys(members, self.server)
        told = self.roster.mask_key(self.me), self.roster.seal_key(self.me)
        if told != (self.mask_pair.public, self.seal_pair.public):
            raise ReplayedMessageError(self.server, f"told old keys of {self.member.party}")
        threshold = self.plan.neighbourhood.threshold
        seeds = self.mask_pair.private, self.self_mask.secret
        shares = split_seeds(*seeds, threshold, members, self.randomness)
        sealed = [self._seal(*item) for item in zip(members, shares, strict=True)]
        return Shared(
            self.plan.context,
            as_rows(sealed, SEALED_BYTES),
            as_rows([both.digests for both in shares], DIGESTS_BYTES),
        )

    def _seal(self, place: int, shares: SeedShares) -> bytes:
        party, public = self.plan.parties[place], self.roster.seal_key(place)
        self.seal_keys[place] = agree(self.seal_pair, public, "sealing", party)
        envelope = Envelope(self.plan.context, self.member.party, party)
        return envelope.seal(self.seal_keys[place], shares)

    def mask(self, delivered: Delivered, elements: Elements) -> MaskedVector:
        """Round 3: the vector under its own mask, and those with all neighbours who shared."""
        self.sharers = list_of(delivered.sharers, self.server, self.roster.places)
        self._check_named(self.sharers)
        self.roster.check_left(self.sharers, self.sharers)
        members = np.intersect1d(self.roster.circle.around(self.me), self.sharers).tolist()
        sealed = array_of(delivered.sealed, self.server, (len(members), SEALED_BYTES))
        digests = array_of(delivered.digests, self.server, (len(members), DIGESTS_BYTES))
        for place, piece, digest in zip(members, sealed, digests, strict=True):
            envelope = Envelope(self.plan.context, self.plan.parties[place], self.member.party)
            pieces = piece.tobytes(), digest.tobytes()
            self.shares[place] = envelope.open(self.seal_keys[place], *pieces, self.server)
        others = (place for place in members if place != self.me)
        peers = {self.plan.parties[place]: self._mask_key(place) for place in others}
        masks = pair_masks(self.plan, self.member.party, peers)
        masks += own_mask(self.plan, self.self_mask)
        return MaskedVector(self.plan.context, elements + masks)

    def _mask_key(self, place: int) -> StreamKey:
        party = self.plan.parties[place]
        return agree(self.mask_pair, self.roster.mask_key(place), "masking", party)

    def confirm(self, survivors: Survivors) -> Confirmation:
        """Round 4: a signature on who advertised, who shared, and whose vectors arrived."""
        self.survivors = list_of(survivors.survivors, self.server, self.sharers)
        self._check_named(self.survivors)
        self.roster.check_left(self.sharers, self.survivors)
        signature = self.member.signing.sign(self._transcript)
        return Confirmation(self.plan.context, signature)

    def reveal(self, confirmations: Confirmations) -> Revealed:
        """Round 5: of each neighbour who survived a share of its self-mask; of the others, the key.

        A server with two lists of survivors has signatures of less than a quorum for one of them:
        a party that checks `SIGNATURES_CHECKED` of its own choice finds one amiss, nearly always,
        and to open anything it takes a threshold of parties who do not.
        """
        signers = list_of(confirmations.signers, self.server, self.survivors)
        self.roster.check_left(self.sharers, signers)
        shape = len(signers), SIGNATURE_BYTES
        signatures = array_of(confirmations.signatures, self.server, shape)
        for row in self._choice(len(signers)):
            self._check_confirmed(int(signers[row]), signatures[row].tobytes())
        shares = [
            both.self_mask if place in self.survivors else both.key
            for place, both in self.shares.items()
        ]
        return Revealed(self.plan.context, as_rows(shares, SHARE_BYTES))

    def _choice(self, count: int) -> NDArray[np.intp]:
        """Choose signatures to check: all in a complete graph, else some at random."""
        if len(self.plan.parties) == self.plan.neighbourhood.degree + 1:
            return np.arange(count)
        draws = np.frombuffer(self.randomness.bytes(8 * count), np.uint64)
        return np.argsort(draws)[:SIGNATURES_CHECKED]

    def _check_confirmed(self, place: int, signature: bytes) -> None:
        party = self.plan.parties[place]
        if not is_signed(self._transcript, signature, self.plan.signing_keys[party]):
            reason = f"told lists to {self.member.party} that {party} did not sign"
            raise FaultyPartyError(self.server, reason)

    @property
    def _transcript(self) -> bytes:
        return transcript(self.roster, self.sharers, self.survivors)

    def _check_named(self, places: Places) -> None:
        if self.me not in places:
            raise UnexpectedMessageError(
                self.server, f"goes on with {self.member.party}, who is not in its list"
            )
