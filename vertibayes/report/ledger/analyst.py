"""The ledger of an analyst's run in words, from the content of ``ledger.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from vertibayes.report.ledger.statement import Line, Total, fact_line, merged, tables_line
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.storage.ledger_entries import Tables
from vertibayes_protocols.variables import Rows


class RunLedger(NamedTuple):
    """What a run revealed: a line for all tables, one for each other fact, and the totals."""

    lines: list[Line]
    total: Total


def ledger_of_run(content: Mapping[str, Any]) -> RunLedger:
    """Return the ledger of a run in words."""
    facts = [Fact(e["what"], e["about"], tuple(e["to"])) for e in content["revealed"]]
    tables = tuple(map(_table, content["tables"]))
    lines = [tables_line("", Tables(tables))] if tables else []
    lines += [fact_line("", fact) for fact in merged(facts)]
    cells = sum(table.cells for table in tables)
    return RunLedger(lines, Total(len(tables), cells, len(lines) - bool(tables)))


def _table(entry: Mapping[str, Any]) -> RevealedTable:
    rows = Rows(**entry.get("rows", {}))
    names, rule = tuple(entry["variables"]), entry.get("rule", "")
    return RevealedTable(names, int(entry["cells"]), entry["to"], rows, rule)
