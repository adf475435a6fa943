"""From files and options to sites: read, split by column or match by record, encode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from vertibayes.cli.source import Source, check_columns, check_source, read_partition
from vertibayes.splitting import deal_columns
from vertibayes.words import offered
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.policy import GIBIBYTE
from vertibayes_protocols.settings import MASKED_TABLES, CountBy
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.identifiers import Identifiers, check_ids, combined, rule_of
from vertibayes_protocols.site.sources.reading import read_table
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable

ALIGN = (
    "with --align RULE, as --align exact or --align digits, the study is of the people whom all "
    "sites hold"
)


@dataclass(frozen=True)
class Sites:
    """The sites' data, the order of all variables, the columns left out, and warnings."""

    data: Mapping[str, SiteData]  # the data of each site
    order: tuple[str, ...]  # all variables, in the order of the data
    warnings: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    memory: int = GIBIBYTE  # memory that each site may use, in bytes
    count_by: CountBy = MASKED_TABLES
    rules: tuple[str, ...] = ()  # the rules by which the sites' lists of people are matched

    @property
    def variables(self) -> dict[str, Variable]:
        """All variables, in order."""
        known = {n: v for data in self.data.values() for n, v in data.variables.items()}
        return {name: known[name] for name in self.order}

    def check_column(self, name: str | None, option: str) -> None:
        """Refuse a column that was left out, as the value of an option."""
        if name is not None and name in self.left_out:
            raise DataError(f"{option} {name}: the column is left out: {self.left_out[name]}")

    def check_known(self, name: str, option: str) -> None:
        """Refuse a column that no site has, as the value of an option."""
        self.check_column(name, option)
        if name not in self.order:
            known = offered(name, self.order)
            raise ValueError(f"{option} {name}: no such column; there are {known}")


class Held(NamedTuple):
    """The content of one file: columns of text, the records' identifiers, the excluded columns."""

    path: Path
    columns: Mapping[str, TextColumn]
    ids: TextColumn | None
    excluded: frozenset[str]
    identifiers: Identifiers | None = None

    def encoded(self, source: Source) -> SiteData:
        """Encode the columns."""
        name, encoding = str(self.path), source.how
        data = SiteData.from_text(name, self.columns, encoding, self.ids, strict=source.strict)
        return replace(data, identifiers=self.identifiers)


Bounded: TypeAlias = Callable[[Source, Mapping[str, TextColumn]], Source]


def read_sites(source: Source) -> Sites:
    """Read the data of all sites."""
    check_source(source)
    files = source.files
    if files[0][0] is None:
        return _split_file(source, files[0][1])
    return _file_per_site(source, [(name or "", path) for name, path in files])


def read_pooled(source: Source, bounded: Bounded | None = None) -> Sites:
    """Read one file as the data of one site, under the file's name, to be dealt to parties."""
    check_columns(source)
    held = _take(source, source.files[0][1])
    if bounded is not None:
        source = bounded(source, held.columns)
    _check_codes(source, [held])
    data = held.encoded(source)
    return _gathered(source, [held], [data], {str(held.path): data})


def _check_codes(source: Source, files: Sequence[Held]) -> None:
    """Refuse codes for missing values of columns that no file has."""
    names = [name for held in files for name in held.columns]
    known = {*names, *source.id_columns, *source.exclude}
    for code in source.missing_codes:
        named = not _occurs(code, files) and "=" in code
        if named and not any(code.startswith(f"{name}=") for name in known):
            raise DataError(
                f"--missing-codes {code}: no column {code.partition('=')[0]!r}, and no such value; "
                f"there are {', '.join(names)}"
            )


def _gathered(
    source: Source,
    files: Sequence[Held],
    encoded: Sequence[SiteData],
    sites: Mapping[str, SiteData],
) -> Sites:
    """Return the sites' data with the findings of all files."""
    reports = [data.report for data in encoded]
    used = {name for data in sites.values() for name in data.variables}
    left_out = {n: report.reason(n) for report in reports for n in report.left_out if n not in used}
    order = tuple(dict.fromkeys(n for f in files for n in f.columns if n not in left_out))
    if len(order) < 2:
        reasons = "".join(f"\n  {name}: {reason}" for name, reason in left_out.items())
        raise DataError(
            f"at least 2 columns are needed, got {len(order)}; left out: {len(left_out)}{reasons}"
        )
    left_out |= {name: "excluded" for file in files for name in file.excluded if name not in used}
    unused = [code for code in source.missing_codes if not _occurs(code, files)]
    warnings = [f"--missing-codes {code}: no such value in the data" for code in unused]
    messages = [message for report in reports if (message := report.message())]
    told = (*messages, *warnings)
    return Sites(sites, order, told, left_out, source.memory, source.count_by)


def _occurs(code: str, files: Sequence[Held]) -> bool:
    """Whether a code for missing values is a value of a column."""
    return any(
        code in column.texts or code.removeprefix(f"{name}=") in column.texts
        for held in files
        for name, column in held.columns.items()
    )


def _take(source: Source, path: Path) -> Held:
    """Read a file; take out its identifiers and the excluded columns."""
    keys = source.id_columns[0] if len(source.id_columns) == 1 else None
    columns = read_table(path, keep_spaces=source.keep_spaces, keys=keys, dialect=source.dialect)
    columns = source.dictionary.prepared(columns)
    ids = identifiers = None
    if source.id_columns:
        parts = {name: columns.pop(name) for name in source.id_columns}
        ids = combined([*parts.values()])
        if source.rules:
            missing = source.missing_codes
            identifiers = Identifiers.of(str(path), parts, source.rules, missing=missing)
        else:
            named = f"identifier in {source.id_column!r} (--id-column)"
            check_ids(str(path), named, ids, "keep one record of each person")
    excluded = frozenset(name for name in source.exclude if columns.pop(name, None) is not None)
    if not columns:
        raise DataError(f"{path}: no columns are left: exclude fewer")
    return Held(path, columns, ids, excluded, identifiers)


# ---- one file ------------------------------------------------------------------------------------


def _split_file(source: Source, path: Path) -> Sites:
    """Split a file's columns over sites; no site gets the columns that are left out."""
    held = _take(source, path)
    _check_codes(source, [held])
    parts = None
    if source.partition is not None:
        parts = read_partition(source.partition, list(held.columns))
    data = held.encoded(source)
    if parts is None:
        parts = deal_columns(list(data.variables), source.sites or 0, source.seed)
    for site, names in parts.items():
        parts[site] = [name for name in names if name in data.variables]
        if not parts[site]:
            raise ValueError(
                f"all columns of the site {site!r} are left out; {data.report.message()}"
            )
    return _gathered(source, [held], [data], {site: data.take(n) for site, n in parts.items()})


# ---- one file per site ---------------------------------------------------------------------------


def _file_per_site(source: Source, files: Sequence[tuple[str, Path]]) -> Sites:
    """Read one file per site, and bring the records into one order."""
    _check_rules(source)
    held: dict[str, Held] = {}
    holder: dict[str, str] = {}
    for site, path in files:
        if site in held:
            raise ValueError(f"--data names the site {site!r} twice; repeat it once for each site")
        held[site] = _take(source, path)
        for name in held[site].columns:
            if name in holder and not source.rules:
                raise DataError(
                    f"the column {name!r} is at two sites, {holder[name]} and {site}; rename one, "
                    "leave both out with --exclude, or if the sites have it of different people, "
                    "match their records with --align"
                )
            holder[name] = site
    read = list(held.values())
    _check_codes(source, read)
    if not source.rules:
        _check_same_records(held)
    data = {site: file.encoded(source) for site, file in held.items()}
    in_order = {site: own.in_order_of_ids() for site, own in data.items()}
    gathered = _gathered(source, read, list(data.values()), in_order)
    unmatched = [
        f"{site}: {text}"
        for site, file in held.items()
        if file.identifiers is not None
        for text in file.identifiers.findings()
    ]
    return replace(gathered, rules=source.rules, warnings=(*gathered.warnings, *unmatched))


def _check_rules(source: Source) -> None:
    """Refuse rules that do not exist, before a file is read."""
    try:
        for rule in source.rules:
            rule_of(rule)
    except ValueError as error:
        raise ValueError(f"--align {source.align}: {error}") from None


def _check_same_records(held: Mapping[str, Held]) -> None:
    """Refuse sites whose records are not those of the first site."""
    counts = {site: len(next(iter(file.columns.values()))) for site, file in held.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{site} {count}" for site, count in counts.items())
        raise DataError(f"the sites hold different numbers of records: {shown}; {ALIGN}")
    first = next(iter(held))
    for site, file in held.items():
        if file.ids is not None:
            _check_same_ids(first, held[first].ids, site, file.ids)


def _check_same_ids(first: str, expected: TextColumn | None, site: str, ids: TextColumn) -> None:
    """Refuse a site without records of the first; the message shows no identifier."""
    absent = set(expected.texts if expected is not None else ()) - set(ids.texts)
    if expected is not None and absent:
        place = next(i for i, text in enumerate(expected.texts) if text in absent)
        record = int(np.argmax(expected.places == place)) + 1
        others = f" and {len(absent) - 1} more are" if len(absent) > 1 else " is"
        raise DataError(
            f"the sites hold different records: record {record} of {first}{others} not at {site}; "
            f"{ALIGN}"
        )
