"""A ledger as one page of HTML that needs no other file, for a screen and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from vertibayes.report.ledger.budgets import Budget
from vertibayes.report.ledger.statement import Line, Part, Statement, Total
from vertibayes.report.ledger.text import HEADS, summary_of

FEW_ITEMS = 12  # of one entry: they are shown at once
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 66rem; color: #222;
       padding: 0 1rem; }
h1 { font-size: 1.45rem; margin-bottom: .2rem; } h1 + p, .under { color: #666; }
h2 { font-size: 1.05rem; margin: 2rem 0 0; padding-top: .6rem; border-top: 2px solid #444; }
.under { margin: 0 0 .5rem; } .digest { font-family: ui-monospace, monospace; font-size: .92em; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.tiles div { flex: 1; border: 1px solid #ccc; border-radius: 6px; padding: .5rem .9rem; }
.tiles strong { display: block; font-size: 1.6rem; line-height: 1.2; }
.tiles .refused strong { color: #a33; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .35rem .6rem; text-align: left;
        vertical-align: top; border-top: 1px solid #ddd; }
th { font-weight: 600; border-top: 0; color: #666; font-size: .87em; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.at, td.limit { white-space: nowrap; color: #666; width: 1%; } td.kind { width: 1%; }
td.to { width: 14%; } .kind span { border-radius: 4px; padding: .05rem .45rem; color: #fff;
        font-size: .85em; background: #888; }
.released span { background: #1b5e8c; } .revealed span { background: #6b6b00; }
.refused span { background: #a33; } tr.refused { background: #fbf1f1; }
.bar { background: #e6e6e6; height: .55rem; width: 9rem; margin-top: .45rem; }
.bar i { display: block; height: 100%; background: #1b5e8c; } .bar.full i { background: #a33; }
details, ul { margin-top: .2rem; } summary { color: #666; cursor: pointer; }
ul { margin: .2rem 0; padding-left: 1.2rem; }
@media print { body { margin: 0; font-size: 11px; } tr { break-inside: avoid; } }
"""


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
            *_tiles(statement),
            *_summary(statement.parts),
            *_budgets(statement.budgets),
            *map(_part, statement.parts),
            "</body></html>\n",
        ]
    )


def _tiles(statement: Statement) -> Iterator[str]:
    """Yield the totals of all studies."""
    sums = map(sum, zip(*(part.total for part in statement.parts), strict=True))
    total = Total(*sums) if statement.parts else Total()
    tiles = [
        ("released", f"{total.tables:,}", f"tables released, with {total.cells:,} cells"),
        ("revealed", f"{total.facts:,}", "other facts revealed"),
        ("refused", f"{total.refused:,}", "refusals"),
    ]
    tiles += [
        ("", budget.cells[1], f"epsilon left of {budget.most:g}")
        for budget in statement.budgets
        if budget.limit == "most_epsilon"
    ]
    yield '<div class="tiles">'
    for kind, number, text in tiles:
        yield f'<div class="{kind}"><strong>{escape(number)}</strong>{escape(text)}</div>'
    yield "</div>\n"


def _summary(parts: list[Part]) -> Iterator[str]:
    if len(parts) > 1:
        yield "<h2>By study, the newest first</h2>\n<table>"
        yield _cells("th", HEADS)
        yield from (_cells("td", summary_of(part)) for part in parts)
        yield "</table>\n"


def _cells(tag: str, texts: Iterable[str]) -> str:
    first = "digest" if tag == "td" else ""
    classes = [first, "", "", "at", *["number"] * len(Total._fields)]
    pairs = zip(classes, texts, strict=True)
    cells = "".join(f'<{tag} class="{name}">{escape(text)}</{tag}>' for name, text in pairs)
    return f"<tr>{cells}</tr>\n"


def _budgets(budgets: list[Budget]) -> Iterator[str]:
    if budgets:
        yield '<h2>Used and left</h2>\n<table><tr><th></th><th class="number">used</th><th></th>'
        yield '<th class="number">left</th><th>limit in site.toml</th></tr>\n'
        yield from map(_budget, budgets)
        yield "</table>\n"


def _budget(budget: Budget) -> str:
    used, left, limit = map(escape, budget.cells)
    full = " full" if budget.share == 1 else ""
    bar = f'<div class="bar{full}"><i style="width: {budget.share:.0%}"></i></div>'
    return (
        f'<tr><td>{escape(budget.what)}</td><td class="number">{used}</td>'
        f'<td>{bar if budget.most else ""}</td><td class="number">{left}</td>'
        f'<td class="limit">{limit}</td></tr>\n'
    )


def _part(part: Part) -> str:
    rows = "".join(map(_row, part.lines))
    head = f'<h2>{escape(part.title)}</h2><p class="under">{escape(part.subtitle)}</p>'
    if not rows:
        return f"{head}\n"
    heads = "".join(f"<th>{name}</th>" for name in ("when", "", "to", "what"))
    return f"{head}\n<table><tr>{heads}</tr>\n{rows}</table>\n"


def _row(line: Line) -> str:
    return (
        f'<tr class="{line.kind}"><td class="at">{escape(line.at)}</td>'
        f'<td class="kind"><span>{line.kind}</span></td><td class="to">{escape(line.to)}</td>'
        f"<td>{escape(line.text)}{_items(line.items)}</td></tr>\n"
    )


def _items(items: tuple[str, ...]) -> str:
    rows = f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>" if items else ""
    if len(items) <= FEW_ITEMS:
        return rows
    return f"<details><summary>{len(items):,} lines</summary>{rows}</details>"
