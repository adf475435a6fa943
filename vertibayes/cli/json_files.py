"""JSON files that options of a learner name: an ordering, constraints, a structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from vertibayes.cli.source import Source, check_source
from vertibayes.dag import Structure
from vertibayes.json_content import is_names, read_json
from vertibayes.model_file import FORMAT, WRITERS, load_model
from vertibayes.options import Options
from vertibayes.structure.constraints import Constraints


def options_from(values: Mapping[str, Any]) -> Options:
    """Return the options of the values of `vertibayes.settings.LEARNING`; read their files."""
    contents = {
        "ordering": read_ordering(values["ordering"]),
        "constraints": read_constraints(values["constraints"]),
        "structure": read_structure(values["structure"]),
        "start": read_structure(values["start"]),
    }
    return Options(**{**values, **contents})


def check_options(options: Options, target: str | None, source: Source) -> None:
    """Refuse options of a learner that name no column of a source, before a record is read."""
    named = {
        "--target": filter(None, [target]),
        "--class-variable": filter(None, [options.class_variable]),
        "--ordering": options.ordering or (),
        "--structure": options.structure.nodes if options.structure else (),
        "--start": options.start.nodes if options.start else (),
    }
    columns = check_source(source, named)
    try:
        options.constraints.check_names((*columns, *source.exclude))  # as if it were left out
    except ValueError as error:
        raise ValueError(f"--constraints: {error}") from None


def read_ordering(given: Path | Sequence[str] | None) -> list[str] | None:
    """Return an ordering: names, or those of a JSON file with a list or ``{"nodes": [...]}``."""
    if not isinstance(given, Path):
        return None if given is None else list(given)
    content = read_json(given)
    if isinstance(content, dict) and "edges" not in content:
        content = content.get("nodes")
    if not is_names(content):
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


def read_knowledge(constraints: Path | None, ordering: Path | None) -> Constraints:
    """Read what experts know of directions, tiers count beside an ordering too."""
    known, order = read_constraints(constraints), read_ordering(ordering)
    knowledge = Options(constraints=known, ordering=order).knowledge
    if order is None:
        return knowledge
    pairs = combinations(known.tiers, 2)
    back = tuple((p, c) for earlier, later in pairs for p in later for c in earlier)
    return replace(knowledge, forbidden=(*knowledge.forbidden, *back))


def read_structure(path: Path | None) -> Structure | None:
    """Read a structure, or that of a model."""
    if path is None:
        return None
    if path.suffix.lower() in WRITERS and path.suffix.lower() != ".json":
        return load_model(path).structure
    content = read_json(path)
    if isinstance(content, dict) and content.get("format") == FORMAT:
        return load_model(path).structure
    if not isinstance(content, dict) or not is_names(content.get("nodes")):
        raise ValueError(f'{path}: not a structure; expected {{"nodes": [...], "edges": [...]}}')
    edges = content.get("edges")
    if not isinstance(edges, list) or not all(is_names(e) and len(e) == 2 for e in edges):
        raise ValueError(f"{path}: not a list of edges; expected [[parent, child], ...]")
    try:
        return Structure.of(content["nodes"], edges)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
