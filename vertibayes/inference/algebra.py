"""Two ways to compute with probabilities: as they are, and by their logarithms.

As they are is three times as fast, but a product of very many of them falls below the smallest
number there is, state by state, and the ratios between states are lost: numpy then raises
`FloatingPointError`, and the same is done by logarithms.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


class Algebra(Protocol):
    """How numbers that stand for probabilities are made, multiplied, summed and divided."""

    def of(self, probabilities: Array) -> Array:
        """Return what stands for probabilities."""
        ...

    def times(self, a: Array, b: Array) -> Array:
        """Multiply."""
        ...

    def total(self, a: Array, axes: tuple[int, ...]) -> Array:
        """Sum over axes."""
        ...

    def over(self, a: Array, b: Array) -> Array:
        """Divide; where b is nothing, so is the result: what has no probability has no share."""
        ...

    def probabilities(self, a: Array) -> Array:
        """Return the probabilities that numbers stand for."""
        ...

    def logarithms(self, a: Array) -> Array:
        """Return the logarithms of the probabilities that numbers stand for."""
        ...


class Plain:
    """Probabilities as they are."""

    def of(self, probabilities: Array) -> Array:
        """Return them."""
        return probabilities

    def times(self, a: Array, b: Array) -> Array:
        """Multiply."""
        return np.asarray(a * b)

    def total(self, a: Array, axes: tuple[int, ...]) -> Array:
        """Sum over axes."""
        return np.asarray(a.sum(axis=axes))

    def over(self, a: Array, b: Array) -> Array:
        """Divide, 0 where b is 0."""
        out = np.zeros(np.broadcast_shapes(a.shape, b.shape))
        return np.asarray(np.divide(a, b, out=out, where=b > 0))

    def probabilities(self, a: Array) -> Array:
        """Return them."""
        return a

    def logarithms(self, a: Array) -> Array:
        """Return their logarithms."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(a))


class Logarithms:
    """Logarithms of probabilities; minus infinity for none."""

    def of(self, probabilities: Array) -> Array:
        """Return the logarithms of probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probabilities))

    def times(self, a: Array, b: Array) -> Array:
        """Add."""
        return np.asarray(a + b)

    def total(self, a: Array, axes: tuple[int, ...]) -> Array:
        """Sum what the logarithms stand for, the largest taken out before."""
        if not axes:
            return a
        largest = a.max(axis=axes, keepdims=True)
        largest[np.isneginf(largest)] = 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(np.exp(a - largest).sum(axis=axes))
        return np.asarray(logs + largest.squeeze(axis=axes))

    def over(self, a: Array, b: Array) -> Array:
        """Subtract, minus infinity where b is."""
        out = np.full(np.broadcast_shapes(a.shape, b.shape), -np.inf)
        return np.asarray(np.subtract(a, b, out=out, where=np.isfinite(b)))

    def probabilities(self, a: Array) -> Array:
        """Return the exponentials."""
        return np.asarray(np.exp(a))

    def logarithms(self, a: Array) -> Array:
        """Return them."""
        return a


PLAIN: Algebra = Plain()
LOGARITHMS: Algebra = Logarithms()
