"""The ledger: what was revealed, to whom, in the order of the queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mpc.rounds import Party
from protocols.variables import Rows


class RevealedTable(NamedTuple):
    """One table that was revealed.

    Parameters
    ----------
    variables : tuple of str
        The axes of the table.
    cells : int
        The number of counts in the table.
    to : Party
        The party that learned the table.
    rows : Rows
        The records that the table counts.
    rule : str, default=""
        The rule by which an approved study released it; empty for an exact table of a free query.
    """

    variables: tuple[str, ...]
    cells: int
    to: Party
    rows: Rows
    rule: str = ""


class Fact(NamedTuple):
    """Another fact that was revealed: what, about which party, to which parties."""

    what: str
    about: Party
    to: tuple[Party, ...]


@dataclass
class Ledger:
    """What was revealed in the queries of one party.

    Attributes
    ----------
    facts : list of Fact
        The facts, each once.
    tables : list of RevealedTable
        The tables, in the order of the queries.
    """

    facts: list[Fact] = field(default_factory=list)
    tables: list[RevealedTable] = field(default_factory=list)

    def note(self, what: str, about: Party, to: tuple[Party, ...]) -> None:
        """Note a fact, once.

        Parameters
        ----------
        what, about, to
            The fields of the `Fact`.
        """
        fact = Fact(what, about, to)
        if fact not in self.facts:
            self.facts.append(fact)

    def open(self, tables: Iterable[RevealedTable]) -> None:
        """Note tables that are about to be revealed."""
        self.tables += tables

    @property
    def cells(self) -> int:
        """The number of revealed cells."""
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
            if table.rule:
                entry["rule"] = table.rule
            yield entry
