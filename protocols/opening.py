"""Open a study: the parties meet, the sites describe their variables and commit their columns.

`open_study` asks the queries `Meet`, `Describe` and `Commit`, in this order. With an alignment it
asks `Align` before them, and `Describe` before that if the sizes of the lists, or who must hold
everybody, are to follow from what the sites describe, or if the alignment shares rows. It returns
the `OpenStudy`, of which an analyst asks for tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc.commitments import BLOCK_ROWS, MOST_INDICATORS
from mpc.randomness import SystemRandomness
from mpc.rounds import Party
from protocols.alignment import Alignment, AlignmentRequest
from protocols.choices import Choices
from protocols.errors import TransportError
from protocols.joined import Joined
from protocols.ledger import Ledger, RevealedTable
from protocols.odds import Odds
from protocols.queries import Align, Choose, Commit, Describe, Description, Meet, Release
from protocols.queries.align import AlignedPeople
from protocols.queries.choice_lookups import choice_lookups
from protocols.queries.choose import portions, score_error
from protocols.queries.costs import Costs, Planned
from protocols.queries.meet import different_numbers
from protocols.queries.predict import Predict
from protocols.queries.release_plan import check_rule
from protocols.queries.release_query import release_plan
from protocols.queries.score_table import ScoreTable, rule_fields
from protocols.queries.shared_products import order_of_products
from protocols.queries.tables import ask_tables, note_asked, parties_of
from protocols.queries.ways import batches, choose_ways, grouped, load_of
from protocols.release import FamilyTables, Rule
from protocols.session import Query, Session, Traffic
from protocols.site.hidden_rows import CarriedColumns
from protocols.study import CHOICE_INDICATORS, Study
from protocols.variables import Family, Rows, Variable

STUDY_BYTES = 16

T = TypeVar("T")


class StudyOptions(TypedDict, total=False):
    """What `open_study` takes by keyword."""

    order: Sequence[str] | None
    memory: int | None
    block_rows: int
    study: bytes | None
    variables: Collection[str] | None
    choices: bool
    alignment: Alignment | AlignmentRequest | None
    aligned: bool


class Revealed(NamedTuple):
    """One table that the analyst has received.

    `missing` says whether a missing value is a state; `rows` are the records that are counted.
    """

    family: Family
    missing: bool
    rows: Rows
    table: NDArray[np.int64]


class Renewal(Protocol):
    """Opens a study again after its session broke (`protocols.renewal`)."""

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

    Attributes
    ----------
    session : Session
    joined : Joined
        The study as the analyst has joined it.
    most_variables : int
        How many variables the policies of all sites allow in a table.
    watchers : list of callable
        Each is called, while queries of one step are asked, with the weight of the queries that
        have ended and that of all: their estimated time, in picoseconds.
    renewal : Renewal, optional
        Without it a broken session ends the study.
    people : AlignedPeople, optional
        What the alignment of the study has shown.
    """

    session: Session
    joined: Joined
    most_variables: int
    watchers: list[Callable[[int, int], None]] = field(default_factory=list, repr=False)
    renewal: Renewal | None = field(default=None, repr=False)
    people: AlignedPeople | None = None

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

    def ask(self, make: Callable[[Joined], Query[T]]) -> T | None:
        """Ask a query; return None if the study was opened again instead, in another session.

        Parameters
        ----------
        make : callable
            Makes the query for the study as it is joined.

        Raises
        ------
        QueryRefusedError, ProtocolError, TransportError
            As `Session.ask`; the last only if the study cannot be opened again.
        ValueError
            If a site remembers another study.
        """
        try:
            result = self.session.ask(make(self.joined))
        except TransportError as error:
            if self.renewal is None:
                raise
            self._take(self.renewal.renew(error))
            return None
        if self.renewal is not None:
            self.renewal.answered()
        return result

    def _take(self, other: OpenStudy) -> None:
        """Continue in the session of the same study, opened again."""
        if other.joined.mark != self.joined.mark:
            other.session.close()
            raise ValueError("a site does not remember the study as it was: begin a new study")
        other.traffic.include(self.traffic)
        self.session, self.joined = other.session, other.joined

    def check(self, families: Sequence[Family], *, missing: bool) -> None:
        """Refuse families whose tables would take more memory than a query may.

        Raises
        ------
        ValueError
            It says how much memory would be enough.
        """
        costs = Costs(self.study, self.study.records, missing)
        for group in [] if costs.all_can_shuffle else grouped(families):
            choose_ways(costs, group)

    def reveal(
        self, families: Sequence[Family], *, missing: bool, rows: Rows
    ) -> Iterator[list[Revealed]]:
        """Ask for tables, each once, in as many queries as the memory of the study needs.

        The variables of a table may come back in another order, in which tables share products.

        Parameters
        ----------
        families : sequence of Family
        missing : bool
            Whether a missing value is a state.
        rows : Rows
            The records that are counted.

        Yields
        ------
        tables : list of Revealed
            The tables of one query.

        Raises
        ------
        QueryRefusedError, ProtocolError
            As `Session.ask`.
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

        def query(joined: Joined) -> Query[list[NDArray[np.int64]]]:
            nonlocal places
            asked, places = ask_tables(joined, families, missing, rows)
            return asked

        while (tables := self.ask(query)) is None:
            pass
        return tables, places

    def choose(self, choices: Choices) -> tuple[int, ...]:
        """Return the winner of each set, in as many queries as the memory of the study needs.

        Parameters
        ----------
        choices : Choices
            The candidates of each set; the first of equals wins.

        Returns
        -------
        winners : tuple of int
            Of each set, the place of the winner. `joined.decided` is then True for each set in
            which exact scores certainly have the same winner.

        Raises
        ------
        ValueError
            If the tables of a set do not fit into one query.
        QueryRefusedError, ProtocolError
            As `Session.ask`.
        """
        winners: tuple[int, ...] = ()
        decided: tuple[bool, ...] = ()
        for portion in self._portions(choices):
            winners += self.session.ask(Choose.of(self.joined, portion))
            decided += self.joined.decided
        self.joined.decided = decided
        return winners

    def score_error(self, choices: Choices) -> float:
        """Return the most, in nats, by which the value of a candidate differs from its scores.

        Of two candidates whose scores differ by more than twice this number, the better one wins.

        Parameters
        ----------
        choices : Choices
            As of `choose`.
        """
        return score_error(self.study, choices)

    def release(self, tables: FamilyTables) -> list[NDArray[np.int64]]:
        """Ask for the tables that the study ends with, by a rule, in one query.

        Parameters
        ----------
        tables : FamilyTables

        Returns
        -------
        tables : list of ndarray, dtype int64
            In the order of the families; axis 0 is the child, then the parents. With noise, numbers
            can be below 0.

        Raises
        ------
        ValueError
            If a column is too wide for the rule.
        QueryRefusedError, ProtocolError
            As `Session.ask`.
        """
        check_rule(self.study, tables)
        query = Release.of(self.joined, tables)
        self._check_time(release_plan(self.joined, query).planned)
        return self.session.ask(query)

    def predict(self, odds: Odds, rows: Rows = Rows()) -> NDArray[np.float64]:
        """Return the log odds of records, of whose values no site sees another's.

        Parameters
        ----------
        odds : Odds
            The tables whose rows are added up.
        rows : Rows, default=all records
            The records, in the order of the study; the analyst does not learn which they are.

        Returns
        -------
        log_odds : ndarray of shape (records, states - 1)
            ``ln P(state) - ln P(first state)`` of each other state of the target, in nats.

        Raises
        ------
        ValueError
            If the study does not have a variable, or a table has too many rows.
        QueryRefusedError, ProtocolError
            As `Session.ask`.
        """
        self.session.role.odds = [table.flat for table in odds.tables]
        return self.session.ask(Predict.of(self.joined, odds, rows))

    def score_table(
        self, odds: Odds, thresholds: NDArray[np.int64], rule: Rule, rows: Rows = Rows()
    ) -> NDArray[np.int64]:
        """Return how many records of each class have log odds between thresholds, by a rule.

        Parameters
        ----------
        odds : Odds
            Of a target of two states, which a site of the study holds.
        thresholds : ndarray of shape (bins - 1,), dtype int64
            Ascending, as multiples of ``2**-fraction_bits``; a bin begins at its threshold.
        rule : Rule
            By which the table is released.
        rows : Rows, default=all records
            The records that are counted.

        Returns
        -------
        table : ndarray of shape (bins, codes of the target), dtype int64

        Raises
        ------
        ValueError, QueryRefusedError, ProtocolError
            As `predict`.
        """
        self.session.role.odds = [table.flat for table in odds.tables]
        fields = {"thresholds": thresholds, **rule_fields(rule)}
        return self.session.ask(ScoreTable.of(self.joined, odds, rows, **fields))

    def _portions(self, choices: Choices) -> Iterator[Choices]:
        """Go through the queries of choices; notify the watchers."""
        asked = portions(self.study, choices)
        planned = [(portion, choice_lookups(self.study, portion).planned) for portion in asked]
        return self._watched(planned)

    def _watched(self, planned: Sequence[tuple[T, Planned]]) -> Iterator[T]:
        """Go through the queries of a step, after all were checked; notify the watchers."""
        for _, query in planned:
            self._check_time(query)
        done, total = 0, sum(query.picoseconds for _, query in planned)
        for asked, query in planned:
            self._notify(done, total)
            yield asked
            done += query.picoseconds
        self._notify(done, total)

    def _notify(self, done: int, total: int) -> None:
        for watcher in self.watchers:
            watcher(done, total)

    def _check_time(self, planned: Planned) -> None:
        """Refuse, before it is asked, a query that takes longer than the analyst allows.

        The memory of a query is that of the study, by which queries are divided.
        """
        role = self.session.role
        role.policy.check_planned(role.party, 0, planned.seconds)

    def note_earlier(self, tables: Sequence[Revealed]) -> None:
        """Note in the analyst's ledger the tables that earlier sessions of the study revealed."""
        role = self.session.role
        role.ledger.open(
            RevealedTable(family.members, table.size, role.party, rows)
            for family, _, rows, table in tables
        )
        members = {name for family, *_ in tables for name in family.members}
        if members:
            note_asked(role, parties_of(self.study, members))


def new_study() -> bytes:
    """Return the id of a new study."""
    return SystemRandomness().bytes(STUDY_BYTES)


def open_study(
    session: Session,
    sites: Sequence[Party],
    dealer: Party,
    *,
    order: Sequence[str] | None = None,
    memory: int | None = None,
    block_rows: int = BLOCK_ROWS,
    study: bytes | None = None,
    variables: Collection[str] | None = None,
    choices: bool = False,
    alignment: Alignment | AlignmentRequest | None = None,
    aligned: bool = False,
) -> OpenStudy:
    """Have the parties meet, the sites describe their variables, and all commit the study.

    Parameters
    ----------
    session : Session
        The analyst's.
    sites : sequence of Party
    dealer : Party
    order : sequence of str, optional
        The study's order of variables; site after site if None.
    memory : int, optional
        How many bytes one query may take at a party; tables that need more are asked for in several
        queries. The limit of the sites if None, and never more than that limit.
    block_rows : int, default=32768
        How many rows are masked and sent at a time.
    study : bytes, optional
        The id of a study that this session continues; 16 random bytes if None.
    variables : collection of str, optional
        The variables of the study; all that the sites show if None.
    choices : bool, default=False
        Whether choices or releases are asked for. They multiply columns: columns of more codes are
        then committed as indicators, which takes more bytes.
    alignment : Alignment or AlignmentRequest, optional
        Who is in the study. Several sites may then have rows of one variable. Without it the sites
        must hold the same people.
    aligned : bool, default=False
        Whether the sites' records have their places in this session without an alignment.

    Raises
    ------
    ValueError
        If two sites show one variable and the study is not aligned, or they declare it with
        different states; if record counts differ, or the order does not fit.
    QueryRefusedError, ProtocolError
        As `Session.ask`.
    """
    people = None
    if alignment is not None:
        study = study or session.role.randomness.bytes(STUDY_BYTES)
        most = CHOICE_INDICATORS if choices else MOST_INDICATORS
        wanted = _alignment_of(session, sites, alignment, variables, most)
        people = session.ask(Align.of(session.role, wanted[0], dealer, study, wanted[1]))
    session.ask(Meet.of(session.role, sites, dealer))
    described = session.ask(Describe(tuple(sites)))
    identifier = study or session.role.randomness.bytes(STUDY_BYTES)
    allowed = min(description.most_memory for description in described.values())
    sizes = block_rows, allowed if memory is None else min(memory, allowed)
    is_aligned = aligned or alignment is not None
    agreed = study_of(identifier, described, dealer, order, *sizes, variables, is_aligned)
    if choices:
        agreed = replace(agreed, most_indicators=CHOICE_INDICATORS)
    if people is not None and people.name:
        agreed = agreed.hidden(people.name)
    most_variables: int = min(description.most_variables for description in described.values())
    joined = session.ask(Commit.of(agreed))
    return OpenStudy(session, joined, most_variables, people=people)


def _alignment_of(
    session: Session,
    sites: Sequence[Party],
    asked: Alignment | AlignmentRequest,
    chosen: Collection[str] | None,
    most_indicators: int,
) -> tuple[Alignment, CarriedColumns | None]:
    """Return the alignment of a study, and the columns that it shares at level 2.

    What the analyst left out follows from descriptions.
    """
    if isinstance(asked, Alignment) and asked.level == 1:
        return asked, None
    described = session.ask(Describe(tuple(sites)))
    people = {site: description.records for site, description in described.items()}
    at_sites: dict[str, dict[Party, Variable]] = {}
    for site, description in described.items():
        for name, variable in description.named().items():
            if chosen is None or name in chosen:
                at_sites.setdefault(name, {})[site] = variable
    if isinstance(asked, Alignment):
        alignment = asked
    else:
        holders = {name: tuple(shown) for name, shown in at_sites.items()}
        alignment = asked.alignment(tuple(sites), people, holders)
    if alignment.level == 1:
        return alignment, None
    return alignment, _carried(alignment, at_sites, most_indicators)


def _carried(
    alignment: Alignment, at_sites: Mapping[str, Mapping[Party, Variable]], most_indicators: int
) -> CarriedColumns:
    """Return the columns that an alignment shares, or refuse one that lies at two sites."""
    for name, shown in at_sites.items():
        if len(shown) > 1:
            raise ValueError(
                f"the column {name!r} is at {', '.join(shown)}, and at level 2 of an alignment "
                "each column must be at one site: rename or leave out one, or use level 1"
            )
    variables = {name: variable for name, shown in at_sites.items() for variable in shown.values()}
    owners = {name: site for name, shown in at_sites.items() for site in shown}
    return CarriedColumns(variables, owners, most_indicators, max(alignment.size.values()))


def study_of(
    study: bytes,
    described: Mapping[Party, Description],
    dealer: Party,
    order: Sequence[str] | None,
    block_rows: int,
    memory: int,
    chosen: Collection[str] | None = None,
    aligned: bool = False,
) -> Study:
    """Return the study of what the sites describe: all variables, or the chosen ones.

    Raises
    ------
    ValueError
        If two sites show one variable and the study is not aligned, or with different states; if
        record counts differ, no site shows a chosen variable, or the order does not fit.
    """
    counts = {site: description.records for site, description in described.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(different_numbers(counts))
    at_sites: dict[str, dict[Party, Variable]] = {}
    for site, description in described.items():
        for name, variable in description.named().items():
            if chosen is None or name in chosen:
                at_sites.setdefault(name, {})[site] = variable
    variables = {name: _agreed(by_site, aligned) for name, by_site in at_sites.items()}
    holders = {name: tuple(sorted(by_site)) for name, by_site in at_sites.items()}
    if absent := sorted(set(chosen or ()) - set(variables)):
        raise ValueError(
            f"no site shows {', '.join(absent)} with states; choose from what they show"
        )
    in_order = _in_order(variables, variables if order is None else order)
    return Study(study, in_order, holders, max(counts.values()), dealer, block_rows, memory)


def _agreed(shown: Mapping[Party, Variable], aligned: bool) -> Variable:
    """Return a variable as all its holders show it; values of several holders may be missing.

    Raises
    ------
    ValueError
        If it has several holders that are not aligned, or that declare different states.
    """
    (first, variable), *others = shown.items()
    for site, other in others:
        if not aligned:
            raise ValueError(
                f"the column {variable.name!r} is at two sites, {first} and {site}; rename one, or "
                "declare [alignment] if they have it of different people"
            )
        if other.states != variable.states:
            raise ValueError(_states_differ(variable, first, other, site))
    return replace(variable, missing=True) if others else variable


def _states_differ(one: Variable, first: Party, other: Variable, second: Party) -> str:
    """Say which states of a variable only one of two sites has."""
    alone = [
        f"only {site} has {', '.join(map(repr, more))}"
        for site, mine, theirs in ((first, one, other), (second, other, one))
        if (more := [state for state in mine.states if state not in theirs.states])
    ]
    how = "; ".join(alone) or f"{first} has {list(one.states)}, {second} has {list(other.states)}"
    return (
        f"{first} and {second} declare the column {one.name!r} with different states or in another "
        f"order: {how}; declare the same states in the same order at all its sites"
    )


def _in_order(variables: Mapping[str, Variable], order: Collection[str]) -> dict[str, Variable]:
    if sorted(order) != sorted(variables):
        wrong = ", ".join(sorted(set(order) ^ set(variables))) or "a name twice"
        raise ValueError(
            f"the order does not fit the variables shown: {wrong}; name each variable once"
        )
    return {name: variables[name] for name in order}
