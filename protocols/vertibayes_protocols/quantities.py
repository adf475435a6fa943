"""Quantities as text: amounts of memory, ``512MiB``, and spans of time, ``10 min``."""

from __future__ import annotations

import re

BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


def parse_size(text: str) -> int:
    """Return the number of bytes in a text such as ``512MiB``, ``1.5 GB`` or ``2g``.

    Examples
    --------
    >>> parse_size("512MiB")
    536870912
    """
    units = {name.lower(): float(size) for name, size in BYTES.items()}
    units |= {name[0].lower(): size for name, size in BYTES.items() if name.endswith("iB")}
    size = _in_units(text, units)
    if size is None or size < 1:
        raise ValueError(
            f"{text!r} is not an amount of memory; expected a number and a unit, as 512MiB or 2GB"
        )
    return int(size)


def parse_seconds(text: str) -> float:
    """Return the number of seconds in a text such as ``10 min``, ``90 s`` or ``1.5h``.

    Examples
    --------
    >>> parse_seconds("10 min")
    600.0
    """
    seconds = _in_units(text, SECONDS)
    if seconds is None:
        raise ValueError(
            f"{text!r} is not a span of time; expected a number and a unit, as 30 s, 10 min or 2 h"
        )
    return seconds


def _in_units(text: str, units: dict[str, float]) -> float | None:
    """Return a number times its unit; None if the text has another form or an unknown unit."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = units.get(match[2].lower()) if match else None
    return None if match is None or unit is None else float(match[1]) * unit
