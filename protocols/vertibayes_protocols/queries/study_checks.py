"""What all queries that count records of a joined study do alike: name, check, plan, remember."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Selection
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.costs import Planned
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.memory import Digests
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
    assert site.holder is not None  # checked
    if query.number <= site.holder.last:
        reason = (
            f"the number of the query must be above {site.holder.last}, got {query.number}: masks "
            "are used once"
        )
        raise QueryRefusedError(site.party, reason)


def check_at_site(site: SiteRole, query: StudyQuery) -> None:
    """Refuse a number that is not new, and records or changed values that would be singled out.

    The site has joined the study.
    """
    assert site.joined is not None  # checked
    check_number(site, query)
    if query.rows not in site.joined.answered:
        _check_values(site, site.joined)
        records = _records(site, site.joined.selection(query.rows))
        _check_size(site, query.study, len(records))
        _check_records(site, records)


def _check_values(site: SiteRole, joined: Joined) -> None:
    """Refuse values of which a few have changed since an earlier study."""
    if not joined.answered:  # otherwise they were checked: a study's values do not change
        with refusing(site.party):
            values = site.values_of(joined.study)
            site.memory.changes.check(values, site.policy.fewest_records)
            if site.hidden is not None:
                site.memory.changes.check_people(values.people, site.policy.fewest_records)


def _check_size(site: SiteRole, study: bytes, records: int) -> None:
    """Refuse a record set that has nearly as many people as another, if one's are unknown."""
    fewest = site.policy.fewest_records
    few = f"fewer than {fewest} records more or less than those of an earlier"
    differ = "tables of both could differ by them"
    if site.memory.is_near_hidden(study, records, fewest):
        reason = f"{few} study whose people no site knows: {differ}"
        raise QueryRefusedError(site.party, reason)
    if site.hidden is not None and site.memory.is_near_known(site.hidden.records, fewest):
        reason = f"{few} record set, in a study whose people no site knows: {differ}"
        raise QueryRefusedError(site.party, reason)


def _check_records(site: SiteRole, records: Digests) -> None:
    """Refuse one record set too many, or one that singles out records with the earlier sets.

    Only the site's own records count. A site that holds none of the chosen records answers: the
    query counts none of its people.
    """
    if site.memory.knows(records) or (site.placement is not None and not len(records)):
        return
    if site.memory.count_sets() >= site.policy.most_row_sets:
        reason = f"it has answered for {site.policy.most_row_sets} record sets, no more are allowed"
        raise QueryRefusedError(site.party, reason)
    if site.memory.smallest_atom(records) < site.policy.fewest_records:
        reason = (
            "together with the earlier record sets, these records would single out fewer than "
            f"{site.policy.fewest_records}"
        )
        raise QueryRefusedError(site.party, reason)


def remember_records(site: SiteRole, rows: Rows) -> None:
    """Remember a record set, and the study's values, before the site answers for them."""
    assert site.joined is not None  # considered
    if rows not in site.joined.answered:
        records = _records(site, site.joined.selection(rows))
        site.memory.keep_values(site.values_of(site.joined.study))
        if site.hidden is None:
            site.memory.note_size(len(records))
        else:
            site.memory.hide(site.joined.study.id, site.hidden.records)
        site.memory.answer(site.data, records)
        site.joined.answered.add(rows)


def _records(site: SiteRole, selection: Selection) -> Digests:
    """Return the digests of the chosen records that the site holds."""
    with refusing(site.party):
        return site.digests_of(selection.indices)


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
