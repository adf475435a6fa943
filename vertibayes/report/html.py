"""What the pages of this package share: one style, and the files of packages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files

ASIDE = re.compile(r"^\s*/\*.*?\*/\s*|^\s+", re.DOTALL | re.MULTILINE)  # for readers of the code


@cache
def assets(package: str, suffix: str) -> list[str]:
    """Return the texts of a package's style sheets or scripts, by name, without their comments."""
    found = {
        path.name: ASIDE.sub("", path.read_text(encoding="utf-8"))
        for path in (files(package) / "assets").iterdir()
        if path.name.endswith(suffix)
    }
    return [found[name] for name in sorted(found)]


def page_style() -> str:
    """Return the style sheet of all pages: colours in light and dark, texts, tables and print."""
    (style,) = assets("vertibayes.report", ".css")
    return style


def page_of(title: str, notes: Iterable[str], body: Iterable[str], package: str) -> str:
    """Return a page of HTML that loads nothing, in the style of all pages and of a package.

    The title and the notes below it are escaped; the body is HTML.
    """
    style = "\n".join([page_style(), *assets(package, ".css")])
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>\n{style}</style></head>\n<body><header>",
            f"<h1>{escape(title)}</h1>\n",
            *(f'<p class="under">{escape(note)}</p>\n' for note in notes),
            "</header><main>\n",
            *body,
            "</main></body></html>\n",
        ]
    )
