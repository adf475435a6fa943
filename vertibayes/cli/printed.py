"""The lines that a command prints of a run: a template, filled with what summary.json has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vertibayes.words import area_of, counted, percent, size


def lines_of(command: str, summary: Mapping[str, Any], **more: object) -> list[str]:
    """Return the lines; `more` is what they say beside the summary."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 (text for a terminal)
        loader=PackageLoader("vertibayes.cli"), undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"area": area_of, "counted": counted, "percent": percent, "size": size}
    text = environment.get_template(f"{command}.txt").render({**summary, **more})
    return text.rstrip("\n").split("\n")
