"""Summation with histogram encoding: a report is a histogram of one value, with Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vertibayes_mpc.noise import DiscreteLaplace
from vertibayes_mpc.oracles.draws import Draws
from vertibayes_mpc.oracles.oracle import FrequencyOracle, Reports

GRID = 1 << 10  # the integer that stands for one
LEAST_EPS = 2.0**-10  # the sums of 2^32 reports then fit into 64 bits
TAIL = 2.0**-100


@dataclass(frozen=True, kw_only=True)
class SummationHistogram(FrequencyOracle):
    """1 for the own value and 0 for the others, each with Laplace noise of scale 2 / eps.

    Reports are integers on a grid, where 2^10 stands for one. Another value changes two cells by
    one each, and OpenDP draws discrete Laplace noise for this sensitivity of 2 * 2^10; it cannot be
    seeded: the `randomness` of `perturb` has no effect. eps is from 2^-10 to 2^20.

    The person clips the noisy cells to what the noise of 0 and of 1 stays within, which changes a
    cell with probability 2^-100 at most. The bounds are the same for all cells: if the noise were
    clipped instead, before 1 is added, the largest number would show the own value.

    >>> oracle = SummationHistogram(eps=1.0, domain=3)
    >>> oracle.support(np.array([[1024, -512, 0], [512, 0, 512]])).tolist()
    [1536, -512, 512]
    >>> oracle.estimate([1536, -512, 512], n=2).tolist()
    [1.5, -0.5, 0.5]
    """

    name: ClassVar[str] = "she"
    report_dtype: ClassVar[type[np.generic]] = np.int64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not LEAST_EPS <= self.eps <= 2 * GRID / 2**-9:
            raise ValueError(f"eps must be from 2**-10 to 2**20, got {self.eps}")

    @property
    def report_shape(self) -> tuple[int, ...]:
        """A report has one integer for each value."""
        return (self.domain,)

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The noise of a cell."""
        return DiscreteLaplace(eps=self.eps, Delta=2 * GRID)

    @cached_property
    def largest(self) -> int:
        """The largest size of the noise of a cell."""
        return self.noise.bound(1, TAIL)

    def estimate(self, support: ArrayLike, n: int) -> NDArray[np.float64]:
        """Estimate counts: the sums, divided by 2^10, whatever the number of reports."""
        del n
        return np.asarray(support, np.float64) / GRID

    def variance(self, n: int, counts: ArrayLike = 0.0) -> Any:
        """Return n times the variance of the noise, whatever the counts; about 8 n / eps^2."""
        spread = n * self.noise.variance / GRID**2 + 0 * np.asarray(counts, np.float64)
        return spread if spread.ndim else float(spread)

    def _perturb(self, values: NDArray[np.int64], draws: Draws) -> Reports:
        del draws
        cells = self.noise(len(values) * self.domain).reshape(len(values), self.domain)
        cells[np.arange(len(values)), values] += GRID
        return np.asarray(np.clip(cells, -self.largest, self.largest + GRID, out=cells))

    def _well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        """Accept what lies between the bounds of the noise of 0 and of 1."""
        inside = (reports >= -self.largest) & (reports <= self.largest + GRID)
        return np.asarray(inside.all(axis=1))

    def _support(self, reports: Reports) -> NDArray[np.int64]:
        return np.asarray(reports.sum(axis=0, dtype=np.int64))
