"""What releases with noise cost a site's records, and what several of them cost together.

    basic    eps and delta of all releases add up                      (Dwork and Roth 2014)
    zCDP     rho and slack add up; together they cost                  (Bun and Steinke 2016)
             eps = rho + 2 sqrt(rho ln(1 / (.9 delta))), if the slack is at most .1 delta

A release that is (eps, delta)-private has rho = eps^2 / 2 and slack = delta; Gaussian noise has
less rho, T / (2 sigma^2) for T tables, whichever way its scale was chosen. The first bound is
better for few releases, the second for many small ones. A site permits a release if one of both
bounds stays within its limits.

Releases may depend on the results of earlier ones. Then each bound holds by itself, whenever the
site stops: the limits of rho and of slack are fixed beforehand, as Theorem 1 of [2]_ requires. An
analyst who chooses, by the results, which of both bounds the releases end under can exceed eps with
a chance of at most 2 delta. The sum of the exact losses is less (dp_accounting: .78 for 20 releases
of .05, 1.00 here), but is proved for releases whose eps are fixed beforehand.

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
SLACK = 0.1  # the share of delta that is kept for slack under zCDP


class Released(NamedTuple):
    """How many tables were released, and how many cells they had together."""

    tables: int = 0
    cells: int = 0

    def plus(self, tables: int, cells: int) -> Released:
        """Return the numbers with those of further tables."""
        return Released(self.tables + tables, self.cells + cells)


class Cost(NamedTuple):
    """What releases cost: by basic composition, and by zCDP."""

    # By basic composition.
    eps: float = 0.0
    delta: float = 0.0
    # By zCDP, except with a chance of `slack`.
    rho: float = 0.0
    slack: float = 0.0

    @classmethod
    def of(cls, eps: float, delta: float = 0.0) -> Cost:
        """Return the cost of a release of which no more is known than eps and delta."""
        return cls(eps, delta, eps * eps / 2, delta)

    def plus(self, other: Cost) -> Cost:
        """Return what both cost together."""
        return Cost(*(mine + more for mine, more in zip(self, other, strict=True)))

    def times(self, releases: int) -> Cost:
        """Return what so many of these releases cost together."""
        return Cost(*(releases * part for part in self))

    def eps_at(self, delta: float) -> float:
        """Return the least eps that is proved at a delta: infinite if no eps is."""
        basic = self.eps if self.delta <= delta * (1 + ROUNDING) else math.inf
        within = self.slack <= delta * SLACK
        return min(basic, eps_of(self.rho, delta * (1 - SLACK)) if within else math.inf)

    def proved(self, delta: float) -> tuple[float, float]:
        """Return the least eps at a delta, and its delta, which basic composition lowers."""
        eps = self.eps_at(delta)
        basic = eps == math.inf or (eps == self.eps and self.delta <= delta)
        return (self.eps, min(self.delta, 1.0)) if basic else (eps, delta)

    def permits(self, more: Cost, eps: float, delta: float) -> bool:
        """Whether this and `more` together stay within both limits; not if a cost is nan."""
        together = self.plus(more)
        if any(map(math.isnan, together)):
            return False
        proved = together.eps_at(delta)
        return proved < math.inf and proved <= eps * (1 + ROUNDING)

    def without_delta(self) -> Cost:
        """Return the cost with delta and slack left out."""
        return self._replace(delta=0.0, slack=0.0)

    def left(self, eps: float, delta: float) -> float:
        """Return the largest eps of one more release, which has no delta, within both limits."""
        basic = eps - self.eps if self.delta <= delta * (1 + ROUNDING) else 0.0
        within = self.slack <= delta * SLACK
        rho = rho_of(eps, delta * (1 - SLACK)) - self.rho if within else 0.0
        return max(basic, math.sqrt(2 * max(rho, 0.0)))


def eps_of(rho: float, delta: float) -> float:
    """Return the eps of rho-zCDP at a delta: infinite if delta is not between 0 and 1."""
    if not rho:
        return 0.0 if delta >= 0 else math.inf
    if not 0 < delta < 1:
        return math.inf
    return rho + 2 * math.sqrt(rho * -math.log(delta))


def rho_of(eps: float, delta: float) -> float:
    """Return the largest rho whose eps at a delta is not above `eps`: the inverse of `eps_of`."""
    if not 0 < delta < 1:
        return 0.0
    if eps == math.inf:
        return math.inf
    excess = -math.log(delta)
    root = eps / (math.sqrt(excess + eps) + math.sqrt(excess))  # without cancellation
    return root**2
