"""What all parties of an alignment know: the ring of the sites, the public size of each list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party

MOST_SITES = 63  # the matcher notes the lists that have a person as the bits of an int64


@dataclass(frozen=True)
class AlignmentPlan:
    """The public part of an alignment; all parties have the same.

    A person is in the study if all lists of `everyone` have the person; if it is empty, if any list
    does. At level 2, no person or at least `fewest` people of each list must be left out. A
    ValueError says that the sites, sizes, pairs or rings do not fit each other.

    >>> plan = AlignmentPlan(b"a run", ("a", "b"), {"a": 3, "b": 4}, "analyst", ("a", "b"))
    >>> plan.level, plan.chain("b"), plan.exact
    (1, ('b', 'a'), ())
    """

    run: bytes  # names this run, and no other: streams depend on it
    sites: tuple[Party, ...]  # from 2 to 63, in the order of the ring
    sizes: Mapping[Party, int]  # public: padding hides how many people a shorter list has
    matcher: Party  # who receives the blinded keys; the analyst
    everyone: tuple[Party, ...]
    apart: tuple[tuple[Party, Party], ...] = ()  # may not both hold a person of the study
    fewest: int = 1  # people that the study must have
    dealer: Party = ""  # level 2 only: who shares a key with each site
    rows: Mapping[Party, tuple[Ring, ...]] = field(default_factory=dict)  # level 2: rings of a row

    def __post_init__(self) -> None:
        if len(set(self.sites)) != len(self.sites) or len(self.sites) < 2:
            raise ValueError(f"sites must be two or more different names, got {self.sites}")
        if len(self.sites) > MOST_SITES:
            raise ValueError(
                f"an alignment must have at most {MOST_SITES} sites, got {len(self.sites)}"
            )
        if set(self.sizes) != set(self.sites) or min(self.sizes.values()) < 1:
            raise ValueError(f"sizes must have a number above 0 for each site, got {self.sizes}")
        others = {*self.everyone, *(site for pair in self.apart for site in pair), *self.rows}
        if unknown := sorted(others - set(self.sites)):
            raise ValueError(f"not a site: {', '.join(unknown)}; sites are {self.sites}")
        if any(one == other for one, other in self.apart):
            raise ValueError(f"apart must be pairs of different sites, got {self.apart}")
        if self.fewest < 1:
            raise ValueError(f"fewest must be at least 1, got {self.fewest}")
        levels = {bool(self.dealer), *(site in self.rows for site in self.sites)}
        if len(levels) > 1:
            raise ValueError(
                "level 2 needs a dealer and the rows of all sites; level 1 has neither"
            )

    @property
    def level(self) -> int:
        """1 if the sites learn who is in the study, 2 if nobody does."""
        return 2 if self.rows else 1

    @property
    def exact(self) -> tuple[Party, ...]:
        """Sites whose lists have no padding: the padding would be people of the study."""
        if len(set(self.everyone)) > 1:
            return ()
        return self.everyone[:1] or self.sites

    def after(self, site: Party, steps: int) -> Party:
        """Return the site that is some steps further in the ring; back, if `steps` is negative."""
        return self.sites[(self.sites.index(site) + steps) % len(self.sites)]

    def chain(self, owner: Party) -> tuple[Party, ...]:
        """Return the sites that a list passes, its owner first."""
        return tuple(self.after(owner, steps) for steps in range(len(self.sites)))

    def rings(self, owner: Party) -> tuple[Ring, ...]:
        """Return the rings of the row elements of a list; none at level 1."""
        return self.rows.get(owner, ())

    def name(self, purpose: str, *parts: str | int) -> bytes:
        """Return the label of a message or a stream of this run."""
        return label(f"alignment {purpose}", self.label, *parts)

    @cached_property
    def label(self) -> bytes:
        """The label of the run: it names all that the parties must agree on."""
        names = self.run, self.matcher, self.dealer
        parts: list[bytes | str | int] = [*names, self.fewest, len(self.sites)]
        for site in self.sites:
            rings = (ring.bits for ring in self.rings(site))
            parts += [site, self.sizes[site], len(self.rings(site)), *rings]
        for group in (self.everyone, *self.apart):
            parts += [len(group), *group]
        return label("alignment", *parts)
