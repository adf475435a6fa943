r"""Encryption modulo p^2, for the owner of p and q: products of tabulated powers, no squarings.

Modulo p^2 an N-th residue is the p-th power of some u in Z_p^*, and depends on u modulo p alone:

    w(u) = u^p = u (1 + p z(u)),     z(u) = (u^(p-1) - 1) / p,     the Fermat quotient of u

Quotients add where residues multiply: z(uv) = z(u) + z(v), and z(u + kp) = z(u) - k/u. For a base h
and a uniform exponent a = sum_i a_i 256^i below p - 1, with u_i = h^(a_i 256^i) mod p and z(u_i)
looked up, the encryption (1 + N)^m w(h^a) modulo p^2 is therefore

    c = X (1 + p (sum_i z(u_i) + q m)),     X = prod_i u_i

The factors u_i are half as long as w(u_i), and so is the work of each product.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from vertibayes_mpc.integers import fast, invert, powmod, uniform_below
from vertibayes_mpc.randomness import Randomness

RADIX = 256  # a digit of an exponent is a byte
LARGEST_TRIED = 1 << 16


def digits_of(numbers: Sequence[int], size: int) -> list[list[int]]:
    """Return the digits of numbers, to the base 256: a list for each of `size` places."""
    joined = b"".join(number.to_bytes(size, "little") for number in numbers)
    return [list(joined[place::size]) for place in range(size)]


class Residues:
    """The table of powers of a base, with their Fermat quotients, for one prime factor of N."""

    def __init__(self, prime: int, other: int) -> None:
        self._prime, self._square, self._other = fast(prime), fast(prime * prime), fast(other)
        self._order = prime - 1
        self.base = primitive_base(prime)
        quotient = (powmod(self.base, prime - 1, prime * prime) - 1) // prime
        power, quotient = fast(self.base), fast(quotient)
        self._rows: list[tuple[list[int], list[int]]] = []
        for _ in range(-(-prime.bit_length() // 8)):
            powers, quotients = self._row(power, quotient)
            power, quotient = powers.pop(), quotients.pop()
            self._rows.append((powers, quotients))

    def _row(self, power: int, quotient: int) -> tuple[list[int], list[int]]:
        """Return u^k and z(u^k) for all digits k, and for k = 256, where the next row starts."""
        inverse = invert(power, self._prime)
        powers, quotients, unit = [fast(1)], [fast(0)], fast(1)
        for _ in range(RADIX):
            carry, value = divmod(powers[-1] * power, self._prime)
            unit = unit * inverse % self._prime  # 1 / value
            powers.append(value)
            quotients.append((quotients[-1] + quotient + carry * unit) % self._prime)
        return powers, quotients

    def encrypt(self, plaintexts: Sequence[int], randomness: Randomness) -> list[int]:
        """Return ``(1 + N)**m * w(base**a)`` modulo p^2, for each plaintext and a fresh a."""
        prime, square = self._prime, self._square
        exponents = [uniform_below(self._order, randomness) for _ in plaintexts]
        products = [fast(1)] * len(plaintexts)
        logarithms = [self._other * m for m in plaintexts]
        places = digits_of(exponents, len(self._rows))
        for (powers, quotients), digits in zip(self._rows, places, strict=True):
            products = [x * powers[d] % square for x, d in zip(products, digits, strict=True)]
            logarithms = [z + quotients[d] for z, d in zip(logarithms, digits, strict=True)]
        pairs = zip(products, logarithms, strict=True)
        return [x * (1 + prime * (z % prime)) % square for x, z in pairs]


def primitive_base(prime: int) -> int:
    """Return the least h that is not an l-th power modulo `prime`, for all prime l | p - 1 tried.

    Its powers are all of Z_p^*, unless it is an l-th power for an l that was not tried: this
    happens for one random prime in 700,000 (the sum of 1/l^2 over the primes l above 2^16).
    """
    factors = list[int]()
    for number in range(2, LARGEST_TRIED):
        if (prime - 1) % number == 0 and all(number % factor for factor in factors):
            factors.append(number)
    return next(
        h for h in count(2) if all(powmod(h, (prime - 1) // f, prime) != 1 for f in factors)
    )
