"""A ledger as one page of HTML that needs no other file, for a screen and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from vertibayes.report.html import page_of
from vertibayes.report.ledger.budgets import Budget
from vertibayes.report.ledger.statement import Line, Part, Statement, Total
from vertibayes.report.ledger.text import HEADS, summary_of

FEW_ITEMS = 12  # of one entry: they are shown at once


def html_of(statement: Statement) -> str:
    """Return a ledger as a page of HTML: what others wrote is escaped, and nothing is loaded."""
    body = [
        *_tiles(statement),
        *_summary(statement.parts),
        *_budgets(statement.budgets),
        *map(_part, statement.parts),
    ]
    return page_of(statement.title, statement.notes, body, __package__)


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
        yield '<h2>Used and left</h2>\n<table><tr><td></td><th class="number">used</th><td></td>'
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
    heads = "<tr><th>when</th><td></td><th>to</th><th>what</th></tr>"
    return f"{head}\n<table>{heads}\n{rows}</table>\n"


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
