"""Direct encoding (generalized randomized response): a report is a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles.draws import ONE, Draws
from vertibayes_mpc.oracles.oracle import PureOracle, Reports, exact_eps, exp_below


@dataclass(frozen=True, kw_only=True)
class DirectEncoding(PureOracle):
    """A report is the own value with p = e^eps / (e^eps + d - 1), or another, each with p / e^eps.

    Parameters
    ----------
    eps, domain
        As of `FrequencyOracle`.

    Examples
    --------
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
