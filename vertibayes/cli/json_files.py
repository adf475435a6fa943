"""JSON files that options name: a partition of columns, an ordering, a structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vertibayes.dag import Structure
from vertibayes.json_content import read_json
from vertibayes.options import Options
from vertibayes.structure.constraints import Constraints


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def options_from(values: Mapping[str, Any]) -> Options:
    """Return the options of the values of `vertibayes.settings.LEARNING`; read their files."""
    contents = {
        "ordering": read_ordering(values["ordering"]),
        "constraints": read_constraints(values["constraints"]),
        "structure": read_structure(values["structure"]),
    }
    return Options(**{**values, **contents})


def read_ordering(given: Path | Sequence[str] | None) -> list[str] | None:
    """Return an ordering: names, or those of a JSON file with a list or ``{"nodes": [...]}``."""
    if not isinstance(given, Path):
        return None if given is None else list(given)
    content = read_json(given)
    if isinstance(content, dict) and "edges" not in content:
        content = content.get("nodes")
    if not _is_names(content):
        raise ValueError(f"{given}: not an ordering; expected a JSON list of the variables' names")
    names: list[str] = content
    return names


def read_constraints(path: Path | None) -> Constraints:
    """Read what experts know; no constraints without a file."""
    if path is None:
        return Constraints()
    content = read_json(path)
    try:
        return Constraints.from_json(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_structure(path: Path | None) -> Structure | None:
    """Read a structure."""
    if path is None:
        return None
    content = read_json(path)
    if not isinstance(content, dict) or not _is_names(content.get("nodes")):
        raise ValueError(f'{path}: not a structure; expected {{"nodes": [...], "edges": [...]}}')
    edges = content.get("edges")
    if not isinstance(edges, list) or not all(_is_names(e) and len(e) == 2 for e in edges):
        raise ValueError(f"{path}: not a list of edges; expected [[parent, child], ...]")
    try:
        return Structure.of(content["nodes"], edges)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_partition(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read who holds what."""
    parts = read_json(path)
    if not isinstance(parts, dict) or not all(_is_names(columns) for columns in parts.values()):
        raise ValueError(f'{path}: not a partition; expected {{"site": ["column", ...]}}')
    holder: dict[str, str] = {}
    for site, columns in parts.items():
        if not columns:
            raise ValueError(f"{path}: the site {site!r} holds no column")
        for name in columns:
            if name not in names:
                raise ValueError(f"{path}: the site {site!r} holds {name!r}, which is not a column")
            if name in holder:
                raise ValueError(
                    f"{path}: the column {name!r} is at two sites, {holder[name]} and {site}"
                )
            holder[name] = site
    absent = [name for name in names if name not in holder]
    if absent:
        raise ValueError(
            f"{path}: no site holds {', '.join(absent)}; name a site, or leave them out with "
            "--exclude"
        )
    return {str(site): list(columns) for site, columns in parts.items()}
