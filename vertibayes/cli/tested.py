"""The records that a classifier is learned from and those that it is tested on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vertibayes.cli.source import Source
from vertibayes.data_dictionary import NO_DICTIONARY, Dictionary
from vertibayes.records import read_records
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData


def divided_records(
    source: Source, schema: Schema, data: SiteData
) -> tuple[LocalData, LocalData | None, list[str]]:
    """Return the records to learn from and those to test on, and warnings about the latter."""
    pooled = data.local
    if source.test is not None:
        return pooled, *read_tested(
            source.test,
            schema,
            source.missing_codes,
            source.ignore_case,
            dictionary=source.dictionary,
        )
    if source.holdout is None:
        return pooled, None, []
    held = round(source.holdout * pooled.records)
    if not 1 <= held < pooled.records:
        raise ValueError(
            f"--holdout {source.holdout} of {pooled.records} records: none is left to test on, "
            "or to learn from"
        )
    order = np.random.default_rng(source.seed).permutation(pooled.records)
    tested = _scorable(pooled.rows(np.sort(order[:held])), schema.target.name)
    return pooled.rows(np.sort(order[held:])), tested, []


def read_tested(
    path: Path,
    schema: Schema,
    missing_codes: Sequence[str] = (),
    ignore_case: Sequence[str] = (),
    needed: Collection[str] = (),
    dictionary: Dictionary = NO_DICTIONARY,
) -> tuple[LocalData, list[str]]:
    """Read the records of ``--test`` that have a class, and what to warn of."""
    read = read_records(
        path,
        schema.variables,
        missing_codes=missing_codes,
        numerics=schema.numerics,
        ignore_case=ignore_case,
        dictionary=dictionary,
    )
    target = schema.target.name
    if target in read.absent:
        raise ValueError(f"--test {path}: no column {target!r}, the target")
    if absent := [name for name in read.absent if name in needed]:
        raise ValueError(f"--test {path}: no column {absent[0]!r}, a feature")
    return _scorable(read.complete(schema), target), read.warnings(path)


def _scorable(tested: LocalData, target: str) -> LocalData:
    """Return the records that have a class."""
    known = have_class(tested, target)
    if not known.any():
        raise ValueError(f"no record to test on has a {target}")
    return tested.rows(np.flatnonzero(known))


def have_class(data: LocalData, target: str) -> NDArray[np.bool_]:
    """Return which records have a class."""
    return classes_of(data, target) < len(data.variables[target].states)


def about_lost(data: LocalData, target: str) -> list[str]:
    """Return a warning about the records that have no class, if there are some."""
    lost = int((~have_class(data, target)).sum())
    return [f"{lost} records have no {target}: they are not learned from"] if lost else []


def classes_of(data: LocalData, target: str) -> NDArray[np.int64]:
    """Return the place of each record's class; the number of classes where it is missing."""
    return data.codes[target].astype(np.int64)
