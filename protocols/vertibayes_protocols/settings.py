"""Settings: what the command line and a configuration file take under one name, declared once.

`vertibayes.cli.options` makes options of them and `vertibayes_protocols.deployment.tables` reads
them from TOML. Both call `Setting.checked`, so that a value is refused for the same reason
everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

Binning: TypeAlias = Literal["equal-frequency", "equal-width", "intervals"]
CountBy: TypeAlias = Literal["masked-tables", "scalar-product", "paillier"]
MASKED_TABLES: Final = "masked-tables"  # by which all but tables is asked: choices, releases
PAILLIER: Final = "paillier"  # without a dealer
Kind: TypeAlias = Literal[
    "text", "texts", "repeated", "flag", "whole", "number", "edges", "bounds", "path", "size",
    "seconds", "names or file", "pairs", "columns", "sizes", "list", "any path",
    "folder", "new file", "bins",
]  # fmt: skip

REQUIRED: Final = object()  # the default of a setting that must be given
BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
LISTS: Final = ("columns", "list", "texts", "repeated", "edges", "names or file", "pairs")


def _is_text(value: Any) -> bool:
    return isinstance(value, str | Path) and bool(str(value).strip())


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(of, value))


def _is_texts(value: Any) -> bool:
    return _is_list(value, lambda text: isinstance(text, str)) and len(set(value)) == len(value)


def _is_edges(value: Any) -> bool:
    return _is_list(value, _is_number) and all(low < high for low, high in pairwise(value))


def _is_bounds(value: Any) -> bool:
    return _is_edges(value) and len(value) == 2


def _is_columns(value: Any) -> bool:
    return _is_text(value) or (_is_texts(value) and bool(value))


def _is_sizes(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_whole(size) and size > 0 for size in value.values())


def _is_pairs(value: Any) -> bool:
    return _is_list(value, lambda pair: _is_texts(pair) and len(pair) == 2)


BINS_FORM = "a share of the records, above 0 and at most 0.5, or a number of bins, as 10"


def is_bins(value: Any) -> bool:
    """Whether a value says how many bins a column has."""
    return _is_number(value) and (0 < value <= 0.5 or (value >= 2 and float(value).is_integer()))


KINDS: dict[Kind, tuple[str, Callable[[Any], bool]]] = {  # what a value must be, and whether it is
    "text": ("a text that is not empty", _is_text),
    "texts": ("a list of different texts", _is_texts),
    "repeated": ("a list of different texts", _is_texts),
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "whole": ("a whole number", _is_whole),
    "number": ("a number", _is_number),
    "bins": (BINS_FORM, is_bins),
    "edges": ("a list of ascending numbers", _is_edges),
    "bounds": ("two ascending numbers, as [0, 120]", _is_bounds),
    "pairs": ('a list of pairs of different names, as [["a", "b"]]', _is_pairs),
    "columns": ("a text that is not empty, or a list of different texts", _is_columns),
    "list": ("a list of texts", lambda value: _is_list(value, _is_text)),
    "sizes": ("a number above 0 for each site, as { a = 1_000 }", _is_sizes),
    "path": ("the path of a file", _is_text),
    "any path": ("the path of a file or folder", _is_text),
    "new file": ("the path of a new file", _is_text),
    "folder": ("the path of a new or empty folder", _is_text),
    "size": ("an amount of memory, as 512MiB", _is_whole),
    "seconds": ('a span of time, as 90 (seconds) or "10 min"', _is_number),
    "names or file": (
        "a list of different names, or the path of a JSON file with one",
        lambda value: _is_texts(value) or _is_text(value),
    ),
}


@dataclass(frozen=True)
class Setting:
    """One setting."""

    name: str  # its key in a configuration file
    kind: Kind  # what its values are
    help: str = ""  # of an option, one sentence: what the setting does, with its unit
    default: Any = None  # its value if it is not given; `REQUIRED` if it must be given
    # The bounds of a number, or of how many items a list has.
    least: float | None = None
    most: float | None = None
    # The bounds of a number that are not values themselves.
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()  # that are accepted, as values or items of a list; all if ()
    old: str = ""  # its name before: a file that has it is refused with the new one
    shown: str = ""  # the form of a value, as help shows it; follows from the kind if empty

    @property
    def option(self) -> str:
        """The name as an option of the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.choices:
            *others, last = self.choices
            among = f"{', '.join(others)} or {last}" if others else last
            return f"a list of {among}" if self.kind == "texts" else among
        return ", ".join(filter(None, (KINDS[self.kind][0], self.limits)))

    @property
    def limits(self) -> str:
        """The bounds of a number or of a list's length, in words; empty without bounds."""
        bounds = [("at least", self.least), ("above", self.above)]
        bounds += [("at most", self.most), ("below", self.below)]
        limits = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return f"{limits} of them" if limits and self.kind in LISTS else limits

    def checked(self, value: Any) -> Any:
        """Return a value as the program uses it; None stands for a setting that is not given."""
        if value is None and self.default is None:
            return None
        if self.kind == "size" and isinstance(value, str):
            value = parse_size(value)
        if self.kind == "seconds" and isinstance(value, str):
            value = parse_seconds(value)
        if not KINDS[self.kind][1](value) or not self.accepts(value):
            raise ValueError(f"must be {self.expected}, got {_shown(value)}")
        if self.kind == "edges":
            return tuple(Decimal(str(edge)) for edge in value)
        if self.kind == "columns" and isinstance(value, str):
            return (value,)
        if self.kind in ("number", "seconds", "bins"):
            return float(value)
        if self.kind == "bounds":
            return tuple(map(float, value))
        if self.kind == "pairs":
            return tuple(map(tuple, value))
        return tuple(value) if isinstance(value, list) else value

    def accepts(self, value: Any) -> bool:
        """Whether a value of the kind is within the bounds, and one of the choices."""
        items = value if isinstance(value, list | tuple) else [value]
        size: Any = value if isinstance(value, Real) else len(items)
        return (
            (not self.choices or set(items) <= set(self.choices))
            and (self.least is None or size >= self.least)
            and (self.above is None or size > self.above)
            and (self.most is None or size <= self.most)
            and (self.below is None or size < self.below)
        )


def parse_size(text: str) -> int:
    """Return the number of bytes in a text such as ``512MiB``, ``1.5 GB`` or ``2g``.

    Examples
    --------
    >>> parse_size("512MiB")
    536870912
    """
    units = {name.lower(): float(size) for name, size in BYTES.items()}
    units |= {name[0].lower(): size for name, size in BYTES.items() if name.endswith("iB")}
    size = _in_units(text, units)
    if size is None or size < 1:
        raise ValueError(
            f"{text!r} is not an amount of memory; expected a number and a unit, as 512MiB or 2GB"
        )
    return int(size)


def parse_seconds(text: str) -> float:
    """Return the number of seconds in a text such as ``10 min``, ``90 s`` or ``1.5h``.

    Examples
    --------
    >>> parse_seconds("10 min")
    600.0
    """
    seconds = _in_units(text, SECONDS)
    if seconds is None:
        raise ValueError(
            f"{text!r} is not a span of time; expected a number and a unit, as 30 s, 10 min or 2 h"
        )
    return seconds


def _in_units(text: str, units: dict[str, float]) -> float | None:
    """Return a number times its unit; None if the text has another form or an unknown unit."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = units.get(match[2].lower()) if match else None
    return None if match is None or unit is None else float(match[1]) * unit


def declared(kind: Kind, default: Any = None, **more: Any) -> Any:
    """Return a dataclass's field that a table of a file sets; `settings_of` returns its setting."""
    setting = {"setting": Setting("", kind, "", default, **more)}
    if default is REQUIRED:
        return field(metadata=setting)
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=setting)
    return field(default=default, metadata=setting)


@cache
def settings_of(kind: type) -> tuple[Setting, ...]:
    """Return the settings of the fields that a dataclass has `declared`."""
    known = [(one.name, one.metadata.get("setting")) for one in fields(kind)]
    return tuple(replace(setting, name=name) for name, setting in known if setting)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "an empty list"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


ID_COLUMN = Setting("id_column", "text", "Column that identifies the records: sites match their "
                    "records by it; it is never a variable.", old="record_key")  # fmt: skip
MISSING_CODES = Setting("missing_codes", "texts", "Values that mean missing, beside the empty "
                        "field; COLUMN=CODE is for one column.", (), shown="CODE,...")  # fmt: skip
WRITTEN = (  # how a CSV file is written
    Setting("separator", "text", "Separator of a CSV file's fields; recognized from the file if "
            "not given.", choices=(",", ";", "tab", "|")),
    Setting("decimal", "text", "Sign before the decimals of a CSV file's numbers; with a comma, "
            "points separate thousands. Recognized from the file if not given.",
            choices=(".", ",")),
    Setting("encoding", "text", "Encoding of a CSV file, as cp1252; UTF-8, UTF-16 and unambiguous "
            "cp1252 are recognized if not given."),
)  # fmt: skip
DIALECT = (  # and which of its texts are missing values
    *WRITTEN,
    Setting("keep_na", "flag", "Keep NA, N/A, NaN, NULL, None and the like, which are missing as "
            "in pandas, as states.", False),
)  # fmt: skip
COLUMNS = (  # how the columns of any file become variables
    MISSING_CODES,
    Setting("bins", "bins", "Number of bins of a numeric column or, at most 0.5, the share of the "
            "records in each (of the range, if bins are of equal width): 10 and 0.1 are the same.",
            0.1),
    Setting("binning", "text", "How numeric columns without declared edges are cut into bins; "
            "intervals are of equal frequency, and no value has its own bin.",
            "equal-frequency", choices=get_args(Binning)),
    Setting("max_states", "whole", "Maximum number of states of a variable; columns with more are "
            "left out.", 100, least=2, most=65_000, old="most_states"),
    Setting("keep_spaces", "flag", "Keep spaces around values and column names.", False),
    Setting("strict", "flag", "Refuse data with columns that would be left out; list them all.",
            False),
    *DIALECT,
)  # fmt: skip
COUNT_BY = Setting(
    "count_by", "text", "How tables are counted: from columns that sites mask and send once "
    "(masked-tables), by the published scalar product of n parties (scalar-product), which "
    "sends all records again for each cell, or by Paillier's cryptosystem (paillier), without a "
    "dealer.", MASKED_TABLES, choices=get_args(CountBy),
)  # fmt: skip
RULES = "first", "last", "min", "max", "count", "same"  # how a person's rows become one record
