"""Public moduli: some that anybody factors in moments are refused; one of two primes is not."""

import math
from itertools import count

import pytest

from vertibayes_mpc import moduli
from vertibayes_mpc.additive_scheme.scheme import RSA_2048
from vertibayes_mpc.integers import is_probable_prime, rsa_primes
from vertibayes_mpc.moduli import check_modulus

PRIME = 2**1279 - 1
LARGE = 2**2203 - 1  # Mersenne's primes


def smooth_prime(bits=1040):
    """Return a prime p of which p - 1 has factors below 5,000 alone, none of them twice."""
    factors = [n for n in range(3, 5000, 2) if is_probable_prime(n)]
    product, at = 2, 0
    while product.bit_length() < bits - 12:
        product *= factors[(at := at + 1)]
    return next(p for n in factors[at + 1 :] if is_probable_prime(p := product * n + 1))


def next_prime(value):
    return next(p for p in count(value | 1, 2) if is_probable_prime(p))


NEXT = next_prime(PRIME + 2)

EASY = [
    pytest.param(2**2048 - 2, "is even or a prime", id="even"),
    pytest.param(LARGE, "is even or a prime", id="prime"),
    pytest.param(PRIME**2, "is a power of an integer", id="square"),
    pytest.param((2**521 - 1) ** 5, "is a power of an integer", id="fifth power"),
    pytest.param(PRIME * LARGE * 16381, "has a factor below 16384", id="small factor"),
    pytest.param(smooth_prime() * PRIME, "of which p - 1 has small factors alone", id="smooth"),
    pytest.param(PRIME * NEXT, "two factors that are close", id="close"),
    pytest.param(PRIME * next_prime(3 * PRIME // 2), "to a simple ratio", id="ratio"),
]


@pytest.mark.parametrize(("modulus", "reason"), EASY)
def test_a_modulus_that_is_easy_to_factor_is_refused(modulus, reason):
    with pytest.raises(ValueError, match=reason):
        check_modulus(modulus, 2048)


def test_moduli_of_two_large_primes_pass():
    for modulus in (RSA_2048, PRIME * LARGE, math.prod(rsa_primes(2048))):
        check_modulus(modulus, 2048)
    with pytest.raises(ValueError, match="at least 2049 bits, got 2048"):
        check_modulus(RSA_2048, 2049)


def test_a_factor_of_40_bits_is_not_found():
    """As the page says: whoever makes such a modulus gives its secrets away."""
    check_modulus(next_prime(2**40 - 2**38) * LARGE, 2048)


def test_whoever_is_not_refused_a_smooth_modulus_reads_its_factors():
    """The attack that the last check anticipates: Pollard's p - 1."""
    p = smooth_prime()
    power = pow(3, math.lcm(*range(1, 5000)), p * PRIME)
    assert math.gcd(power - 1, p * PRIME) == p
    assert math.isqrt(PRIME**2) == PRIME, "and a square root is immediate"


def test_whoever_is_not_refused_close_factors_reads_them_in_one_step():
    """The attack that Fermat's method anticipates; random primes of 1,024 bits are never close."""
    modulus = PRIME * NEXT
    middle = math.isqrt(modulus) + 1
    half = math.isqrt(middle**2 - modulus)
    assert middle - half == PRIME


def test_roots_and_primes_are_those_of_a_plain_search():
    for value in (1, 7, 8, 9, 1000, 3**40 - 1, 3**40):
        for k in (2, 3, 5):
            root = moduli._root(value, k)
            assert root**k <= value < (root + 1) ** k
    assert moduli._primes(30) == (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
