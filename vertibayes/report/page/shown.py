"""How the page shows values: the filters and functions of its templates.

Each number keeps its file, its place and its exact value beside it. Everything else is escaped.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from itertools import chain, repeat
from typing import TYPE_CHECKING

from vertibayes.report.page.entries import Entry
from vertibayes.words import percent, size

if TYPE_CHECKING:
    from jinja2.runtime import Context

EXACT_DIGITS = 15  # integers of more digits are shown in a shorter form
LONGEST = 5_000  # letters of a text of the data that are shown
LONG = 60  # letters of a name that may be broken anywhere in a table
EMPTY = "(empty)"  # how a name without letters is shown, as the scripts do
# A cell with a number and no words stands to the right; "1 to 2" has four letters between numbers.
FIGURE = re.compile(
    r'(?:[^<]{0,4}(?:<data [^>]*>[^<]*</data>|<span class="cut">[^<]*</span>))+[^<]{0,4}'
)


class Html(str):
    """A text that is HTML already, which templates do not escape."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


@dataclass
class Seen:
    """What a page has shown: files with places of numbers, words that it links, and labels."""

    numbers: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    labels: Counter[str] = field(default_factory=Counter)


def _is_short(value: float) -> bool:
    return isinstance(value, int) and len(str(value)) <= EXACT_DIGITS


def _brief(value: float) -> str:
    """Return a number with four digits, or with all digits before its point.

    Examples
    --------
    >>> _brief(36.78123), _brief(196.2604), _brief(123456.7), _brief(1e-7), _brief(12)
    ('36.78', '196.3', '123,457', '1e-07', '12')
    """
    if _is_short(value):
        return f"{value:,}"
    return f"{value:.4g}" if abs(value) < 1_000 else f"{value:,.0f}"


def _area(value: float) -> str:
    """Return an area under a curve: one below 1 is not shown as 1."""
    texts = (f"{value:.{digits}f}" for digits in (3, 4, 5, 6))
    return next((text for text in texts if float(text) != 1), "1.000")


FORMS: dict[str, Callable[[float], str]] = {  # others are format specifications of Python
    "count": lambda value: f"{value:,}" if isinstance(value, int) else f"{value:,.1f}",
    "brief": _brief,  # means and variances
    "plain": lambda value: f"{value:,}" if _is_short(value) else f"{value:.6g}",  # settings
    "share": percent,
    "probability": lambda value: "over 99.9%" if 0.9995 < value < 1 else percent(value),
    "area": _area,
    "seconds": lambda value: f"{value:.3f} s" if value < 10 else f"{value:,.1f} s",
    "bytes": lambda value: size(int(value)),
}


def number(context: Context, entry: Entry, form: str = "count") -> str:
    """Return a number, the length of a list or an object, or what the file has in its place."""
    value = entry.value
    if isinstance(value, list | dict):
        value = len(value)
    elif not entry.exists:
        return f"missing in {entry.file}"
    elif not entry.is_number:
        return name(str(value))
    context["seen"].numbers.add(entry.key)
    text = FORMS[form](value) if form in FORMS else format(value, form)
    key, shown = escape(entry.key), escape(shortened(text))
    return Html(f'<data value="{escape(repr(value))}" data-key="{key}">{shown}</data>')


def noun(context: Context, entry: Entry, singular: str, plural: str = "") -> str:
    """Return a number with its noun, as 1 table or 2 tables."""
    value = len(entry.value) if isinstance(entry.value, list | dict) else entry.value
    what = singular if value == 1 else plural or f"{singular}s"
    return Html(f"{_html(number(context, entry))} {what}")


def anything(context: Context, entry: Entry) -> str:
    """Return a value of any kind: a number, a text, or a list of them."""
    if isinstance(entry.value, bool):
        return "yes" if entry.value else "no"
    if entry.value is None:
        return "not set"
    if isinstance(entry.value, list):
        return _joined(anything(context, each) for each in entry.each())
    if isinstance(entry.value, dict):
        return _joined(
            Html(f"{name(n)} {_html(anything(context, each))}") for n, each in entry.items()
        )
    return number(context, entry, "plain")


def name(text: str | Entry) -> Html:
    """Return a name of the data, which is shown as it is: a variable, a state, a site or a file."""
    shown = shortened(text.text if isinstance(text, Entry) else text)
    kind = "name long" if len(shown) > LONG else "name"
    return Html(f'<bdi class="{kind}">{escape(shown) if shown.strip() else EMPTY}</bdi>')


def listed(names: Iterable[str]) -> Html:
    """Return names with commas between them."""
    return _joined(map(name, names))


def shortened(text: str) -> str:
    """Return a text without the middle if it is very long."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]} [\u2026] {text[-LONGEST // 2 :]}"


def term(context: Context, word: str, text: str = "") -> Html:
    """Return a word, as a link to its explanation in the template of the words."""
    context["seen"].words.add(word)
    return Html(f'<a class="term" href="#word-{word}">{escape(text or word)}</a>')


def link(section: str, text: str) -> Html:
    """Return a link to a section of the page."""
    return Html(f'<a href="#{section}">{escape(text)}</a>')


def cut(below: int) -> Html:
    """Return the mark of a count that the release rule cut."""
    return Html(f'<span class="cut">(fewer than {below})</span>')


def label(context: Context, text: str) -> str:
    """Return a label with a number if the page has it already: readers of screens list regions."""
    labels: Counter[str] = context["seen"].labels
    labels[text] += 1
    return text if labels[text] == 1 else f"{text} ({labels[text]})"


def row(*cells: str) -> Html:
    """Return a row of a table, of which the first cell is the head."""
    first, *others = map(_html, cells)
    figures = (f'<td class="figure">{c}</td>' if FIGURE.fullmatch(c) else f"<td>{c}</td>"
               for c in others)  # fmt: skip
    return Html(f'<tr><th scope="row">{first}</th>{"".join(figures)}</tr>\n')


def table(context: Context, caption: str, heads: Iterable[str], caller: Callable[[], str]) -> Html:
    """Return a table, whose rows the caller writes with `row`."""
    rows = caller()
    if not rows.strip():
        return Html("")
    cells = re.split("<t[hd]", rows.partition("</tr>")[0])[1:]
    kinds = chain(
        (' class="figure"' * ('class="figure"' in cell[:16]) for cell in cells), repeat("")
    )
    shown = (escape(shortened(head)) if head.strip() else EMPTY for head in heads)
    head = "".join(
        f'<th scope="col"{kind}><bdi>{text}</bdi></th>'
        for text, kind in zip(shown, kinds, strict=False)
    )
    title = shortened(caption)
    return Html(
        f'<div class="wide" role="region" aria-label="{escape(label(context, title))}" '
        f'tabindex="0"><table>\n<caption><bdi>{escape(title)}</bdi></caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )


def picture(context: Context, svg: str, alternative: str) -> Html:
    """Return an SVG file as an image: nothing in it can act on the page."""
    address = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    return Html(
        f'<div class="picture" role="region" aria-label="{label(context, "Picture")}" tabindex="0">'
        f'<img src="{address}" alt="{escape(alternative)}"></div>'
    )


def _joined(texts: Iterable[str]) -> Html:
    return Html(", ".join(map(_html, texts)) or "none")


def _html(text: str) -> str:
    """Return a text as HTML: escaped, unless it is HTML already."""
    return str(text) if hasattr(text, "__html__") else escape(text)
