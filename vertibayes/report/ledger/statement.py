"""What a ledger says, in sentences: by study, the newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from protocols.contract import DIGEST_BYTES, grouped_digest
from protocols.ledger import Fact, Purpose, RevealedTable
from protocols.policy import Policy
from protocols.roles import Party
from protocols.site.ledger_entries import Entry, Refusal, SessionNote, Tables
from protocols.site.memory import SiteMemory
from protocols.variables import Rows
from vertibayes.report.words import counted


class Line(NamedTuple):
    """One entry of a ledger.

    Parameters
    ----------
    at : str
        When, in UTC; empty if the ledger does not say.
    kind : str
        "released", "revealed", "refused" or "session".
    text : str
        What happened, as a sentence.
    items : tuple of str
        Each table, or the detail for the owner.
    """

    at: str
    kind: str
    text: str
    items: tuple[str, ...] = ()


class Part(NamedTuple):
    """The entries of one study, the newest first."""

    title: str
    subtitle: str
    lines: list[Line]


class Statement(NamedTuple):
    """A ledger in words.

    Parameters
    ----------
    title : str
    notes : list of str
        About the file itself.
    budgets : list of str
        What was used, and what is left.
    parts : list of Part
        The study with the newest entry first.
    """

    title: str
    notes: list[str]
    budgets: list[str]
    parts: list[Part]


def parts_of(entries: Sequence[Entry]) -> list[Part]:
    """Return the entries of a site's ledger by study."""
    of: dict[Purpose, list[Line]] = {}
    for entry in reversed(entries):
        of.setdefault(entry.purpose, []).append(_line(entry))
    return [Part(*_titles(purpose), lines) for purpose, lines in of.items()]


def _titles(purpose: Purpose) -> tuple[str, str]:
    analyst, study, approval = purpose
    if not analyst:
        return "Entries without a session", "Of release 0.1.0 or older, or of the site itself."
    if approval:
        return f"Study {digest_in_words(study)}", f"Analyst {analyst}. Approved by {approval}."
    if study:
        return f"Study of free queries {study[:16]}", f"Analyst {analyst}. Without an approval."
    return f"Sessions of {analyst}, before a study", ""


def digest_in_words(study: str) -> str:
    """Return the digest of a contract in groups of four digits, as its owner has compared it."""
    is_digest = len(study) == 2 * DIGEST_BYTES
    return grouped_digest(bytes.fromhex(study)) if is_digest else study


def _line(entry: Entry) -> Line:
    at = entry.at.replace("T", " ").removesuffix("+00:00")
    noted = entry.noted
    if isinstance(noted, Tables):
        return tables_line(at, noted)
    if isinstance(noted, Refusal):
        items = (f"For the owner: {noted.detail}",) if noted.detail else ()
        return Line(at, "refused", f"Refused a query {noted.kind!r}: {noted.reason}.", items)
    if isinstance(noted, SessionNote):
        return Line(at, "session", _session(noted))
    return Line(at, "revealed", fact_in_words(noted))


def tables_line(at: str, noted: Tables) -> Line:
    """Return the line of a query's tables."""
    return Line(at, "released", _released(noted), tuple(map(_table, noted.tables)))


def _released(noted: Tables) -> str:
    again = f"{counted(noted.again, 'table')} with {counted(noted.cells_again, 'cell')} again"
    if not noted.tables:
        return f"Revealed {again}: the same counts as before."
    cells = sum(table.cells for table in noted.tables)
    to = ", ".join(dict.fromkeys(table.to for table in noted.tables))
    rules = ", ".join(dict.fromkeys(table.rule or "exact counts" for table in noted.tables))
    text = f"Revealed {counted(len(noted.tables), 'table')} with {counted(cells, 'cell')} to {to}"
    return f"{text}: {rules}." + (f" Also {again}: the same counts as before." * bool(noted.again))


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
    more = [counted(note.refusals, "refusal")] if note.refusals else []
    if note.again:
        more.append(f"{counted(note.again, 'table')} revealed again")
    return f"{text.rstrip('.')}." + (f" In all {', '.join(more)}." if more else "")


def fact_in_words(fact: Fact) -> str:
    """Return a fact as a sentence."""
    text = fact.what[:1].upper() + fact.what[1:]
    return f"{text} (about {fact.about}), to {', '.join(fact.to) or 'nobody else'}."


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


def budgets_of(memory: SiteMemory, policy: Policy | None) -> list[str]:
    """Return what a site has released, and what is left of it.

    Parameters
    ----------
    memory : SiteMemory
    policy : Policy, optional
        The limits; None if the site's file could not be read.
    """
    spent, released = memory.spent, memory.released
    most = {} if policy is None else vars(policy)
    numbers = [
        ("tables of approved studies", released.tables, "most_released_tables"),
        ("cells of these tables", released.cells, "most_released_cells"),
        ("bits of winners of choices", memory.chosen, "most_choice_bits"),
        ("records with scores", memory.scored, "most_scores"),
        ("record sets", memory.count_sets(), "most_row_sets"),
    ]
    lines = [_left(what, used, most.get(name), name) for what, used, name in numbers]
    freely = memory.released_freely.tables
    lines.append(f"exact tables of free queries: {freely:,}, without a limit")
    if policy is not None:
        left = spent.left(policy.most_epsilon, policy.most_delta)
        eps, _ = spent.proved(policy.most_delta)
        lines.insert(
            0,
            f"epsilon: {eps:.4g} used, {max(left, 0):.4g} left (most_epsilon = "
            f"{policy.most_epsilon:g})",
        )
    for peer, count in memory.meets.known().items():
        text = f"comparisons with {peer}: {count.different} found different lists, "
        lines.append(
            f"{text}{count.unanswered} were not answered"
            + ("" if policy is None else f" (most_failed_meets = {policy.most_failed_meets})")
        )
    return lines


def _left(what: str, used: int, most: int | None, name: str) -> str:
    if most is None:
        return f"{what}: {used:,} so far"
    return f"{what}: {used:,} so far, {max(most - used, 0):,} left ({name} = {most:,})"
