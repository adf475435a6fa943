"""Powers, inverses and draws of big integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.randomness import SeededRandomness
from vertibayes_mpc import integers
from vertibayes_mpc.integers import invert, is_probable_prime, powmod, rsa_primes, uniform_below

numbers = st.integers(0, 2**300)


@given(numbers, st.integers(0, 2**200), st.integers(2, 2**256))
def test_powers_equal_pythons(base, exponent, modulus):
    assert powmod(base, exponent, modulus) == pow(base, exponent, modulus)


def test_powers_without_gmpy2_are_the_same(monkeypatch):
    with_it = powmod(3, 2**200 + 1, 2**255 - 19)
    monkeypatch.setattr(integers, "_gmpy2", None)
    assert powmod(3, 2**200 + 1, 2**255 - 19) == with_it


def test_a_negative_exponent_inverts():
    assert powmod(7, -2, 101) * 49 % 101 == 1
    with pytest.raises(ValueError, match="no inverse"):
        invert(6, 9)


@given(st.integers(1, 2**100), st.binary(max_size=4))
def test_draws_lie_below_their_bound(bound, seed):
    assert 0 <= uniform_below(bound, SeededRandomness(seed)) < bound


def test_a_bound_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        uniform_below(0, SeededRandomness())


def test_primes_have_the_size_asked_for():
    p, q = rsa_primes(2048)
    assert p != q and (p * q).bit_length() == 2048
    with pytest.raises(ValueError, match="got 1024"):
        rsa_primes(1024)


def test_primes_are_told_from_composites():
    sieve = [n for n in range(2, 2000) if all(n % d for d in range(2, n))]
    assert [n for n in range(-3, 2000) if is_probable_prime(n)] == sieve
    assert is_probable_prime(2**521 - 1)
    for composite in (2**1031 - 1, 561, 3215031751, (2**61 - 1) * (2**89 - 1)):
        assert not is_probable_prime(composite)
