"""A site's ledger on disk: an entry is durable before the first byte of what it notes is sent.

The file has one line of JSON for each fact, each query's tables, each refusal, and the start and
end of each session (`ledger_entries`). Lines are only added. A line that cannot be written is cut
off. A last line that a crash cut short is dropped: what it notes was never sent.

A session that asks for the same again adds little: a fact and a refusal have one entry per session,
and a table that the study has revealed before, with the same counts, is counted.

The ledger is compared with the site's memory before it is opened (`check_together`): the memory
knows the head of a line (`chain`), and each line knows how often the memory was written. A crash
makes neither older than the other: a line counts for the memory, and a write of the memory for the
ledger, when it is on disk. The end of a session writes the memory once more, so that it knows all
lines. What a crash leaves is longer than what the other file knows, and never shorter.
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
from vertibayes_protocols.storage.chain import Chain
from vertibayes_protocols.storage.ledger_entries import (
    FORMAT,
    Entry,
    LedgerContent,
    Noted,
    Refusal,
    SessionNote,
    Tables,
    first_of,
    line_of,
    read_ledger,
)
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.whole_file import GrowingFile, open_own

WAY_OUT = (
    "restore the newest backup of both files; if it is lost, `vertibayes repair` says what may "
    "follow, and uses what is left"
)
TRIES = 3  # to read both files: a running site may write between the two
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
    """A ledger that continues the entries of its file; those that its `memory` does not know too.

    With `new_chain` it is not compared with the memory, and no head from before is known.
    """

    def __init__(
        self, path: Path, memory: SiteMemory | None = None, *, new_chain: bool = False
    ) -> None:
        super().__init__()
        self.path = path
        self._known: dict[tuple[Party, str], set[RevealedTable]] = {}  # by analyst and study
        self._releases = Counter[tuple[Party, str]]()  # by the same
        self._session: _Session | None = None
        content = read_ledger(path) if path.exists() else LedgerContent()
        is_new = new_chain or content.format < FORMAT
        if memory is not None and not new_chain:
            check_together(path, content, memory)
        self.cut, self.joined = content.cut, content.joined
        self._take(content)
        self._chain = Chain.new() if is_new else content.chain
        self._memory = memory
        if memory is not None:
            memory.ledger = self._chain
        head = first_of(self._chain) if is_new else b""
        self._file = GrowingFile(open_own(path), path, content.whole, head)
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
                if self._memory is not None:
                    self._memory.save(always=True)

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

    @property
    def head(self) -> bytes:
        """The head of the last line."""
        return self._chain.head

    def knows(self, head: bytes) -> bool:
        """Whether a line of the chain has a head."""
        return self._chain.line_of(head) > 0

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
        chain, memory = self._chain, self._memory
        writes = chain.writes if memory is None else memory.writes
        links = {"after": chain.short} | ({"memory": writes} if writes != chain.writes else {})
        line = line_of(Entry(at, self._purpose, noted), links)
        self._file.append(line + b"\n")
        chain.add(line)
        chain.writes = writes

    def _take(self, content: LedgerContent) -> None:
        for _, purpose, noted in content.entries:
            if isinstance(noted, Tables):
                self._remember(purpose, noted.tables)
            elif isinstance(noted, Fact):
                self.facts.append(noted)


def compared(ledger: Path, memory: Path) -> tuple[LedgerContent, SiteMemory, list[str]]:
    """Read both files, which their site may use, and what is wrong with them."""
    for _ in range(TRIES):
        content = read_ledger(ledger) if ledger.exists() else LedgerContent()
        known = SiteMemory.read(memory) if memory.exists() else SiteMemory()
        known.path = memory  # to be named
        if not (wrong := list(disagreements(ledger, content, known))):
            break
    return content, known, wrong


def check_together(path: Path, content: LedgerContent, memory: SiteMemory) -> None:
    """Refuse, with a ValueError, a ledger and a memory that are not of the same time."""
    if found := list(disagreements(path, content, memory)):
        raise ValueError(f"{'; '.join(found)}: {WAY_OUT}")


def disagreements(path: Path, content: LedgerContent, memory: SiteMemory) -> Iterator[str]:
    """Yield what shows that a ledger was changed, or that it or the memory is older."""
    chain, (lines, head) = content.chain, memory.known_ledger
    if content.strange:  # each later line has the heads of all before it
        first, *later = content.strange
        more = f" (nor, for that, later lines: {len(later):,})" if later else ""
        what = f"does not follow the line before it{more}"
        yield f"{path}, line {first}: {what}: a line was changed, added or removed there"
    if lines > chain.lines:
        missing = f"{lines - chain.lines:,} of {lines:,} lines are missing"
        yield f"{path} is older than the memory: {missing}"
    elif lines and chain.line_of(head) != lines and not content.strange:
        yield f"{path} was replaced or changed: the memory knows other first {lines:,} lines"
    if chain.writes > memory.writes:
        count = f"{chain.writes - memory.writes:,} of {chain.writes:,} changes"
        yield f"{memory.path} is older than the ledger: {count} until {content.at} are missing"
