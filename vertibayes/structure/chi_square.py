"""Quantiles of the chi-square distribution, computed alike on all machines.

The parties of an approved study derive each other's thresholds. Quantiles are computed in decimals,
whose results do not depend on a machine's mathematical library.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from math import sqrt
from statistics import NormalDist

_DIGITS = 40
_TOLERANCE = Decimal("1e-8")  # a smaller last step leaves an error of its square
_STIRLING = tuple(  # B_2k / (2k (2k - 1)), Abramowitz and Stegun (1964), 6.1.41
    Decimal(above) / below
    for above, below in [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360_360)]
)
_LARGE = 60  # from here on the sum above has 25 digits


@cache
def half_quantile(degrees: int, alpha: float) -> int:
    """Return half of a quantile of the chi-square distribution, in millionths.

    Twice a difference of log-likelihoods exceeds the quantile with probability `alpha` if the
    smaller model holds, so that the difference itself has half of it as its threshold (Wilks 1938,
    doi:10.1214/aoms/1177732360).

    Examples
    --------
    >>> half_quantile(1, 0.05) / 1e6  # 3.841459 / 2
    1.920729
    """
    if degrees < 0:
        raise ValueError(f"degrees of freedom must be at least 0, got {degrees}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    if degrees == 0:
        return 0
    with localcontext() as context:
        context.prec = _DIGITS
        quantile = _gamma_quantile(Decimal(degrees) / 2, 1 - Decimal(repr(alpha)), alpha)
        return int((quantile * 10**6).to_integral_value())


def _gamma_quantile(shape: Decimal, below: Decimal, alpha: float) -> Decimal:
    """Return the quantile of a gamma distribution by Newton's method."""
    x, log_gamma = _start(shape, alpha), _log_gamma(shape)
    while True:
        density = (shape * x.ln() - x - log_gamma).exp() / x
        step = (_lower(shape, x, density) - below) / density
        x = max(x - step, x / 10)
        if abs(step) < _TOLERANCE:
            return x


def _start(shape: Decimal, alpha: float) -> Decimal:
    """Return the approximation of Wilson and Hilferty (1931), doi:10.1073/pnas.17.12.684."""
    ninth = 1 / (9 * float(shape))
    root = 1 - ninth + NormalDist().inv_cdf(1 - alpha) * sqrt(ninth)
    return shape * Decimal(max(root, 0.1)) ** 3


def _lower(shape: Decimal, x: Decimal, density: Decimal) -> Decimal:
    """Return the probability below x: Abramowitz and Stegun (1964), 6.5.29."""
    term = total = density * x / shape
    place = shape
    while term > total * Decimal("1e-25"):
        place += 1
        term *= x / place
        total += term
    return total


def _log_gamma(shape: Decimal) -> Decimal:
    """Return the logarithm of the gamma function, by Stirling's series from a large number on."""
    product, large = Decimal(1), shape
    while large < _LARGE:
        product *= large
        large += 1
    series = sum(part / large ** (2 * k + 1) for k, part in enumerate(_STIRLING))
    tau = Decimal("6.283185307179586476925286766559005768394338798750")
    return (large - Decimal("0.5")) * large.ln() - large + tau.ln() / 2 + series - product.ln()
