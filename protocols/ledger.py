"""The ledger: what was revealed, to whom, in the order of the queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mpc.rounds import Party
from protocols.variables import Rows


class OpenedTable(NamedTuple):
    """One table that was opened.

    Parameters
    ----------
    variables : tuple of str
        Its axes.
    cells : int
        How many numbers were opened.
    to : Party
        Who learned them.
    rows : Rows
        Over which records.
    """

    variables: tuple[str, ...]
    cells: int
    to: Party
    rows: Rows


class Fact(NamedTuple):
    """Something else that was revealed: what, about whom, to whom."""

    what: str
    about: Party
    to: tuple[Party, ...]


@dataclass
class Ledger:
    """What one party saw revealed.

    Attributes
    ----------
    facts : list of Fact
    tables : list of OpenedTable
    """

    facts: list[Fact] = field(default_factory=list)
    tables: list[OpenedTable] = field(default_factory=list)

    def note(self, what: str, about: Party, to: tuple[Party, ...]) -> None:
        """Note a fact, once."""
        fact = Fact(what, about, to)
        if fact not in self.facts:
            self.facts.append(fact)

    def open(self, tables: Iterable[OpenedTable]) -> None:
        """Note tables that are about to be opened."""
        self.tables += tables

    @property
    def cells(self) -> int:
        """All opened cells."""
        return sum(table.cells for table in self.tables)

    def as_json(self) -> Mapping[str, Any]:
        """Return the ledger as JSON data: `revealed` and `tables`."""
        return {
            "revealed": [
                {"what": fact.what, "about": fact.about, "to": list(fact.to)} for fact in self.facts
            ],
            "tables": list(self._tables()),
        }

    def _tables(self) -> Iterator[Mapping[str, Any]]:
        for table in self.tables:
            entry = {"variables": list(table.variables), "cells": table.cells, "to": table.to}
            if table.rows != Rows():
                entry["rows"] = dict(table.rows._asdict())
            yield entry
