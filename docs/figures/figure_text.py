"""Read the message figures of a page: indented blocks, one row for each message or computation.

    who -> whom       what is sent        a note
    who               what is computed
                      more of it
    Phase  who -> whom  what is sent

Two blanks or more separate the columns, four or more a note from its text. A block is a figure if
one of its rows names a party of the page's picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

ARROW = re.compile(r" (<->|->|<-) ")
CELL = re.compile(r"\S+(?: \S+)*")
NOTE = re.compile(r" {4,}")
Columns = tuple[str, ...]
Names = Mapping[str, Columns]


@dataclass
class Row:
    """A row of a figure: where its arrow goes, or who computes, and the text."""

    phase: str = ""
    path: list[Columns] = field(
        default_factory=list
    )  # the ends of the arrow; one for a computation
    arrow: str = ""
    lines: list[list[str]] = field(default_factory=list)  # of each line, the text and its notes
    who: str = ""  # the parties as the figure has them

    @property
    def ends(self) -> tuple[str, ...]:
        """The arrow as names, to compare it with that of another figure."""
        return (self.arrow, *("/".join(end) for end in self.path))


@dataclass
class Block:
    """A figure, and the heading above it."""

    heading: str
    rows: list[Row]


def figures(text: str, names: Names) -> Iterator[Block]:
    """Yield the figures of a page, or of a docstring."""
    for heading, lines in blocks(text):
        rows = rows_of(lines, names)
        if any(row.path for row in rows):
            yield Block(heading, rows)


def blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each indented block of a page, without its indentation, and the heading above it."""
    heading, block = "", list[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("    "):
            block.append(line[4:])
            continue
        if block:
            yield heading, block
            block = []
        if line.startswith("## "):
            heading = line[3:]


def rows_of(lines: list[str], names: Names) -> list[Row]:
    """Return the rows of a block."""
    place = place_of_parties(lines, names)
    rows = list[Row]()
    for line in lines:
        found = party_of(line, place, names)
        if found:
            path, arrow = path_of(found[0], names)
            after = NOTE.split(line[found.end() :].strip())
            rows.append(Row(line[: found.start()].strip(), path, arrow, [after], found[0]))
        elif line[: place + 1].strip():  # a row about no party in particular
            phase, _, after = line.strip().partition("  ")
            rows.append(Row(phase, lines=[NOTE.split(after.strip())]))
        elif rows:
            rows[-1].lines.append(NOTE.split(line.strip()))
    return rows


def party_of(line: str, place: int, names: Names) -> re.Match[str] | None:
    """Return the cell of a line that says between whom it is; an arrow may be elsewhere too."""
    cells = [found for found in CELL.finditer(line) if path_of(found[0], names)[0]]
    at_place = [found for found in cells if found.start() == place]
    arrows = [found for found in cells if path_of(found[0], names)[1]]
    return next(iter(at_place + arrows), None)


def place_of_parties(lines: list[str], names: Names) -> int:
    """Return the column in which the parties of a block are: the first one that names one."""
    places = [
        found.start()
        for line in lines
        for found in CELL.finditer(line)
        if path_of(found[0], names)[0]
    ]
    return min(places, default=0)


def path_of(cell: str, names: Names) -> tuple[list[Columns], str]:
    """Return the ends of a cell's arrow and its form; nothing if a name is not that of a party."""
    first, *others = ARROW.split(f"{cell} ") if " " in cell else [cell]
    ends = [columns_of(end, names) for end in (first, *others[1::2])]
    if not all(ends):
        return [], ""
    return ends, others[0] if others else ""


def columns_of(end: str, names: Names) -> Columns:
    """Return the columns of the parties at one end of an arrow."""
    end = end.strip()
    if end in names:
        return names[end]
    parts = [names.get(part.strip(), ()) for part in end.split(",")]
    return tuple(dict.fromkeys(c for part in parts for c in part)) if all(parts) else ()
