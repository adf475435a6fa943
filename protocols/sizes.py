"""Amounts of memory as text: ``512MiB``."""

from __future__ import annotations

import re

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def parse_size(text: str) -> int:
    """Return the number of bytes in a text such as ``512MiB``, ``1.5 GB`` or ``2g``.

    Raises
    ------
    ValueError
        If the text is not an amount of memory.

    Examples
    --------
    >>> parse_size("512MiB")
    536870912
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    units = {name.lower(): size for name, size in UNITS.items()}
    units |= {name[0].lower(): size for name, size in UNITS.items() if name.endswith("iB")}
    size = units.get(match[2].lower()) if match else None
    if match is None or size is None or float(match[1]) * size < 1:
        raise ValueError(
            f"{text!r} is not an amount of memory; expected a number and a unit, as 512MiB or 2GB"
        )
    return int(float(match[1]) * size)
