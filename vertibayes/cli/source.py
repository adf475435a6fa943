"""Where data are and how they are read, checked against the files' first lines alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from vertibayes.cli.options import separated
from vertibayes.data_dictionary import NO_DICTIONARY, Dictionary, read_dictionary
from vertibayes.json_content import is_names, read_json
from vertibayes.splitting import deal_columns
from vertibayes.words import offered
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.policy import GIBIBYTE
from vertibayes_protocols.settings import MASKED_TABLES, CountBy
from vertibayes_protocols.site.dialect import Dialect
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.numerals import number
from vertibayes_protocols.site.sources.reading import read_names

T = TypeVar("T")
NOTHING: Mapping[str, Iterable[str]] = MappingProxyType({})


@dataclass(frozen=True)
class Source:
    """Where the data are and how they are read.

    The fields are the values of `vertibayes.settings.SPLIT`, `READING`, `BOUNDS`, `MEMORY`,
    `COUNT_BY` and `MDLP`, whose help says what each does; `memory` is in bytes.
    """

    data: tuple[str, ...]
    sites: int | None = None
    partition: Path | None = None
    align: str | None = None
    id_column: str | None = None
    exclude: tuple[str, ...] = ()
    missing_codes: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    bins: float = 0.1
    max_states: int = 100
    cut: tuple[str, ...] = ()
    binning: str = "equal-frequency"
    ignore_case: tuple[str, ...] = ()
    keep_spaces: bool = False
    strict: bool = False
    seed: int = 0
    memory: int = GIBIBYTE
    count_by: CountBy = MASKED_TABLES
    bounds: tuple[str, ...] = ()
    mdlp: str | None = None
    pre_bins: int = 64
    numbers: tuple[str, ...] = ()  # columns that stay numbers, between bounds that the data have
    target: str = ""  # the class, which never does
    test: Path | None = None  # records to test on, or which share of `data` they are
    holdout: float | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    keep_na: bool = False
    states: tuple[str, ...] = ()
    schema: Path | None = None
    dictionary: Dictionary = NO_DICTIONARY  # the content of `schema`

    def __post_init__(self) -> None:
        if self.schema is not None and self.dictionary is NO_DICTIONARY:
            for name, value in _declared(self, read_dictionary(self.schema)).items():
                object.__setattr__(self, name, value)
        if self.test is not None and self.holdout is not None:
            raise ValueError("--test and --holdout both say what to test on: give one of them")

    def options(self, *names: str) -> dict[str, Any]:
        """Return fields, as entries of the options in summary.json."""
        return {name: getattr(self, name) for name in names}

    @property
    def rules(self) -> tuple[str, ...]:
        """The rule of each column of the identifier; none if the files have the same people."""
        return () if self.align is None else tuple(separated(self.align))

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns of the identifier: several only if each has a rule."""
        if self.id_column is None:
            return ()
        return tuple(separated(self.id_column)) if len(self.rules) > 1 else (self.id_column,)

    @property
    def files(self) -> list[tuple[str | None, Path]]:
        """The file of each site by its name, or one file to be split, without a name."""
        files = [_named(text) for text in self.data]
        if len(files) > 1 and not all(name for name, _ in files):
            raise ValueError("--data: specify one FILE to be split, or NAME=FILE for each site")
        return files

    @property
    def dialect(self) -> Dialect:
        """How CSV files are written."""
        return Dialect(self.separator, self.decimal, self.encoding)

    @property
    def how(self) -> Encoding:
        """How columns become variables."""
        return Encoding(
            missing_codes=self.missing_codes,
            categorical=self.categorical,
            bins=self.bins,
            max_states=self.max_states,
            cuts=_once("--cut", map(_cut, self.cut)),
            binning=self.binning,
            ignore_case=self.ignore_case,
            bounds=_once("--bounds", map(_bounds, self.bounds)),
            keep_na=self.keep_na,
            states=_once("--states", map(_states, self.states), "no,yes"),
        )


def _declared(source: Source, dictionary: Dictionary) -> dict[str, Any]:
    """Return a source's fields with what a data dictionary adds to the options."""
    columns = {n: c for n, c in dictionary.columns.items() if n not in source.exclude}
    codes = Dictionary(columns).missing_codes
    categorical = [name for name, column in columns.items() if column.categorical]
    named = {text.rpartition("=")[0] for text in (*source.cut, *source.bounds)}
    named |= {text.partition("=")[0] for text in source.states}

    def added(way: str) -> list[str]:
        own = {n: getattr(column, way) for n, column in columns.items() if n not in named}
        return [f"{name}={_listed(values)}" for name, values in own.items() if values]

    return {
        "dictionary": dictionary,
        "id_column": source.id_column or dictionary.id_column,
        "exclude": (*source.exclude, *(n for n, c in columns.items() if c.exclude)),
        "missing_codes": tuple(dict.fromkeys([*source.missing_codes, *codes])),
        "categorical": tuple(dict.fromkeys([*source.categorical, *categorical])),
        "cut": (*source.cut, *added("cut")),
        "states": (*source.states, *added("states")),
    }


def _listed(values: Iterable[object]) -> str:
    """Return values as an option has them: those with commas and quotes are quoted."""
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(values)
    return file.getvalue()


def check_source(source: Source, named: Mapping[str, Iterable[str]] = NOTHING) -> list[str]:
    """Return the columns that are not left out; refuse options that the files do not fit.

    No record is read. `named` has the columns that further options name, by option.
    """
    one, split = source.files[0][0] is None, (source.sites, source.partition)
    if one and source.rules:
        raise ValueError("--align matches the files of several sites: give --data NAME=FILE each")
    if one and split == (None, None):
        raise ValueError("specify --sites K or --partition FILE, or --data NAME=FILE per site")
    if one and None not in split:
        raise ValueError("--sites and --partition both say who holds what: specify one")
    if not one and split != (None, None):
        raise ValueError(
            "--sites and --partition split one file: omit them if each site has its own file"
        )
    if len(source.files) > 1 and source.id_column is None:
        raise ValueError("specify --id-column: it shows which records of the files belong together")
    names = check_columns(source, named)
    if source.partition is not None:
        read_partition(source.partition, names)
    elif one:
        deal_columns(names, source.sites or 0, source.seed)
    return names


def check_columns(source: Source, named: Mapping[str, Iterable[str]] = NOTHING) -> list[str]:
    """Return the columns of the files, without identifiers; refuse options that name others."""
    names: dict[str, None] = {}
    for _, path in source.files:
        read = read_names(path, keep_spaces=source.keep_spaces, dialect=source.dialect)
        for name in source.id_columns:
            if name not in read:
                raise DataError(f"{path}: no column {name!r} (--id-column)")
        names |= dict.fromkeys(name for name in read if name not in source.id_columns)
    encoding = source.how
    left = [name for name in names if name not in source.exclude]
    given: dict[str, Iterable[str]] = {
        "--schema": [name for name in source.dictionary.columns if name not in source.exclude],
        "--categorical": encoding.categorical,
        "--cut": encoding.cuts,
        "--states": encoding.states,
        "--ignore-case": encoding.ignore_case,
        "--bounds": encoding.bounds,
        "--mdlp": [] if source.mdlp is None else [source.mdlp],
    }
    for name in source.exclude:
        if name in source.id_columns:
            raise DataError(
                f"--exclude {name}: the identifier (--id-column) cannot be excluded; it is no "
                "variable anyway"
            )
    _check_known({"--exclude": source.exclude}, list(names))
    _check_known({**given, **named}, left)
    return left


def _check_known(given: Mapping[str, Iterable[str]], known: Sequence[str]) -> None:
    for option, names in given.items():
        for name in names:
            if name not in known:
                raise DataError(
                    f"{option} {name}: no such column; there are {offered(name, known)}"
                )


def read_partition(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read who holds what."""
    parts = read_json(path)
    if not isinstance(parts, dict) or not all(is_names(columns) for columns in parts.values()):
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


def _named(text: str) -> tuple[str | None, Path]:
    """Split NAME=FILE; return None and the path for FILE, whose name may have an equals sign."""
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return None, Path(text)
    if not name or not path:
        raise ValueError(f"--data {text}: a name or a file is missing; expected NAME=FILE")
    return name, Path(path)


def _cut(text: str) -> tuple[str, list[Decimal]]:
    """Return the column's name and the edges of one ``--cut``."""
    named = _ascending(text)
    if named is None:
        raise ValueError(f"--cut {text}: expected COLUMN=NUMBERS, ascending, as --cut age=18,65")
    return named


def _states(text: str) -> tuple[str, list[str]]:
    """Return the column's name and the states of one ``--states``."""
    name, _, listed = text.partition("=")
    states = separated(listed)
    if not name or len(set(states)) < max(2, len(states)):
        raise ValueError(
            f"--states {text}: expected COLUMN=STATES, two or more different ones, as --states "
            "answer=no,perhaps,yes"
        )
    return name, states


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    """Return the column's name and the bounds of one ``--bounds``."""
    name, bounds = _ascending(text) or ("", [])
    if len(bounds) != 2:
        raise ValueError(
            f"--bounds {text}: expected COLUMN=LOW,HIGH, two ascending numbers, as "
            "--bounds age=17,90"
        )
    return name, (float(bounds[0]), float(bounds[1]))


def _once(option: str, named: Iterable[tuple[str, T]], example: str = "18,65") -> dict[str, T]:
    """Return what columns have by name; refuse a column that is given twice."""
    given: dict[str, T] = {}
    for name, numbers in named:
        if name in given:
            raise ValueError(
                f"{option} {name} is given twice: give a column once, with all its values, as "
                f"{option} {name}={example}"
            )
        given[name] = numbers
    return given


def _ascending(text: str) -> tuple[str, list[Decimal]] | None:
    """Split NAME=NUMBERS; None if the name is missing or the numbers do not ascend."""
    name, _, texts = text.rpartition("=")
    numbers = [number(part) for part in texts.split(",")]
    known = [part for part in numbers if part is not None]
    ascending = all(low < high for low, high in pairwise(known))
    return (name, known) if name and len(known) == len(numbers) and ascending else None
