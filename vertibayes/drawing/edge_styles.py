"""How a drawing shows how sure an edge is: its line, its arrowhead, its title and the legend."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from vertibayes.edges import ArcStrength, Edge
from vertibayes.words import percent

DOUBTFUL = 0.8  # strengths below it; docs/results.md has how many of these edges are true
FEW_NATS = 5.0  # gains below it
DASHES = "5,4"
SAMPLE = 34.0  # width of a line in the legend
ROW = 18.0


@dataclass(frozen=True)
class EdgeStyle:
    """How an edge is drawn."""

    title: str  # the text that appears when the pointer rests on the edge
    width: float = 1.0  # the width of the line, in pixels
    is_doubtful: bool = False  # whether the line is dashed
    is_reversible: bool = False  # whether the edge has no arrowhead

    def svg(self, path: str, end: float, tip: float, stroke: str) -> str:
        """Return the edge as SVG."""
        half, length = 2 + self.width, 5 + 2 * self.width
        dashes = f' stroke-dasharray="{DASHES}"' if self.is_doubtful else ""
        width = "" if self.width == 1 else f' stroke-width="{self.width:.1f}"'
        arrow = (
            f"M{end - half:.1f},{tip - length:.1f} L{end + half:.1f},{tip - length:.1f} "
            f"L{end:.1f},{tip:.1f} z"
        )
        head = f'<path class="head" d="{arrow}" fill="{stroke}" stroke="none"/>'
        return (
            f'<g class="edge" stroke="{stroke}"><title>{escape(self.title)}</title>'
            f'<path class="line" d="{path}" fill="none"{width}{dashes}/>'
            f"{'' if self.is_reversible else head}</g>"
        )


def style_of(edge: Edge, arc: ArcStrength | None, reversible: Collection[Edge]) -> EdgeStyle:
    """Return how an edge is drawn."""
    is_reversible = edge in reversible
    title = f"{edge[0]} {'—' if is_reversible else '→'} {edge[1]}"
    if is_reversible:
        title += "; reversible: its direction says nothing"
    if arc is None:
        return EdgeStyle(title, is_reversible=is_reversible)
    width = 0.6 + 2 * arc.strength**2
    return EdgeStyle(f"{title}; {in_words(arc)}", width, is_doubtful(arc), is_reversible)


def is_doubtful(arc: ArcStrength) -> bool:
    """Whether an edge has a low strength or a small gain."""
    return arc.strength < DOUBTFUL or (arc.gain is not None and arc.gain < FEW_NATS)


def in_words(arc: ArcStrength) -> str:
    """Return the strength, the direction and the gain of an edge in words.

    Examples
    --------
    >>> in_words(ArcStrength("a", "b", 0.95, 0.8, 12.34))
    'strength 95.0%, direction 80.0%, gain 12.3 nats of BIC'
    """
    text = f"strength {percent(arc.strength)}, direction {percent(arc.direction)}"
    return text if arc.gain is None else f"{text}, gain {arc.gain:.1f} nats of BIC"


def legend_of(
    styles: Iterable[EdgeStyle], strengths: Mapping[Edge, ArcStrength]
) -> list[EdgeStyle]:
    """Return the rows of the legend, each as an edge whose title is the text of the row."""
    drawn, rows = list(styles), []
    if drawn and strengths:
        rows.append(EdgeStyle("strength 100%: all samples have the edge", 2.6))
        rows.append(EdgeStyle("strength 50%: half of the samples have it", 1.1))
    if any(style.is_doubtful for style in drawn):
        text = f"doubtful: strength below {DOUBTFUL:.0%}, or gain below {FEW_NATS:g} nats"
        rows.append(EdgeStyle(text, 1.9, is_doubtful=True))
    if any(style.is_reversible for style in drawn):
        width = 1.9 if strengths else 1.0
        rows.append(EdgeStyle("reversible: the direction says nothing", width, is_reversible=True))
    return rows


def draw_legend(rows: Iterable[EdgeStyle], x: float, y: float, stroke: str) -> list[str]:
    """Return the rows of the legend as SVG: a line that leads to the right, and a text."""
    parts = []
    for place, style in enumerate(rows):
        middle = y + ROW * (place + 0.5)
        # Drawn as an edge that leads down, and turned to the right.
        turned = f'<g transform="translate({x:.1f},{middle:.1f}) rotate(-90)">'
        line = style.svg(f"M0.0,0.0 L0.0,{SAMPLE - (0 if style.is_reversible else 6):.1f}",
                         0.0, SAMPLE, stroke)  # fmt: skip
        parts.append(
            f'{turned}{line}</g><text x="{x + SAMPLE + 8:.1f}" y="{middle + 4.3:.1f}">'
            f"{escape(style.title)}</text>"
        )
    return parts
