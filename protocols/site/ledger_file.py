"""A site's ledger on disk: an entry is durable before the first byte of what it notes is sent.

The file has one line of JSON for each fact and for each query's tables, with the time. Lines are
only added. A last line that a crash cut short is dropped: what it notes was never sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mpc.rounds import Party
from protocols.ledger import Fact, Ledger, RevealedTable
from protocols.site.whole_file import naming
from protocols.variables import Rows


class LedgerFile(Ledger):
    """A ledger that continues the entries of its file.

    Parameters
    ----------
    path : Path
        The file, created if it does not exist; only its owner can read it.

    Raises
    ------
    ValueError
        If the file is not a valid ledger; the message names the line.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        if path.exists():
            self._load(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._file = os.fdopen(descriptor, "ab")

    def note(self, what: str, about: Party, to: tuple[Party, ...]) -> None:
        """Note a fact; the file gets an entry each time that the fact is revealed.

        Parameters
        ----------
        what, about, to
            As `Ledger.note`.
        """
        self._write({"what": what, "about": about, "to": list(to)})
        super().note(what, about, to)

    def open(self, tables: Iterable[RevealedTable]) -> None:
        """Note the tables of a query, on disk too."""
        added = list(tables)
        if added:
            self._write({"tables": [_as_json(table) for table in added]})
        super().open(added)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, entry: Mapping[str, Any]) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        line = json.dumps({"at": at, **entry}, ensure_ascii=False)
        with naming(self.path):
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def _load(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                reason = f"{path}, line {number}: not a valid entry of a ledger ({error})"
                raise ValueError(reason) from None
        if whole < len(content):
            os.truncate(path, whole)

    def _take(self, entry: Mapping[str, Any]) -> None:
        if "tables" in entry:
            self.tables += [_table(table) for table in entry["tables"]]
        else:
            self.facts.append(Fact(entry["what"], entry["about"], tuple(entry["to"])))


def _as_json(table: RevealedTable) -> dict[str, Any]:
    more: dict[str, Any] = {} if table.rows == Rows() else {"rows": list(table.rows)}
    if table.rule:
        more["rule"] = table.rule
    return {"variables": list(table.variables), "cells": table.cells, "to": table.to, **more}


def _table(entry: Mapping[str, Any]) -> RevealedTable:
    rows = Rows(*_numbers(entry.get("rows", ())))
    names, cells = tuple(entry["variables"]), int(entry["cells"])
    return RevealedTable(names, cells, str(entry["to"]), rows, str(entry.get("rule", "")))


def _numbers(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if value is not None and type(value) is not int:
            raise ValueError(f"rows must be whole numbers, got {value!r}")
        yield value
