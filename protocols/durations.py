"""Spans of time as text: ``10 min``."""

from __future__ import annotations

import re

UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """Return the number of seconds in a text such as ``10 min``, ``90 s`` or ``1.5h``.

    Raises
    ------
    ValueError
        If the text is not a span of time.

    Examples
    --------
    >>> parse_seconds("10 min")
    600.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(
            f"{text!r} is not a span of time; expected a number and a unit, as 30 s, 10 min or 2 h"
        )
    return float(match[1]) * unit
