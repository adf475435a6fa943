"""The entries of a site's ledger, as lines of JSON.

    {"format": 2, "chain": key}                              what follows has this format
    {"at", ..., "what", "about", "to"}                       a fact that was revealed
    {"at", ..., "released": [group, ...], "again": [n, m]}   the tables of a query
    {"at", ..., "refused", "reason", "detail"}               a query that was refused
    {"at", ..., "session", ...}                              a session has begun, or ended

`...` are the analyst, the study and the approval, where there are any. A group has what tables have
in common: who learned them, the records, the rule, and the names of variables. Each table is then
its number of cells and the places of its variables among the names. `again` counts tables, and
their cells, that the same session's study had revealed before. Lines of format 0 have the tables
one by one, and no analyst.

From format 2 on, lines are chained (`chain`): each line ends with the beginning of the head of the
line before it (`after`), and with the number of writes of the memory (`memory`) if there were any
since the line before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.ledger import Fact, Purpose, RevealedTable
from vertibayes_protocols.storage.chain import Chain
from vertibayes_protocols.storage.whole_file import OLDEST, NewerFormatError, check_format
from vertibayes_protocols.variables import Rows

FORMAT = CHAINED = 2  # 1: without a chain
BEGINS = b'{"at": "'  # of each entry


class Tables(NamedTuple):
    """The tables that a query reveals."""

    tables: tuple[RevealedTable, ...]  # the tables that the study had not revealed before
    again: int = 0  # the number of the others, which are the same counts again, and of their cells
    cells_again: int = 0


class Refusal(NamedTuple):
    """A query that was refused: its kind, the reason, and the detail for the site's owner."""

    kind: str
    reason: str
    detail: str = ""


class SessionNote(NamedTuple):
    """A session has begun, or ended."""

    event: str  # "begun" or "ended"
    reason: str = ""  # why it failed; empty if it did not
    refusals: int = 0
    # The number of tables that were revealed again, and of their cells.
    again: int = 0
    cells_again: int = 0


Noted: TypeAlias = Fact | Tables | Refusal | SessionNote


class Entry(NamedTuple):
    """One entry: when (UTC, ISO 8601), for whom, and what."""

    at: str
    purpose: Purpose
    noted: Noted


@dataclass
class LedgerContent:
    """What a ledger's file has."""

    entries: list[Entry] = field(default_factory=list)
    whole: int = 0  # the bytes of all whole lines
    cut: int = 0  # the bytes of a last line that was cut short
    joined: list[int] = field(default_factory=list)  # which release 0.1.0 wrote behind half a line
    format: int = OLDEST  # of the next line
    chain: Chain = field(default_factory=Chain)
    strange: list[int] = field(default_factory=list)  # lines that do not follow the line before
    at: str = ""  # when the memory was written last, as far as the lines know

    def begin(self, content: Mapping[str, Any]) -> None:
        """Take the line that begins lines of a format, and their chain."""
        self.chain = Chain(bytes.fromhex(content["chain"]) if self.format >= CHAINED else b"")
        self.strange = []

    def follow(self, content: Mapping[str, Any], line: bytes, number: int) -> None:
        """Take the links of a line to the line before it, and to the memory."""
        if not self.chain.key:
            return
        if content["after"] != self.chain.short:
            self.strange.append(number)
        self.chain.add(line)
        if "memory" in content:
            self.chain.writes, self.at = _count(content["memory"]), content["at"]


def read_ledger(path: Path) -> LedgerContent:
    """Read a ledger; the file is not changed, and another process may write to it."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    ledger = LedgerContent(whole=whole, cut=len(content) - whole)
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            parsed, is_torn = _parsed(line, ledger.format)
            ledger.joined += [number] * is_torn
            if "format" in parsed:
                ledger.format = check_format(path, parsed["format"], FORMAT)
                ledger.begin(parsed)
            else:
                purpose = Purpose(*(_text(parsed.get(name, "")) for name in Purpose._fields))
                ledger.entries.append(Entry(_text(parsed["at"]), purpose, _noted(parsed)))
                ledger.follow(parsed, line, number)
        except NewerFormatError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{path}, line {number}: not a valid entry of a ledger ({error})"
            raise ValueError(reason) from None
    return ledger


def _parsed(line: bytes, form: int) -> tuple[dict[str, Any], bool]:
    """Return the JSON of a line, and whether half an entry precedes it.

    Release 0.1.0 wrote an entry behind one that did not fit onto the disk.
    """
    is_torn = False
    try:
        parsed = json.loads(line)
    except ValueError:
        if form > OLDEST or BEGINS not in line:
            raise
        parsed, is_torn = json.loads(line[line.rindex(BEGINS) :]), True
    if not isinstance(parsed, dict):
        raise TypeError("it is not an object")
    return parsed, is_torn


# ---- JSON ----------------------------------------------------------------------------------------


def first_of(chain: Chain) -> bytes:
    """Return the line that begins a chain."""
    return b'{"format": %d, "chain": "%s"}\n' % (FORMAT, chain.key.hex().encode())


def line_of(entry: Entry, links: Mapping[str, Any]) -> bytes:
    """Return the line of an entry, without its end."""
    purpose = {name: text for name, text in entry.purpose._asdict().items() if text}
    content = {"at": entry.at, **purpose, **_noted_json(entry.noted), **links}
    return json.dumps(content, ensure_ascii=False).encode()


def _noted_json(noted: Noted) -> dict[str, Any]:
    if isinstance(noted, Fact):
        return {"what": noted.what, "about": noted.about, "to": list(noted.to)}
    if isinstance(noted, Refusal):
        more = {"detail": noted.detail} if noted.detail else {}
        return {"refused": noted.kind, "reason": noted.reason, **more}
    if isinstance(noted, SessionNote):
        event, *numbers = noted
        names = SessionNote._fields[1:]
        return {"session": event, **{n: v for n, v in zip(names, numbers, strict=True) if v}}
    again = {"again": [noted.again, noted.cells_again]} if noted.again else {}
    return {"released": list(_groups(noted.tables)), **again}


def _groups(tables: Iterable[RevealedTable]) -> Iterator[dict[str, Any]]:
    """Yield tables by what they have in common."""
    groups: dict[tuple[Party, Rows, str], list[RevealedTable]] = {}
    for table in tables:
        groups.setdefault((table.to, table.rows, table.rule), []).append(table)
    for (to, rows, rule), members in groups.items():
        names = {name: 0 for table in members for name in table.variables}
        names = {name: place for place, name in enumerate(names)}
        more: dict[str, Any] = {} if rows == Rows() else {"rows": list(rows)}
        if rule:
            more["rule"] = rule
        places = [[table.cells, *(names[name] for name in table.variables)] for table in members]
        yield {"to": to, **more, "names": list(names), "tables": places}


def _noted(content: Mapping[str, Any]) -> Noted:
    if "released" in content:
        tables = tuple(t for group in content["released"] for t in _tables_of(group))
        return Tables(tables, *map(_count, content.get("again", ())))
    if "tables" in content:  # format 0
        return Tables(tuple(_table(table) for table in content["tables"]))
    if "refused" in content:
        texts = content["refused"], content["reason"], content.get("detail", "")
        return Refusal(*map(_text, texts))
    if "session" in content:
        counts = (_count(content.get(name, 0)) for name in SessionNote._fields[2:])
        return SessionNote(_text(content["session"]), _text(content.get("reason", "")), *counts)
    to = tuple(map(_text, content["to"]))
    return Fact(_text(content["what"]), _text(content["about"]), to)


def _tables_of(group: Mapping[str, Any]) -> Iterator[RevealedTable]:
    names, rule = [_text(name) for name in group["names"]], _text(group.get("rule", ""))
    rows = Rows(*_numbers(group.get("rows", ())))
    for cells, *places in group["tables"]:
        if not all(0 <= _count(place) < len(names) for place in places):
            raise ValueError("a variable's place is beyond the names")
        variables = tuple(names[place] for place in places)
        yield RevealedTable(variables, _count(cells), _text(group["to"]), rows, rule)


def _table(entry: Mapping[str, Any]) -> RevealedTable:
    rows = Rows(*_numbers(entry.get("rows", ())))
    names, cells = tuple(entry["variables"]), int(entry["cells"])
    return RevealedTable(names, cells, str(entry["to"]), rows, str(entry.get("rule", "")))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is expected, got {value!r:.40}")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"a whole number is expected, got {value!r:.40}")
    return value


def _numbers(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if value is not None and type(value) is not int:
            raise ValueError(f"rows must be whole numbers, got {value!r}")
        yield value
