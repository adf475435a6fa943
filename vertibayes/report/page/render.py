"""Write the page of a run: one HTML file without links to other files or to the network.

The templates escape every text of the data. A content security policy forbids all connections, and
all scripts except those of this package, which it names by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vertibayes import __version__
from vertibayes.report.html import assets, page_style, templates
from vertibayes.report.page.content import Cut, Link, Note, Number, Piece, Section, Term, Text
from vertibayes.report.page.embedded import embedded_of
from vertibayes.report.page.results import Results
from vertibayes.report.page.sections.all import sections_of, title_of
from vertibayes_protocols.storage.whole_file import create_own, replacing

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE = "vertibayes.report.page"
PAGE = "report.html"
MOST_BYTES = 4_000_000  # of a page; larger sections are then left out
LONGEST = 5_000  # letters of a text of the data that are shown
LONG = 60  # letters of a name that may be broken anywhere in a table
MOST_BETWEEN = 4  # letters between the numbers of a cell, as in "1 to 2"
EMPTY = "(empty)"  # how a name without letters is shown, as the scripts do


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a folder of results, which only its owner can read, and return its path.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    out : Path, optional
        The file to write; `report.html` in the folder by default.

    Raises
    ------
    ValueError
        If the folder has no results, or they cannot be read.
    OSError
        If the file cannot be written.
    """
    path = folder / PAGE if out is None else out
    text = render(Results.read(folder))
    with replacing(path) as part, create_own(part) as file:
        file.write(text.encode(errors="replace"))  # surrogates of a file changed by hand
    return path


def render(results: Results) -> str:
    """Return the page of a run as HTML."""
    sections = sections_of(results)
    page = _page(results, sections, embedded_of(results))
    if _size(page) <= MOST_BYTES:
        return page
    return _page(results, [_short(results, section) for section in sections])


def _page(results: Results, sections: Sequence[Section], model: Any = None) -> str:
    """Fill the templates; a page without a model has no scripts."""
    scripts = [] if model is None else assets(PACKAGE, ".js")
    template = _environment().get_template("page.html.j2")
    return template.render(
        title=title_of(results),
        sections=sections,
        version=__version__,
        model=None if model is None else as_script(model),
        styles=[page_style(), *assets(PACKAGE, ".css")],
        scripts=scripts,
        digests=[_digest(script) for script in scripts],
        unique=_unique_labels(),
    )


def _unique_labels() -> Callable[[str], str]:
    """Return a function that numbers labels that it has seen: readers of screens list regions."""
    seen: Counter[str] = Counter()

    def unique(label: str) -> str:
        seen[label] += 1
        return label if seen[label] == 1 else f"{label} ({seen[label]})"

    return unique


def _short(results: Results, section: Section) -> Section:
    """Return a section of a page that is too large: without its parts if these are large."""
    size = _size(_page(results, [section]))
    if size <= MOST_BYTES // 10:
        return section
    note = Note((
        f"This section would take {size / 1e6:.1f} MB, and the page is limited to "
        f"{MOST_BYTES / 1e6:.0f} MB. The files of the folder have its content.",
    ))  # fmt: skip
    return replace(section, blocks=[note])


def as_script(content: Any) -> str:
    """Return JSON data that cannot end the script element in which it is."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _as_image(svg: str) -> str:
    """Return an SVG file as the address of an image: nothing in it can act on the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


class _Html(str):
    """A text that is HTML already, which templates do not escape."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def _as_html(text: Text) -> _Html:
    """Return a text as HTML; everything in it is escaped."""
    return _Html("".join(map(_piece, text)))


def _piece(piece: Piece) -> str:
    if isinstance(piece, str):
        return escape(piece)
    shown = escape(_shortened(piece.text))
    if isinstance(piece, Number):
        value, key = escape(piece.value), escape(piece.key)
        return f'<data value="{value}" data-key="{key}">{shown}</data>'
    if isinstance(piece, Cut):
        return f'<span class="cut">{shown}</span>'
    if isinstance(piece, Term):
        return f'<a class="term" href="#word-{escape(piece.word)}">{shown}</a>'
    if isinstance(piece, Link):
        return f'<a href="#{escape(piece.section)}">{shown}</a>'
    kind = "name long" if len(piece.text) > LONG else "name"
    return f'<bdi class="{kind}">{shown if piece.text.strip() else EMPTY}</bdi>'


def _is_figure(text: Text) -> bool:
    """Whether a cell of a table has a number and no words: such cells stand to the right."""
    is_short = all(len(piece) <= MOST_BETWEEN for piece in text if isinstance(piece, str))
    return is_short and any(isinstance(piece, Number | Cut) for piece in text)


def _shortened(text: str) -> str:
    """Return a text without the middle if it is very long."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]} [\u2026] {text[-LONGEST // 2 :]}"


def _size(page: str) -> int:
    return len(page.encode(errors="replace"))


@cache
def _environment() -> Environment:
    """Return the templates, with what turns parts of the page into HTML."""
    environment = templates(PACKAGE)
    environment.filters |= {"html": _as_html, "image": _as_image, "shortened": _shortened}
    environment.tests["figure"] = _is_figure
    return environment
