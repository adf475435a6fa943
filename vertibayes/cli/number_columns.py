"""Columns that stay numbers between the bounds that their data have: for pooled records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vertibayes.cli.source import Source
from vertibayes.words import offered
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.encoded import encode
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import UnsuitableColumnError
from vertibayes_protocols.site.inspection import says_missing
from vertibayes_protocols.site.numerals import Numerals, read_numbers
from vertibayes_protocols.site.states import StateFinder
from vertibayes_protocols.site.text_column import TextColumn

ALL = ("all",)
FEWEST = 3  # different numbers of a column that `--numbers all` keeps: two are a yes and a no


def with_bounds(source: Source, columns: Mapping[str, TextColumn]) -> Source:
    """Return a source that keeps its `numbers`, as if their bounds were given by hand."""
    how, target = source.how, source.target
    names: Sequence[str] = source.numbers
    if tuple(names) == ALL and "all" not in columns:
        taken = {target, *how.bounds, *how.cuts, *how.categorical}
        names = [name for name in columns if name not in taken and _is_numeric(name, columns, how)]
    bounds = [_bounds(name, columns, how, target) for name in names if name not in how.bounds]
    return replace(source, bounds=(*source.bounds, *bounds))


def _is_numeric(name: str, columns: Mapping[str, TextColumn], how: Encoding) -> bool:
    """Whether a column has numbers, which do not identify records, and at least three of them."""
    try:
        encode("", name, columns[name], how)
    except UnsuitableColumnError as error:
        if error.finding.kind != "too few records":  # for bins
            return False
    numbers = _numbers(name, columns[name], how)
    return not (numbers.fault or _words(numbers)) and len(set(numbers.values.values())) >= FEWEST


def _bounds(name: str, columns: Mapping[str, TextColumn], how: Encoding, target: str) -> str:
    """Return the bounds of a column, as ``--bounds`` takes them."""
    if name == target:
        raise DataError(
            f"--numbers {name}: the column is the target, and a class has states; leave it out"
        )
    if name not in columns:
        known = offered(name, columns)
        raise DataError(f"--numbers {name}: no such column; there are {known}")
    numbers = _numbers(name, columns[name], how)
    if numbers.fault:
        raise DataError(f"--numbers {name}: {numbers.fault}; write them in one")
    if words := _words(numbers):
        raise DataError(
            f"--numbers {name}: the column has {words[0]!r}, which is not a number; if it says "
            f"missing, specify --missing-codes '{name}={words[0]}'"
        )
    values = set(numbers.values.values())
    if len(values) < 2:
        raise DataError(
            f"--numbers {name}: the column needs two different numbers, got {len(values)}; leave "
            f"it out with --exclude {name}"
        )
    return f"{name}={min(values)},{max(values)}"


def _numbers(name: str, column: TextColumn, how: Encoding) -> Numerals:
    return read_numbers(StateFinder("", name, column, how).counts)


def _words(numbers: Numerals) -> list[str]:
    """Return the texts that are neither numbers nor say that a value is missing."""
    return [word for word in numbers.words if not says_missing(word, among_numbers=True)]
