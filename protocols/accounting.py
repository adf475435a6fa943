"""What noise on counts promises, to whom, and how large it is.

A record is in one count of each table that is summed: in m + 1 for naive Bayes, its class and each
of m features within it. Noise of the rate
eps_c / Delta on each count is (eps_c, delta_c)-private for a neighbour that changes the count by
Delta; so the model as a whole, with c the number of counts that a neighbour can change, is

    eps = (m + 1) eps_c,    delta = c delta_c + 2^-64 + n (1 + e^eps) 2^-100

    protects="record"    one record more or less:              Delta = 1,  c = m + 1
    protects="party"     all L records of a party, or none:    Delta = L,  c = sum over tables of
                                                               the lesser of L and their cells

    accounting="count"   eps and delta are asked of each count: eps_c, delta_c (Huai et al. 2015)
    accounting="whole"   of the model: eps_c = eps / (m + 1), delta_c = delta / c

A party's L records change each table by L at most, all counts of it together, so that eps is the
same for both; delta is not, as the noise of each count is there, or is not, by itself. 2^-64 is for
noise that leaves its slot, whose party refuses to send: slots are so wide that the chance of it in
a release is 2^-64 / (1 + e^eps). Polya shares have no delta_c, but the last term: what n parties'
samplers are away from their law. Diluted copies have no such term.

Who replaces a record takes one away and adds one: twice the eps.

References
----------
.. [1] M. Huai, L. Huang, W. Yang, L. Li, M. Qi (2015). Privacy-Preserving Naive Bayes
   Classification. Sections 4.2, 4.3 and 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from mpc.noise import DilutedGeometric, DiscreteLaplace, IntegerNoise, PolyaShare
from mpc.randomness import Randomness, SystemRandomness
from protocols.schema import Declared
from protocols.site.statistics import Counts, shapes

TAIL = 2.0**-64  # what noise that leaves its slot adds to delta
ROUNDED = Fraction(1, 2**50)  # by how much a float like 1/3 may be less than the share
SAMPLER = 2.0**-100  # how far Polya shares of a release are from their law


def share_of(share: float, n: int) -> Fraction:
    """Return a share of n, the share taken as it is written in decimals: .1 of 30 is 3."""
    return Fraction(str(share)) * n


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The noise that is asked for.

    Parameters
    ----------
    eps : float
    accounting : {"whole", "count"}, default="whole"
        Whether `eps` and `delta` are of the whole model, or of each count as in the paper.
    protects : {"record", "party"}, default="record"
    noise : {"polya", "diluted"}, default="polya"
        Shares of one copy, or the paper's diluted geometric noise.
    delta : float, default=1e-5
        For diluted noise: the chance that a count is left without.
    gamma : float, default=1.0
        Which part of the members is honest and takes part, at least.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """

    eps: float
    accounting: str = "whole"
    protects: str = "record"
    noise: str = "polya"
    delta: float = 1e-5
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.eps < math.inf:
            raise ValueError(f"eps = {self.eps}: it must be a finite number above 0")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta = {self.delta}: it must be between 0 and 1")
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma = {self.gamma}: it must be above 0 and at most 1")
        choices = {"accounting": ("whole", "count"), "protects": ("record", "party")}
        for name, known in (choices | {"noise": ("polya", "diluted")}).items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} = {getattr(self, name)!r}: it must be {' or '.join(known)}"
                )


@dataclass(frozen=True)
class Promise:
    """What a release is, or several are: (eps, delta)-differentially private, and for whom.

    Attributes
    ----------
    eps, delta : float
        Of all counts that are released, together.
    protects : str
        ``record``: two sets of records are neighbours if one has one record more; ``party``: if one
        has no record of a party whose records the other has. Who is a member is known to all.
    eps_of_a_count, delta_of_a_count : float
    sensitivity : int
        Delta: by how much a neighbour changes a count at most.
    tables, counts : int
        In how many tables, and how many counts of them, neighbours differ at most.
    noise : str
    members, present, honest, colluding : int
        Members; those whose counts were summed; how many of them must add noise and keep it secret;
        how many at most work with the aggregator, or the sum over less than all others may be open.
    checked : bool
        Whether the parties themselves see to it that so many take part; else the aggregator, who
        must not call parties gone who are there, is trusted with it.
    copies, sd : float
        Copies of discrete Laplace noise expected in each released count; its standard deviation.
    releases : int
        How often the records that were released most often were.
    """

    eps: float
    delta: float
    protects: str
    eps_of_a_count: float
    delta_of_a_count: float
    sensitivity: int
    tables: int
    counts: int
    noise: str
    members: int
    present: int
    honest: int
    colluding: int
    checked: bool
    copies: float
    sd: float
    releases: int = 1

    def times(self, releases: int) -> Promise:
        """Return the promise of so many releases of the same records: eps and delta add up."""
        delta = min(self.delta * releases, 1.0)
        return replace(self, eps=self.eps * releases, delta=delta, releases=releases)

    @property
    def sentence(self) -> str:
        """All of this that matters, in words."""
        one = {"record": "adding or removing one record", "party": "all records of one party"}
        often = "" if self.releases == 1 else f" over {self.releases} releases"
        others = f"with up to {self.colluding} members" if self.colluding else "alone"
        seen = "which the parties check" if self.checked else "which the aggregator is trusted with"
        return (
            f"The model is ({self.eps:.4g}, {self.delta:.2g})-differentially private for "
            f"{one[self.protects]}{often}, against the aggregator {others}, "
            f"if {self.honest} of all {self.members} are honest and take part, {seen}; each count "
            f"has {self.copies:.3g} copies of noise, standard deviation {self.sd:.4g}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return all fields and the sentence, of types that JSON has."""
        return asdict(self) | {"sentence": self.sentence}


@dataclass(frozen=True)
class Accounting:
    """From what is asked, the noise of each party, and what it promises.

    Parameters
    ----------
    schema : Declared
    privacy : Privacy
    most_records : int
        L: how many records a party has at most in a release; declared, as the records' own largest
        number would tell of them.

    Raises
    ------
    ValueError
        If a feature is a number, or eps so small or large that no such noise is drawn.
    """

    schema: Declared
    privacy: Privacy
    most_records: int

    def __post_init__(self) -> None:
        for name in self.schema.numerics:
            raise ValueError(f"{name} is a number: this noise is for counts")
        assert self.copy.rate  # an eps that is out of range is refused here

    @property
    def sensitivity(self) -> int:
        """Delta: by how much a neighbour changes a count at most."""
        return self.most_records if self.privacy.protects == "party" else 1

    @property
    def tables(self) -> int:
        """In how many tables a record is, in one count of each."""
        return sum(len(s.families) for s in self.schema.statistics if isinstance(s, Counts))

    @property
    def counts(self) -> int:
        """How many counts neighbours differ in at most."""
        cells = [
            math.prod(shape)
            for statistic in self.schema.statistics
            for shape in shapes(statistic, self.schema.variables)
        ]
        return sum(min(self.sensitivity, count) for count in cells)

    @property
    def eps_of_a_count(self) -> float:
        """The eps that the noise of each count has."""
        whole = self.privacy.accounting == "whole"
        return self.privacy.eps / self.tables if whole else self.privacy.eps

    @property
    def delta_of_a_count(self) -> float:
        """The delta that the noise of each count has; 0 for Polya shares."""
        if self.privacy.noise == "polya":
            return 0.0
        whole = self.privacy.accounting == "whole"
        return self.privacy.delta / self.counts if whole else self.privacy.delta

    @property
    def copy(self) -> DiscreteLaplace:
        """One whole copy of the noise of a count: no party adds more."""
        return DiscreteLaplace(eps=self.eps_of_a_count, Delta=self.sensitivity)

    def honest(self, members: int) -> int:
        """Return how many of the members must be honest and take part.

        Raises
        ------
        ValueError
            If that is less than one.
        """
        needed = share_of(self.privacy.gamma, members)
        if needed * (1 + ROUNDED) < 1:
            raise ValueError(
                f"gamma n = {self.privacy.gamma} * {members}: it must be at least one honest party"
            )
        return math.ceil(needed)

    def noise(self, estimate: int, randomness: Randomness) -> IntegerNoise:
        """Return the noise of a party that believes there are so many members, or more.

        Parameters
        ----------
        estimate : int
            u_k, not above the number of members.
        randomness : Randomness
        """
        gamma, eps, Delta = self.privacy.gamma, self.eps_of_a_count, self.sensitivity  # noqa: N806
        # There are 1 / gamma members at least, whatever a party believes: see `honest`.
        n = max(estimate, math.ceil((1 - ROUNDED) / share_of(gamma, 1)))
        if self.privacy.noise == "polya":
            share = self.honest(n)
            return PolyaShare(eps=eps, Delta=Delta, n=share, randomness=randomness)
        delta = self.delta_of_a_count
        return DilutedGeometric(
            eps=eps, Delta=Delta, delta=delta, gamma=gamma, n=n, randomness=randomness
        )

    def noises(self, estimates: Sequence[int]) -> list[IntegerNoise]:
        """Return the noise of parties with these estimates of the number of members."""
        source = SystemRandomness()
        return [self.noise(estimate, source) for estimate in estimates]

    @property
    def eps(self) -> float:
        """The eps of a release: of all counts together."""
        return self.tables * self.eps_of_a_count

    @property
    def _both_ways(self) -> float:
        """What turns a chance of failure into delta: 1 + e^eps."""
        return 1 + math.exp(min(self.eps, 600.0))

    def delta(self, members: int) -> float:
        """Return the delta of a release over so many members: of all counts together."""
        polya = self.privacy.noise == "polya"
        beyond = TAIL + polya * members * self._both_ways * SAMPLER
        return min(self.counts * self.delta_of_a_count + beyond, 1.0)

    def reach(self, parties: int, counts: int) -> int:
        """Return what the noise of each party stays within, for all counts of a release.

        It exceeds this with a chance of 2^-64 / (1 + e^eps).
        """
        return self.copy.bound(1, TAIL / self._both_ways / (parties * counts))

    def promise(
        self,
        noises: Sequence[IntegerNoise],
        members: int,
        colluding: int = 0,
        *,
        checked: bool = True,
    ) -> Promise:
        """Return what a release promises.

        Parameters
        ----------
        noises : sequence of IntegerNoise
            Of those who take part.
        members : int
        colluding : int, default=0
        checked : bool, default=True
            See `Promise`.
        """
        return Promise(
            eps=self.eps,
            delta=self.delta(members),
            protects=self.privacy.protects,
            eps_of_a_count=self.eps_of_a_count,
            delta_of_a_count=self.delta_of_a_count,
            sensitivity=self.sensitivity,
            tables=self.tables,
            counts=self.counts,
            noise=self.privacy.noise,
            members=members,
            present=len(noises),
            honest=self.honest(members),
            colluding=colluding,
            checked=checked,
            copies=math.fsum(noise.copies for noise in noises),
            sd=math.sqrt(math.fsum(noise.variance for noise in noises)),
        )
