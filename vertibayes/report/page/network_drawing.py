"""Draw the network of a run inside the page: sites by colour and by letter, strength as width.

Edges and letters take the colour of the page's text, so that the drawing fits light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from vertibayes.drawing.edge_styles import ROW, EdgeStyle, draw_legend, legend_of, style_of
from vertibayes.drawing.layout.placement import Point
from vertibayes.drawing.svg import COLOURS, MARGIN, line_of
from vertibayes.report.page.placement import PlacedNetwork

LINE = 14.0  # of the text in a box
MARK = 8.0  # radius of a site's mark
INK = "currentColor"


def draw_network(placed: PlacedNetwork, sites: Mapping[str, str]) -> str:
    """Return a drawing of a network as an SVG element."""
    marks = marks_of(sites)
    reversible = [edge for edge in placed.paths if placed.is_compelled(edge) is False]
    styles = {e: style_of(e, placed.strengths.get(e), reversible) for e in placed.paths}
    rows = legend_of(styles.values(), placed.strengths)
    width, drawn = placed.size.width + 2 * MARGIN, placed.size.height + 2 * MARGIN
    height = drawn + ROW * len(rows)
    label = f"Drawing of {len(placed.names)} variables and {len(placed.paths)} arrows"
    body = [
        *(_edge(styles[edge], points) for edge, points in placed.paths.items()),
        *(
            _node(placed, at, marks.get(sites.get(name, "")))
            for at, name in enumerate(placed.names)
        ),
        *draw_legend(rows, MARGIN, drawn, INK),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="{label}" class="network" font-size="12">'
        f"{''.join(body)}</svg>"
    )


def marks_of(sites: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the letter and the colour of each site."""
    names = sorted(set(sites.values()))
    return {site: (letter_of(at), COLOURS[at % len(COLOURS)]) for at, site in enumerate(names)}


def letter_of(place: int) -> str:
    """Return A to Z, then AA, AB and so on.

    Examples
    --------
    >>> letter_of(0), letter_of(25), letter_of(26)
    ('A', 'Z', 'AA')
    """
    first, last = divmod(place, 26)
    return (letter_of(first - 1) if first else "") + chr(ord("A") + last)


def _edge(style: EdgeStyle, points: Sequence[Point]) -> str:
    return style.svg(*line_of(points, style), INK)


def _node(placed: PlacedNetwork, at: int, mark: tuple[str, str] | None) -> str:
    """Return the box of a node, its name and the mark of its site."""
    (x, y), box = placed.centres[at], placed.boxes[at]
    left, top = x + MARGIN - box.width / 2, y + MARGIN - box.height / 2
    fill = mark[1] if mark else COLOURS[0]
    return (
        f'<g class="node" data-node="{at}"><title>{escape(placed.names[at])}</title>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="8" fill="{fill}" stroke="{INK}"/>{"".join(_lines(placed, at))}'
        f"{_mark(left, top, mark[0]) if mark else ''}</g>"
    )


def _lines(placed: PlacedNetwork, at: int) -> Iterator[str]:
    (x, y), lines = placed.centres[at], placed.lines[at]
    first = y + MARGIN + 4.3 - LINE * (len(lines) - 1) / 2
    for place, line in enumerate(lines):
        yield (
            f'<text x="{x + MARGIN:.1f}" y="{first + LINE * place:.1f}" text-anchor="middle" '
            f'fill="#1a1a1a">{escape(line)}</text>'
        )


def _mark(x: float, y: float, letter: str) -> str:
    """Return the mark of a site, at the corner of a box."""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{MARK}" class="mark"/>'
        f'<text x="{x:.1f}" y="{y + 3.4:.1f}" text-anchor="middle" class="letter" '
        f'font-size="10">{letter}</text>'
    )
