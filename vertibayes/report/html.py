"""What the pages of this package share: one style, and templates that escape every text."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def templates(package: str) -> Environment:
    """Return the templates of a package; Jinja2 is imported by the first page only."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def assets(package: str, suffix: str) -> list[str]:
    """Return the texts of a package's style sheets or scripts, by name."""
    found = {
        path.name: path.read_text(encoding="utf-8")
        for path in (files(package) / "assets").iterdir()
        if path.name.endswith(suffix)
    }
    return [found[name] for name in sorted(found)]


def page_style() -> str:
    """Return the style sheet of all pages: colours in light and dark, texts, tables and print."""
    (style,) = assets("vertibayes.report", ".css")
    return style
