"""Paillier: encryption by anybody and by the owner, what is done to ciphertexts."""

import json
import math
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mpc.test_moduli import EASY
from tests.paillier_worlds import PRIMES, Draws, small_key
from tests.randomness import SeededRandomness
from vertibayes_mpc import integers
from vertibayes_mpc.additive_scheme.scheme import RSA_2048
from vertibayes_mpc.paillier import PrivateKey, PublicKey, keys
from vertibayes_mpc.paillier.residues import Residues, primitive_base

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "paillier.json").read_text())
KEY = small_key()
N = KEY.public.modulus
plaintexts = st.lists(st.integers(0, N - 1) | st.sampled_from([0, 1, N - 1]), max_size=4)
seeds = st.binary(max_size=4)


# ---- encryption ----------------------------------------------------------------------------------


@given(plaintexts, seeds)
def test_what_is_encrypted_is_decrypted(values, seed):
    for key in (KEY, KEY.public):
        ciphertexts = key.encrypt(values, SeededRandomness(seed))
        assert KEY.decrypt(ciphertexts) == values
        KEY.public.check_ciphertexts(ciphertexts)


@given(st.integers(0, N - 1), st.data())
def test_the_owner_encrypts_what_the_textbook_does(value, data):
    """(1 + N)^m r^N, where r is a power of the base modulo p, and of the other base modulo q."""
    p, q = KEY.p, KEY.q
    a, b = (data.draw(st.integers(0, r - 2)) for r in (p, q))
    (ciphertext,) = KEY.encrypt([value], Draws(a, b))
    for r, exponent in ((p, a), (q, b)):
        residue = pow(primitive_base(r), r * exponent, r * r)
        assert ciphertext % (r * r) == pow(1 + N, value, r * r) * residue % (r * r)


def test_the_owner_draws_from_all_randomizers_alike():
    """Over all exponents each ciphertext comes once, as over all r in Z_N^*."""
    key = small_key(6)
    n = key.public.modulus
    for value in (0, 1, 17, 34):
        ours = [key.encrypt([value], Draws(a, b))[0] for a in range(4) for b in range(6)]
        units = [r for r in range(n) if math.gcd(r, n) == 1]
        assert sorted(ours) == sorted((1 + value * n) * pow(r, n, n * n) % n**2 for r in units)


def test_odd_randomizers_stay_alike_under_powers():
    """Over all exponents each of odd order comes equally often, also squared or made a zero."""
    key = small_key(6)
    n, public = key.public.modulus, key.public
    odd = {pow(r, 4 * n, n * n) for r in range(n) if math.gcd(r, n) == 1}  # 4 divides 5 - 1
    for value in (0, 1, 17, 34):
        ours = [key.encrypt_odd([value], Draws(a, b))[0] for a in range(4) for b in range(6)]
        for bits in range(4):
            expected = {(1 + (value << bits) * n) * r % n**2: 8 for r in odd}
            assert Counter(public.shift(c, bits) for c in ours) == expected
        assert Counter(map(public.zero, ours)) == dict.fromkeys(odd, 8)


def test_a_base_that_is_a_power_would_leave_randomizers_out():
    with patch("vertibayes_mpc.paillier.residues.primitive_base", lambda prime: 4):
        key = small_key(6)
        ours = {key.encrypt([0], Draws(a, b))[0] for a in range(4) for b in range(6)}
    assert len(ours) == 6


@pytest.mark.parametrize("prime", [3, 5, 7, 11, 13, 257, 65537, *PRIMES[128]])
def test_a_base_is_no_power_modulo_a_small_factor(prime):
    base = primitive_base(prime)
    for factor in [f for f in range(2, 1000) if (prime - 1) % f == 0]:
        assert pow(base, (prime - 1) // factor, prime) != 1
    if prime < 1000:
        assert len({pow(base, k, prime) for k in range(prime - 1)}) == prime - 1


def test_many_are_encrypted_as_one_by_one():
    residues = Residues(*PRIMES[128])
    draws = {7: 3, 8: 2**60, 9: 0, 10: 2**62 + 1}
    together = residues.encrypt(list(draws), Draws(*draws.values()))
    assert together == [residues.encrypt([m], Draws(a))[0] for m, a in draws.items()]


def test_a_randomizer_shares_no_factor_with_the_modulus():
    key = small_key(6)
    (ciphertext,) = key.public.encrypt([3], Draws(0, 5, 14, 2))
    assert ciphertext == (1 + 3 * 35) * pow(2, 35, 35**2) % 35**2


def test_two_encryptions_differ():
    randomness = SeededRandomness()
    for key in (KEY, KEY.public):
        assert len(set(key.encrypt([5] * 20, randomness))) == 20


def test_without_gmpy2_all_is_the_same(monkeypatch):
    with_it = KEY.encrypt([1, N - 1], SeededRandomness())
    monkeypatch.setattr(integers, "_gmpy2", None)
    key = small_key()
    assert key.encrypt([1, N - 1], SeededRandomness()) == with_it
    assert key.decrypt(with_it) == [1, N - 1]
    assert key.decrypt(key.public.encrypt([4], SeededRandomness())) == [4]
    assert all(type(c) is int for c in key.encrypt([4], SeededRandomness()))


@pytest.mark.parametrize("vector", VECTORS["encryptions"], ids=lambda v: v["name"])
def test_known_ciphertexts(vector):
    """At full size; each is computed a second time by plain arithmetic."""
    p, q = (int(VECTORS[name], 16) for name in "pq")
    n, value = p * q, int(vector["plaintext"], 16)
    wanted, draws = int(vector["ciphertext"], 16), [int(d, 16) for d in vector["draws"]]
    key = PrivateKey(p, q)
    if len(draws) == 1:
        assert (1 + value * n) * pow(draws[0], n, n**2) % n**2 == wanted
        assert key.public.encrypt([value], Draws(*draws)) == [wanted]
    else:
        for r, base, exponent in zip((p, q), VECTORS["bases"], draws, strict=True):
            assert wanted % r**2 == (1 + value * n) * pow(base, r * exponent, r**2) % r**2
        assert key.encrypt([value], Draws(*draws)) == [wanted]
    assert key.decrypt([wanted]) == [value]


# ---- keys ----------------------------------------------------------------------------------------


def test_a_drawn_key_has_the_size_asked_for():
    key = PrivateKey.generate()
    assert key.public.bits == 2048
    assert key.decrypt(key.public.encrypt([5], SeededRandomness())) == [5]
    with pytest.raises(ValueError, match="got 1024"):
        PrivateKey.generate(1024)


def test_short_keys_are_refused():
    for make in (lambda: PublicKey(N), lambda: PrivateKey(KEY.p, KEY.q)):
        with pytest.raises(ValueError, match="at least 2048 bits, got 256"):
            make()
    with pytest.raises(ValueError, match="got 2047"):
        PublicKey(2**2047 - 1)
    assert PublicKey(RSA_2048).bits == 2048


@pytest.mark.parametrize(
    ("p", "q", "reason"),
    [
        (7, 7, "two different odd primes"),
        (2, 7, "two different odd primes"),
        (15, 7, "two different odd primes"),
        (-5, 7, "two different odd primes"),
        (3, 7, "must have the same length"),
        (2**31 - 1, 2**31 + 11, "must have the same length"),
    ],
)
def test_primes_that_make_no_key_are_refused(p, q, reason, monkeypatch):
    monkeypatch.setattr(keys, "FEWEST_BITS", 0)
    with pytest.raises(ValueError, match=reason):
        PrivateKey(p, q)


@pytest.mark.parametrize(("modulus", "reason"), EASY)
def test_a_modulus_that_is_easy_to_factor_is_refused(modulus, reason):
    with pytest.raises(ValueError, match=reason):
        PublicKey(modulus)


def test_nothing_secret_in_a_repr():
    for value in (KEY, KEY.public):
        assert str(KEY.p) not in repr(value) and str(KEY.q) not in repr(value)
    assert repr(KEY) == "PrivateKey()"


# ---- what is done to ciphertexts -----------------------------------------------------------------


@given(plaintexts, st.integers(0, 300), seeds)
def test_sums_and_powers(values, bits, seed):
    randomness, public = SeededRandomness(seed), KEY.public
    a = KEY.encrypt(values, randomness)
    b = public.encrypt([5] * len(values), randomness)
    assert KEY.decrypt(public.add(a, b)) == [(v + 5) % N for v in values]
    assert KEY.decrypt([public.shift(c, bits) for c in a]) == [(v << bits) % N for v in values]
    zeros = [public.zero(c) for c in a]
    assert KEY.decrypt(zeros) == [0] * len(values) and not set(zeros) & set(a)


def test_new_ciphertexts_of_the_same():
    old = KEY.encrypt([0, 1, N - 1], SeededRandomness())
    new = KEY.public.rerandomize(old, SeededRandomness(b"other"))
    assert KEY.decrypt(new) == [0, 1, N - 1]
    assert not set(old) & set(new)
    # A factor 1 + kN would leave these residues as they are.
    assert not {c % N for c in old} & {c % N for c in new}


def test_vectors_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="zip"):
        KEY.public.add([1], [])


@pytest.mark.parametrize("bad", [-1, N, N + 5])
def test_plaintexts_out_of_range_are_refused(bad):
    for key in (KEY, KEY.public):
        with pytest.raises(ValueError, match="plaintext 1 lies outside") as caught:
            key.encrypt([0, bad], SeededRandomness())
        assert str(bad) not in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (0, "1 lies outside"),
        (-3, "1 lies outside"),
        (N * N, "1 lies outside"),
        (N, "1 is not coprime"),
        (KEY.p, "1 is not coprime"),
        (KEY.q * 12, "1 is not coprime"),
    ],
)
def test_what_is_no_ciphertext_is_refused(bad, reason):
    good = KEY.encrypt([1, 2], SeededRandomness())
    with pytest.raises(ValueError, match=reason):
        KEY.decrypt([good[0], bad, good[1]])
