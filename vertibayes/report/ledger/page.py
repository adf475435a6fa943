"""A ledger as text for a terminal, and as one page of HTML that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import fill

from vertibayes.report.ledger.statement import Line, Part, Statement

WIDTH = 100
MOST_ITEMS = 10  # of one entry in text, unless all are asked for
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #222;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 0; overflow-wrap: anywhere; }
h2 + p { margin: 0 0 .5rem; color: #666; }
table { border-collapse: collapse; width: 100%; } td { padding: .35rem .6rem; vertical-align: top;
        border-top: 1px solid #ddd; }
td:first-child { white-space: nowrap; color: #666; width: 1%; }
td:nth-child(2) { width: 1%; font-weight: 600; } .released { color: #1b5e8c; }
.refused { color: #a33; } .revealed { color: #5b5b00; } .session { color: #888; }
details { margin-top: .2rem; } summary { color: #666; cursor: pointer; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
"""


def text_of(statement: Statement, *, everything: bool = False) -> str:
    """Return a ledger as text.

    Parameters
    ----------
    statement : Statement
    everything : bool, default=False
        Whether to list all tables of each entry, and not only the first `MOST_ITEMS`.
    """
    return "\n".join(_text(statement, everything)) + "\n"


def _text(statement: Statement, everything: bool) -> Iterator[str]:
    yield statement.title
    yield from (fill(note, WIDTH) for note in statement.notes)
    if statement.budgets:
        yield "\nUsed and left"
        yield from (f"  {line}" for line in statement.budgets)
    for part in statement.parts:
        yield f"\n{part.title}"
        if part.subtitle:
            yield f"  {part.subtitle}"
        for line in part.lines:
            indent = " " * 4
            yield fill(f"{line.at}  {line.text}".strip(), WIDTH, initial_indent="  ",
                       subsequent_indent=indent)  # fmt: skip
            shown = line.items if everything else line.items[:MOST_ITEMS]
            yield from (f"{indent}- {item}" for item in shown)
            if rest := len(line.items) - len(shown):
                yield f"{indent}- and {rest:,} more: --all lists them"


def html_of(statement: Statement) -> str:
    """Return a ledger as a page of HTML: what others wrote is escaped, and nothing is loaded."""
    title = escape(statement.title)
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "style-src 'unsafe-inline'\">",
            f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>\n",
            *(f"<p>{escape(note)}</p>\n" for note in statement.notes),
            *_list("Used and left", statement.budgets),
            *map(_part, statement.parts),
            "</body></html>\n",
        ]
    )


def _list(title: str, items: list[str]) -> Iterator[str]:
    if items:
        yield f"<h2>{escape(title)}</h2><p></p><ul>"
        yield from (f"<li>{escape(item)}</li>" for item in items)
        yield "</ul>\n"


def _part(part: Part) -> str:
    rows = "".join(map(_row, part.lines))
    head = f"<h2>{escape(part.title)}</h2><p>{escape(part.subtitle)}</p>"
    return f"{head}\n<table>{rows}</table>\n"


def _row(line: Line) -> str:
    items = "".join(f"<li>{escape(item)}</li>" for item in line.items)
    more = ""
    if len(line.items) == 1:
        more = f"<ul>{items}</ul>"
    elif items:
        more = f"<details><summary>{len(line.items):,} lines</summary><ul>{items}</ul></details>"
    return (
        f'<tr><td>{escape(line.at)}</td><td class="{line.kind}">{line.kind}</td>'
        f"<td>{escape(line.text)}{more}</td></tr>\n"
    )
