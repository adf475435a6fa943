"""The scalar product as its authors published it, and the attacks on it: in tests alone.

Integers without a modulus, masks of 1 .. 512 from java.util.Random (van Daalen et al. 2023).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

MULTIPLIER, INCREMENT, MODULUS = 0x5DEECE66D, 0xB, 1 << 48  # of java.util.Random
HIDDEN_BITS = 39  # of the 48 of a state: 9 are shown by a number below 512
LARGEST = 512


class JavaRandom:
    """The generator of java.util.Random: linear and congruential, modulo 2^48."""

    def __init__(self, seed):
        self.state = (seed ^ MULTIPLIER) % MODULUS

    @classmethod
    def at(cls, state):
        """Return the generator in a state."""
        generator = cls(0)
        generator.state = state
        return generator

    def below_512(self):
        """Return nextInt(512): the upper 9 bits of the next state."""
        self.state = (self.state * MULTIPLIER + INCREMENT) % MODULUS
        return self.state >> HIDDEN_BITS

    def masks(self, records):
        """Return one party's masks, as published: nextInt(512) + 1, record after record."""
        return np.array([self.below_512() + 1 for _ in range(records)])


def two_parties_view(generator, theirs):
    """Return what the first party is sent: its masks, and the other's masked records."""
    own = generator.masks(len(theirs))
    return own, theirs + generator.masks(len(theirs))


def three_parties_view(generator, second, third):
    """Return what the first party is sent: both others masked, and R_2 R_3 in the sub-protocol."""
    records = len(second)
    _own, mask_2, mask_3 = (generator.masks(records) for _ in range(3))
    sub = JavaRandom(generator.state ^ 1)  # a generator of another party
    _own = sub.masks(records)
    return second + mask_2, third + mask_3, mask_2 * mask_3 + sub.masks(records)


# ---- the attacks ---------------------------------------------------------------------------------


def read_by_generator(own_masks, masked):
    """Recover the generator from the first of one's own masks; return the other's records.

    None if the generator found does not give one's own masks.
    """
    generator = JavaRandom.at(state_after(own_masks[0:9] - 1))
    again = [own_masks[0] - 1, *(generator.below_512() for _ in own_masks[1:])]
    if again != (own_masks - 1).tolist():
        return None
    return masked - generator.masks(len(masked))


def state_after(outputs):
    """Return the state that showed the first of some outputs: the nearest lattice point.

    States are affine in the first one, modulo 2^48, so they lie on a shifted lattice; the outputs
    say where, but for 39 bits each. Reduced basis (Lenstra, Lenstra, Lovasz), nearest plane
    (Babai).
    """
    shifts = [0]
    for _ in outputs[1:]:
        shifts.append((shifts[-1] * MULTIPLIER + INCREMENT) % MODULUS)
    middles = [(int(y) << HIDDEN_BITS) + (1 << HIDDEN_BITS - 1) for y in outputs]
    target = [m - s for m, s in zip(middles, shifts, strict=True)]
    return nearest(lattice(len(outputs)), target)[0] % MODULUS


@cache
def lattice(size):
    """Return a reduced basis of all (s, a s, a^2 s, ..) modulo 2^48."""
    powers = [pow(MULTIPLIER, i, MODULUS) for i in range(size)]
    return reduced([powers, *([MODULUS * (i == j) for j in range(size)] for i in range(1, size))])


def dot(u, v):
    return sum(x * y for x, y in zip(u, v, strict=True))


def orthogonal(basis):
    """Return the Gram-Schmidt vectors and coefficients of a basis, exactly."""
    vectors, coefficients = [], [[Fraction(0)] * len(basis) for _ in basis]
    for i, row in enumerate(basis):
        vector = [Fraction(x) for x in row]
        for j, other in enumerate(vectors):
            coefficients[i][j] = Fraction(dot(row, other)) / dot(other, other)
            vector = [x - coefficients[i][j] * y for x, y in zip(vector, other, strict=True)]
        vectors.append(vector)
    return vectors, coefficients


def reduced(basis):
    """Reduce a basis: Lenstra, Lenstra and Lovasz (1982), delta = 3/4."""
    basis, k = [list(row) for row in basis], 1
    vectors, mu = orthogonal(basis)
    while k < len(basis):
        for j in range(k - 1, -1, -1):
            times = round(mu[k][j])
            basis[k] = [x - times * y for x, y in zip(basis[k], basis[j], strict=True)]
            mu[k][:j] = [x - times * y for x, y in zip(mu[k][:j], mu[j][:j], strict=True)]
            mu[k][j] -= times
        previous = dot(vectors[k - 1], vectors[k - 1])
        if dot(vectors[k], vectors[k]) >= (Fraction(3, 4) - mu[k][k - 1] ** 2) * previous:
            k += 1
        else:
            basis[k - 1], basis[k] = basis[k], basis[k - 1]
            vectors, mu = orthogonal(basis)
            k = max(k - 1, 1)
    return basis


def nearest(basis, target):
    """Return a lattice point near the target: Babai (1986)."""
    vectors, _ = orthogonal(basis)
    rest = [Fraction(x) for x in target]
    for row, vector in zip(basis[::-1], vectors[::-1], strict=True):
        times = round(dot(rest, vector) / dot(vector, vector))
        rest = [x - times * y for x, y in zip(rest, row, strict=True)]
    return [int(t - r) for t, r in zip(target, rest, strict=True)]


def read_by_range(masked):
    """Return the records that the ends of the masks' range give away; -1 for the others."""
    return np.select([masked == 1, masked == LARGEST + 1], [0, 1], -1)


def read_by_product(masked_2, masked_3, masked_product):
    """Return the second party's records, as far as R_2 R_3 + R' agrees with one value alone."""
    possible = {0: np.zeros(len(masked_2), bool), 1: np.zeros(len(masked_2), bool)}
    for second, third in product((0, 1), repeat=2):
        mask_2, mask_3 = masked_2 - second, masked_3 - third
        masks = mask_2, mask_3, masked_product - mask_2 * mask_3
        possible[second] |= np.all([(m >= 1) & (m <= LARGEST) for m in masks], axis=0)
    return np.select([~possible[1], ~possible[0]], [0, 1], -1)
