"""The blocks of a text as one page of HTML that needs no other file, to file and to sign."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from vertibayes.report.html import page_of
from vertibayes.report.sheet.blocks import Block

DIGEST = re.compile(r"(?:[0-9a-f]{4} ){15}[0-9a-f]{4}")
CODE = re.compile("`([^`]+)`")
TAGS = {"heading": "h2", "item": "li"}


def html_of(
    title: str, notes: Sequence[str], blocks: Sequence[Block], signers: Sequence[str]
) -> str:
    """Return a page with a line for each person who signs it; nothing is loaded."""
    return page_of(title, notes, [*_body(blocks), *_signatures(signers)], __package__)


def _body(blocks: Sequence[Block]) -> Iterator[str]:
    for kind, group in groupby(_joined(blocks), key=lambda block: block.kind):
        if kind == "row":
            yield from _table([block.cells for block in group])
        elif kind == "item":
            yield f"<ul>\n{''.join(map(_tagged, group))}</ul>\n"
        elif kind != "end":
            yield from map(_tagged, group)


def _joined(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks, each with what is below it as further lines."""
    joined: list[Block] = []
    for block in blocks:
        if block.kind == "more" and joined:
            joined[-1] = Block(joined[-1].kind, f"{joined[-1].text}\n{block.text}")
        else:
            joined.append(block)
    return joined


def _tagged(block: Block) -> str:
    tag = TAGS.get(block.kind, "p")
    return f"<{tag}>{_text(block.text)}</{tag}>\n"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table>\n"
    for at, row in enumerate(rows):
        tag = "td" if at else "th"
        yield f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in row)}</tr>\n"
    yield "</table>\n"


def _signatures(signers: Sequence[str]) -> Iterator[str]:
    heads = "".join(f"<th>{head}</th>" for head in ("", "name", "date", "signature"))
    yield f'<h2>Signatures</h2>\n<table class="signatures">\n<tr>{heads}</tr>\n'
    for signer in signers:
        yield f"<tr><th>{escape(signer)}</th><td></td><td></td><td></td></tr>\n"
    yield "</table>\n"


def _text(text: str) -> str:
    marked = DIGEST.sub(r'<span class="digest">\g<0></span>', escape(text))
    return CODE.sub(r"<code>\1</code>", marked).replace("\n", "<br>")
