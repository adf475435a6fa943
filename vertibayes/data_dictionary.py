"""A data dictionary: how the columns of a table become variables, as a JSON file.

`draft` proposes one from a table, for a person to edit; `read_dictionary` reads it again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from vertibayes.json_content import is_names, read_json
from vertibayes_protocols.site import inspection
from vertibayes_protocols.site.drafting import draft, identifies
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.numerals import read_numbers
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import is_printable

SHORT = 1  # letters of an abbreviation
EXPECTED = (
    "states, cut, missing_codes, categorical, merge ({text: state}), year, exclude and note are "
    "what a column may have"
)


@dataclass(frozen=True)
class Column:
    """How one column becomes a variable."""

    year: bool = False  # dates become their years
    merge: Mapping[str, str] = field(default_factory=dict)  # texts, and the texts that they become
    missing_codes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()  # in their order
    cut: tuple[float, ...] = ()  # edges of bins
    categorical: bool = False
    exclude: bool = False
    note: tuple[str, ...] = ()  # what a person must decide; nothing follows from it

    def text(self, given: str) -> str:
        """Return what a text becomes."""
        year = inspection.year_of(given) if self.year else None
        return self.merge.get(given, given) if year is None else year

    def prepared(self, column: TextColumn) -> TextColumn:
        """Return the column with years in place of dates, and merged texts."""
        if not self.year and not self.merge:
            return column
        return column.changed(self.text)

    def as_json(self) -> dict[str, Any]:
        """Return what is not the default."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name))}


@dataclass(frozen=True)
class Dictionary:
    """How the columns of a table become variables."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    id_column: str | None = None

    @property
    def missing_codes(self) -> tuple[str, ...]:
        """The codes for missing values, as options have them: COLUMN=CODE."""
        return tuple(f"{n}={code}" for n, c in self.columns.items() for code in c.missing_codes)

    def prepared(self, columns: Mapping[str, TextColumn]) -> dict[str, TextColumn]:
        """Return columns with years in place of dates, and merged texts."""
        known = self.columns
        return {n: known[n].prepared(c) if n in known else c for n, c in columns.items()}


NO_DICTIONARY = Dictionary()


def read_dictionary(path: Path) -> Dictionary:
    """Read a data dictionary; refuse what is not one."""
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("columns"), dict):
        raise ValueError(f'{path}: not a data dictionary; expected {{"columns": {{...}}}}')
    id_column = content.get("id_column")
    if id_column is not None and not isinstance(id_column, str):
        raise ValueError(f"{path}: id_column must be the name of a column")
    columns = {name: _column(path, name, of) for name, of in content["columns"].items()}
    return Dictionary(columns, id_column)


def _column(path: Path, name: str, content: Any) -> Column:
    good = {
        **dict.fromkeys(("states", "missing_codes", "note"), is_names),
        **dict.fromkeys(("year", "categorical", "exclude"), lambda one: isinstance(one, bool)),
        "merge": lambda one: isinstance(one, dict) and is_names([*one.values()]),
        "cut": lambda one: isinstance(one, list) and all(map(_is_number, one)),
    }
    if not isinstance(content, dict) or content.keys() - good.keys():
        raise ValueError(f"{path}: the column {name!r} has other entries: {EXPECTED}")
    for key, value in content.items():
        if not good[key](value):
            raise ValueError(f"{path}: the column {name!r}: {key} cannot be {value!r}: {EXPECTED}")
    own: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    return Column(**own)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ---- drafts --------------------------------------------------------------------------------------


def draft_dictionary(columns: Mapping[str, TextColumn], keep_na: bool = False) -> Dictionary:
    """Draft a data dictionary from a table."""
    keys = next((name for name, column in columns.items() if identifies(column)), None)
    how = Encoding(keep_na=keep_na)
    drafts = {name: _drafted(name, c, how) for name, c in columns.items() if name != keys}
    return Dictionary(drafts, keys)


def _drafted(name: str, column: TextColumn, how: Encoding) -> Column:
    used = np.bincount(column.places, minlength=len(column.texts)).tolist()
    counts = {
        text: count
        for text, count in zip(column.texts, used, strict=True)
        if count and not how.says_missing(text, name)
    }
    codes = tuple(_codes(counts))
    known = {text: count for text, count in counts.items() if text not in codes}
    year = inspection.are_dates(known)
    found = Column(year=year, merge={} if year else _merges(known), missing_codes=codes)
    drafted = draft(name, found.prepared(column), replace(how, missing_codes=codes))
    if drafted.left_out is not None:
        return replace(found, exclude=True, note=(drafted.left_out.what,))
    states, cut = (drafted.spec.get(way, ()) for way in ("states", "cut"))
    notes = tuple(finding.what for finding in drafted.findings)
    edges = tuple(int(edge) if edge == int(edge) else float(edge) for edge in map(Decimal, cut))
    return replace(found, states=tuple(map(str, states)), cut=edges, note=notes)


def _codes(counts: Mapping[str, int]) -> Iterator[str]:
    """Return the texts that may say missing."""
    numbers = read_numbers(counts)
    among = bool(numbers.values) and len(numbers.words) <= inspection.FEW_WORDS
    yield from (t for t in counts if inspection.says_missing(t, among_numbers=among))
    if among:
        records = Counter[Decimal]()
        for text, value in numbers.values.items():
            records[value] += counts[text]
        values = sorted(records)
        odd = inspection.codes_among(values, [records[value] for value in values])
        apart = {values[place] for place in odd}
        yield from (text for text, value in numbers.values.items() if value in apart)


def _merges(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the texts that differ in case, or abbreviate one other text, and what they become."""
    merges = {t: group[0] for group in inspection.spellings(counts) for t in group[1:]}
    whole = [text for text in counts if text not in merges]
    for text in whole:
        short = text.rstrip(".").casefold()
        longer = [t for t in whole if t.casefold().startswith(short) and len(t.rstrip(".")) > SHORT]
        if len(short) == SHORT and short.isalpha() and len(longer) == 1:
            merges[text] = longer[0]
    return {text: merges.get(state, state) for text, state in merges.items()}


def as_text(dictionary: Dictionary) -> str:
    """Return a data dictionary as JSON, with a line for each column."""

    def shown(value: Any) -> str:
        text = json.dumps(value, ensure_ascii=False)
        return "".join(c if is_printable(c) else f"\\u{ord(c):04x}" for c in text)

    lines = [f"    {shown(n)}: {shown(c.as_json())}" for n, c in dictionary.columns.items()]
    columns = ",\n".join(lines)
    keys = f'  "id_column": {shown(dictionary.id_column)},\n' if dictionary.id_column else ""
    return f'{{\n{keys}  "columns": {{\n{columns}\n  }}\n}}\n'
