"""A party's side of a sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import (
    DealReusedError,
    FaultyPartyError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.masked_sum.messages import (
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
    as_rows,
    expected,
    list_of,
    of_sum,
)
from vertibayes_mpc.masked_sum.plan import SumPlan
from vertibayes_mpc.masked_sum.roster import Roster, keys_label, transcript
from vertibayes_mpc.masked_sum.seeds import (
    Envelope,
    SeedShares,
    agree,
    own_mask,
    pair_masks,
    split_seeds,
)
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, Randomness, StreamKey
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program, exchange, send
from vertibayes_mpc.shamir import SHARE_BYTES
from vertibayes_mpc.sharing import checked
from vertibayes_mpc.signing import SIGNATURE_BYTES, SigningKey, is_signed

SIGNATURES_CHECKED = 32  # of a list that is too long to check them all; see `Contribution.reveal`

M = TypeVar("M", bound=SumMessage)


@dataclass
class Member:
    """A party that takes part in sums: its long-term key, and the names of its sums so far.

    The names are kept in memory only: to refuse a name after a restart, the caller stores them
    before it sends a sum's first message.
    """

    party: Party
    signing: SigningKey = field(repr=False)  # its long-term key
    names: set[bytes] = field(default_factory=set)

    def enter(self, plan: SumPlan) -> None:
        """Note a sum before its first message; a DealReusedError if its name was used before."""
        if plan.signing_keys.get(self.party) != self.signing.public:
            raise ValueError(f"the plan does not have the public key of {self.party}")
        if plan.name in self.names:
            raise DealReusedError(f"{self.party} already took part in a sum of this name")
        self.names.add(plan.name)


def contribute(
    member: Member,
    plan: SumPlan,
    values: NDArray[np.integer],
    aggregator: Party,
    randomness: Randomness,
) -> Program[tuple[Party, ...]]:
    """Add a vector to a sum: 5 rounds.

    `values` are integers from ``-plan.bound`` to ``plan.bound``, of shape (plan.length,);
    `aggregator` runs `collect`. Returns whose sum it is: the survivors, on whom they and this party
    agree. A ValueError says that a value is beyond the bound, or the plan does not have this
    party's key; a DealReusedError, that the member took part in a sum of this name. A ProtocolError
    names the aggregator or a neighbour that does not follow the protocol; this party has then
    revealed no share.
    """
    elements = plan.encode(values)
    member.enter(plan)
    ours = Contribution(plan, member, aggregator, randomness)
    return (yield from ours.converse(elements))


class Contribution:
    """A party's keys and what it received, from round to round; each method is an answer."""

    def __init__(
        self, plan: SumPlan, member: Member, aggregator: Party, randomness: Randomness
    ) -> None:
        self.plan, self.member = plan, member
        self.aggregator, self.randomness = aggregator, randomness
        self.me = plan.place(member.party)
        self.mask_pair, self.seal_pair = (KeyPair.generate(randomness) for _ in range(2))
        self.self_mask = StreamKey(randomness.bytes(KEY_BYTES))
        self.seal_keys: dict[int, StreamKey] = {}
        self.shares: dict[int, SeedShares] = {}
        self.roster: Roster
        self.sharers: Places
        self.survivors: Places

    def converse(self, elements: Elements) -> Program[tuple[Party, ...]]:
        """Answer the aggregator round by round; return whose sum it is."""
        keys = yield from self._ask(self.advertise(), Keys)
        delivered = yield from self._ask(self.share(keys), Delivered)
        survivors = yield from self._ask(self.mask(delivered, elements), Survivors)
        confirmations = yield from self._ask(self.confirm(survivors), Confirmations)
        yield from send({self.aggregator: self.reveal(confirmations)})
        return tuple(self.plan.parties[place] for place in self.survivors)

    def _ask(self, message: SumMessage, kind: type[M]) -> Program[M]:
        expect = {self.aggregator: expected(kind, self.plan)}
        answer = (yield from exchange({self.aggregator: message}, expect))[self.aggregator]
        return of_sum(answer, self.aggregator, self.plan)

    def advertise(self) -> Advertisement:
        """Round 1: fresh public keys, signed."""
        keys = self.mask_pair.public, self.seal_pair.public
        signed = keys_label(self.plan, self.member.party, b"".join(keys))
        return Advertisement(self.plan.label, *keys, self.member.signing.sign(signed))

    def share(self, keys: Keys) -> Shared:
        """Round 2: a share of both seeds to each member of the neighbourhood."""
        self.roster = Roster(self.plan, keys, self.aggregator)
        self._check_named(self.roster.places)
        members = self.roster.circle.around(self.me).tolist()
        self.roster.check_keys(members, self.aggregator)
        relayed = self.roster.mask_key(self.me), self.roster.seal_key(self.me)
        if relayed != (self.mask_pair.public, self.seal_pair.public):
            raise ReplayedMessageError(self.aggregator, f"sent old keys of {self.member.party}")
        threshold = self.plan.neighbourhood.threshold
        seeds = self.mask_pair.private, self.self_mask.secret
        shares = split_seeds(*seeds, threshold, members, self.randomness)
        sealed = [self._seal(*item) for item in zip(members, shares, strict=True)]
        return Shared(
            self.plan.label,
            as_rows(sealed, SEALED_BYTES),
            as_rows([both.digests for both in shares], DIGESTS_BYTES),
        )

    def _seal(self, place: int, shares: SeedShares) -> bytes:
        party, public = self.plan.parties[place], self.roster.seal_key(place)
        self.seal_keys[place] = agree(self.seal_pair, public, "sealing", party)
        envelope = Envelope(self.plan.label, self.member.party, party)
        return envelope.seal(self.seal_keys[place], shares)

    def mask(self, delivered: Delivered, elements: Elements) -> MaskedVector:
        """Round 3: the vector under its own mask and the masks with all neighbours who shared."""
        self.sharers = list_of(delivered.sharers, self.aggregator, self.roster.places)
        self._check_named(self.sharers)
        self.roster.check_left(self.sharers, self.sharers)
        members = np.intersect1d(self.roster.circle.around(self.me), self.sharers).tolist()
        sealed = checked(delivered.sealed, self.aggregator, (len(members), SEALED_BYTES), np.uint8)
        digests = checked(
            delivered.digests, self.aggregator, (len(members), DIGESTS_BYTES), np.uint8
        )
        for place, piece, digest in zip(members, sealed, digests, strict=True):
            envelope = Envelope(self.plan.label, self.plan.parties[place], self.member.party)
            pieces = piece.tobytes(), digest.tobytes()
            self.shares[place] = envelope.open(self.seal_keys[place], *pieces, self.aggregator)
        others = (place for place in members if place != self.me)
        peers = {self.plan.parties[place]: self._mask_key(place) for place in others}
        masks = pair_masks(self.plan, self.member.party, peers)
        masks += own_mask(self.plan, self.self_mask)
        return MaskedVector(self.plan.label, elements + masks)

    def _mask_key(self, place: int) -> StreamKey:
        party = self.plan.parties[place]
        return agree(self.mask_pair, self.roster.mask_key(place), "masking", party)

    def confirm(self, survivors: Survivors) -> Confirmation:
        """Round 4: a signature on who advertised, who shared, and whose vectors arrived."""
        self.survivors = list_of(survivors.survivors, self.aggregator, self.sharers)
        self._check_named(self.survivors)
        self.roster.check_left(self.sharers, self.survivors)
        signature = self.member.signing.sign(self._transcript)
        return Confirmation(self.plan.label, signature)

    def reveal(self, confirmations: Confirmations) -> Revealed:
        """Round 5: a share of the self-mask of each neighbour who survived, of the others' keys.

        An aggregator with two lists of survivors has signatures of less than a quorum for one of
        them. A party that checks `SIGNATURES_CHECKED` signatures of its choice almost always
        detects a wrong one; to reveal anything, a threshold of parties must not detect any.
        """
        signers = list_of(confirmations.signers, self.aggregator, self.survivors)
        self.roster.check_left(self.sharers, signers)
        shape = len(signers), SIGNATURE_BYTES
        signatures = checked(confirmations.signatures, self.aggregator, shape, np.uint8)
        for row in self._choice(len(signers)):
            self._check_confirmed(int(signers[row]), signatures[row].tobytes())
        shares = [
            both.self_mask if place in self.survivors else both.key
            for place, both in self.shares.items()
        ]
        return Revealed(self.plan.label, as_rows(shares, SHARE_BYTES))

    def _choice(self, count: int) -> NDArray[np.intp]:
        """Choose signatures to check: all in a complete graph, some at random in others."""
        if len(self.plan.parties) == self.plan.neighbourhood.degree + 1:
            return np.arange(count)
        draws = np.frombuffer(self.randomness.bytes(8 * count), np.uint64)
        return np.argsort(draws)[:SIGNATURES_CHECKED]

    def _check_confirmed(self, place: int, signature: bytes) -> None:
        party = self.plan.parties[place]
        if not is_signed(self._transcript, signature, self.plan.signing_keys[party]):
            reason = f"sent lists to {self.member.party} that {party} did not sign"
            raise FaultyPartyError(self.aggregator, reason)

    @property
    def _transcript(self) -> bytes:
        return transcript(self.roster, self.sharers, self.survivors)

    def _check_named(self, places: Places) -> None:
        if self.me not in places:
            reason = f"continues with {self.member.party}, who is not in its list"
            raise UnexpectedMessageError(self.aggregator, reason)
