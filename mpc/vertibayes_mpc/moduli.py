"""What can be checked of a public modulus whose factors nobody shows.

A modulus N = pq hides its factors only if both are large primes. Whoever made N badly, or on
purpose, could read ciphertexts, or let others read them. The checks refuse some of what anybody
factors in moments: a prime, a power, a number with a small factor, a number with a factor p of
which p - 1 has small factors alone (Pollard's p - 1 method), a number whose factors are close to
each other or to a simple ratio (Fermat's method, with Lehman's multipliers). They do not show that
N has two factors, or that the one who drew it has forgotten them. A larger factor, as one of 40
bits, is accepted, and rho or elliptic curves find it: whoever makes N so gives its secrets away, as
by sending p. A factor p of which p + 1 has small factors alone is not searched for: Williams's
method takes a second in Python.

Cost: 55 ms at 2048 bits (0.2 s without gmpy2), once per modulus and process.

References
----------
J. M. Pollard: Theorems on factorization and primality testing (1974), section 4.
R. S. Lehman: Factoring large integers (1974).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

from vertibayes_mpc.integers import powmod

SEARCHED_FROM = 1024  # bits; shorter moduli are never in use, and their factors are small
SMALL = 1 << 14  # factors below this are found
SMOOTH = 5000  # so are factors p of which p - 1 divides the least common multiple up to this
RATIO = 10  # and two factors of which one is close to u / v times the other, u and v up to this,
NEAR = 4  # within so many steps of Fermat's method

_PRODUCT = "it must be the product of two large random primes"


def check_modulus(modulus: int, least_bits: int) -> None:
    """Refuse a modulus that is too short or easy to factor, without its factors in the error."""
    bits = modulus.bit_length()
    if bits < least_bits:
        raise ValueError(f"the modulus must have at least {least_bits} bits, got {bits}")
    if fault := _fault(int(modulus)):
        raise ValueError(f"the modulus {fault}; {_PRODUCT}")


@lru_cache(maxsize=16)
def _fault(modulus: int) -> str:
    """Return what is wrong with a modulus: nothing if it is empty."""
    if modulus % 2 == 0 or powmod(2, modulus - 1, modulus) == 1:
        return "is even or a prime"
    if modulus.bit_length() < SEARCHED_FROM:
        return ""
    if math.gcd(modulus, math.prod(_primes(SMALL))) != 1:
        return f"has a factor below {SMALL}"
    if any(_root(modulus, k) ** k == modulus for k in _primes(modulus.bit_length() // 14 + 2)):
        return "is a power of an integer"
    if math.gcd(powmod(3, math.lcm(*range(1, SMOOTH)), modulus) - 1, modulus) != 1:
        return "has a factor p of which p - 1 has small factors alone"
    if any(_are_near(modulus, u * v) for u in range(1, RATIO) for v in range(u, RATIO)):
        return "has two factors that are close to each other, or to a simple ratio"
    return ""


def _are_near(modulus: int, multiplier: int) -> bool:
    """Whether v p and u q are close for two factors p and q, where u v is the multiplier."""
    product = 4 * multiplier * modulus
    start = math.isqrt(product - 1) + 1
    squares = (at * at - product for at in range(start, start + NEAR))
    return any(math.isqrt(square) ** 2 == square for square in squares)


@cache
def _primes(limit: int) -> tuple[int, ...]:
    """Return the primes below a limit."""
    sieve = bytearray([1]) * limit
    for number in range(2, math.isqrt(limit) + 1):
        sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return tuple(number for number in range(2, limit) if sieve[number])


def _root(value: int, k: int) -> int:
    """Return the k-th root of a value, rounded down (Newton's method)."""
    root = 1 << -(-value.bit_length() // k)
    while (step := ((k - 1) * root + value // root ** (k - 1)) // k) < root:
        root = step
    return root
