"""The ledger of a run in sentences: everything that was revealed, and to whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vertibayes.report.ledger.analyst import ledger_of_run
from vertibayes.report.ledger.statement import Line
from vertibayes.report.page.content import (
    Block,
    Bullets,
    Fold,
    Heading,
    Name,
    Note,
    Paragraph,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry

MOST_ITEMS = 100  # tables of one line of the ledger
MOST_LINES = 300
CHOICES = "Which of "  # the lines of choices between candidates begin with it


def lines_of(content: Entry) -> list[Line] | None:
    """Return the lines of a ledger; None if it is not valid, and nothing without a ledger."""
    if not content.exists:
        return []
    try:
        return ledger_of_run(content.value).lines
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


def receivers_of(lines: Sequence[Line]) -> list[str]:
    """Return who learned tables."""
    return list(dict.fromkeys(line.to for line in lines if line.kind == "released" and line.to))


def ledger_blocks(content: Entry) -> Iterator[Block]:
    """Yield the ledger in sentences; long lists are folded."""
    yield Heading(("The ledger: each thing that was revealed, and to whom",))
    if not content.exists:
        yield Paragraph(("The folder has no ledger.json.",))
        return
    lines = lines_of(content)
    if lines is None:
        yield Note(("The file ledger.json is not a valid ledger.",))
    elif not lines:
        yield Paragraph(("The ledger has no entry.",))
    else:
        yield from _lines(lines[:MOST_LINES])
        if len(lines) > MOST_LINES:
            more = len(lines) - MOST_LINES
            yield Paragraph((f"{more:,} more lines are in ledger.json.",))
        for line in lines:
            if line.items:
                yield Fold((f"The revealed tables ({len(line.items):,})",), _items(line))


def _lines(lines: Sequence[Line]) -> Iterator[Block]:
    """Yield the lines of a ledger, and then those of its choices."""
    choices = [line for line in lines if line.text.startswith(CHOICES)]
    others = [line for line in lines if not line.text.startswith(CHOICES)]
    if others:
        yield Table("What was revealed", ["to", "what"], [_row(line) for line in others])
    if choices:
        rows = [_row(line) for line in choices]
        yield Fold((f"The choices between candidates ({len(rows):,} lines)",),
                   [Table("What choices revealed", ["to", "what"], rows)])  # fmt: skip


def _row(line: Line) -> list[Text]:
    return [(Name(line.to or "nobody"),), (Name(line.text),)]


def _items(line: Line) -> list[Block]:
    blocks: list[Block] = [Bullets([(Name(item),) for item in line.items[:MOST_ITEMS]])]
    if len(line.items) > MOST_ITEMS:
        more = len(line.items) - MOST_ITEMS
        blocks.append(Paragraph((f"{more:,} more tables are in ledger.json.",)))
    return blocks
