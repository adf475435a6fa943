"""The noise that each party adds to sums, and what the sums promise then.

A record changes one value of each *part* of the statistics: one count of each table, one sum and
one sum of squares of each number. Let T be the number of parts; for naive Bayes T = 1 + F_cat + 2
F_num: the classes, each categorical feature, and each number twice. A neighbour changes the part by
Delta at most: for one record, by 1 if it is a table, and by the declared bounds if it is of
numbers; for all L records of a party, by L times as much. Noise of the rate eps_c / Delta on each
value of a part is (eps_c, delta_c)-private. The model as a whole, with c the number of values that
a neighbour can change, is then

    eps = T eps_c,    delta = c delta_c + 2^-64 + n (1 + e^eps) 2^-100

    protects="record"    one record more or less:              c = T
    protects="party"     all L records of a party, or none:    c = sum over parts of
                                                               the lesser of L and their values

    accounting="count"   eps and delta are asked of each count: eps_c, delta_c (Huai et al. 2015)
    accounting="whole"   of the model: eps_c = eps / T (Giaretta et al. 2023, eq. 16),
                         delta_c = delta / c

    noise="polya"        shares of one copy of discrete Laplace noise: all honest members together
    noise="diluted"      the copies of Huai et al.
    noise="laplace"      local: a whole copy of each member, which protects it whatever others do
    noise="gaussian"     local too: the model is rho-zCDP, each part rho / T of it

A party's L records together change all values of a part by L Delta at most, so that a record and a
party have the same eps. Their delta differs, because each count has or lacks diluted noise by
itself. The term 2^-64 is for noise that leaves its slot, which the party refuses to send: slots are
so wide that the chance in a release is 2^-64 / (1 + e^eps). Only diluted noise has a delta_c. Only
Polya shares have the last term, by which the samplers of n parties deviate from their law. Gaussian
noise has eps = rho + 2 sqrt(rho ln(1/delta)) (`vertibayes_protocols.budget`).

To replace a record is to remove one record and to add another: twice the eps.

References
----------
.. [1] M. Huai, L. Huang, W. Yang, L. Li, M. Qi (2015). Privacy-Preserving Naive Bayes
   Classification. Sections 4.2, 4.3 and 5.1.
.. [2] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
   Decentralized Naive Bayes with Differential Privacy. Section 3.1.
.. [3] M. Bun, T. Steinke (2016). Concentrated Differential Privacy. Proposition 1.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.noise import (
    DilutedGeometric,
    DiscreteGaussian,
    DiscreteLaplace,
    IntegerNoise,
    Noise,
    PolyaShare,
)
from vertibayes_mpc.randomness import Randomness, SystemRandomness
from vertibayes_protocols.budget import Cost, rho_of
from vertibayes_protocols.promise import LOCAL, SumPromise
from vertibayes_protocols.schema import Declared
from vertibayes_protocols.site.statistics import Part, parts

AnyNoise: TypeAlias = IntegerNoise | DiscreteGaussian

NOISES = ("polya", "diluted", "laplace", "gaussian")
OPENDP = ("diluted", *LOCAL)  # which OpenDP draws
TAIL = 2.0**-64  # what noise that leaves its slot adds to delta
ROUNDED = Fraction(1, 2**50)  # by how much a float like 1/3 may be less than the share
SAMPLER = 2.0**-100  # how far Polya shares of a release are from their law


def share_of(share: float, n: int) -> Fraction:
    """Return a share of n, the share taken as it is written in decimals: .1 of 30 is 3."""
    return Fraction(str(share)) * n


def parts_of(schema: Declared) -> tuple[Part, ...]:
    """Return the parts of the statistics, of each of which a record changes one value."""
    return tuple(part for s in schema.statistics for part in parts(s, schema.variables))


def changes_of(schema: Declared) -> NDArray[np.int64]:
    """Return by how much a record changes each value at most: shape (k,)."""
    declared = parts_of(schema)
    return np.repeat([part.Delta for part in declared], [part.cells for part in declared])


def noise_of_each(
    changes: NDArray[np.int64], noise_of: Callable[[int], Noise]
) -> NDArray[np.int64]:
    """Draw noise for values of which a record changes some more than others."""
    noise = np.zeros_like(changes)
    for change in np.unique(changes).tolist():
        places = np.flatnonzero(changes == change)
        noise[places] = noise_of(change)(len(places))
    return noise


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The noise that is asked for."""

    eps: float  # of a release
    accounting: str = "whole"  # or "count": `eps` and `delta` are of each count, as in the paper
    protects: str = "record"  # or "party": neighbours differ in all records of a party
    noise: str = "polya"  # one of `NOISES`
    delta: float = 1e-5  # diluted: the chance that a count is left without; gaussian: that of `eps`
    gamma: float = 1.0  # which part of the members is honest and takes part; not for local noise

    def __post_init__(self) -> None:
        if not 0 < self.eps < math.inf:
            raise ValueError(f"eps = {self.eps}: it must be a finite number above 0")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta = {self.delta}: it must be between 0 and 1")
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma = {self.gamma}: it must be above 0 and at most 1")
        choices = {"accounting": ("whole", "count"), "protects": ("record", "party")}
        for name, known in (choices | {"noise": NOISES}).items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} = {getattr(self, name)!r}: it must be {' or '.join(known)}"
                )
        if self.noise == "gaussian" and self.accounting != "whole":
            raise ValueError("accounting = 'count': gaussian noise needs accounting = 'whole'")

    @property
    def is_local(self) -> bool:
        """Whether each member adds a whole copy, so that it depends on no other member."""
        return self.noise in LOCAL

    @property
    def needed(self) -> float:
        """Which part of the members must be honest and take part."""
        return 0.0 if self.is_local else self.gamma


@dataclass(frozen=True)
class Accounting:
    """From what is asked, the noise of each party, and what it promises."""

    schema: Declared  # the statistics, and the variables that they are of
    privacy: Privacy  # the noise that is asked for
    most_records: int = 1  # L: how many records a party has at most in a release

    def __post_init__(self) -> None:
        for Delta in {part.Delta for part in self.parts}:  # noqa: N806
            _ = self.copy(Delta).variance  # an eps that is out of range is refused here

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the statistics, of each of which a record changes one value."""
        return parts_of(self.schema)

    @property
    def sensitivity(self) -> int:
        """By how much a neighbour changes a count at most."""
        return self.most_records if self.privacy.protects == "party" else 1

    @property
    def tables(self) -> int:
        """T: how many parts there are."""
        return len(self.parts)

    @property
    def counts(self) -> int:
        """How many values neighbours differ in at most."""
        return sum(min(self.sensitivity, part.cells) for part in self.parts)

    @property
    def rho(self) -> float:
        """The rho of a release with Gaussian noise: of all values together."""
        return rho_of(self.privacy.eps, self.privacy.delta)

    @property
    def eps_of_a_count(self) -> float:
        """The eps that the noise of each count has."""
        whole = self.privacy.accounting == "whole"
        return self.privacy.eps / self.tables if whole else self.privacy.eps

    @property
    def delta_of_a_count(self) -> float:
        """The delta that the noise of each count has; 0 except for diluted noise."""
        if self.privacy.noise != "diluted":
            return 0.0
        whole = self.privacy.accounting == "whole"
        return self.privacy.delta / self.counts if whole else self.privacy.delta

    def copy(self, change: int = 1) -> AnyNoise:
        """Return one whole copy of the noise of a value: no party adds more."""
        Delta = self.sensitivity * change  # noqa: N806
        if self.privacy.noise == "gaussian":
            return DiscreteGaussian(rho=self.rho / self.tables, Delta=Delta)
        return DiscreteLaplace(eps=self.eps_of_a_count, Delta=Delta)

    def honest(self, members: int) -> int:
        """Return how many of the members must be honest and take part."""
        if self.privacy.is_local:
            return 1
        needed = share_of(self.privacy.gamma, members)
        if needed * (1 + ROUNDED) < 1:
            raise ValueError(
                f"gamma n = {self.privacy.gamma} * {members}: it must be at least one honest party"
            )
        return math.ceil(needed)

    def noise(self, estimate: int, randomness: Randomness, change: int = 1) -> AnyNoise:
        """Return the noise of a party that believes there are so many members, or more."""
        if self.privacy.is_local:
            return self.copy(change)
        gamma, eps = self.privacy.gamma, self.eps_of_a_count
        Delta = self.sensitivity * change  # noqa: N806
        # There are 1 / gamma members at least, whatever a party believes: see `honest`.
        n = max(estimate, math.ceil((1 - ROUNDED) / share_of(gamma, 1)))
        if self.privacy.noise == "polya":
            share = self.honest(n)
            return PolyaShare(eps=eps, Delta=Delta, n=share, randomness=randomness)
        delta = self.delta_of_a_count
        return DilutedGeometric(
            eps=eps, Delta=Delta, delta=delta, gamma=gamma, n=n, randomness=randomness
        )

    def noise_of_all(self, estimate: int, randomness: Randomness | None = None) -> Noise:
        """Return the noise of a party for all values of a release; as `noise`."""
        changes, source = changes_of(self.schema), randomness or SystemRandomness()

        def draw(count: int, /) -> NDArray[np.int64]:
            if count != len(changes):
                raise ValueError(f"a release has {len(changes)} values, got {count}")
            return noise_of_each(changes, lambda change: self.noise(estimate, source, change))

        return draw

    def errors(self, copies: float = 1.0) -> NDArray[np.float64]:
        """Return the standard error of each value of a release, where each has so many copies."""
        each = [math.sqrt(copies * self.copy(part.Delta).variance) for part in self.parts]
        return np.repeat(each, [part.cells for part in self.parts])

    def noises(self, estimates: Sequence[int]) -> list[AnyNoise]:
        """Return the noise of a count, of parties with these estimates of the number of members."""
        source = SystemRandomness()
        return [self.noise(estimate, source) for estimate in estimates]

    @property
    def eps(self) -> float:
        """The eps of a release: of all values together."""
        return self.tables * self.eps_of_a_count

    @property
    def _both_ways(self) -> float:
        """What turns a chance of failure into delta: 1 + e^eps."""
        return 1 + math.exp(min(self.eps, 600.0))

    def cost(self, members: int) -> Cost:
        """Return what a release over so many members costs a member's budget."""
        polya, gaussian = (self.privacy.noise == noise for noise in ("polya", "gaussian"))
        slack = TAIL + polya * members * self._both_ways * SAMPLER
        slack = min(self.counts * self.delta_of_a_count + slack, 1.0)
        if not gaussian:
            return Cost.of(self.eps, slack)
        return Cost(self.eps, self.privacy.delta + slack, self.rho, slack)

    def reach(self, parties: int, counts: int) -> int:
        """Return what noise stays within, except with a chance of 2^-64 / (1 + e^eps)."""
        largest = max(part.Delta for part in self.parts)
        return self.copy(largest).bound(1, TAIL / self._both_ways / (parties * counts))

    def promise(
        self,
        noises: Sequence[AnyNoise],
        members: int,
        colluding: int = 0,
        *,
        checked: bool = True,
    ) -> SumPromise:
        """Return what a release promises."""
        cost = self.cost(members)
        return SumPromise(
            eps=self.eps,
            delta=cost.delta,
            protects=self.privacy.protects,
            mechanism=self.privacy.noise,
            cost=cost,
            composition="zCDP" if self.privacy.noise == "gaussian" else "basic",
            eps_of_a_count=self.eps_of_a_count,
            delta_of_a_count=self.delta_of_a_count,
            sensitivity=self.sensitivity,
            tables=self.tables,
            counts=self.counts,
            members=members,
            present=len(noises),
            honest=self.honest(members),
            colluding=colluding,
            checked=checked or self.privacy.is_local,
            copies=math.fsum(noise.copies for noise in noises),
            sd=math.sqrt(math.fsum(noise.variance for noise in noises)),
        ).worded()
