"""Draw a structure as SVG, with parents above children and nodes coloured by site.

If there are many edges, they are coloured by parent. The name of an edge or a node appears when the
pointer rests on it. If it is known how sure the edges are, strong edges are wide, doubtful ones are
dashed, and those whose direction says nothing have no arrowhead.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple, Protocol
from unicodedata import east_asian_width

from vertibayes.drawing.edge_styles import ROW, SAMPLE, EdgeStyle, draw_legend, legend_of, style_of
from vertibayes.drawing.layout.placement import Layout, Point, Size, lay_out
from vertibayes.edges import ArcStrength, Edge

COLOURS = (
    "#8ecae6", "#ffb703", "#95d5b2", "#e5989b", "#cdb4db", "#d9c5a0", "#a8dadc", "#f4a261",
)  # fmt: skip
EDGE = "#555555"
EDGES = (
    "#3a3a3a", "#1d6fa5", "#b03a2e", "#2e7d4f", "#7d3c98", "#a8620b", "#117a8b", "#6b6b1e",
)  # fmt: skip
DENSE = 1.6  # edges per node from which edges are coloured
MARGIN, LEGEND, GAP = 16.0, 30.0, 10.0
LINE, PADDING = 14.0, 12.0  # of the text in a box
LONGEST_LINE, MOST_LINES = 26, 3  # characters per line, and lines per name
WORD = re.compile(rf"[^ _.-]{{0,{LONGEST_LINE - 1}}}[ _.-]|[^ _.-]{{1,{LONGEST_LINE}}}", re.DOTALL)

NOTHING: Mapping[Edge, ArcStrength] = MappingProxyType({})

MARK = 8.0  # radius of a site's mark
INK = "currentColor"  # of a drawing in a page, which is light or dark
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" \
width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="12">
<style>.edge:hover path{{stroke-width:4}}</style>
<rect width="100%" height="100%" fill="white"/>"""
IN_PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" \
width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{label}" class="network" \
font-size="12">"""


class Graph(Protocol):
    """What a drawing knows of a structure."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes."""

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges as (parent, child)."""


class Mark(NamedTuple):
    """How a drawing shows a site."""

    letter: str  # A to Z, then AA, AB and so on: colours are used again after eight sites
    colour: str
    number: int  # of the colour


def draw(
    structure: Graph,
    sites: Mapping[str, str] | None = None,
    *,
    strengths: Mapping[Edge, ArcStrength] = NOTHING,
    reversible: Collection[Edge] = (),
    in_page: bool = False,
) -> str:
    """Return a drawing of a structure: a file, or an element of a page that styles it.

    In a page, boxes have the letters of their sites, and the legend is a part of the page.
    """
    names, marks = structure.nodes, marks_of(sites or {})
    lines, boxes, layout = place(structure)
    dense = len(structure.edges) >= DENSE * len(names) and not in_page
    styles = {edge: style_of(edge, strengths.get(edge), reversible) for edge in structure.edges}
    ink, rows, fills = INK, list[EdgeStyle](), dict[str, str]()
    if not in_page:
        ink, rows = EDGE, legend_of(styles.values(), strengths)
        fills = {site: mark.colour for site, mark in marks.items()}
    row_widths = [SAMPLE + 8 + text_width(row.title) for row in rows]
    site_widths = sum(legend_width(site) for site in fills)
    width = max(layout.size.width, site_widths, *row_widths) + 2 * MARGIN
    below = layout.size.height + MARGIN + (LEGEND if fills else 0)  # of the drawing and the sites
    height = below + MARGIN + ROW * len(rows) + (GAP if rows else 0)
    body = [
        _edge(styles[names[parent], names[child]], points, EDGES[parent % 8] if dense else ink)
        for (parent, child), points in layout.paths.items()
    ]
    for at, name in enumerate(names):
        mark = marks.get((sites or {}).get(name, ""))
        node = _node(name, lines[at], layout.centres[at], boxes[at], mark, ink)
        body.append(
            f'<g class="node{f" site-{mark.number}" if mark else ""}" data-node="{at}">{node}'
            f"{_mark(layout.centres[at], boxes[at], mark) if in_page and mark else ''}</g>"
        )
    body += legend(fills, below - 14)
    body += draw_legend(rows, MARGIN, below + GAP, ink)
    head = HEAD.format(width=width, height=height)
    if in_page:
        label = f"Drawing of {len(names)} variables and {len(structure.edges)} arrows"
        head = IN_PAGE.format(width=width, height=height, label=label)
    return "\n".join([head, *body, "</svg>", ""])


def marks_of(sites: Mapping[str, str]) -> dict[str, Mark]:
    """Return the letter and the colour of each site."""
    names = sorted(set(sites.values()))
    return {site: Mark(_letter(at), COLOURS[at % 8], at % 8) for at, site in enumerate(names)}


def _letter(place: int) -> str:
    """Return A to Z, then AA, AB and so on.

    Examples
    --------
    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    first, last = divmod(place, 26)
    return (_letter(first - 1) if first else "") + chr(ord("A") + last)


class Placed(NamedTuple):
    """Where a structure is drawn: lines and size of each node's box, and the layout."""

    lines: list[list[str]]
    boxes: list[Size]
    layout: Layout


def place(structure: Graph) -> Placed:
    """Return where a structure is drawn; equal structures are laid out once."""
    return _placed(structure.nodes, structure.edges)


@lru_cache(maxsize=2)
def _placed(names: tuple[str, ...], edges: tuple[Edge, ...]) -> Placed:
    lines = [_wrapped(name) for name in names]
    boxes = [
        Size(max(map(text_width, text)) + 2 * PADDING, LINE * len(text) + PADDING) for text in lines
    ]
    number = {name: place for place, name in enumerate(names)}
    return Placed(lines, boxes, lay_out(boxes, [(number[p], number[c]) for p, c in edges]))


def text_width(text: str) -> float:
    """Return the largest width of a text in the usual sans-serif fonts at 12 pixels."""
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if letter in "mwMW@%—…" or east_asian_width(letter) in "WF":
        return 12.0
    if letter in "iljIt.,:;'|!()[]{}/\\f r-":
        return 4.9
    return 8.7 if letter.isupper() else 7.6


def _wrapped(name: str) -> list[str]:
    """Break a long name, if possible after a space, ``_``, ``-`` or ``.``; omit its middle."""
    if len(name) > LONGEST_LINE * MOST_LINES:
        half = LONGEST_LINE * MOST_LINES // 2 - 2
        name = f"{name[:half]}…{name[-half:]}"
    lines = [""]
    for word in WORD.findall(name):
        if lines[-1] and len(lines[-1] + word) > LONGEST_LINE:
            lines.append("")
        lines[-1] += word
    return lines


def _edge(style: EdgeStyle, points: Sequence[Point], stroke: str) -> str:
    """Return an edge: straight lines through layers, joined by curves, and an arrowhead."""
    moved = [(x + MARGIN, y + MARGIN) for x, y in points]
    (x, y), (end, tip) = moved[0], moved[-1]
    if not style.is_reversible:
        moved[-1] = end, tip - 4  # a wide line would cover the point of the arrowhead
    path = f"M{x:.1f},{y:.1f}"
    for place, ((x0, y0), (x1, y1)) in enumerate(pairwise(moved)):
        middle = (y0 + y1) / 2
        if place % 2 and abs(x1 - x0) > 0.5:
            path += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
        else:
            path += f" L{x1:.1f},{y1:.1f}"
    return style.svg(path, end, tip, stroke)


def _node(
    name: str, lines: Sequence[str], centre: Point, box: Size, mark: Mark | None, ink: str
) -> str:
    x, y = centre[0] + MARGIN, centre[1] + MARGIN
    first = y + 4.3 - LINE * (len(lines) - 1) / 2
    texts = "".join(
        f'<text x="{x:.1f}" y="{first + LINE * at:.1f}" text-anchor="middle">{escape(line)}</text>'
        for at, line in enumerate(lines)
    )
    return (
        f'<title>{escape(name)}</title><rect x="{x - box.width / 2:.1f}" '
        f'y="{y - box.height / 2:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="8" '
        f'fill="{mark.colour if mark else COLOURS[0]}" stroke="{ink}"/>{texts}'
    )


def _mark(centre: Point, box: Size, mark: Mark) -> str:
    """Return the letter of a site, at the corner of a box."""
    x, y = centre[0] + MARGIN - box.width / 2, centre[1] + MARGIN - box.height / 2
    return (
        f'<g class="mark"><circle cx="{x:.1f}" cy="{y:.1f}" r="{MARK}"/>'
        f'<text x="{x:.1f}" y="{y + 3.4:.1f}" text-anchor="middle">{mark.letter}</text></g>'
    )


def legend(fills: Mapping[str, str], y: float) -> list[str]:
    """Return a row of coloured squares, each followed by its name."""
    parts, x = [], MARGIN
    for site, fill in fills.items():
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="14" height="14" rx="4" fill="{fill}" '
            f'stroke="{EDGE}"/><text x="{x + 19:.1f}" y="{y + 11.5:.1f}">{escape(site)}</text>'
        )
        x += legend_width(site)
    return parts


def legend_width(site: str) -> float:
    """Return the width of a square of a legend and its name."""
    return 36 + text_width(site)
