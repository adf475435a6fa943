"""Subset selection: a report is a set of k values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles.draws import ONE, Draws
from vertibayes_mpc.oracles.oracle import Reports, exact_eps, exp_below
from vertibayes_mpc.oracles.unary import BitOracle


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(BitOracle):
    """A report is a uniform set of k values with the own value, or without it.

    The own value is in the set with probability p = k e^eps / (k e^eps + d - k), and each other
    value with probability q = (k - p) / (d - 1). The size k is the integer above or below
    d / (e^eps + 1) with the least variance.

    Parameters
    ----------
    eps, domain
        As of `FrequencyOracle`.

    Examples
    --------
    >>> oracle = SubsetSelection(eps=1.0, domain=8)
    >>> oracle.size, round(oracle.p, 4), round(oracle.q, 4)
    (2, 0.4754, 0.2178)
    >>> oracle.support(np.array([[0b00000011], [0b10000001]], np.uint8)).tolist()
    [1, 0, 0, 0, 0, 0, 1, 2]
    """

    name: ClassVar[str] = "ss"

    @cached_property
    def size(self) -> int:
        """The number k of values in a report."""
        least = max(int(self.domain / (exp_below(exact_eps(self.eps)) + 1)), 1)
        sizes = [k for k in (least, least + 1) if k < self.domain]
        return min(sizes, key=lambda k: _spread(*self._exact(k)))

    @property
    def exact(self) -> tuple[Fraction, Fraction]:
        """The probabilities p and q, exactly."""
        return self._exact(self.size)

    def _exact(self, size: int) -> tuple[Fraction, Fraction]:
        odds = size * exp_below(exact_eps(self.eps)) / (self.domain - size)
        p = Fraction(math.floor(odds / (odds + 1) * ONE), ONE)
        return p, (size - p) / (self.domain - 1)

    def _perturb(self, values: NDArray[np.int64], draws: Draws) -> Reports:
        """Put k values into each set by Floyd's algorithm, for all people at once.

        Step by step, a uniform place among the first ones joins the set, or the last of these if
        the place is in the set already. The d - 1 other values have the columns 1 to d - 1; the
        value 0 takes the column of the own value, which has been decided by a coin.
        """
        people, rows, size = len(values), np.arange(len(values)), self.size
        own = draws.coins(int(self._p * ONE), people)
        bits = np.zeros((people, self.domain), np.bool_)
        for others, members in ((size - 1, rows[own]), (size, rows[~own])):
            chosen = np.zeros((len(members), self.domain - 1), np.bool_)
            inside = np.arange(len(members))
            for last in range(self.domain - 1 - others, self.domain - 1):
                place = draws.below(last + 1, len(members))
                place[chosen[inside, place]] = last
                chosen[inside, place] = True
            bits[members, 1:] = chosen
        bits[rows, 0], bits[rows, values] = bits[rows, values], own
        return np.packbits(bits, axis=1)

    def _well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        sizes = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        return np.asarray(super()._well_formed(reports) & (sizes == self.size))


def _spread(p: Fraction, q: Fraction) -> float:
    """Return the variance of a rare value per report."""
    return float(q * (1 - q) / (p - q) ** 2) if p > q else math.inf
