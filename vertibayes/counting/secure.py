"""A counter over an open study: it reveals to the analyst the tables asked for and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import Unpack

from vertibayes.counting.counter import Table, check_families
from vertibayes.counting.revealed_tables import Asked, RevealedTables
from vertibayes.forecast import Forecast, forecast
from vertibayes.study_files import TableFile
from vertibayes_protocols.federation import Federation
from vertibayes_protocols.open_study import OpenStudy, Revealed
from vertibayes_protocols.opening import StudyOptions, open_study
from vertibayes_protocols.variables import Family, Rows, Variable


class SecureCounter:
    """Counts over an open study: reveals to the analyst the tables asked for and nothing else.

    The counter asks for a table once, and answers later calls from what it has received, margins
    included. It does not ask for a table that is a margin of another table of the same call.

    Parameters
    ----------
    open_study : OpenStudy
        The study whose tables the counter asks for; see `vertibayes_protocols.opening.open_study`.
    kept : TableFile, optional
        The file in which the counter keeps what it receives. The counter does not ask again for the
        tables that the file has.

    Attributes
    ----------
    rows : Rows
        The records that it counts: all, or those of `within`.
    open_study : OpenStudy
        The study, of which other things than tables can be asked.
    study : Study
    ledger : Ledger
        What was revealed to the analyst.
    variables, records, most_variables
        As `Counter`; the policies of the sites limit the number of variables.
    calls, queries : int
        How often `tables` asked for new tables, and in how many queries.

    Raises
    ------
    ValueError
        If the kept tables are of another study.
    """

    def __init__(self, open_study: OpenStudy, kept: TableFile | None = None) -> None:
        self.open_study, self._kept = open_study, kept
        self.study, self.ledger = open_study.study, open_study.ledger
        self.variables: Mapping[str, Variable] = self.study.variables
        self.records: int = self.study.records
        self.rows = Rows()
        self.most_variables: int = open_study.most_variables
        self._asked = {"calls": 0, "queries": 0}  # also by the counters of `within`
        self._revealed = RevealedTables(self.variables)
        self._others: list[tuple[tuple[str, ...], Rows, Table]] = []
        if kept is not None:
            kept.join(self.study, open_study.joined.mark)
            self._keep(kept.tables)
            open_study.note_earlier(kept.tables)

    @classmethod
    def of(
        cls,
        federation: Federation,
        *,
        kept: TableFile | None = None,
        **options: Unpack[StudyOptions],
    ) -> SecureCounter:
        """Open the study of a federation in this process, and return its counter.

        Parameters
        ----------
        federation : Federation
        kept : TableFile, optional
            As for the class; the study is the one that the file names, unless `study` is given.
        **options
            As for `open_study`.

        Raises
        ------
        ValueError, QueryRefusedError, ProtocolError
            As `open_study`, and as the class.
        """
        if kept is not None:
            options.setdefault("study", kept.study)
        session, sites, dealer = federation.session, federation.sites, federation.dealer
        return cls(open_study(session, sites, dealer, **options), kept)

    @property
    def calls(self) -> int:
        """How often `tables` asked for new tables."""
        return self._asked["calls"]

    @property
    def queries(self) -> int:
        """In how many queries `tables` asked."""
        return self._asked["queries"]

    def within(self, rows: Rows) -> SecureCounter:
        """Return the counter of some records, which shares what was revealed with this one.

        The records that `tables` chooses are then those at places among these: a random sample of
        them, whatever the seed.
        """
        part = copy(self)
        part.rows, part.records = self._within(rows), rows.count(self.records)
        return part

    def _within(self, rows: Rows) -> Rows:
        """Return the records of the study at places among those of this counter."""
        if self.rows == Rows():
            return rows if rows.count(self.records) < self.records else Rows()
        last = self.records if rows.last is None else rows.last
        first = self.rows.first
        return Rows(self.rows.seed, first + rows.first, first + last)

    def forecast(self, *calls: Sequence[Family], missing: bool = False) -> Forecast:
        """Return what calls cost that ask for families over all records; sends nothing.

        Raises
        ------
        ValueError
            As `check`.
        """
        for families in calls:
            check_families(self.variables, families, missing)
        return forecast(self.study, calls, missing=missing)

    def known(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Family]:
        """Return the families whose tables `tables` has without asking."""
        rows = self._within(rows)
        asked = [Asked(family, missing, rows) for family in families]
        return [one.family for one in asked if not self._revealed.new([one])]

    @property
    def revealed(self) -> Iterator[tuple[tuple[str, ...], Rows, Table]]:
        """All tables that were revealed, each with its variables or axes, and its records."""
        return chain(self._revealed, self._others)

    def note(self, axes: tuple[str, ...], table: Table) -> None:
        """Note a table of this counter's records that another query than `tables` revealed."""
        self._others.append((axes, self.rows, table))

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families; see `Counter.tables`.

        Raises
        ------
        QueryRefusedError, ProtocolError
            As `Session.ask`.
        """
        families = [Family(family.child, tuple(family.parents)) for family in families]
        check_families(self.variables, families, missing)
        rows = self._within(rows)
        asked = [Asked(family, missing, rows) for family in families]
        if new := self._revealed.new(asked):
            self._asked["calls"] += 1
            self._ask([one.family for one in new], missing, rows)
        return [self._revealed.table(one) for one in asked]

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted; see `Counter.check`."""
        check_families(self.variables, families, missing)
        self.open_study.check(families, missing=missing)

    def _ask(self, families: list[Family], missing: bool, rows: Rows) -> None:
        for tables in self.open_study.reveal(families, missing=missing, rows=rows):
            self._asked["queries"] += 1
            if self._kept is not None:
                self._kept.add(tables)
            self._keep(tables)

    def _keep(self, tables: Iterable[Revealed]) -> None:
        for family, missing, rows, table in tables:
            self._revealed.add(Asked(family, missing, rows), table)
