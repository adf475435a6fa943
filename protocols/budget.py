"""What releases with noise cost a site's records, and what several of them cost together.

    basic    eps and delta of all releases add up                      (Dwork and Roth 2014)
    zCDP     rho and slack add up; at delta, together they cost        (Bun and Steinke 2016)
             eps = rho + 2 sqrt(rho ln(1 / (delta - slack)))

A release that is (eps, delta)-private has rho = eps^2 / 2 and slack = delta; Gaussian noise has
less rho. The first bound is better for few releases, the second for many small ones. A site permits
a release if one of both bounds stays within its limits. That holds although releases depend on the
results of earlier ones: under the first bound the privacy loss never exceeds eps; under the second
one it does so with a chance of delta, whenever the site stops [2]_.

References
----------
.. [1] M. Bun, T. Steinke (2016). Concentrated Differential Privacy: Simplifications, Extensions,
   and Lower Bounds. Propositions 1.3 and 1.4, section 8. DOI 10.1007/978-3-662-53641-4_24.
.. [2] J. Whitehouse, A. Ramdas, R. Rogers, Z. S. Wu (2023). Fully-Adaptive Composition in
   Differential Privacy. ICML. Theorem 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

ROUNDING = 1e-9  # relative rounding error of sums of costs


class Cost(NamedTuple):
    """What releases cost: by basic composition, and by zCDP.

    Parameters
    ----------
    eps, delta : float, default=0.0
        By basic composition.
    rho, slack : float, default=0.0
        By zCDP, except with a chance of `slack`.
    """

    eps: float = 0.0
    delta: float = 0.0
    rho: float = 0.0
    slack: float = 0.0

    @classmethod
    def of(cls, eps: float, delta: float = 0.0) -> Cost:
        """Return the cost of a release of which no more is known than eps and delta."""
        return cls(eps, delta, eps**2 / 2, delta)

    def plus(self, other: Cost) -> Cost:
        """Return what both cost together."""
        return Cost(*(mine + more for mine, more in zip(self, other, strict=True)))

    def times(self, releases: int) -> Cost:
        """Return what so many of these releases cost together."""
        return Cost(*(releases * part for part in self))

    def eps_at(self, delta: float) -> float:
        """Return the least eps that is proved at a delta: infinite if there is none."""
        basic = self.eps if self.delta <= delta * (1 + ROUNDING) else math.inf
        return min(basic, eps_of(self.rho, delta - self.slack))

    def left(self, eps: float, delta: float) -> float:
        """Return the largest eps of one more release, which has no delta, within both limits."""
        basic = eps - self.eps if self.delta <= delta * (1 + ROUNDING) else 0.0
        rho = rho_of(eps, delta - self.slack) - self.rho
        return max(basic, math.sqrt(2 * max(rho, 0.0)))


def eps_of(rho: float, delta: float) -> float:
    """Return the eps of rho-zCDP at a delta: infinite if delta is not above zero."""
    if not rho:
        return 0.0 if delta >= 0 else math.inf
    if not 0 < delta < 1:
        return math.inf
    return rho + 2 * math.sqrt(rho * -math.log(delta))


def rho_of(eps: float, delta: float) -> float:
    """Return the largest rho whose eps at a delta is not above `eps`: the inverse of `eps_of`."""
    if not 0 < delta < 1:
        return 0.0
    excess = -math.log(delta)
    root = eps / (math.sqrt(excess + eps) + math.sqrt(excess))  # without cancellation
    return root**2
