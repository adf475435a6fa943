"""The texts of commands that stand in templates: plain text for a terminal.

A value stays in its line: names come from other people's files, and a control character, a new line
among them, is shown as `?`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any
from unicodedata import category, normalize

from vertibayes.words import area_of, counted, percent, size
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.errors import printable

if TYPE_CHECKING:
    from jinja2 import Environment

# Letters that look like others: Cyrillic, Greek, digits, dashes. A full list is in Unicode TR 39.
LOOKS = str.maketrans(
    "асеһіјкорѕухԁԛԝАВСЕНІЈКМОРЅТХҮУαορνικυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧO01I|‐‑‒–—−’",  # noqa: RUF001
    "acehijkopsyxdqwABCEHlJKMoPSTXYYaopvikuxABEZHlKMNoPTYXoolll------'",
)


def text(template: str, **facts: Any) -> str:
    """Return the text of a template of this package, filled in with facts."""
    return _environment().get_template(template).render(facts)


def look_alike(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of different names that look the same; other alphabets also as codes.

    >>> look_alike(["x10", "xlO", "age", "sex"])
    [['x10', 'xlO']]
    """
    groups: dict[str, dict[str, None]] = {}
    for name in names:
        seen = "".join(c for c in normalize("NFKC", name) if category(c) != "Cf")
        seen = "".join(seen.translate(LOOKS).split()).replace("rn", "m").casefold()
        groups.setdefault(seen, {})[name] = None
    return [[_in_codes(name) for name in group] for group in groups.values() if len(group) > 1]


def _in_codes(name: str) -> str:
    codes = name.encode("ascii", "backslashreplace").decode()
    return name if codes == name else f"{name} ({codes})"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701  (no HTML: `_shown` keeps what others wrote harmless)
        loader=PackageLoader("vertibayes.cli"),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "area": area_of,
        "counted": counted,
        "digest": lambda digits: grouped_digest(bytes.fromhex(digits)),
        "percent": percent,
        "size": size,
    }
    return environment


def _shown(value: object) -> str:
    """Return a value as a template shows it: a text, a number, or a list with commas."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return printable(str(value))
