"""The ledger: what was revealed, to whom, in the order of the queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.variables import Rows

FORMAT = 1  # of the analyst's ledger.json


class RevealedTable(NamedTuple):
    """One table that was revealed."""

    variables: tuple[str, ...]  # the axes of the table
    cells: int  # the number of counts in the table
    to: Party  # the party that learned the table
    rows: Rows  # the records that the table counts
    rule: str = ""


class Fact(NamedTuple):
    """Another fact that was revealed: what, about which party, to which parties."""

    what: str
    about: Party
    to: tuple[Party, ...]


class Purpose(NamedTuple):
    """For whom and for what an entry of a site's ledger was made."""

    analyst: Party = ""  # whose session it was; empty if the entry belongs to no session
    study: str = ""
    approval: str = ""  # who approved the contract, and when; empty for free queries


StudyNow: TypeAlias = Callable[[], tuple[str, str]]  # the study and approval of a `Purpose`


@dataclass
class Ledger:
    """What was revealed in the queries of one party."""

    facts: list[Fact] = field(default_factory=list)  # the facts, each once
    tables: list[RevealedTable] = field(default_factory=list)

    def begin(self, analyst: Party, study: StudyNow) -> Ledger:
        """Return the ledger of a session, whose entries come into this ledger."""
        del analyst, study  # a ledger in memory has no entries of sessions
        return self

    def end(self, reason: str = "") -> None:
        """Note that the session has ended; `reason` says why if it failed."""

    def refuse(self, kind: str, reason: str, detail: str = "") -> None:
        """Note a query that was refused."""

    def note(self, what: str, about: Party, to: tuple[Party, ...]) -> None:
        """Note a fact, once."""
        fact = Fact(what, about, to)
        if fact not in self.facts:
            self.facts.append(fact)

    def open(self, tables: Iterable[RevealedTable]) -> None:
        """Note tables that are about to be revealed."""
        self.tables += tables

    @property
    def releases(self) -> int:
        """How many releases by a rule it has, in a session those of the session's study."""
        return sum(bool(table.rule) for table in self.tables)  # those of many tables are more

    @property
    def head(self) -> bytes:
        """The head of the last line; empty for a ledger in memory, which ends with its process."""
        return b""

    def knows(self, head: bytes) -> bool:
        """Whether a line has a head."""
        del head
        return False

    @property
    def cells(self) -> int:
        """The number of revealed cells."""
        return sum(table.cells for table in self.tables)

    def as_json(self) -> Mapping[str, Any]:
        """Return the ledger as JSON data: `format`, `revealed` and `tables`."""
        return {
            "format": FORMAT,
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
