"""The records that a classifier is learned from and those that it is tested on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vertibayes.cli.inputs import Source
from vertibayes.records import read_records
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData


class Tested(Protocol):
    """A request that says what is predicted, and on what it is tested; see `settings.TEST`."""

    @property
    def target(self) -> str:
        """The class."""
        ...

    @property
    def test(self) -> Path | None:
        """A file of records to test on."""
        ...

    @property
    def holdout(self) -> float | None:
        """The share of the records to test on."""
        ...


def divided_records(
    source: Source, request: Tested, schema: Schema, data: SiteData
) -> tuple[LocalData, LocalData | None, list[str]]:
    """Return the records to learn from and those to test on, and warnings about the latter."""
    pooled = data.local
    if request.test is not None:
        return pooled, *read_tested(request, schema, source.missing_codes, source.ignore_case)
    if request.holdout is None:
        return pooled, None, []
    held = round(request.holdout * pooled.records)
    if not 1 <= held < pooled.records:
        raise ValueError(
            f"--holdout {request.holdout} of {pooled.records} records: none is left to test on, "
            "or to learn from"
        )
    order = np.random.default_rng(source.seed).permutation(pooled.records)
    tested = _scorable(pooled.rows(np.sort(order[:held])), request)
    return pooled.rows(np.sort(order[held:])), tested, []


def read_tested(
    request: Tested,
    schema: Schema,
    missing_codes: Sequence[str] = (),
    ignore_case: Sequence[str] = (),
    needed: Collection[str] = (),
) -> tuple[LocalData, list[str]]:
    """Read the records of ``--test`` that have a class, and what to warn of."""
    assert request.test is not None  # it was asked for
    read = read_records(
        request.test,
        schema.variables,
        missing_codes=missing_codes,
        numerics=schema.numerics,
        ignore_case=ignore_case,
    )
    if request.target in read.absent:
        raise ValueError(f"--test {request.test}: no column {request.target!r}, the target")
    if absent := [name for name in read.absent if name in needed]:
        raise ValueError(f"--test {request.test}: no column {absent[0]!r}, a feature")
    return _scorable(read.complete(schema), request), read.warnings(request.test)


def _scorable(tested: LocalData, request: Tested) -> LocalData:
    """Return the records that have a class."""
    known = have_class(tested, request.target)
    if not known.any():
        raise ValueError(f"no record to test on has a {request.target}")
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
