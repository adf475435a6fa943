"""Counters: who asks for contingency tables does not know who counts, or how.

`PlainCounter` counts pooled data and is the oracle of every test; `SecureCounter` asks a federation
and gives identical tables. Learners are written against `Counter` and ask many families at once: a
call is a few rounds on the network, a family in it is almost free.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpc.commitments import BLOCK_ROWS
from protocols.federation import Federation
from protocols.ledger import Ledger, OpenedTable
from protocols.queries import Commit, Describe, Description, Meet
from protocols.queries.batches import batches
from protocols.queries.tables import ask_tables, note_asked, parties_of
from protocols.roles import GIBIBYTE, Study
from protocols.session import Session
from protocols.site.data import SiteData
from protocols.variables import Family, Rows, Variable
from vertibayes.table_file import Opened, TableFile

Table: TypeAlias = NDArray[np.int64]

STUDY_BYTES = 16

MOST_CELLS = 10_000_000  # of one table


class Counter(Protocol):
    """Counts over all records."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables, in the study's order."""
        ...

    @property
    def records(self) -> int:
        """The number of records."""
        ...

    @property
    def most_variables(self) -> int | None:
        """How many variables a table may have; None if that is not limited."""
        ...

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families.

        Parameters
        ----------
        families : sequence of Family
        missing : bool, default=False
            False counts the records that are complete in the family. True appends a last index,
            "missing", to each axis whose variable has missing cells.
        rows : Rows, default=Rows()
            Over which records; all by default.

        Returns
        -------
        tables : list of ndarray, dtype int64, C-contiguous
            One a family, in order; axis 0 the child, then the parents as given, each axis in the
            order of `Variable.states`.

        Raises
        ------
        ValueError
            If a variable is unknown or stands twice in a family, or a table has too many cells.
        """
        ...


def check_families(
    variables: Mapping[str, Variable], families: Sequence[Family], missing: bool
) -> None:
    """Refuse families that cannot be counted.

    Raises
    ------
    ValueError
        It names the variable, or the family whose table is too large.
    """
    for family in families:
        for name in family.members:
            if name not in variables:
                raise ValueError(f"no variable {name!r}; known are {', '.join(variables)}")
        if len(set(family.members)) < len(family.members):
            raise ValueError(f"a variable stands twice in the family {family.members}")
        members = [variables[name] for name in family.members]
        cells = prod(v.codes if missing else len(v.states) for v in members)
        if cells > MOST_CELLS:
            raise ValueError(
                f"the table of {', '.join(family.members)} has {cells} cells, at most "
                f"{MOST_CELLS} can be held: fewer parents are wanted"
            )


class PlainCounter:
    """Counts pooled data.

    Parameters
    ----------
    data : SiteData
        All columns.
    seed : int, default=0
        Of the permutations that `Rows` choose from; a federation draws its own.
    """

    most_variables = None

    def __init__(self, data: SiteData, *, seed: int = 0) -> None:
        self._data = data
        self._seed = seed

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables, in the order of the data."""
        return self._data.variables

    @property
    def records(self) -> int:
        """The number of records."""
        return self._data.records

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families; see `Counter.tables`."""
        check_families(self.variables, families, missing)
        chosen = self._chosen(rows)
        return [self._table(family, missing, chosen) for family in families]

    def _chosen(self, rows: Rows) -> NDArray[np.intp] | None:
        if rows.count(self.records) == self.records:
            return None
        order = np.random.default_rng((self._seed, rows.seed)).permutation(self.records)
        return np.sort(order[rows.first : rows.last])

    def _table(self, family: Family, missing: bool, chosen: NDArray[np.intp] | None) -> Table:
        members = [self.variables[name] for name in family.members]
        shape = [v.codes if missing else len(v.states) for v in members]
        flat = np.zeros(self.records if chosen is None else len(chosen), np.int64)
        complete = np.ones(len(flat), np.bool_)
        for variable, length in zip(members, shape, strict=True):
            codes = self._data.codes[variable.name]
            codes = codes if chosen is None else codes[chosen]
            complete &= codes < length
            flat *= length
            flat += codes
        return np.bincount(flat[complete], minlength=prod(shape)).reshape(shape)


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
    memory_budget : int, default=2**30
        Bytes for all parties in one process. Three quarters are for extensions, and what needs
        more is asked for in several groups; the rest is for masked columns (`federate`).
    block_rows : int, default=32768
        Rows that are masked and sent at a time.
    study : bytes, optional
        Names the study, to go on with it in another session; 16 random bytes if None.
    variables : collection of str, optional
        Those of the study; all that the sites show if None.
    kept : TableFile, optional
        Where opened tables are kept: the study that it names is gone on with, and what it has is
        not asked again.

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
        memory_budget: int = GIBIBYTE,
        block_rows: int = BLOCK_ROWS,
        study: bytes | None = None,
        variables: Collection[str] | None = None,
        kept: TableFile | None = None,
    ) -> None:
        self._session = session
        self._kept = kept
        self._budget = memory_budget * 3 // 4
        session.ask(Meet.of(session.role, sites, dealer))
        described = session.ask(Describe(tuple(sites)))
        name = study or (kept and kept.study) or session.role.randomness.bytes(STUDY_BYTES)
        self.study = study_of(name, described, dealer, order, block_rows, variables)
        self._most_variables: int = min(found.most_variables for found in described.values())
        session.ask(Commit.of(self.study))
        self.calls = 0
        self.groups = 0
        self._opened: dict[tuple[frozenset[str], bool, Rows], tuple[Family, Table]] = {}
        if kept is not None:
            self._go_on(kept)

    @classmethod
    def of(cls, federation: Federation, **options: Any) -> SecureCounter:
        """Return the counter of a federation in this process; `options` as for the class."""
        options.setdefault("memory_budget", federation.memory_budget)
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

    @property
    def opened(self) -> list[tuple[Rows, Table]]:
        """All tables that were opened, and over which records."""
        return [(rows, table) for (_, _, rows), (_, table) in self._opened.items()]

    @property
    def ledger(self) -> Ledger:
        """What was revealed."""
        ledger: Ledger = self._session.role.ledger
        return ledger

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

    def _go_on(self, kept: TableFile) -> None:
        """Take what earlier runs of the study have opened."""
        role = self._session.role
        kept.join(self.study, role.joined.mark)
        for family, missing, rows, table in kept.tables:
            self._opened[frozenset(family.members), missing, rows] = family, table
        role.ledger.open(
            OpenedTable(family.members, table.size, role.party, rows)
            for family, _, rows, table in kept.tables
        )
        members = {name for family, *_ in kept.tables for name in family.members}
        if members:
            note_asked(role, parties_of(self.study, members))

    def _ask(self, families: list[Family], missing: bool, rows: Rows) -> None:
        for batch in batches(self.study, families, rows.count(self.records), self._budget):
            self.groups += 1
            query, places = ask_tables(self._session.role.joined, batch, missing, rows)
            tables = self._session.ask(query)
            new = {
                self._key(family, missing, rows): (family, tables[place])
                for family, place in zip(batch, places, strict=True)
            }
            if self._kept is not None:
                self._kept.add([Opened(f, key[1], rows, t) for key, (f, t) in new.items()])
            self._opened.update(new)

    def _key(self, family: Family, missing: bool, rows: Rows) -> tuple[frozenset[str], bool, Rows]:
        """Name a table: without gaps it is one, whether missing cells are asked for or not."""
        gaps = any(self.variables[name].missing for name in family.members)
        return frozenset(family.members), missing and gaps, rows

    def _find(self, key: tuple[frozenset[str], bool, Rows]) -> tuple[Family, Table] | None:
        """Return an opened table; one with missing cells tells that of the others."""
        members, missing, rows = key
        if key in self._opened or missing or (members, True, rows) not in self._opened:
            return self._opened.get(key)
        family, table = self._opened[members, True, rows]
        known = tuple(slice(len(self.variables[name].states)) for name in family.members)
        return family, table[known]

    def _as_asked(self, key: tuple[frozenset[str], bool, Rows], family: Family) -> Table:
        """Return an opened table with its axes in the order asked for."""
        found = self._find(key)
        assert found is not None  # it has just been asked
        opened, table = found
        axes = [opened.members.index(name) for name in family.members]
        return np.ascontiguousarray(table.transpose(axes)).copy()


class Without:
    """A counter of all records but some: counts are additive, so it takes a difference.

    Parameters
    ----------
    counter : Counter
    rows : Rows
        Those left out.
    """

    def __init__(self, counter: Counter, rows: Rows) -> None:
        self._counter, self._rows = counter, rows
        self.variables, self.most_variables = counter.variables, counter.most_variables
        self.records = counter.records - rows.count(counter.records)

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families over all records but those left out; see `Counter.tables`.

        Raises
        ------
        ValueError
            Also if a choice of rows is asked.
        """
        if rows != Rows():
            raise ValueError("rows cannot be chosen among those of a difference")
        everything = self._counter.tables(families, missing=missing)
        some = self._counter.tables(families, missing=missing, rows=self._rows)
        return [a - b for a, b in zip(everything, some, strict=True)]


def study_of(
    study: bytes,
    described: Mapping[str, Description],
    dealer: str,
    order: Sequence[str] | None,
    block_rows: int = BLOCK_ROWS,
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
        told = ", ".join(f"{site} {count}" for site, count in counts.items())
        raise ValueError(f"the sites hold different numbers of records: {told}")
    variables: dict[str, Variable] = {}
    holders: dict[str, tuple[str, ...]] = {}
    for site, description in described.items():
        for name, variable in description.named().items():
            if chosen is not None and name not in chosen:
                continue
            if name in variables:
                raise ValueError(
                    f"the column {name!r} is at two sites, {holders[name][0]} and {site}"
                )
            variables[name], holders[name] = variable, (site,)
    lacking = sorted(set(chosen or ()) - set(variables))
    if lacking:
        raise ValueError(f"no site shows {', '.join(lacking)}")
    names = list(variables) if order is None else list(order)
    if sorted(names) != sorted(variables):
        wrong = sorted(set(names) ^ set(variables)) or "a name twice"
        raise ValueError(f"the order does not fit the variables shown: {wrong}")
    in_order = {name: variables[name] for name in names}
    records = next(iter(counts.values()))
    return Study(study, in_order, holders, records, dealer, block_rows)
