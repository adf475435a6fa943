"""From files and options to sites: read, split by column or match by record, encode."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from protocols.errors import DataError
from protocols.policy import GIBIBYTE
from protocols.site.alignment import check_ids, in_order
from protocols.site.data import SiteData
from protocols.site.encoding import Encoding, is_missing
from protocols.site.text import TextColumn, read_columns
from vertibayes.network import Structure
from vertibayes.splitting import deal_columns

Columns = dict[str, TextColumn]

FEW_KNOWN = 0.05  # share of records with a value, below which a column is doubted
LIKE_MISSING = frozenset(
    ["na", "n/a", "nan", "null", "none", "?", "-", ".", "missing", "unknown", "-9", "-99", "-999"]
)


@dataclass(frozen=True)
class Source:
    """Where the data are and how they are read; as the options of ``vertibayes learn``."""

    data: tuple[str, ...]
    sites: int | None = None
    partition: Path | None = None
    id_column: str | None = None
    exclude: tuple[str, ...] = ()
    missing_codes: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    bins: float = 0.1
    max_states: int = 100
    seed: int = 0
    memory: int = GIBIBYTE

    @property
    def encoding(self) -> Encoding:
        """How columns become variables."""
        return Encoding(self.missing_codes, {}, self.categorical, self.bins, self.max_states)


@dataclass(frozen=True)
class Sites:
    """The sites' data, the order of all variables, and doubts about how they were read."""

    data: Mapping[str, SiteData]
    order: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    memory: int = GIBIBYTE


class Held(NamedTuple):
    """What one site holds: columns of text, the records' identifiers, what was left out."""

    columns: Columns
    ids: TextColumn | None
    excluded: frozenset[str] = frozenset()


def read_sites(source: Source) -> Sites:
    """Read the data of all sites.

    Raises
    ------
    DataError, ValueError
        If a file or an option is at fault: it names it, with the column and the line or record.
    """
    encoding = source.encoding
    named = [_named(text) for text in source.data]
    if all(name is None for name, _ in named) and len(named) == 1:
        held, order = _split_file(source, named[0][1])
    elif all(name is not None for name, _ in named):
        held = _file_a_site(source, [(name or "", path) for name, path in named])
        order = [name for site in held.values() for name in site.columns]
    else:
        raise ValueError("--data is one FILE to be split, or NAME=FILE once for each site")
    for name in source.categorical:
        if name not in order:
            raise DataError(f"no column {name!r} (--categorical); there are {', '.join(order)}")
    data = {
        site: SiteData.from_text(site, columns, encoding, ids)
        for site, (columns, ids, _) in held.items()
    }
    return Sites(data, tuple(order), doubts(source, held), source.memory)


def read_pooled(source: Source) -> tuple[SiteData, tuple[str, ...]]:
    """Read one file as it is, to be dealt to parties; and doubts about how it was read.

    Raises
    ------
    DataError, ValueError
        As `read_sites`.
    """
    encoding = source.encoding
    path = Path(source.data[0])
    found = _take(source, path)
    _check_excluded(source, [found])
    for name in source.categorical:
        if name not in found.columns:
            raise DataError(f"no column {name!r} (--categorical)")
    data = SiteData.from_text(str(path), found.columns, encoding)
    return data, doubts(source, {str(path): found})


def doubts(source: Source, held: Mapping[str, Held]) -> tuple[str, ...]:
    """Return warnings of what may have been meant otherwise."""
    texts: dict[str, list[str]] = {}
    for site in held.values():
        for name, column in site.columns.items():
            for text in column.texts:
                texts.setdefault(text, []).append(name)
    told = []
    for where, held_there in held.items():
        for name, column in held_there.columns.items():
            known = _known_share(column, source.encoding)
            if 0 < known < FEW_KNOWN:
                told.append(
                    f"{where}: {name} has a value in {known:.1%} of the records only, which edges "
                    f"and CPTs of it rest on; leave it out with --exclude {name}"
                )
    unused = [code for code in source.missing_codes if code not in texts]
    told += [f"--missing-codes {code}: no such value in the data" for code in unused]
    for text, names in texts.items():
        if text.strip().lower() in LIKE_MISSING and text not in source.missing_codes:
            told.append(
                f"{text!r} in {', '.join(names)} is taken as a value; if it says missing: "
                f"--missing-codes {text}"
            )
    return tuple(told)


def _known_share(column: TextColumn, encoding: Encoding) -> float:
    """Return the share of records that have a value."""
    used = np.bincount(column.places, minlength=len(column.texts))
    lost = [is_missing(text, encoding) for text in column.texts]
    return 1 - float(used[np.array(lost, bool)].sum()) / max(len(column.places), 1)


def _named(text: str) -> tuple[str | None, Path]:
    """Tell NAME=FILE from FILE, whose name may have an equals sign."""
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return None, Path(text)
    if not name or not path:
        raise ValueError(f"--data {text}: NAME=FILE is wanted")
    return name, Path(path)


def _take(source: Source, path: Path) -> Held:
    """Read a file and set apart its identifiers and what is excluded."""
    columns = read_columns(path)
    ids = None
    if source.id_column is not None:
        if source.id_column not in columns:
            raise DataError(f"{path}: no column {source.id_column!r} (--id-column)")
        ids = columns.pop(source.id_column)
        check_ids(str(path), f"identifier in {source.id_column!r} (--id-column)", ids)
    excluded = frozenset(name for name in source.exclude if columns.pop(name, None) is not None)
    if not columns:
        raise DataError(f"{path}: no columns are left")
    return Held(columns, ids, excluded)


def _check_excluded(source: Source, held: Collection[Held]) -> None:
    """Refuse a name to be left out that no site has."""
    for name in source.exclude:
        if not any(name in site.excluded for site in held):
            there = ", ".join(column for site in held for column in site.columns)
            raise DataError(f"no column {name!r} (--exclude); there are {there}")


# ---- one file ------------------------------------------------------------------------------------


def _split_file(source: Source, path: Path) -> tuple[dict[str, Held], list[str]]:
    """Split a file's columns over sites."""
    found = _take(source, path)
    _check_excluded(source, [found])
    columns, ids, _ = found
    order = list(columns)
    if source.partition is not None:
        if source.sites is not None:
            raise ValueError("--sites and --partition both say who holds what: one is wanted")
        parts = read_partition(source.partition, order)
    else:
        if source.sites is None:
            raise ValueError(
                "--sites K or --partition FILE is wanted, or --data NAME=FILE for each site"
            )
        parts = deal_columns(order, source.sites, source.seed)
    held = {
        site: Held({name: columns[name] for name in names}, ids) for site, names in parts.items()
    }
    return held, order


def read_partition(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read who holds what.

    Raises
    ------
    ValueError
        If the file is no object of lists, or a column is unknown, at two sites or at none.
    """
    parts = read_json(path)
    if not isinstance(parts, dict) or not all(_is_names(columns) for columns in parts.values()):
        raise ValueError(f'{path}: {{"site": ["column", ...]}} is wanted')
    holder: dict[str, str] = {}
    for site, columns in parts.items():
        if not columns:
            raise ValueError(f"{path}: the site {site!r} holds no column")
        for name in columns:
            if name not in names:
                raise ValueError(f"{path}: the site {site!r} holds {name!r}, which is no column")
            if name in holder:
                raise ValueError(
                    f"{path}: the column {name!r} is at two sites, {holder[name]} and {site}"
                )
            holder[name] = site
    lacking = [name for name in names if name not in holder]
    if lacking:
        raise ValueError(f"{path}: at no site: {', '.join(lacking)}; leave them out with --exclude")
    return {str(site): list(columns) for site, columns in parts.items()}


# ---- a file a site -------------------------------------------------------------------------------


def _file_a_site(source: Source, files: Sequence[tuple[str, Path]]) -> dict[str, Held]:
    """Read a file a site, and bring the records into one order."""
    if source.sites is not None or source.partition is not None:
        raise ValueError("--sites and --partition split one file; here each site has its own")
    if source.id_column is None and len(files) > 1:
        raise ValueError("--id-column is wanted: it tells which records of the files are one")
    held: dict[str, Held] = {}
    holder: dict[str, str] = {}
    for site, path in files:
        if site in held:
            raise ValueError(f"--data names the site {site!r} twice")
        held[site] = _take(source, path)
        for name in held[site].columns:
            if name in holder:
                raise DataError(
                    f"the column {name!r} is at two sites, {holder[name]} and {site}; rename one, "
                    "or leave both out with --exclude"
                )
            holder[name] = site
    _check_excluded(source, held.values())
    return _matched(held)


def _matched(held: Mapping[str, Held]) -> dict[str, Held]:
    """Sort all sites' records by their identifiers, which must be the same."""
    counts = {site: len(next(iter(found.columns.values()))) for site, found in held.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{site} {count}" for site, count in counts.items())
        raise DataError(f"the sites hold different numbers of records: {told}")
    first = next(iter(held))
    matched: dict[str, Held] = {}
    for site, (columns, ids, _) in held.items():
        if ids is None:
            matched[site] = Held(columns, None)
            continue
        _check_same_ids(first, held[first].ids, site, ids)
        matched[site] = Held(*in_order(columns, ids))
    return matched


def _check_same_ids(first: str, wanted: TextColumn | None, site: str, ids: TextColumn) -> None:
    """Refuse a site that lacks people; who they are is for the sites alone."""
    lacking = set(wanted.texts if wanted is not None else ()) - set(ids.texts)
    if wanted is not None and lacking:
        place = next(i for i, text in enumerate(wanted.texts) if text in lacking)
        record = int(np.argmax(wanted.places == place)) + 1
        others = f" and {len(lacking) - 1} more are" if len(lacking) > 1 else " is"
        raise DataError(
            f"the sites hold different records: record {record} of {first}{others} not at {site}"
        )


# ---- JSON files ----------------------------------------------------------------------------------


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    ValueError
        If there is no such file or it is no JSON: it names the file and the line.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: no JSON ({error.msg})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def read_ordering(path: Path | None) -> list[str] | None:
    """Read an ordering: a JSON list of names, or of ``{"nodes": [...]}``."""
    if path is None:
        return None
    found = read_json(path)
    if isinstance(found, dict) and "edges" not in found:
        found = found.get("nodes")
    if not _is_names(found):
        raise ValueError(f"{path}: a JSON list of the variables' names is wanted")
    names: list[str] = found
    return names


def read_structure(path: Path | None) -> Structure | None:
    """Read a structure.

    Raises
    ------
    ValueError
        If the file is no structure, has an unknown node or a cycle: it names the file.
    """
    if path is None:
        return None
    found = read_json(path)
    if not isinstance(found, dict) or not _is_names(found.get("nodes")):
        raise ValueError(f'{path}: {{"nodes": [...], "edges": [[parent, child], ...]}} is wanted')
    edges = found.get("edges")
    if not isinstance(edges, list) or not all(_is_names(e) and len(e) == 2 for e in edges):
        raise ValueError(f"{path}: edges are wanted as [[parent, child], ...]")
    try:
        return Structure.of(found["nodes"], edges)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
