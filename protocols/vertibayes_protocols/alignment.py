"""The alignment of a study, as all parties know it: who is in the study, matched by which rules.

Two levels. At level 1 each site learns which of its own people are in the study. At level 2 no site
learns that. The analyst, who matches the blinded identifiers, learns at both levels how many people
are in which lists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from typing import Any, NamedTuple

from vertibayes_mpc.alignment import AlignmentPlan
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.canonical import canonical_json, taken
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.settings import declared
from vertibayes_protocols.site.identifiers import rule_of

LEVELS = 1, 2
LARGER = 10  # times its own list: what a site believes of another's, if its owner says nothing
MOST_SIZE = 1 << 40


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the sites of a study agree on before they match their lists of people.

    Examples
    --------
    >>> Alignment(1, ("digits",), (("a", 90), ("b", 100)), ("a", "b")).sites
    ('a', 'b')
    """

    level: int  # 1 if each site may learn which of its people are in the study, 2 if no site may
    rules: tuple[str, ...]
    sizes: tuple[tuple[Party, int], ...]
    everyone: tuple[Party, ...]  # who is in the study is in all of these lists; if (), in any list
    apart: tuple[tuple[Party, Party], ...] = ()  # who share a variable, and hold different people
    fewest: int = Policy.fewest_records  # the smallest number of people that the study may have

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"`level` must be 1 or 2, got {self.level}")
        if not self.rules:
            raise ValueError("`rules` is empty; give the rule of each column of the identifier")
        for rule in self.rules:
            rule_of(rule)
        if any(size > MOST_SIZE for _, size in self.sizes):
            raise ValueError(f"`sizes` must be at most {MOST_SIZE:,}")
        self.plan(b"", "")  # which checks sizes, pairs and names

    @property
    def sites(self) -> tuple[Party, ...]:
        """The sites, in the order of the ring."""
        return tuple(site for site, _ in self.sizes)

    @property
    def size(self) -> dict[Party, int]:
        """The public size of each list."""
        return dict(self.sizes)

    @property
    def digest(self) -> bytes:
        """The SHA-256 of its canonical JSON, without the sizes: these only pad the lists."""
        content = {**self.as_json(), "sizes": list(self.sites)}
        return hashlib.sha256(canonical_json(content)).digest()

    @property
    def is_common(self) -> bool:
        """Whether all sites have every person of the study."""
        return set(self.everyone) == set(self.sites)

    def holds_all(self, site: Party) -> bool:
        """Whether a site has every person of the study."""
        return site in self.everyone

    def plan(
        self,
        run: bytes,
        matcher: Party,
        dealer: Party = "",
        rows: Mapping[Party, tuple[Ring, ...]] | None = None,
    ) -> AlignmentPlan:
        """Return the plan of a run; `dealer` and `rows` are those of level 2."""
        public = self.sites, self.size, matcher, self.everyone, self.apart, self.fewest
        return AlignmentPlan(run, *public, dealer, rows or {})

    def as_json(self) -> dict[str, Any]:
        """Return the alignment as JSON data, as a contract has it."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # lists for tuples
        return content

    @classmethod
    def from_json(cls, content: Any) -> Alignment:
        """Return the alignment of JSON data."""
        values = taken(content, "alignment", _FIELDS)
        pairs = [*values["sizes"], *values["apart"]]
        if not all(type(pair) is list and len(pair) == 2 for pair in pairs):
            raise ValueError("`sizes` and `apart` of an alignment must be lists of pairs")
        texts = [name for name, _ in values["sizes"]]
        texts += [*chain.from_iterable(values["apart"]), *values["rules"], *values["everyone"]]
        if not all(type(text) is str for text in texts):
            raise ValueError("names and rules of an alignment must be texts")
        if not all(type(size) is int for _, size in values["sizes"]):
            raise ValueError("the sizes of an alignment must be whole numbers")
        return cls(
            values["level"],
            tuple(values["rules"]),
            tuple(map(tuple, values["sizes"])),
            tuple(values["everyone"]),
            tuple(map(tuple, values["apart"])),
            values["fewest"],
        )


_FIELDS = {
    "level": int, "rules": list, "sizes": list, "everyone": list, "apart": list, "fewest": int,
}  # fmt: skip


@dataclass(frozen=True)
class AlignmentLimits:
    """What the owner of a site allows in alignments.

    A list that is matched tests its people one by one: whoever fills a list with candidates learns
    who of them the other site holds. Hence the limits.
    """

    least_level: int = declared("whole", 1, least=1, most=2)  # in which the site takes part
    most_people: Mapping[Party, int] = declared("sizes", {})  # of each site's list, also of its own
    most_alignments: int = declared("whole", 3, least=1)  # that begin, in all studies

    def most_of(self, peer: Party, own: int) -> int:
        """Return the largest public size of a peer's list, for a site that holds `own` people."""
        return self.most_people.get(peer, LARGER * own)


@dataclass(frozen=True)
class AlignmentRequest:
    """What an analyst asks for: an `Alignment` of which the sites' descriptions give the rest."""

    level: int = declared("whole", 1, least=1, most=2)
    rules: tuple[str, ...] = declared("list", ("exact",), least=1)
    sizes: Mapping[Party, int] = declared("sizes", {})  # the sites' numbers of people if not given
    everyone: tuple[Party, ...] | None = declared("texts")  # else those that alone hold a variable
    apart: tuple[tuple[Party, Party], ...] | None = declared("pairs")  # else who share a variable
    fewest: int = declared("whole", Policy.fewest_records, least=1)

    def check_names(self, sites: tuple[Party, ...]) -> None:
        """Refuse sizes of sites that the study does not have."""
        if unknown := sorted(set(self.sizes) - set(sites)):
            raise ValueError(
                f"`sizes` names {', '.join(unknown)}, which is not a site of the study: "
                f"{', '.join(sites)}"
            )

    def alignment(
        self,
        sites: tuple[Party, ...],
        people: Mapping[Party, int],
        holders: Mapping[str, tuple[Party, ...]],
    ) -> Alignment:
        """Return the alignment of a study."""
        self.check_names(sites)
        sizes = tuple((site, self.sizes.get(site, people.get(site, 0))) for site in sites)
        everyone, apart = universe(sites, holders)
        everyone = everyone if self.everyone is None else self.everyone
        apart = apart if self.apart is None else self.apart
        return Alignment(self.level, self.rules, sizes, everyone, apart, self.fewest)

    def for_contract(self, sites: tuple[Party, ...]) -> Alignment:
        """Return the alignment of a contract: without `everyone` all sites hold everybody."""
        self.check_names(sites)
        if unknown := [site for site in sites if site not in self.sizes]:
            raise ValueError(
                f"`sizes` has no number of people of {', '.join(unknown)}; owners approve the "
                "public size of each list, as sizes = { a = 10_000 }"
            )
        everyone = sites if self.everyone is None else self.everyone
        stated = replace(self, everyone=everyone, apart=self.apart or ())
        return stated.alignment(sites, {}, {})


def universe(
    sites: tuple[Party, ...], holders: Mapping[str, tuple[Party, ...]]
) -> tuple[tuple[Party, ...], tuple[tuple[Party, Party], ...]]:
    """Return which sites must hold everybody in a study, and which pairs must not share anybody.

    >>> universe(("a", "b", "c"), {"x": ("a",), "y": ("b", "c")})
    (('a',), (('b', 'c'),))
    """
    alone = {held[0] for held in holders.values() if len(held) == 1}
    shared = {frozenset(pair) for held in holders.values() for pair in combinations(held, 2)}
    apart = tuple(pair for pair in combinations(sites, 2) if frozenset(pair) in shared)
    return tuple(site for site in sites if site in alone), apart


class AlignedPeople(NamedTuple):
    """What the analyst learns of an alignment."""

    # As of `vertibayes_mpc.alignment.Matched`; None and empty if the sites had kept the alignment.
    people: int | None
    regions: dict[tuple[Party, ...], int]
    name: bytes = b""  # at level 2, of the alignment
    hidden: int = 0  # at level 2, how many people the study has
