"""An open study: its columns are committed, and its analyst asks for tables, choices and releases.

`vertibayes_protocols.opening.open_study` makes it. `Renewing` begins it again when it breaks:

    session breaks -> wait 1 s -> another session -> wait 2 s -> ... 30 s -> the last error

Only an error of the transport breaks a session: a party or the relay that is gone, or a session
that is over. A refusal, a party that does not follow the protocol, or data that do not fit end the
study at once. The waits vary at random, so that analysts that lost one relay do not return to it in
step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import Randomness, SystemRandomness
from vertibayes_protocols.alignment import AlignedPeople
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.engine import check_time
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.ledger import Ledger, RevealedTable
from vertibayes_protocols.queries import Choose, Release
from vertibayes_protocols.queries.choices.choose import portions, score_error
from vertibayes_protocols.queries.choices.lookups import choice_lookups
from vertibayes_protocols.queries.releases.plan import check_rule
from vertibayes_protocols.queries.tables.counting import ASKED, batches, grouped
from vertibayes_protocols.queries.tables.shared_products import order_of_products
from vertibayes_protocols.queries.tables.tables import ask_tables, parties_of
from vertibayes_protocols.queries.tables.ways import costs_of
from vertibayes_protocols.query import Query
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch
from vertibayes_protocols.session import Session, Traffic
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Family, Rows

T = TypeVar("T")
S = TypeVar("S", bound="OpenStudy")

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
MOST_BREAKS = 3  # of one query: what fails each time is not an accident


class Revealed(NamedTuple):
    """One table that the analyst has received."""

    family: Family
    missing: bool  # whether a missing value is a state
    rows: Rows  # the records that are counted
    table: NDArray[np.int64]


@dataclass
class OpenStudy:
    """A study whose columns the sites have committed: its analyst can ask for tables.

    If its session breaks, the study is opened again by its `renewal`, and continues there.
    """

    session: Session
    joined: Joined  # the study as the analyst has joined it
    most_variables: int  # how many variables the policies of all sites allow in a table
    watchers: list[Callable[[int, int], None]] = field(default_factory=list, repr=False)
    renewal: Renewing[Any] | None = field(default=None, repr=False)
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
        """Refuse families whose tables would take more memory or time than a query may."""
        costs = costs_of(self.study, self.study.records, missing, *self.joined.key_bits)
        for load in costs.checked(grouped(families)):
            check_time(self.session.role, costs.planned(load))

    def reveal(
        self, families: Sequence[Family], *, missing: bool, rows: Rows
    ) -> Iterator[list[Revealed]]:
        """Ask for tables, each once, in as many queries as the memory of the study needs.

        The variables of a table may come back in another order, in which tables share products.
        """
        records = rows.count(self.study.records)
        costs = costs_of(self.study, records, missing, *self.joined.key_bits)
        ordered = order_of_products(self.study, [family.members for family in families])
        families = [Family(child, tuple(parents)) for child, *parents in ordered]
        planned = [
            (batch, costs.planned(costs.total(grouped(batch))))
            for batch in batches(costs, families)
        ]
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
        """Return the most, in nats, by which the value of a candidate differs from its scores."""
        return score_error(self.study, choices)

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


def waits(randomness: Randomness) -> Iterator[float]:
    """Yield the seconds before each try: 1, 2, 4 up to 30, each shortened by up to a half."""
    longest = FIRST_WAIT
    while True:
        share = int.from_bytes(randomness.bytes(4), "little") / (1 << 32)
        yield longest * (1 - share / 2)
        longest = min(2 * longest, LONGEST_WAIT)


class Renewing(Generic[S]):
    """Opens a study, and opens it again when its session breaks."""

    def __init__(
        self,
        begin: Callable[[], Session],
        open_: Callable[[Session], S],
        patience: float,
        watch: RunWatch = UNWATCHED,
        *,
        wait: Callable[[float], None] = sleep,
        clock: Callable[[], float] = monotonic,
        randomness: Randomness | None = None,
    ) -> None:
        self._begin, self._open = begin, open_
        self._patience, self._watch = patience, watch
        self._wait, self._clock = wait, clock
        self._randomness = randomness or SystemRandomness()
        self._breaks, self._broke_at, self.attempts = 0, 0.0, 1
        self._session: Session | None = None

    def first(self) -> S:
        """Open the study for the first time: parties that cannot be reached are not waited for."""
        self._session = self._begin()
        try:
            return self._opened(self._session)
        except TransportError as error:
            return self.renew(error)

    def renew(self, error: TransportError) -> S:
        """Open the study in another session; raise the last error when patience ends."""
        if self._breaks == 0:
            self._broke_at = self._clock()
        self._breaks += 1
        for seconds in waits(self._randomness):
            spent = self._clock() - self._broke_at
            if spent + seconds > self._patience or self._breaks > MOST_BREAKS:
                break
            self._watch.broke(error, seconds)
            self._wait(seconds)
            self.attempts += 1
            try:
                self._session = self._begin()
                return self._opened(self._session)
            except TransportError as another:
                error = another
        raise self._last(error)

    def answered(self) -> None:
        """Note that a query was answered: a later break is another one."""
        self._breaks = 0

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.close()

    def __enter__(self) -> Renewing[S]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, session: Session) -> S:
        try:
            study = self._open(session)
        except BaseException:
            session.close()
            raise
        study.renewal = self
        return study

    def _last(self, error: TransportError) -> TransportError:
        """Return the error of a study that is not begun again: the last cause, and how long."""
        if not self._patience:
            return error
        spent = self._clock() - self._broke_at
        last = TransportError(f"{error}; begun again for {spent:.0f} s, {self.attempts} sessions")
        last.__cause__ = error
        return last
