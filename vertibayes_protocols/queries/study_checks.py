"""What all queries that count records of a joined study do alike: name, check, plan, remember."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Party
from vertibayes_protocols import record_checks
from vertibayes_protocols.effects import Number, Planned
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.record_checks import remember_records as remember_records
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Rows

P = TypeVar("P")


class StudyQuery(Protocol):
    """A query that counts records of a study."""

    @property
    def parties(self) -> tuple[Party, ...]:
        """Whom the query asks."""
        ...

    @property
    def study(self) -> bytes:
        """The id of the study."""
        ...

    @property
    def number(self) -> int:
        """The number of the query, above all earlier ones in the study: masks are used once."""
        ...

    @property
    def rows(self) -> Rows:
        """The records that are counted."""
        ...


def joined_study(party: Party, joined: Joined | None, query: StudyQuery) -> Joined:
    """Return the study that a party has joined, or refuse a query about another study."""
    if joined is None or joined.study.id != query.study:
        raise QueryRefusedError(party, "it has not committed to this study")
    return joined


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
    if places.ndim != 1 or places.dtype != np.uint32 or (places >= len(variables)).any():
        raise ValueError("a group has places beyond the query's variables")


def check_most(what: str, number: int, most: int) -> None:
    """Refuse a query that has too many of something, with a ValueError."""
    if number > most:
        raise ValueError(
            f"the query has {number:,} {what}; at most {most:,} are allowed in one query"
        )


def check_planned(party: Party, policy: Policy, planned: Planned) -> None:
    """Refuse what takes too much memory or time at a party, by its policy."""
    policy.check_planned(party, planned.memory, planned.seconds)


def check_parties(party: Party, query: StudyQuery, parties: tuple[Party, ...]) -> None:
    """Refuse a query that asks other parties than those of its plan."""
    if query.parties != parties:
        raise QueryRefusedError(
            party, "the query asks other parties than the holders and the dealer"
        )


def check_number(site: SiteRole, query: StudyQuery) -> None:
    """Refuse a query whose number is not new; the site has joined the study."""
    record_checks.check_number(site, Number(query.number))


def check_at_site(site: SiteRole, query: StudyQuery) -> None:
    """Refuse a number that is not new, and records or changed values that would be singled out."""
    check_number(site, query)
    record_checks.check_records(site, query.rows)


def planned(joined: Joined, query: StudyQuery, kind: type[P], make: Callable[[], P]) -> P:
    """Return the plan of a query: the one made when the party considered it, or a new one.

    Parameters
    ----------
    joined, query
        The study, and the query.
    kind : type
        The class of the plan.
    make : callable
        Makes the plan.
    """
    if joined.planned is None or joined.planned[0] is not query:
        joined.planned = query, make()
    plan = joined.planned[1]
    assert isinstance(plan, kind)  # of a query of this kind
    return plan
