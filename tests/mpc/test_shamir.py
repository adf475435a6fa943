import json
from itertools import combinations
from pathlib import Path

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.randomness import SeededRandomness
from vertibayes_mpc.shamir import PRIME, SHARE_BYTES, recover, split

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "shamir.json").read_text())
SECRETS = st.integers(0, 2**256 - 1) | st.sampled_from([0, 2**256 - 1, PRIME - 1])


def test_the_field():
    assert gmpy2.is_prime(PRIME, 50) and gmpy2.next_prime(2**256) == PRIME
    assert PRIME - 1 < 256**SHARE_BYTES


@given(st.data(), SECRETS, st.integers(1, 8), st.binary(max_size=4))
def test_any_threshold_of_shares_gives_the_secret_back(data, secret, threshold, seed):
    places = data.draw(
        st.lists(
            st.integers(1, 2000) | st.integers(1, PRIME - 1),
            min_size=threshold,
            max_size=threshold + 4,
            unique=True,
        )
    )
    shares = split(secret, threshold, places, SeededRandomness(seed))
    assert list(shares) == places
    chosen = data.draw(st.permutations(places))
    for count in range(threshold, len(places) + 1):
        assert recover({place: shares[place] for place in chosen[:count]}) == secret


@given(SECRETS, SECRETS, st.integers(2, 6), st.binary(max_size=4))
def test_fewer_shares_go_with_any_secret(secret, other, threshold, seed):
    """With one share more, of the right value, they give back whatever secret one likes."""
    shares = split(secret, threshold, range(1, threshold + 1), SeededRandomness(seed))
    last = shares.pop(threshold)
    if other != secret:
        weight = recover({**dict.fromkeys(shares, 0), threshold: 1})
        changed = (last + (other - secret) * pow(weight, -1, PRIME)) % PRIME
        assert changed != last
        last = changed
    assert recover({**shares, threshold: last}) == other


def test_fewer_shares_do_not_give_the_secret():
    shares = split(2**200, 3, range(1, 6), SeededRandomness())
    for few in combinations(shares, 2):
        assert recover({place: shares[place] for place in few}) != 2**200


def test_one_share_is_uniform_whatever_the_secret():
    randomness = SeededRandomness()
    for secret in (0, PRIME - 1):
        shares = [split(secret, 2, [1, 2], randomness)[2] for _ in range(3200)]
        counts = np.bincount([share * 16 // PRIME for share in shares], minlength=16)
        assert ((counts - 200) ** 2 / 200).sum() < 44  # 15 degrees, p = 1e-4


@pytest.mark.parametrize("vector", VECTORS["shares"], ids=lambda v: v["name"])
def test_known_shares(vector):
    shares = {int(place): int(share, 16) for place, share in vector["shares"].items()}
    secret, coefficients = int(vector["secret"], 16), [int(c, 16) for c in vector["coefficients"]]
    for place, share in shares.items():
        powers = [c * place**i for i, c in enumerate([secret, *coefficients])]
        assert share == sum(powers) % (2**256 + 297)
    for chosen in combinations(shares, len(coefficients) + 1):
        assert recover({place: shares[place] for place in chosen}) == secret


@pytest.mark.parametrize("vector", VECTORS["shares"], ids=lambda v: v["name"])
def test_known_draws(vector):
    """The coefficients are the draws of `uniform_below`, highest power last."""

    class Given:
        def __init__(self):
            self.left = [int(c, 16) for c in vector["coefficients"]]

        def bytes(self, count):
            return self.left.pop(0).to_bytes(count, "big")

    places = [int(place) for place in vector["shares"]]
    threshold = len(vector["coefficients"]) + 1
    shares = split(int(vector["secret"], 16), threshold, places, Given())
    assert {str(place): f"{share:x}" for place, share in shares.items()} == vector["shares"]


@pytest.mark.parametrize(
    ("secret", "threshold", "places", "reason"),
    [
        (-1, 1, [1], "must be an element"),
        (PRIME, 1, [1], "must be an element"),
        (1, 0, [1], "threshold must be from 1 to 1 .* got 0"),
        (1, 3, [1, 2], "threshold must be from 1 to 2 .* got 3"),
        (1, 1, [], "threshold must be from 1 to 0 .* got 1"),
        (1, 2, [1, 1], "must be distinct"),
        (1, 2, [0, 1], "from 1 to PRIME - 1"),
        (1, 2, [1, PRIME], "from 1 to PRIME - 1"),
    ],
)
def test_impossible_shares(secret, threshold, places, reason):
    with pytest.raises(ValueError, match=reason):
        split(secret, threshold, places, SeededRandomness())


@pytest.mark.parametrize("shares", [{}, {1: PRIME}, {1: -1}, {0: 1}, {PRIME: 1}])
def test_what_is_recovered_from_must_be_shares(shares):
    with pytest.raises(ValueError, match="must be"):
        recover(shares)
