"""Two ways to compute with probabilities: directly, and with their logarithms.

Direct computation is three times as fast. But the product of many probabilities can fall below the
smallest floating-point number, so that the ratios between states are lost. Numpy then raises
`FloatingPointError`, and the computation is repeated with logarithms.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


class Algebra:
    """Operations on numbers that represent probabilities: here the probabilities themselves."""

    def of(self, probabilities: Array) -> Array:
        """Return the numbers that represent probabilities."""
        return probabilities

    def times(self, a: Array, b: Array) -> Array:
        """Multiply the probabilities."""
        return np.asarray(a * b)

    def total(self, a: Array, axes: tuple[int, ...]) -> Array:
        """Sum the probabilities over axes."""
        return np.asarray(a.sum(axis=axes))

    def over(self, a: Array, b: Array) -> Array:
        """Divide the probabilities; where b is zero, the result is zero too."""
        out = np.zeros(np.broadcast_shapes(a.shape, b.shape))
        return np.asarray(np.divide(a, b, out=out, where=b > 0))

    def probabilities(self, a: Array) -> Array:
        """Return the probabilities that the numbers represent."""
        return a

    def logarithms(self, a: Array) -> Array:
        """Return the logarithms of the probabilities that the numbers represent."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(a))


class Logarithms(Algebra):
    """Compute with logarithms of probabilities; minus infinity represents probability zero."""

    def of(self, probabilities: Array) -> Array:
        """Return the logarithms of probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probabilities))

    def times(self, a: Array, b: Array) -> Array:
        """Multiply: add the logarithms."""
        return np.asarray(a + b)

    def total(self, a: Array, axes: tuple[int, ...]) -> Array:
        """Sum the probabilities, relative to the largest."""
        if not axes:
            return a
        largest = a.max(axis=axes, keepdims=True)
        largest[np.isneginf(largest)] = 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(np.exp(a - largest).sum(axis=axes))
        return np.asarray(logs + largest.squeeze(axis=axes))

    def over(self, a: Array, b: Array) -> Array:
        """Divide: subtract the logarithms; the result is minus infinity where b is."""
        out = np.full(np.broadcast_shapes(a.shape, b.shape), -np.inf)
        return np.asarray(np.subtract(a, b, out=out, where=np.isfinite(b)))

    def probabilities(self, a: Array) -> Array:
        """Return the exponentials of the logarithms."""
        return np.asarray(np.exp(a))

    def logarithms(self, a: Array) -> Array:
        """Return the logarithms."""
        return a


PLAIN = Algebra()
LOGARITHMS = Logarithms()
