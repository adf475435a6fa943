"""What the pages of this package share: one style, and the files of packages."""

from __future__ import annotations

import re
from functools import cache
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
