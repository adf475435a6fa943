"""Seeds of a sum: independent, shared out with the plan's threshold, and sealed one way."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from tests.randomness import SeededRandomness
from tests.sums import Contributing, World
from tests.tampering import run_changing
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.masked_sum import Neighbourhood
from vertibayes_mpc.masked_sum.messages import Delivered, Shared
from vertibayes_mpc.masked_sum.seeds import Envelope, SeedShares
from vertibayes_mpc.randomness import KEY_BYTES, StreamKey
from vertibayes_mpc.shamir import SHARE_BYTES, recover


def given_out(contributing, owner):
    """Return the shares of both seeds of a party that its neighbours hold, by Shamir's place."""
    held = {
        member + 1: ours.shares[owner]
        for member, ours in contributing.parties.items()
        if owner in ours.shares
    }
    return [{x: int.from_bytes(both[i], "big") for x, both in held.items()} for i in range(2)]


@pytest.mark.parametrize(
    ("count", "neighbourhood"), [(6, Neighbourhood(5, 4)), (9, Neighbourhood(4, 3))]
)
def test_a_threshold_of_shares_recovers_a_seed_and_fewer_do_not(count, neighbourhood):
    contributing = Contributing(World(count, neighbourhood=neighbourhood))
    contributing.mask()
    threshold = neighbourhood.threshold
    for place, ours in contributing.parties.items():
        seeds = ours.mask_pair.private, ours.self_mask.secret
        for seed, shares in zip(seeds, given_out(contributing, place), strict=True):
            assert len(shares) == neighbourhood.degree + 1
            for size, opens in ((threshold - 1, False), (threshold, True)):
                for some in combinations(shares.items(), size):
                    assert (recover(dict(some)) == int.from_bytes(seed, "big")) is opens


def test_all_seeds_of_all_parties_are_drawn_apart():
    drawn = [
        secret
        for ours in Contributing(World(4)).parties.values()
        for secret in (ours.mask_pair.private, ours.seal_pair.private, ours.self_mask.secret)
    ]
    assert len(set(drawn)) == len(drawn) == 3 * 4


# ---- sealing -------------------------------------------------------------------------------------


def test_the_nonces_of_both_directions_differ():
    """Under one nonce, the same shares would be hidden by the same bytes."""
    key = StreamKey(SeededRandomness().bytes(KEY_BYTES))
    shares = SeedShares(bytes(SHARE_BYTES), bytes(SHARE_BYTES))
    ways = ("p", "q"), ("q", "p")
    hidden = {Envelope(b"sum", *way).seal(key, shares)[: 2 * SHARE_BYTES] for way in ways}
    assert len(hidden) == len(ways)


@pytest.mark.parametrize("other", [(b"next", "p", "q"), (b"sum", "q", "p"), (b"sum", "p", "r")])
def test_an_envelope_opens_in_its_sum_and_direction_alone(other):
    key = StreamKey(SeededRandomness().bytes(KEY_BYTES))
    shares = SeedShares(b"k" * SHARE_BYTES, b"b" * SHARE_BYTES)
    sealed = Envelope(b"sum", "p", "q").seal(key, shares)
    assert Envelope(b"sum", "p", "q").open(key, sealed, shares.digests, "aggregator") == shares
    with pytest.raises(UnknownFaultyPartyError, match="not sealed for this sum and receiver"):
        Envelope(*other).open(key, sealed, shares.digests, "aggregator")


def test_shares_reflected_to_who_sealed_them_are_refused():
    """The aggregator hands p02 what p02 sealed for p01, with its digests, as if p01 had sent it."""
    told = []

    def change(sent):
        if type(sent.message) is Shared and sent.sender == "p02":
            told.append(sent.message)
        if type(sent.message) is not Delivered or sent.receiver != "p02":
            return sent.message
        rows = {name: getattr(sent.message, name).copy() for name in ("sealed", "digests")}
        for name, array in rows.items():
            array[1] = getattr(told[0], name)[1]
        return replace(sent.message, **rows)

    with pytest.raises(UnknownFaultyPartyError, match="not sealed for this sum") as caught:
        run_changing(World(5).programs(), change)
    assert caught.value.parties == ("p01", "aggregator")
