"""A counter over a federation: it opens to the analyst the tables asked for and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc.commitments import BLOCK_ROWS
from protocols.federation import Federation
from protocols.ledger import Ledger, OpenedTable
from protocols.queries import Commit, Describe, Description, Meet
from protocols.queries.costs import Costs
from protocols.queries.tables import ask_tables, note_asked, parties_of
from protocols.queries.ways import batches, choose_ways, grouped
from protocols.roles import Study
from protocols.session import Session
from protocols.variables import Family, Rows, Variable
from vertibayes.counting import Table, check_families
from vertibayes.forecast import Forecast, forecast
from vertibayes.table_file import Opened, TableFile

STUDY_BYTES = 16


@dataclass(frozen=True)
class _KeptTable:
    """An opened table, in as few bytes as hold it: wide tables are mostly empty.

    `cells` are all of them, or those that are not 0, if `places` says where these are.
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
    """Counts over a federation, opening to the analyst the tables asked for and nothing else.

    Has the parties meet and the sites compare their records, asks what they show, has them commit
    it, and then asks for tables; a table that was opened is not asked again.

    Parameters
    ----------
    session : Session
    sites : sequence of Party
    dealer : Party
    order : sequence of str, optional
        The study's order of variables; site after site if None.
    memory : int, optional
        Bytes that one query may take at a party; what needs more is asked for in several. What the
        sites allow if None, and no more than that.
    block_rows : int, default=32768
        Rows that are masked and sent at a time.
    study : bytes, optional
        Names the study, to continue it in another session; 16 random bytes if None.
    variables : collection of str, optional
        Those of the study; all that the sites show if None.
    kept : TableFile, optional
        Where opened tables are kept: the counter continues the study that it names, and does not
        ask again for what it has.

    Raises
    ------
    ValueError
        If two sites show one variable, record counts differ, the order does not fit, or the study
        is not that of the kept tables.
    QueryRefusedError, ProtocolError
        As `Session.ask`.
    """

    def __init__(
        self,
        session: Session,
        sites: Sequence[str],
        dealer: str,
        *,
        order: Sequence[str] | None = None,
        memory: int | None = None,
        block_rows: int = BLOCK_ROWS,
        study: bytes | None = None,
        variables: Collection[str] | None = None,
        kept: TableFile | None = None,
    ) -> None:
        self._session = session
        self._kept = kept
        session.ask(Meet.of(session.role, sites, dealer))
        described = session.ask(Describe(tuple(sites)))
        name = study or (kept and kept.study) or session.role.randomness.bytes(STUDY_BYTES)
        allowed = min(description.most_memory for description in described.values())
        sizes = block_rows, allowed if memory is None else min(memory, allowed)
        self.study = study_of(name, described, dealer, order, *sizes, variables)
        self._most_variables: int = min(found.most_variables for found in described.values())
        self._joined = session.ask(Commit.of(self.study))
        self.calls = 0
        self.queries = 0
        self._opened: dict[tuple[frozenset[str], bool, Rows], _KeptTable] = {}
        if kept is not None:
            self._continue(kept)

    @classmethod
    def of(cls, federation: Federation, **options: Any) -> SecureCounter:
        """Return the counter of a federation in this process; `options` as for the class."""
        return cls(federation.session, federation.sites, federation.dealer, **options)

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables, in the study's order."""
        return self.study.variables

    @property
    def records(self) -> int:
        """The number of records."""
        return self.study.records

    @property
    def most_variables(self) -> int:
        """How many variables the sites' policies allow in a table."""
        return self._most_variables

    def forecast(self, families: Sequence[Family], *, missing: bool = False) -> Forecast:
        """Return what families' tables over all records cost at most; nothing is asked.

        Raises
        ------
        ValueError
            As `check`.
        """
        check_families(self.variables, families, missing)
        return forecast(self.study, families, missing=missing)

    @property
    def opened(self) -> Iterator[tuple[Rows, Table]]:
        """All tables that were opened, and over which records."""
        return ((rows, kept.table) for (_, _, rows), kept in self._opened.items())

    @property
    def ledger(self) -> Ledger:
        """What was revealed."""
        return self._session.role.ledger

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
            rows = Rows()  # whichever permutation
        keys = [self._key(family, missing, rows) for family in families]
        new = {k: f for k, f in zip(keys, families, strict=True) if self._find(k) is None}
        if new:
            self.calls += 1
            self._ask(list(new.values()), missing, rows)
        return [self._as_asked(key, family) for key, family in zip(keys, families, strict=True)]

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted; see `Counter.check`."""
        check_families(self.variables, families, missing)
        costs = Costs(self.study, self.records, missing)
        for group in [] if costs.all_can_shuffle else grouped(families):
            choose_ways(costs, group)

    def _continue(self, kept: TableFile) -> None:
        """Take what earlier runs of the study have opened."""
        role = self._session.role
        kept.join(self.study, self._joined.mark)
        for family, missing, rows, table in kept.tables:
            key = frozenset(family.members), missing, rows
            self._opened[key] = _KeptTable.of(family, table)
        role.ledger.open(
            OpenedTable(family.members, table.size, role.party, rows)
            for family, _, rows, table in kept.tables
        )
        members = {name for family, *_ in kept.tables for name in family.members}
        if members:
            note_asked(role, parties_of(self.study, members))

    def _ask(self, families: list[Family], missing: bool, rows: Rows) -> None:
        costs = Costs(self.study, rows.count(self.records), missing)
        for batch in batches(costs, families):
            self.queries += 1
            query, places = ask_tables(self._joined, batch, missing, rows)
            tables = self._session.ask(query)
            new = {
                self._key(family, missing, rows): (family, tables[place])
                for family, place in zip(batch, places, strict=True)
            }
            if self._kept is not None:
                self._kept.add([Opened(f, key[1], rows, t) for key, (f, t) in new.items()])
            self._opened |= {key: _KeptTable.of(*found) for key, found in new.items()}

    def _key(self, family: Family, missing: bool, rows: Rows) -> tuple[frozenset[str], bool, Rows]:
        """Name a table: without gaps it is one, whether missing cells are asked for or not."""
        gaps = any(self.variables[name].missing for name in family.members)
        return frozenset(family.members), missing and gaps, rows

    def _find(self, key: tuple[frozenset[str], bool, Rows]) -> _KeptTable | None:
        """Return an opened table; one with missing cells tells that of the others."""
        members, _, rows = key
        return self._opened.get(key) or self._opened.get((members, True, rows))

    def _as_asked(self, key: tuple[frozenset[str], bool, Rows], family: Family) -> Table:
        """Return an opened table with its axes in the order asked for."""
        kept = self._find(key)
        assert kept is not None  # it has just been asked
        axes = [kept.family.members.index(name) for name in family.members]
        table = kept.table.transpose(axes)
        if not key[1]:  # one that was opened with missing values may have been asked for without
            table = table[tuple(slice(len(self.variables[name].states)) for name in family.members)]
        return np.ascontiguousarray(table)


def study_of(
    study: bytes,
    described: Mapping[str, Description],
    dealer: str,
    order: Sequence[str] | None,
    block_rows: int,
    memory: int,
    chosen: Collection[str] | None = None,
) -> Study:
    """Put together what the sites describe, of all variables or those chosen.

    Raises
    ------
    ValueError
        If two sites show one variable, record counts differ, a chosen one is not shown, or the
        order does not fit.
    """
    counts = {site: description.records for site, description in described.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{site} {count}" for site, count in counts.items())
        raise ValueError(f"the sites hold different numbers of records: {shown}")
    variables: dict[str, Variable] = {}
    holders: dict[str, tuple[str, ...]] = {}
    for site, description in described.items():
        for name, variable in description.named().items():
            if chosen is not None and name not in chosen:
                continue
            if name in variables:
                raise ValueError(
                    f"the column {name!r} is at two sites, {holders[name][0]} and {site}; rename "
                    "one"
                )
            variables[name], holders[name] = variable, (site,)
    absent = sorted(set(chosen or ()) - set(variables))
    if absent:
        raise ValueError(f"no site shows {', '.join(absent)}; choose from what they show")
    names = list(variables) if order is None else list(order)
    if sorted(names) != sorted(variables):
        wrong = ", ".join(sorted(set(names) ^ set(variables))) or "a name twice"
        raise ValueError(
            f"the order does not fit the variables shown: {wrong}; name each variable once"
        )
    in_order = {name: variables[name] for name in names}
    records = next(iter(counts.values()))
    return Study(study, in_order, holders, records, dealer, block_rows, memory)
