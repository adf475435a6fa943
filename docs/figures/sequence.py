"""Draw a message figure: a column for each party, a row for each message, its text at the right."""

from __future__ import annotations

import textwrap
from html import escape
from itertools import pairwise

from figure_text import ARROW, Block, Columns, Row

CHARACTER = 7.3  # width of a character of the text, in pixels
LINE, GAP, HEAD, MARGIN = 16, 10, 34, 16
TEXT_CHARACTERS = 66
NOTE = "\t"  # between a text and its note, where both fit on one line
STYLE = """
svg { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.page { fill: #ffffff; stroke: #d0d5dd } .band { fill: #f2f4f7 }
.party, .heading { font-weight: bold } text { fill: #1d2433 } .note, .phase { fill: #5b6472 }
.life { stroke: #c3c9d4; stroke-dasharray: 3 3 } .box { fill: #e6ebf5; stroke: #7a869a }
.arrow { stroke: #1f4fa3; stroke-width: 1.6; fill: none } .head, .source { fill: #1f4fa3 }
@media (prefers-color-scheme: dark) {
.page { fill: #14181f; stroke: #3a4250 } .band { fill: #1e242e } text { fill: #e8ebf0 }
.note, .phase { fill: #a3adbb } .life { stroke: #4a5363 } .box { fill: #2a3342; stroke: #8793a6 }
.arrow { stroke: #8fb4ff } .head, .source { fill: #8fb4ff } }
"""


class Drawing:
    """A picture that grows downwards."""

    def __init__(self, parties: Columns, blocks: list[Block]) -> None:
        phases = [row.phase for block in blocks for row in block.rows]
        gutter = max((len(phase) for phase in phases), default=0) * CHARACTER
        self.left = MARGIN + (gutter + 12 if gutter else 0)
        self.places, self.shapes = dict[str, float](), list[str]()
        x = self.left
        for party in parties:
            width = max(len(party) * CHARACTER + 14, 46)
            self.places[party] = x + width / 2
            x += width
        self.text_left = x + 14
        rows = [row for block in blocks for row in block.rows]
        longest = max((len(line) for row in rows for _, line in wrapped(row)), default=0)
        self.width = self.text_left + (longest + 2) * CHARACTER + MARGIN
        self.height = HEAD
        for block in blocks:
            self.add_block(block, headed=len(blocks) > 1)

    def add_block(self, block: Block, *, headed: bool) -> None:
        """Draw a figure below the others, under its heading if there are several."""
        if headed and block.heading:
            self.height += 4
            self.shapes.append(
                f'<rect class="band" x="1" y="{self.height}" '
                f'width="{self.width - 2:.0f}" height="22"/>'
            )
            self.shapes.append(text("heading", MARGIN, self.height + 15, block.heading))
            self.height += 28
        for row in block.rows:
            self.add_row(row)

    def add_row(self, row: Row) -> None:
        """Draw a message or a computation, and its text beside it."""
        lines = wrapped(row)
        if self.is_renamed(row):
            lines.append(("note", f"({row.who})"))
        middle = self.height + LINE / 2
        if row.phase:
            self.shapes.append(text("phase", MARGIN, middle + 4, row.phase))
        if row.arrow:
            self.add_arrows(row, middle)
        elif row.path:
            self.add_boxes(row.path[0], middle)
        for number, (kind, line) in enumerate(lines):
            self.shapes.append(text(kind, self.text_left, middle + 4 + number * LINE, line))
        self.height += LINE * max(len(lines), 1) + GAP

    def is_renamed(self, row: Row) -> bool:
        """Whether the figure has another name for a party than the head of its column."""
        names = ARROW.split(row.who)[::2]
        return any(
            len(end) == 1 and name not in self.places
            for name, end in zip(names, row.path, strict=False)
        )

    def add_arrows(self, row: Row, y: float) -> None:
        """Draw the arrows of a message, from end to end."""
        there_and_back = len(row.path) == 3 and row.path[0] == row.path[2]
        for leg, (sources, targets) in enumerate(pairwise(row.path)):
            starts = [self.places[party] for party in sources]
            ends = [self.places[party] for party in targets if party not in sources] or starts
            if row.arrow == "<-":
                starts, ends = ends, starts
            both = row.arrow == "<->" or starts == ends or there_and_back
            self.add_line(starts, ends, y, both=both)
            if not both and not leg:
                self.shapes += [
                    f'<circle class="source" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x in starts
                ]

    def add_line(self, starts: list[float], ends: list[float], y: float, *, both: bool) -> None:
        """Draw one line with heads at the ends where it arrives."""
        low, high = min(starts + ends), max(starts + ends)
        self.shapes.append(f'<path class="arrow" d="M{low:.1f} {y:.1f}H{high:.1f}"/>')
        origin = (low + high) / 2 if both else starts[0]
        for x in dict.fromkeys(ends + starts if both else ends):
            back = -7 if x > origin else 7
            self.shapes.append(f'<path class="head" d="M{x:.1f} {y:.1f}l{back} -4v8z"/>')

    def add_boxes(self, parties: Columns, y: float) -> None:
        """Draw a computation: a box at each party that does it."""
        self.shapes += [
            f'<rect class="box" x="{self.places[party] - 8:.1f}" y="{y - 6:.1f}" '
            'width="16" height="12" rx="3"/>'
            for party in parties
        ]

    def svg(self, title: str, description: str) -> str:
        """Return the picture."""
        height = self.height + 6
        lives = [
            f'<path class="life" d="M{x:.1f} {HEAD - 8}V{height - 8}"/>'
            for x in self.places.values()
        ]
        heads = [text("party", x, 18, party, "middle") for party, x in self.places.items()]
        frame = (
            f'<rect class="page" x=".5" y=".5" width="{self.width - 1:.0f}" '
            f'height="{height - 1:.0f}" rx="6"/>'
        )
        return "\n".join(
            [
                '<svg xmlns="http://www.w3.org/2000/svg" '
                f'viewBox="0 0 {self.width:.0f} {height:.0f}" '
                f'width="{self.width:.0f}" height="{height:.0f}" role="img" aria-labelledby="t d">',
                f'<title id="t">{escape(title)}</title>',
                f'<desc id="d">{escape(description)}</desc>',
                f"<style>{STYLE}</style>",
                frame,
                *lives,
                *self.shapes,
                *heads,
                "</svg>\n",
            ]
        )


def text(kind: str, x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return one line of text."""
    middle = ' text-anchor="middle"' if anchor == "middle" else ""
    content, between, note = words.partition(NOTE)
    muted = f'<tspan class="note">   {escape(note)}</tspan>' if between else ""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{middle} '
        f'xml:space="preserve">{escape(content)}{muted}</text>'
    )


def wrapped(row: Row) -> list[tuple[str, str]]:
    """Return the lines of a row's text, each with its kind; notes that do not fit go below."""
    lines = list[tuple[str, str]]()
    for cells in row.lines:
        content, *notes = cells or [""]
        note = "   ".join(notes)
        content = content.replace("`", "")
        if note and len(content) + 3 + len(note) > TEXT_CHARACTERS:
            lines += [("what", part) for part in textwrap.wrap(content, TEXT_CHARACTERS)]
            lines += [("note", part) for part in textwrap.wrap(note, TEXT_CHARACTERS)]
        elif note:
            lines.append(("what", content + NOTE + note))
        else:
            lines += [("what", part) for part in textwrap.wrap(content, TEXT_CHARACTERS)]
    return lines


def described(blocks: list[Block]) -> str:
    """Return the figures as sentences, for readers who do not see the picture."""
    return " ".join(
        f"{' to '.join(' and '.join(end) for end in row.path) or row.phase}: "
        f"{' '.join(' '.join(cells) for cells in row.lines)}."
        for block in blocks
        for row in block.rows
    )
