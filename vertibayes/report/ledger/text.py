"""A ledger as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from vertibayes.report.ledger.statement import Line, Part, Statement

WIDTH = 100
MOST_ITEMS = 10  # of one entry, unless all are asked for
HEADS = "study", "analyst", "approved by", "last entry", "tables", "cells", "other facts", "refused"


def text_of(statement: Statement, *, everything: bool = False) -> str:
    """Return a ledger as text."""
    return "\n".join(_text(statement, everything)) + "\n"


def _text(statement: Statement, everything: bool) -> Iterator[str]:
    yield statement.title
    yield from (fill(note, WIDTH) for note in statement.notes)
    if len(statement.parts) > 1:
        yield "\nIn all, the newest first"
        yield from _columns([HEADS, *map(summary_of, statement.parts)], numbers=4)
    if statement.budgets:
        yield "\nUsed and left"
        rows = [(budget.what, *budget.cells) for budget in statement.budgets]
        yield from _columns([("", "used", "left", "limit"), *rows], numbers=2, last=1)
    for part in statement.parts:
        yield f"\n{part.title}"
        if part.subtitle:
            yield f"  {part.subtitle}"
        for line in part.lines:
            yield from _line(line, everything)


def summary_of(part: Part) -> tuple[str, ...]:
    """Return the row of a part: who, under which approval, and how much left or was refused."""
    total = part.total
    study = part.study or ("before a study" if part.analyst else "none")
    return (
        study,
        part.analyst,
        part.approved or "-",
        part.last,
        *(f"{number:,}" for number in total),
    )


def _columns(rows: Sequence[Sequence[str]], *, numbers: int, last: int = 0) -> Iterator[str]:
    """Yield rows with columns of equal width; numbers, before the last columns, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first = len(widths) - numbers - last
    for row in rows:
        cells = (
            cell.rjust(width) if first <= at < first + numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _line(line: Line, everything: bool) -> Iterable[str]:
    indent = " " * 4
    to = f"to {line.to}: " if line.to else ""
    text = f"{line.at}  {line.kind.upper():<8}  {to}{line.text}".strip()
    yield fill(text, WIDTH, initial_indent="  ", subsequent_indent=indent, break_long_words=False)
    shown = line.items if everything else line.items[:MOST_ITEMS]
    yield from (f"{indent}- {item}" for item in shown)
    if rest := len(line.items) - len(shown):
        yield f"{indent}- and {rest:,} more: --all lists them"
