"""A site's ledger on disk: an entry is durable before the first byte of what it notes is sent.

The file has one line of JSON for each fact, each query's tables, each refusal, and the start and
end of each session (`ledger_entries`). Lines are only added. A line that cannot be written is cut
off. A last line that a crash cut short is dropped: what it notes was never sent.

A session that asks for the same again adds little: a fact and a refusal have one entry per session,
and a table that the study has revealed before, with the same counts, is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path

from vertibayes_mpc.rounds import Party
from vertibayes_protocols import clock
from vertibayes_protocols.ledger import Fact, Ledger, Purpose, RevealedTable, StudyNow
from vertibayes_protocols.storage.ledger_entries import (
    FORMAT,
    HEAD,
    Entry,
    Noted,
    Refusal,
    SessionNote,
    Tables,
    line_of,
    read_ledger,
)
from vertibayes_protocols.storage.whole_file import OLDEST, GrowingFile, open_own

MOST_REFUSALS = 100  # that one session notes one by one; further ones are counted


@dataclass
class _Session:
    """What a session has noted."""

    analyst: Party
    study: StudyNow
    noted: set[tuple[Purpose, Fact]] = field(default_factory=set)
    refusals: set[Refusal] = field(default_factory=set)
    refused: int = 0
    again: int = 0
    cells_again: int = 0


class LedgerFile(Ledger):
    """A ledger that continues the entries of its file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.cut, self.joined = path, 0, list[int]()
        self._known: dict[tuple[Party, str], set[RevealedTable]] = {}  # by analyst and study
        self._releases = Counter[tuple[Party, str]]()  # by the same
        self._session: _Session | None = None
        whole, form = self._load(path) if path.exists() else (0, OLDEST)
        self._file = GrowingFile(open_own(path), path, whole, b"" if form == FORMAT else HEAD)
        self._file.cut()

    def begin(self, analyst: Party, study: StudyNow) -> LedgerFile:
        """Note that a session begins; return its ledger."""
        session = copy(self)  # with the same file, facts and tables
        session._session = _Session(analyst, study)
        session._write(SessionNote("begun"))
        return session

    def end(self, reason: str = "") -> None:
        """Note that the session has ended, if it can be written: nothing is revealed by it."""
        session = self._session
        if session is not None:
            counts = session.refused, session.again, session.cells_again
            with suppress(OSError, ValueError):
                self._write(SessionNote("ended", reason, *counts))

    def refuse(self, kind: str, reason: str, detail: str = "") -> None:
        """Note a query that was refused: each reason once per session."""
        refusal, session = Refusal(kind, reason, detail), self._session
        if session is None:
            self._write(refusal)
            return
        session.refused += 1
        if refusal not in session.refusals and len(session.refusals) < MOST_REFUSALS:
            self._write(refusal)
            session.refusals.add(refusal)

    def note(self, what: str, about: Party, to: tuple[Party, ...]) -> None:
        """Note a fact; the file gets an entry in each session that reveals it."""
        fact, purpose = Fact(what, about, to), self._purpose
        if self._session is None or (purpose, fact) not in self._session.noted:
            self._write(fact)
            if self._session is not None:
                self._session.noted.add((purpose, fact))
        super().note(what, about, to)

    def open(self, tables: Iterable[RevealedTable]) -> None:
        """Note the tables of a query, on disk too."""
        asked = list(tables)
        known = self._known.get(self._purpose[:2], set())  # not those of a rule, which may differ
        new = [table for table in dict.fromkeys(asked) if table not in known]
        again = len(asked) - len(new)
        cells = sum(table.cells for table in asked) - sum(table.cells for table in new)
        session = self._session
        if new or (again and (session is None or not session.again)):
            self._write(Tables(tuple(new), again, cells))
        if session is not None:
            session.again += again
            session.cells_again += cells
        self._remember(self._purpose, new)

    def recovered(self) -> Iterator[tuple[str, dict[str, str | int]]]:
        """Yield what was not whole when the file was read, as events and facts for the log."""
        if self.cut:
            what = "unfinished entry of the ledger removed: what it notes was never sent"
            yield what, {"file": str(self.path), "bytes": self.cut}
        for number in self.joined:
            what = "half an entry of the ledger ignored: what it notes was never sent"
            yield what, {"file": str(self.path), "line": number}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def releases(self) -> int:
        """How many releases by a rule the file has of the session's study."""
        return self._releases[self._purpose[:2]]

    @property
    def _purpose(self) -> Purpose:
        session = self._session
        return Purpose() if session is None else Purpose(session.analyst, *session.study())

    def _remember(self, purpose: Purpose, tables: Collection[RevealedTable]) -> None:
        exact = [table for table in tables if not table.rule]
        self.tables += tables
        self._releases[purpose[:2]] += len(exact) < len(tables)
        if purpose.study:
            self._known.setdefault(purpose[:2], set()).update(exact)

    def _write(self, noted: Noted) -> None:
        at = clock.now().isoformat(timespec="seconds")
        self._file.append(line_of(Entry(at, self._purpose, noted)))

    def _load(self, path: Path) -> tuple[int, int]:
        """Take the entries of the file; return where the last whole line ends, and its format."""
        content = read_ledger(path)
        self.cut, self.joined = content.cut, content.joined
        for _, purpose, noted in content.entries:
            if isinstance(noted, Tables):
                self._remember(purpose, noted.tables)
            elif isinstance(noted, Fact):
                self.facts.append(noted)
        return content.whole, content.format
