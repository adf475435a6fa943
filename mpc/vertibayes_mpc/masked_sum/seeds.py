"""A party's seeds, shared with its neighbourhood: sealed, and identified by digests.

The aggregator keeps the digests of all shares. Errors name a party that reveals a share that it did
not receive, and a party that shared out anything but its key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from vertibayes_mpc.errors import FaultyPartyError, MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.masked_sum.plan import SumPlan
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, Randomness, Stream, StreamKey, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.shamir import SHARE_BYTES, recover, split
from vertibayes_mpc.sharing import zero_share

NONCE_BYTES = 12


class SeedShares(NamedTuple):
    """One member's shares of a party's two seeds: the member reveals one of them, never both."""

    key: bytes
    self_mask: bytes

    def __repr__(self) -> str:
        return "SeedShares()"

    @property
    def digests(self) -> bytes:
        """The digests of both shares; they hide them, since shares are uniform."""
        return b"".join(map(digest_of, self))


def digest_of(share: bytes) -> bytes:
    """Return the digest of a share."""
    return hashlib.sha256(share).digest()


def split_seeds(
    key: bytes, self_mask: bytes, threshold: int, places: list[int], randomness: Randomness
) -> list[SeedShares]:
    """Share both seeds out to the parties at some places."""
    numbers = [place + 1 for place in places]
    halves = []
    for seed in (key, self_mask):
        shares = split(int.from_bytes(seed, "big"), threshold, numbers, randomness)
        halves.append([shares[number].to_bytes(SHARE_BYTES, "big") for number in numbers])
    return [SeedShares(*both) for both in zip(*halves, strict=True)]


def agree(pair: KeyPair, public: bytes, purpose: str, peer: Party) -> StreamKey:
    """Agree on a key, or blame the peer for an invalid public key."""
    try:
        return pair.agree(public, purpose)
    except ValueError:
        raise MalformedMessageError(peer, f"an invalid public key for {purpose}") from None


class Envelope(NamedTuple):
    """From whom, to whom, in which sum: what a sealed message is bound to."""

    label: bytes
    sender: Party
    receiver: Party

    def seal(self, key: StreamKey, shares: SeedShares) -> bytes:
        """Seal shares (ChaCha20-Poly1305, RFC 8439)."""
        # Each of the two parties of a key seals one message: their nonces differ.
        bound = label("seal", *self)
        return ChaCha20Poly1305(key.secret).encrypt(bound[:NONCE_BYTES], b"".join(shares), bound)

    def open(self, key: StreamKey, sealed: bytes, digests: bytes, relay: Party) -> SeedShares:
        """Open shares, or blame their sender and the relay: one of them is at fault."""
        bound = label("seal", *self)
        try:
            both = ChaCha20Poly1305(key.secret).decrypt(bound[:NONCE_BYTES], sealed, bound)
        except InvalidTag:
            reason = f"shares of {self.sender} are not sealed for this sum and receiver"
            raise UnknownFaultyPartyError((self.sender, relay), reason) from None
        shares = SeedShares(both[:SHARE_BYTES], both[SHARE_BYTES:])
        if shares.digests != digests:
            reason = f"shares of {self.sender} do not have the digests that came with them"
            raise UnknownFaultyPartyError((self.sender, relay), reason)
        return shares


def seed_of(shares: Mapping[int, int], party: Party) -> bytes:
    """Recover a seed, or blame the party that shared out something else."""
    try:
        return recover(shares).to_bytes(KEY_BYTES, "big")
    except (ValueError, OverflowError):  # a share, or the secret, is out of range
        raise FaultyPartyError(party, "shared out a number that is not a seed") from None


def pair_masks(plan: SumPlan, party: Party, peers: Mapping[Party, Stream]) -> Elements:
    """Return the sum of a party's masks with its neighbours."""
    return zero_share(party, peers, plan.ring, label("pair mask", plan.label), plan.length)


def own_mask(plan: SumPlan, seed: Stream) -> Elements:
    """Return a party's self-mask."""
    return seed.elements(plan.ring, label("self mask", plan.label), (plan.length,))
