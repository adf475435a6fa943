"""What a release with noise promises: how much, for whom, against whom, and what it leaves out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from vertibayes_protocols.budget import Cost, eps_of

LOCAL = ("laplace", "gaussian")  # kinds of noise of which each party adds a whole copy
UNITS = {
    "record": "adding or removing one record",
    "party": "all records of one party",
    "attributes": "whether the attributes of one training record are known (twice that for other "
    "values of them)",
    "report": "all that one person reports, whatever the person's values are",
}


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a release is, or several are: (eps, delta)-differentially private, and for whom."""

    # Of all that is released, together.
    eps: float
    delta: float
    # Two sets of records are neighbours by "record" if one has one record more; by "party" if one
    # has no record of a party whose records the other has; by "attributes" if one does not know the
    # attributes of a record, except its class; by "report" if a person has other values.
    protects: str
    mechanism: str  # the kind of noise, or the oracle of reports
    cost: Cost  # what a site charges to its budget
    composition: str = "basic"  # of eps, over counts and releases; or "zCDP"
    whom: str = "whoever sees the release"  # against whom
    noise: str = ""  # how large it is, in words
    uncovered: tuple[str, ...] = ()  # what is shown beside the release, and noise does not protect
    releases: int = 1  # how often what is protected was released

    def times(self, releases: int) -> Self:
        """Return the promise of so many releases like this one, of the same records."""
        return self.over(self.cost.times(releases), releases)

    def over(self, cost: Cost, releases: int) -> Self:
        """Return the promise of several releases of the same records, which cost so much together.

        Under zCDP, delta stays as it is and eps grows with the square root of their number, as long
        as eps is small; otherwise eps and delta add up.
        """
        if self.composition == "zCDP":
            eps, delta = eps_of(cost.rho, self.delta - cost.slack), self.delta
        else:
            eps, delta = cost.eps, min(cost.delta, 1.0)
        return replace(self, eps=eps, delta=delta, cost=cost, releases=releases)

    def beside(self, *uncovered: str) -> Self:
        """Return the promise of a release beside which more is shown."""
        return replace(self, uncovered=(*self.uncovered, *uncovered))

    @property
    def beyond(self) -> str:
        """What is shown beside the release, in words."""
        return f"not protected by the noise: {'; '.join(self.uncovered)}"

    @property
    def sentence(self) -> str:
        """All of this that matters, in words."""
        often = "" if self.releases == 1 else f" over {self.releases} releases"
        by = "" if self.composition == "basic" else f" by {self.composition}"
        noise = f"; {self.noise}" if self.noise else ""
        shown = f" Not protected: {'; '.join(self.uncovered)}." if self.uncovered else ""
        return (
            f"The model is ({self.eps:.4g}, {self.delta:.2g})-differentially private{by} for "
            f"{UNITS[self.protects]}{often}, against {self.whom}{noise}.{shown}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return all fields and the sentence, of types that JSON has."""
        return asdict(self) | {"cost": self.cost._asdict(), "sentence": self.sentence}


@dataclass(frozen=True, kw_only=True)
class SumPromise(Promise):
    """What the release of sums is, or several are."""

    eps_of_a_count: float
    delta_of_a_count: float
    sensitivity: int  # by how much a neighbour changes a count at most
    tables: int
    counts: int
    members: int  # how many there are
    present: int  # those whose counts were summed
    honest: int  # how many must add noise and keep it secret
    colluding: int  # how many at most may work with the aggregator
    checked: bool  # whether the parties see to it themselves; otherwise the aggregator is trusted
    copies: float  # of noise, expected in each released count
    sd: float  # the noise's standard deviation

    def worded(self) -> SumPromise:
        """Return the promise with its words."""
        others = f"with up to {self.colluding} members" if self.colluding else "alone"
        seen = "which the parties check" if self.checked else "which the aggregator is trusted with"
        whom = (
            f"the aggregator {others}, if {self.honest} of all {self.members} are honest and take "
            f"part, {seen}"
        )
        if self.mechanism in LOCAL:
            whom = "the aggregator and all other members together"
        copies = "one copy" if self.copies == 1 else f"{self.copies:.3g} copies"
        noise = f"each count has {copies} of noise, standard deviation {self.sd:.4g}"
        return replace(self, whom=whom, noise=noise)
