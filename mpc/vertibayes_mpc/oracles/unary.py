"""Unary encodings: a report has one bit for each value, and bits are independent."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles.draws import ONE, Draws
from vertibayes_mpc.oracles.oracle import PureOracle, Reports, exact_eps, exp_below

GRID = 4097  # thresholds that are compared: the variance is flat around the optimum
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class BitOracle(PureOracle):
    """An oracle whose reports are sets of values: packed bits, the first value's the highest."""

    report_dtype: ClassVar[type[np.generic]] = np.uint8

    @property
    def report_shape(self) -> tuple[int, ...]:
        """A report has one byte for eight values."""
        return (-(-self.domain // 8),)

    def _well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        unused = (1 << (-self.domain % 8)) - 1
        return np.asarray(reports[:, -1] & np.uint8(unused) == 0)

    def _support(self, reports: Reports) -> NDArray[np.int64]:
        """Count the 256 values of each byte, and then their bits: no bit is unpacked."""
        counts = [np.bincount(byte, minlength=256) @ _BITS for byte in reports.T]
        return np.concatenate(counts)[: self.domain]


@dataclass(frozen=True, kw_only=True)
class UnaryOracle(BitOracle):
    """Bits that are 1 with probability p for the own value, and q for each other value."""

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """How many of the 2^64 draws yield a 1, for the own value and for others."""
        p, q = self._ideal()
        return math.floor(p * ONE), math.ceil(q * ONE)

    @property
    def exact(self) -> tuple[Fraction, Fraction]:
        """The probabilities p and q, exactly."""
        own, other = self.thresholds
        return Fraction(own, ONE), Fraction(other, ONE)

    @abstractmethod
    def _ideal(self) -> tuple[Fraction, Fraction]:
        """Return p and q before they are rounded, p down and q up."""

    def _perturb(self, values: NDArray[np.int64], draws: Draws) -> Reports:
        own, other = self.thresholds
        people = len(values)
        bits = draws.coins(other, people * self.domain).reshape(people, self.domain)
        bits[np.arange(people), values] = draws.coins(own, people)
        return np.packbits(bits, axis=1)


class SymmetricUnary(UnaryOracle):
    """Symmetric unary encoding (basic RAPPOR): p = e^(eps/2) / (e^(eps/2) + 1), q = 1 - p.

    >>> oracle = SymmetricUnary(eps=2.0, domain=3)
    >>> round(oracle.p, 4), round(oracle.q, 4)
    (0.7311, 0.2689)
    >>> oracle.support(np.array([[0b10000000], [0b10100000]], np.uint8)).tolist()
    [2, 0, 1]
    """

    name: ClassVar[str] = "sue"

    def _ideal(self) -> tuple[Fraction, Fraction]:
        root = exp_below(exact_eps(self.eps) / 2)
        return root / (root + 1), 1 / (root + 1)


class OptimalUnary(UnaryOracle):
    """Optimal unary encoding: p = 1/2, q = 1 / (e^eps + 1).

    >>> oracle = OptimalUnary(eps=1.0, domain=100)
    >>> round(oracle.p, 4), round(oracle.q, 4), oracle.report_bytes
    (0.5, 0.2689, 13)
    """

    name: ClassVar[str] = "oue"

    def _ideal(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, 2), 1 / (exp_below(exact_eps(self.eps)) + 1)


@dataclass(frozen=True, kw_only=True)
class ThresholdHistogram(UnaryOracle):
    """Thresholding with histogram encoding: the bits say which cells are above theta with noise.

    A cell is 1 for the own value and 0 for the others, with Laplace noise of scale 2 / eps. It is
    above theta with p = 1 - e^((theta - 1) eps/2) / 2 for the own value, and q = e^(-theta eps/2) /
    2 for the others. The bits are drawn with these probabilities, and no noise is drawn. They are a
    function of Laplace noise that is (eps, 0)-private, and so is the report. Its eps is smaller: (p
    (1-q)) / (q (1-p)) is below e^eps.

    >>> oracle = ThresholdHistogram(eps=1.0, domain=3)
    >>> round(oracle.threshold, 2), round(oracle.p, 4), round(oracle.q, 4)
    (0.62, 0.5868, 0.367)
    """

    name: ClassVar[str] = "the"

    theta: float | None = None  # from 0 to 1 (0.25 in [2]); the least variance's by default

    def __post_init__(self) -> None:
        if self.theta is not None and not 0 <= self.theta <= 1:
            raise ValueError(f"theta must be from 0 to 1, got {self.theta}")
        super().__post_init__()

    @cached_property
    def threshold(self) -> float:
        """The threshold: theta, or the one of the least variance."""
        if self.theta is not None:
            return float(self.theta)
        half, theta = float(exact_eps(self.eps)) / 2, np.linspace(0.5, 1, GRID)
        q = np.exp(-half * theta) / 2
        gap = -(np.expm1(half * (theta - 1)) + np.expm1(-half * theta)) / 2
        return float(theta[(q * (1 - q) / gap**2).argmin()])

    def _ideal(self) -> tuple[Fraction, Fraction]:
        half, theta = exact_eps(self.eps) / 2, Fraction(self.threshold)
        own, other = exp_below(half * (1 - theta)), exp_below(half * theta)
        return 1 - 1 / (2 * own), 1 / (2 * other)
