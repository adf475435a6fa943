"""An open study: its columns are committed, and its analyst asks for tables, choices and releases.

`vertibayes_protocols.opening.open_study` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.alignment import AlignedPeople
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.engine import check_time
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.ledger import Ledger, RevealedTable
from vertibayes_protocols.queries import Choose, Release
from vertibayes_protocols.queries.choices.choose import portions
from vertibayes_protocols.queries.choices.lookups import choice_lookups
from vertibayes_protocols.queries.releases.plan import check_rule
from vertibayes_protocols.queries.tables.costs import Costs
from vertibayes_protocols.queries.tables.counting import ASKED
from vertibayes_protocols.queries.tables.shared_products import order_of_products
from vertibayes_protocols.queries.tables.tables import ask_tables, parties_of
from vertibayes_protocols.queries.tables.ways import batches, choose_ways, grouped, load_of
from vertibayes_protocols.query import Query
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.session import Session, Traffic
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Family, Rows

T = TypeVar("T")


class Revealed(NamedTuple):
    """One table that the analyst has received."""

    family: Family
    missing: bool  # whether a missing value is a state
    rows: Rows  # the records that are counted
    table: NDArray[np.int64]


class Renewal(Protocol):
    """Opens a study again after its session broke (`vertibayes_protocols.renewal`)."""

    def renew(self, error: TransportError) -> OpenStudy:
        """Return the study in another session, or raise the last error."""
        ...

    def answered(self) -> None:
        """Note that a query was answered."""
        ...


@dataclass
class OpenStudy:
    """A study whose columns the sites have committed: its analyst can ask for tables.

    If its session breaks, the study is opened again by its `renewal`, and continues there.
    """

    session: Session
    joined: Joined  # the study as the analyst has joined it
    most_variables: int  # how many variables the policies of all sites allow in a table
    watchers: list[Callable[[int, int], None]] = field(default_factory=list, repr=False)
    renewal: Renewal | None = field(default=None, repr=False)
    people: AlignedPeople | None = None  # what the alignment of the study has shown

    @property
    def study(self) -> Study:
        """The study."""
        return self.joined.study

    @property
    def ledger(self) -> Ledger:
        """The analyst's ledger: what was revealed."""
        return self.session.role.ledger

    @property
    def traffic(self) -> Traffic:
        """What has travelled in all sessions of the study, as far as it can be seen from here."""
        return self.session.transport.traffic

    def ask(self, make: Callable[[Joined], Query[T, Any]]) -> T:
        """Ask a query; ask it again where the study was opened again, in another session."""
        while (answer := self._asked_once(make)) is None:
            pass
        return answer[0]

    def _asked_once(self, make: Callable[[Joined], Query[T, Any]]) -> tuple[T] | None:
        """Return the answer to a query; None if the study was opened again instead."""
        try:
            result = self.session.ask(make(self.joined))
        except TransportError as error:
            if self.renewal is None:
                raise
            self._take(self.renewal.renew(error))
            return None
        if self.renewal is not None:
            self.renewal.answered()
        return (result,)

    def _take(self, other: OpenStudy) -> None:
        """Continue in the session of the same study, opened again."""
        if other.joined.mark != self.joined.mark:
            other.session.close()
            raise ValueError("a site does not remember the study as it was: begin a new study")
        other.traffic.include(self.traffic)
        self.session, self.joined = other.session, other.joined

    def check(self, families: Sequence[Family], *, missing: bool) -> None:
        """Refuse families whose tables would take more memory than a query may."""
        costs = Costs(self.study, self.study.records, missing)
        for group in [] if costs.all_can_shuffle else grouped(families):
            choose_ways(costs, group)

    def reveal(
        self, families: Sequence[Family], *, missing: bool, rows: Rows
    ) -> Iterator[list[Revealed]]:
        """Ask for tables, each once, in as many queries as the memory of the study needs.

        The variables of a table may come back in another order, in which tables share products.
        """
        costs = Costs(self.study, rows.count(self.study.records), missing)
        ordered = order_of_products(self.study, [family.members for family in families])
        families = [Family(child, tuple(parents)) for child, *parents in ordered]
        planned = [(batch, load_of(costs, grouped(batch))) for batch in batches(costs, families)]
        for batch in self._watched(planned):
            tables, places = self._tables(batch, missing, rows)
            yield [
                Revealed(family, missing, rows, tables[place])
                for family, place in zip(batch, places, strict=True)
            ]

    def _tables(
        self, families: Sequence[Family], missing: bool, rows: Rows
    ) -> tuple[Sequence[NDArray[np.int64]], Sequence[int]]:
        """Return the tables of one query, and the place of each family's table."""
        places: Sequence[int] = ()

        def query(joined: Joined) -> Query[list[NDArray[np.int64]], Any]:
            nonlocal places
            asked, places = ask_tables(joined, families, missing, rows)
            return asked

        return self.ask(query), places

    def choose(self, choices: Choices) -> tuple[int, ...]:
        """Return the winner of each set, in as many queries as the memory of the study needs."""
        winners: tuple[int, ...] = ()
        decided: tuple[bool, ...] = ()
        for portion in self._portions(choices):
            winners += self.session.ask(Choose.of(self.joined, portion))
            decided += self.joined.decided
        self.joined.decided = decided
        return winners

    def score_error(self, choices: Choices) -> float:
        """Return the most, in nats, by which the value of a candidate differs from its scores.

        A score adds up approximate logarithms: one for each cell of its table, and for each of its
        columns two, or one in a likelihood. Each is at most `error`
        (`vertibayes_mpc.lookups.PublicFunction`) from its logarithm. Of two candidates whose scores
        differ by more than twice this number, the better one wins.
        """
        asked = portions(self.study, choices)
        return max((choice_lookups(self.study, portion).error for portion in asked), default=0.0)

    def release(self, tables: FamilyTables) -> list[NDArray[np.int64]]:
        """Ask for the tables that the study ends with, by a rule, in one query."""
        check_rule(self.study, tables)
        return self.ask(lambda joined: Release.of(joined, tables))

    def _portions(self, choices: Choices) -> Iterator[Choices]:
        """Go through the queries of choices; notify the watchers."""
        asked = portions(self.study, choices)
        planned = [(portion, choice_lookups(self.study, portion).planned) for portion in asked]
        return self._watched(planned)

    def _watched(self, planned: Sequence[tuple[T, Planned]]) -> Iterator[T]:
        """Go through the queries of a step, after all were checked; notify the watchers."""
        for _, query in planned:
            check_time(self.session.role, query)
        done, total = 0, sum(query.picoseconds for _, query in planned)
        for asked, query in planned:
            self._notify(done, total)
            yield asked
            done += query.picoseconds
        self._notify(done, total)

    def _notify(self, done: int, total: int) -> None:
        for watcher in self.watchers:
            watcher(done, total)

    def note_earlier(self, tables: Sequence[Revealed]) -> None:
        """Note in the analyst's ledger the tables that earlier sessions of the study revealed."""
        role = self.session.role
        role.ledger.open(
            RevealedTable(family.members, table.size, role.party, rows)
            for family, _, rows, table in tables
        )
        members = {name for family, *_ in tables for name in family.members}
        for party in parties_of(self.study, members) if members else ():
            role.ledger.note(ASKED, role.party, (party,))
