"""Data frames of the tables of a counter: the records of a few variables, in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import numpy as np
from pandas import Categorical, CategoricalDtype, DataFrame

from vertibayes.counting.counter import Counter, portions
from vertibayes_protocols.variables import Family, axis_lengths


class Tables:
    """The tables of a counter, for one score after another."""

    def __init__(self, counter: Counter) -> None:
        self._counter, self._lock = counter, Lock()  # pgmpy's PC has several threads
        self._noted: dict[Family, None] | None = None

    def only_noted(self, family: Family) -> bool:
        """Whether a family is only noted now, to be asked for with others."""
        if self._noted is None:
            return False
        self._noted[family] = None
        return True

    @contextmanager
    def together(self) -> Iterator[None]:
        """Note the families of this context; at its end, ask for them in one call."""
        noted = self._noted = {}
        try:
            yield
        finally:
            self._noted = None
        self.ask(list(noted))

    def ask(self, families: Sequence[Family]) -> None:
        """Ask for tables, which the counter of a federation keeps."""
        self._counter.check(families)
        for portion in portions(axis_lengths(self._counter.variables, False), families):
            self._counter.tables(portion)

    def records(self, family: Family, *, incomplete: bool = False) -> DataFrame:
        """Return the records of a family's variables, and the incomplete ones as empty rows."""
        with self._lock:
            (table,) = self._counter.tables([family])
        cells = np.repeat(np.arange(table.size), table.ravel())
        empty = self._counter.records - len(cells) if incomplete else 0
        columns = {}
        for name, codes in zip(family.members, np.unravel_index(cells, table.shape), strict=True):
            states = self._counter.variables[name].states
            codes = np.pad(codes, (0, empty), constant_values=-1)
            column = Categorical.from_codes(codes, dtype=CategoricalDtype(list(states)))
            columns[name] = column.reorder_categories(sorted(states))  # as pgmpy orders them
        return DataFrame(columns)


def no_records(counter: Counter) -> DataFrame:
    """Return a data frame without records."""
    variables = counter.variables.values()
    return DataFrame({v.name: Categorical([], categories=sorted(v.states)) for v in variables})
