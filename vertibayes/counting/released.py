"""A counter over released tables: it answers from them alone, and asks nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from vertibayes.counting.counter import Table, check_families, margin
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.variables import Family, Rows, Variable, axis_lengths


class ReleasedCounter:
    """Answers from released tables and their margins.

    A table is the margin of the smallest released table that has its variables: of fewer cells, a
    rule cuts fewer and noise adds up less. A count that noise has made negative is counted as 0.

    Examples
    --------
    >>> from vertibayes_protocols.release import Rule
    >>> variables = {name: Variable(name, ("no", "yes")) for name in ("a", "b")}
    >>> request = FamilyTables((Family("b", ("a",)),), missing=False, rule=Rule("laplace"))
    >>> counter = ReleasedCounter(variables, 9, request, [np.array([[3, -1], [2, 4]])])
    >>> counter.tables([Family("b"), Family("a", ("b",))])
    [array([2, 6]), array([[3, 2],
           [0, 4]])]
    """

    most_variables = None

    def __init__(
        self,
        variables: Mapping[str, Variable],
        records: int,
        request: FamilyTables,
        tables: list[Table],
    ) -> None:
        self.variables, self.records = variables, records
        self.request, self.released = request, tables
        lengths = axis_lengths(variables, request.missing)
        for family, table in zip(request.families, tables, strict=True):
            shape = tuple(lengths[name] for name in family.members)
            if table.shape != shape:
                named = ", ".join(family.members)
                raise ValueError(
                    f"the table of {named} has the wrong shape: expected {shape}, got {table.shape}"
                )
            above = table.size * request.rule.fewest if request.rule.kind == "rounded" else 0
            if not request.rule.is_noisy and round(float(table.sum())) > records + above:
                raise ValueError(
                    f"a released table counts more than all {records} records: one of the sites or "
                    "the dealer did not follow the protocol; do not use the tables of this run"
                )

    @property
    def revealed(self) -> Iterator[tuple[tuple[str, ...], Rows, Table]]:
        """The released tables, with their variables and records; none if they have noise."""
        families = () if self.request.rule.is_noisy else self.request.families
        released = zip(families, self.released, strict=False)
        return ((family.members, Rows(), table) for family, table in released)

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Derive tables from those that were released; see `Counter.tables`."""
        if rows.count(self.records) < self.records:
            raise ValueError(
                "tables of some of the records cannot be derived: the released tables are of all "
                f"{self.records} records, {rows.count(self.records)} were asked for"
            )
        self.check(families, missing=missing)
        return [self._derived(family, missing) for family in families]

    def with_noise(self, family: Family) -> tuple[Table, int, str]:
        """Return a table whose noise is as released, so that counts may be below 0.

        Also how many released cells each of its cells adds up, and why the error of these is not
        that of noise or rounding: a clause, empty if it is.
        """
        self.check([family])
        source, rule = self._source(family, missing=False), self.request.rule
        released, why = self.released[source], ""
        table = self._margin(source, family, missing=False)
        if rule.kind == "cut" and not np.issubdtype(released.dtype, np.integer):
            why = "counts that the rule cut are estimates"
        elif rule.kind in ("cut", "rounded") and not released.all():
            why = f"the rule {rule.kind} released small counts as 0"
        lengths = axis_lengths(self.variables, self.request.missing)
        summed = set(self.request.families[source].members) - set(family.members)
        return table, prod(lengths[name] for name in summed), why

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families whose tables cannot be derived; see `Counter.check`."""
        check_families(self.variables, families, missing)
        for family in families:
            if not self._sources(family, missing):
                named = ", ".join(family.members)
                what = " with missing values as a state" if missing else ""
                raise ValueError(
                    f"the table of {named}{what} cannot be derived from the released tables; none "
                    "of them has all its variables and records"
                )

    def _sources(self, family: Family, missing: bool) -> list[int]:
        """Return the places of the released tables that have a table as a margin."""
        needed = set(family.members)
        if self.request.missing:
            return [i for i, f in enumerate(self.request.families) if needed <= set(f.members)]
        complete = needed if missing else set()  # these would need a state for missing values

        def has(members: set[str]) -> bool:
            counted = complete | (members - needed)  # no record may be left out because of these
            return needed <= members and not any(self.variables[n].missing for n in counted)

        return [i for i, f in enumerate(self.request.families) if has(set(f.members))]

    def _derived(self, family: Family, missing: bool) -> Table:
        table = self._margin(self._source(family, missing), family, missing)
        return np.ascontiguousarray(np.maximum(table, 0))

    def _source(self, family: Family, missing: bool) -> int:
        return min(self._sources(family, missing), key=lambda place: self.released[place].size)

    def _margin(self, source: int, family: Family, missing: bool) -> Table:
        members = self.request.families[source].members
        table = margin(self.released[source], members, family.members)
        lengths = axis_lengths(self.variables, missing)
        return table[tuple(slice(lengths[name]) for name in family.members)]
