"""A counter over an open study: it reveals to the analyst the tables asked for and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from protocols.federation import Federation
from protocols.opening import OpenStudy, Revealed, StudyOptions, open_study
from protocols.session import Traffic
from protocols.variables import Family, Rows, Variable
from vertibayes.counting.counter import Table, check_families
from vertibayes.forecast import Forecast, forecast
from vertibayes.table_file import TableFile

_Key: TypeAlias = tuple[frozenset[str], bool, Rows]  # of a table: its variables, missing, records


@dataclass(frozen=True)
class _KeptTable:
    """A revealed table, stored in few bytes: most cells of wide tables are 0.

    `cells` are all cells or, if `places` is given, the cells at these places; all others are 0.
    """

    family: Family
    shape: tuple[int, ...]
    cells: NDArray[np.unsignedinteger]
    places: NDArray[np.uint32] | None

    @classmethod
    def of(cls, family: Family, table: Table) -> _KeptTable:
        """Keep a table."""
        dense = table.ravel().astype(np.min_scalar_type(int(table.max(initial=0))))
        places = np.flatnonzero(dense).astype(np.uint32)
        if len(places) * (4 + dense.itemsize) < dense.nbytes:
            return cls(family, table.shape, dense[places], places)
        return cls(family, table.shape, dense, None)

    @property
    def table(self) -> Table:
        """The table, with the axes of its family."""
        if self.places is None:
            return self.cells.astype(np.int64).reshape(self.shape)
        table = np.zeros(int(np.prod(self.shape)), np.int64)
        table[self.places] = self.cells
        return table.reshape(self.shape)


class SecureCounter:
    """Counts over an open study: reveals to the analyst the tables asked for and nothing else.

    The counter asks for a table once, and answers later calls from what it has received.

    Parameters
    ----------
    open_study : OpenStudy
        The study whose tables the counter asks for; see `protocols.opening.open_study`.
    kept : TableFile, optional
        The file in which the counter keeps what it receives. The counter does not ask again for the
        tables that the file has.

    Attributes
    ----------
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
        self._open_study, self._kept = open_study, kept
        self.study, self.ledger = open_study.study, open_study.ledger
        self.variables: Mapping[str, Variable] = self.study.variables
        self.records: int = self.study.records
        self.most_variables: int = open_study.most_variables
        self.calls = 0
        self.queries = 0
        self._opened: dict[_Key, _KeptTable] = {}
        if kept is not None:
            self._continue(kept)

    @property
    def watchers(self) -> list[Callable[[int, int], None]]:
        """Who is notified of queries that end (`OpenStudy`)."""
        return self._open_study.watchers

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

    def forecast(self, families: Sequence[Family], *, missing: bool = False) -> Forecast:
        """Return what the tables of families, over all records, cost at most; sends nothing.

        Raises
        ------
        ValueError
            As `check`.
        """
        check_families(self.variables, families, missing)
        return forecast(self.study, families, missing=missing)

    @property
    def traffic(self) -> Traffic:
        """What has travelled, as far as it can be seen from here."""
        return self._open_study.traffic

    @property
    def opened(self) -> Iterator[tuple[Rows, Table]]:
        """All tables that were revealed, each with its records."""
        return ((rows, kept.table) for (_, _, rows), kept in self._opened.items())

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
        if rows.count(self.records) == self.records:
            rows = Rows()  # all records, in any permutation
        keys = [self._key(family, missing, rows) for family in families]
        new = {k: f for k, f in zip(keys, families, strict=True) if self._find(k) is None}
        if new:
            self.calls += 1
            self._ask(list(new.values()), missing, rows)
        return [self._as_asked(key, family) for key, family in zip(keys, families, strict=True)]

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted; see `Counter.check`."""
        check_families(self.variables, families, missing)
        self._open_study.check(families, missing=missing)

    def _continue(self, kept: TableFile) -> None:
        """Take the tables that earlier sessions of the study have revealed."""
        kept.join(self.study, self._open_study.joined.mark)
        self._keep(kept.tables)
        self._open_study.note_earlier(kept.tables)

    def _ask(self, families: list[Family], missing: bool, rows: Rows) -> None:
        for tables in self._open_study.reveal(families, missing=missing, rows=rows):
            self.queries += 1
            new = [table._replace(missing=self._key(*table[:3])[1]) for table in tables]
            if self._kept is not None:
                self._kept.add(new)
            self._keep(new)

    def _keep(self, tables: Iterable[Revealed]) -> None:
        for family, missing, rows, table in tables:
            self._opened[self._key(family, missing, rows)] = _KeptTable.of(family, table)

    def _key(self, family: Family, missing: bool, rows: Rows) -> _Key:
        """Name a table; without missing values, `missing` makes no difference."""
        any_missing = any(self.variables[name].missing for name in family.members)
        return frozenset(family.members), missing and any_missing, rows

    def _find(self, key: _Key) -> _KeptTable | None:
        """Return a revealed table; a table with missing values contains the table without them."""
        members, _, rows = key
        return self._opened.get(key) or self._opened.get((members, True, rows))

    def _as_asked(self, key: _Key, family: Family) -> Table:
        """Return a revealed table with its axes in the order of a family."""
        kept = self._find(key)
        assert kept is not None  # `tables` has just asked for it
        axes = [kept.family.members.index(name) for name in family.members]
        table = kept.table.transpose(axes)
        if not key[1]:  # the kept table may have missing values as a state
            table = table[tuple(slice(len(self.variables[name].states)) for name in family.members)]
        return np.ascontiguousarray(table)
