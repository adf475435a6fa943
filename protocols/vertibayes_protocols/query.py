"""Queries: what an analyst asks of parties, as data that says itself what it does.

A kind of query is one class. Its fields are the question, in names and numbers, never in code.
`plan` says what does not fit the study, `effects` what it takes, shows and costs, and a program for
each role sends the messages. `vertibayes_protocols.engine` checks, charges and notes the effects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.approval import Asked
from vertibayes_protocols.effects import Effects
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.study import NEEDS_MASKED_TABLES, Joined, Study
from vertibayes_protocols.wire import FREE

R_co = TypeVar("R_co", covariant=True)
P = TypeVar("P")

Give: TypeAlias = Callable[[], None]  # charges and notes a query's effects, once


@dataclass(frozen=True)
class At:
    """Where a query is planned: names, and what all parties know of the study. No data."""

    # Who plans it; the analyst and the dealer of the session.
    party: Party
    analyst: Party
    dealer: Party
    joined: Joined | None  # the study that the party has joined
    modulus: int  # N of the additive and product schemes

    @classmethod
    def of(cls, role: SiteRole | DealerRole | AnalystRole) -> At:
        """Return what a role knows."""
        party, joined = role.party, role.joined
        if isinstance(role, SiteRole):
            names = role.analyst, role.dealer
        elif isinstance(role, DealerRole):
            names = role.analyst, party
        else:
            names = party, "" if joined is None else joined.study.dealer
        return cls(party, *names, joined, role.modulus)

    def shown_by(self, sites: Iterable[Party]) -> tuple[Party, ...]:
        """Return of which sites it notes what they show: the analyst of all, a site of itself."""
        return tuple(sites) if self.party == self.analyst else (self.party,)


@dataclass(frozen=True, slots=True)
class Query(Asked, ABC, Generic[R_co, P]):
    """What the analyst asks of `parties`: a result of the type `R_co` by a plan of the type `P`."""

    # What the engine cannot see in the effects:
    is_dealt: ClassVar[bool] = False  # whether the dealer answers it
    gives_late: ClassVar[bool] = False  # the site's program calls `give`, before it sends anything
    ends_run: ClassVar[bool] = False  # whether it uses up the run of an approved study

    @abstractmethod
    def plan(self, at: At) -> P:
        """Return what the parties do, or refuse; what takes long is computed when it is used."""

    @abstractmethod
    def effects(self, plan: P, at: At) -> Effects:
        """Return what the query takes, shows and costs, as the party `at.party` sees it."""

    @abstractmethod
    def run_site(self, site: SiteRole, plan: P, give: Give) -> Program[None]:
        """Send and receive a site's messages."""

    def run_dealer(self, dealer: DealerRole, plan: P) -> Program[None]:
        """Send and receive the dealer's messages."""
        raise NotImplementedError(f"the dealer does not answer {self.kind!r}")

    @abstractmethod
    def run_analyst(self, analyst: AnalystRole, plan: P) -> Program[R_co]:
        """Send and receive the analyst's messages; return the result."""

    # ---- what most kinds leave as it is ----------------------------------------------------------

    def fits(self, site: SiteRole, plan: P) -> None:
        """Refuse what does not fit a site's keys, lists or data: last, as it tells of the data."""

    def fits_dealer(self, dealer: DealerRole, plan: P) -> None:
        """Refuse, with a ValueError, what does not fit the keys or limits of the dealer."""

    def is_paid(self, site: SiteRole) -> bool:
        """Whether the site has charged this query before, and gives its answer again."""
        del site
        return False

    def revealed(self, plan: P, at: At, result: R_co) -> Effects:  # type: ignore[misc]  # read only
        """Return what the analyst's ledger notes, where this depends on the result."""
        del result
        return self.effects(plan, at)

    @property
    def need(self) -> int | None:
        """How many of the parties must answer, if the result does not need all of them."""
        return None


@dataclass(frozen=True, slots=True)
class StudyQuery(Query[R_co, P]):
    """Ask for something of a study whose columns are committed."""

    by_any_way: ClassVar[bool] = False  # whether it needs no masked columns
    study: bytes = field(metadata=FREE)  # the id of the study
    number: int = field(metadata=FREE)

    def joined(self, at: At) -> Joined:
        """Return the study; a ValueError if the party has not joined it."""
        if at.joined is None or at.joined.study.id != self.study:
            raise ValueError("it has not committed to this study")
        if not self.by_any_way and not at.joined.study.is_masked:
            raise ValueError(f"{NEEDS_MASKED_TABLES}: {self.kind!r} needs masked columns")
        return at.joined


AnyQuery: TypeAlias = Query[Any, Any]


def check_variables(study: Study, names: Iterable[str]) -> None:
    """Refuse a variable that the study does not have, with a ValueError."""
    for name in names:
        if name not in study.variables:
            raise ValueError(f"the study has no variable {name!r}")


def numbered(groups: Iterable[Iterable[str]]) -> dict[str, int]:
    """Return the place of each variable among all variables of some groups.

    Examples
    --------
    >>> numbered([("z", "x"), ("z", "y")])
    {'z': 0, 'x': 1, 'y': 2}
    """
    names = dict.fromkeys(chain.from_iterable(groups))
    return {name: place for place, name in enumerate(names)}


def numbers(values: Iterable[int]) -> NDArray[np.uint32]:
    """Return places or lengths as a query has them."""
    return np.array(list(values), np.uint32)


def check_places(places: NDArray[np.uint32], variables: Sequence[str]) -> None:
    """Refuse an array that does not hold places of variables, with a ValueError."""
    if places.ndim != 1 or (places >= len(variables)).any():
        raise ValueError("a group has places beyond the query's variables")


def check_each_once(variables: Sequence[str]) -> None:
    """Refuse variables of which one is named twice, with a ValueError: it has one place."""
    if len(set(variables)) < len(variables):
        raise ValueError("the query names a variable twice")


def check_most(what: str, number: int, most: int) -> None:
    """Refuse a query that has too many of something, with a ValueError."""
    if number > most:
        raise ValueError(
            f"the query has {number:,} {what}; at most {most:,} are allowed in one query"
        )
