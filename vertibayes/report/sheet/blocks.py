r"""A text that is drawn twice: for a terminal, and as a page to file and sign.

Each line of the text is a block of its own:

    # ...            a heading
    - ...            an item of a list
    (two spaces)     more about the item or the paragraph above it
    ...\t...          a row of a table, of which the first row is the head
    (nothing)        the end of a list, a table or a paragraph
    ...              a paragraph

A value cannot begin a block or end a cell: `vertibayes.cli.texts` replaces its control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import fill
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["heading", "item", "more", "row", "end", "paragraph"]
INDENT = "  "
GAP = "  "  # between two columns
NARROW = 24  # characters of a last column, below which it goes into lines of its own


class Block(NamedTuple):
    """A line of the text."""

    kind: Kind
    text: str = ""

    @property
    def cells(self) -> list[str]:
        """The cells of a row."""
        return self.text.split("\t")


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a text."""
    return [_block(line) for line in text.removesuffix("\n").split("\n")]


def _block(line: str) -> Block:
    if "\t" in line:
        return Block("row", line)
    if line.startswith("# "):
        return Block("heading", line[2:])
    if line.startswith("- "):
        return Block("item", line[2:])
    if line.startswith(INDENT):
        return Block("more", line.strip())
    return Block("paragraph" if line else "end", line)


def text_of(blocks: Sequence[Block], width: int | None = None) -> str:
    """Return the text for a terminal, in lines of at most `width` characters if it is given."""
    return "".join(f"{line}\n" for line in _lines(blocks, width))


def _lines(blocks: Sequence[Block], width: int | None) -> Iterator[str]:
    for kind, group in groupby(blocks, key=lambda block: block.kind):
        if kind == "row":
            yield from _table([block.cells for block in group], width)
            continue
        first, rest = {"item": ("- ", INDENT), "more": (INDENT, INDENT)}.get(kind, ("", ""))
        yield from (_filled(block.text, width, first, rest) for block in group)


def _filled(text: str, width: int | None, first: str, rest: str) -> str:
    if width is None:
        return f"{first}{text}"
    return fill(text, width, initial_indent=first, subsequent_indent=rest)


def _table(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """Yield rows as columns; the last column is wrapped, or below the others if it is narrow."""
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in rows), strict=True)]
    used = len(INDENT) + sum(widths) + len(GAP) * len(widths)
    is_below = width is not None and width - used < NARROW
    for *others, last in rows:
        cells = (cell.ljust(size) for cell, size in zip(others, widths, strict=True))
        head = INDENT + GAP.join(cells) + GAP
        if is_below:
            yield _filled(GAP.join(others), width, INDENT, INDENT)
            yield _filled(last, width, INDENT * 2, INDENT * 2)
        else:
            yield _filled(last, width, head, " " * used).rstrip()
