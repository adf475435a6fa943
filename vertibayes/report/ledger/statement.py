"""What a ledger says, in sentences: by study, the newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vertibayes.report.ledger.budgets import Budget
from vertibayes.words import counted
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.ledger import Fact, Purpose, RevealedTable
from vertibayes_protocols.roles import Party
from vertibayes_protocols.storage.ledger_entries import Entry, Refusal, SessionNote, Tables
from vertibayes_protocols.variables import Rows

SHORT = 19  # of a study: four groups of four digits, as in the party's log
MANY = 2  # refusals of a session, of which each reason is listed once


class Line(NamedTuple):
    """One entry of a ledger."""

    at: str  # when, in UTC; empty if the ledger does not say
    kind: str  # "released", "revealed", "refused", "noted" (to nobody) or "session"
    to: str  # who learned it; empty if nobody did
    text: str  # what happened, as a sentence, or what left
    items: tuple[str, ...] = ()  # each table, or the detail for the owner


class Total(NamedTuple):
    """What a part has in all: tables, their cells, other facts, and reasons of refusals."""

    tables: int = 0
    cells: int = 0
    facts: int = 0
    refused: int = 0


class Part(NamedTuple):
    """The entries of one study, the newest first."""

    title: str
    subtitle: str
    lines: list[Line]
    # The first digits of the study, whose it is, and who approved it.
    study: str = ""
    analyst: str = ""
    approved: str = ""
    last: str = ""  # the time of the latest entry
    total: Total = Total()


class Statement(NamedTuple):
    """A ledger in words."""

    title: str
    notes: list[str]  # about the file itself
    budgets: list[Budget]  # what was used, and what is left
    parts: list[Part]  # the study with the newest entry first; those without a study at the end


def parts_of(entries: Sequence[Entry], party: Party = "") -> list[Part]:
    """Return the entries of the ledger of a site, which is `party`, by study."""
    of: dict[Purpose, list[Entry]] = {}
    for entry in reversed(entries):
        of.setdefault(entry.purpose, []).append(entry)
    parts = [_part(purpose, own, party) for purpose, own in of.items()]
    return sorted(parts, key=lambda part: not part.study)


def _part(purpose: Purpose, entries: Sequence[Entry], party: Party) -> Part:
    analyst, study, approval = purpose
    title, subtitle = titles(purpose)
    if sessions := sum(_is(entry, "begun") for entry in entries):
        subtitle = f"{subtitle} {counted(sessions, 'session')} began.".strip()
    lines = [_line(entry, party) for entry in entries if not _is_silent(entry)]
    lines, short = this_study(lines, study), digest_in_words(study)[:SHORT]
    last = in_utc(entries[0].at)
    return Part(title, subtitle, lines, short, analyst, approval, last, _total(entries))


def this_study(lines: list[Line], study: str) -> list[Line]:
    """Return the lines of a study, which name the study without its digest."""
    whole = f"the study {digest_in_words(study)}"
    if not study:
        return lines
    return [line._replace(text=line.text.replace(whole, "this study")) for line in lines]


def titles(purpose: Purpose) -> tuple[str, str]:
    """Return the heading of a study, and whose it is and who approved it."""
    analyst, study, approval = purpose
    if not analyst:
        return "Entries without a session", "Of release 0.1.0 or older, or of the site itself."
    if approval:
        return f"Study {digest_in_words(study)}", f"Analyst {analyst}. Approved by {approval}."
    if study:
        title = f"Study of free queries {digest_in_words(study)[:SHORT]}"
        return title, f"Analyst {analyst}. Without an approval."
    return f"Sessions of {analyst}, before a study", ""


def _total(entries: Iterable[Entry]) -> Total:
    noted = [entry.noted for entry in entries]
    tables = [table for tables in noted if isinstance(tables, Tables) for table in tables.tables]
    facts = sum(isinstance(fact, Fact) and bool(fact.to) for fact in noted)
    refused = sum(isinstance(refusal, Refusal) for refusal in noted)
    return Total(len(tables), sum(table.cells for table in tables), facts, refused)


def in_utc(at: str) -> str:
    """Return a time in ISO 8601 as it is read."""
    return at.replace("T", " ").removesuffix("+00:00")


def _is(entry: Entry, event: str) -> bool:
    return isinstance(entry.noted, SessionNote) and entry.noted.event == event


def _is_silent(entry: Entry) -> bool:
    """Whether an entry says only that a session began, or ended as it should."""
    noted = entry.noted
    is_plain = isinstance(noted, SessionNote) and not (noted.reason or noted.again)
    return _is(entry, "begun") or (is_plain and getattr(noted, "refusals", 0) < MANY)


def digest_in_words(study: str) -> str:
    """Return a digest or an id in groups of four digits, as the owner has compared the digest."""
    try:
        return grouped_digest(bytes.fromhex(study))
    except ValueError:  # of a ledger that was changed by hand
        return study


def _line(entry: Entry, party: Party) -> Line:
    at, noted = in_utc(entry.at), entry.noted
    if isinstance(noted, Tables):
        return tables_line(at, noted)
    if isinstance(noted, Refusal):
        items = (f"For the owner: {noted.detail}",) if noted.detail else ()
        return Line(at, "refused", "", f"Query {noted.kind!r}: {noted.reason}.", items)
    if isinstance(noted, SessionNote):
        return Line(at, "session", "", _session(noted))
    return fact_line(at, noted, party)


def tables_line(at: str, noted: Tables) -> Line:
    """Return the line of a query's tables."""
    to = ", ".join(dict.fromkeys(table.to for table in noted.tables))
    return Line(at, "released", to, _released(noted), tuple(map(_table, noted.tables)))


def _released(noted: Tables) -> str:
    again = f"{counted(noted.again, 'table')} with {counted(noted.cells_again, 'cell')} again"
    if not noted.tables:
        return f"{again}: the same counts as before.".capitalize()
    cells = sum(table.cells for table in noted.tables)
    rules = ", ".join(dict.fromkeys(table.rule or "exact counts" for table in noted.tables))
    text = f"{counted(len(noted.tables), 'table')} with {counted(cells, 'cell')}: {rules}."
    return text + (f" Also {again}: the same counts as before." * bool(noted.again))


def _table(table: RevealedTable) -> str:
    text = f"{', '.join(table.variables)}: {counted(table.cells, 'cell')}"
    rows = table.rows
    if rows == Rows():
        return text
    last = "the last" if rows.last is None else f"{rows.last:,}"
    return f"{text}, of the records {rows.first:,} to {last} of the order {rows.seed}"


def _session(note: SessionNote) -> str:
    if note.event == "begun":
        return "A session began."
    text = "The session ended" + (f": {note.reason}" if note.reason else "")
    more = f" {counted(note.again, 'table')} revealed again." if note.again else ""
    if note.refusals >= MANY:
        more += f" {note.refusals:,} queries were refused; each reason is listed once."
    return f"{text.rstrip('.')}.{more}"


def fact_line(at: str, fact: Fact, party: Party = "") -> Line:
    """Return the line of a fact; about whom it is, if that is not the party of the ledger."""
    text = fact.what[:1].upper() + fact.what[1:]
    is_own = fact.about in (party, f"the records of {party}")
    about = "" if is_own else f" (about {fact.about})"
    kind, to = ("revealed", ", ".join(fact.to)) if fact.to else ("noted", "")
    return Line(at, kind, to, f"{text}{about}.")


def merged(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield facts that differ only in whom they are about, and who learned them, as one fact."""
    of: dict[str, dict[Party, dict[Party, None]]] = {}
    for what, about, to in facts:
        of.setdefault(what, {}).setdefault(about, {}).update(dict.fromkeys(to))
    for what, learned in of.items():
        everybody = set(learned).union(*learned.values())
        if len(learned) > 1 and all(set(to) == everybody - {a} for a, to in learned.items()):
            others = dict.fromkeys(p for to in learned.values() for p in to if p not in learned)
            yield Fact(what, ", ".join(learned), (*others, "each other"))
        else:
            yield from (Fact(what, about, tuple(to)) for about, to in learned.items())
