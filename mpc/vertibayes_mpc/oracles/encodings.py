"""A report of one value (generalized randomized response), or of a set; all oracles by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles.draws import ONE, Draws
from vertibayes_mpc.oracles.oracle import FrequencyOracle, PureOracle, Reports, exact_eps, exp_below
from vertibayes_mpc.oracles.summation import SummationHistogram
from vertibayes_mpc.oracles.unary import BitOracle, OptimalUnary, SymmetricUnary, ThresholdHistogram


@dataclass(frozen=True, kw_only=True)
class DirectEncoding(PureOracle):
    """A report is the own value with p = e^eps / (e^eps + d - 1), or another, each with p / e^eps.

    >>> oracle = DirectEncoding(eps=1.0, domain=3)
    >>> round(oracle.p, 4), round(oracle.q, 4)
    (0.5761, 0.2119)
    >>> oracle.support(np.array([0, 2, 2], np.uint32)).tolist()
    [1, 0, 2]
    """

    name: ClassVar[str] = "de"
    report_dtype: ClassVar[type[np.generic]] = np.uint32

    @property
    def report_shape(self) -> tuple[int, ...]:
        """A report is one integer."""
        return ()

    @cached_property
    def _other(self) -> int:
        """How many of the 2^64 draws yield a given other value: q, rounded up."""
        return math.ceil(ONE / (exp_below(exact_eps(self.eps)) + self.domain - 1))

    @property
    def exact(self) -> tuple[Fraction, Fraction]:
        """The probabilities p and q, exactly."""
        q = Fraction(self._other, ONE)
        return 1 - (self.domain - 1) * q, q

    def _perturb(self, values: NDArray[np.int64], draws: Draws) -> Reports:
        """Give each other value a segment of as many draws, and the rest to the own value."""
        others = np.uint64((self.domain - 1) * self._other)
        words = draws.words(len(values))
        other = (words // np.uint64(self._other)).astype(np.int64)
        other += other >= values  # the other values in order, without the own value
        return np.where(words < others, other, values)

    def _well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        return np.asarray(reports < self.domain)

    def _support(self, reports: Reports) -> NDArray[np.int64]:
        return np.bincount(reports, minlength=self.domain).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(BitOracle):
    """A report is a uniform set of k values with the own value, or without it.

    The own value is in the set with probability p = k e^eps / (k e^eps + d - k), and each other
    value with probability q = (k - p) / (d - 1). The size k is the integer above or below d /
    (e^eps + 1) with the least variance.

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


ORACLES: dict[str, type[FrequencyOracle]] = {
    oracle.name: oracle
    for oracle in (
        DirectEncoding,
        SymmetricUnary,
        OptimalUnary,
        SummationHistogram,
        ThresholdHistogram,
        SubsetSelection,
    )
}
TIE = 1 + 1e-9  # variances that differ by less are equal: the cheaper oracle is taken


@lru_cache(maxsize=1024, typed=True)  # each party of a process builds the same plan several times
def best_oracle(eps: float, domain: int) -> FrequencyOracle:
    """Return the oracle with the least variance of rare values, of all except SummationHistogram.

    >>> [best_oracle(1.0, domain).name for domain in (2, 4, 8, 1000)]
    ['de', 'de', 'ss', 'ss']
    """
    oracles = [
        oracle(eps=eps, domain=domain)
        for oracle in ORACLES.values()
        if oracle is not SummationHistogram
    ]
    least: float = min(oracle.variance(1) for oracle in oracles)
    return next(oracle for oracle in oracles if oracle.variance(1) <= least * TIE)
