"""Records in the states of known variables, for prediction and validation.

If a file were encoded by itself, it could have other states, or the same states in another order,
and its codes would have another meaning in a network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vertibayes.data_dictionary import NO_DICTIONARY, Dictionary
from vertibayes.model import Model, has_missing_state
from vertibayes.words import counted
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.dialect import Dialect
from vertibayes_protocols.site.encoded import Nearest, Unseen, encode_known, read_known_numbers
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.frame import columns_of
from vertibayes_protocols.site.sources.reading import read_table
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.site.text import RECOGNIZED
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable

MOST_LISTED = 10  # names in a message
MOST_VALUES = 3  # values of a column in a message
REMEDY = " (specify codes for missing values with --missing-codes)"

if TYPE_CHECKING:
    from pandas import DataFrame


class Records(NamedTuple):
    """The records of a file, in the states of known variables."""

    data: SiteData  # the records
    absent: tuple[str, ...]  # the variables for which the file has no column
    unknown: tuple[str, ...]  # the columns that are not variables
    unseen: tuple[Unseen, ...] = ()  # the values that are not one of their variable's states
    ids: TextColumn | None = None  # the identifiers, if the caller named their column
    nearest: tuple[Nearest, ...] = ()  # the numbers that count as the nearest state
    unused: str | None = None  # the target, if the file has a column with its name

    def warnings(self, source: object) -> list[str]:
        """Return warnings about a column of the target, absent columns and unseen values."""
        warnings = []
        if self.unused is not None:
            warnings.append(f"{source} has a column of the target, {self.unused}: it is not used")
        if self.absent:
            absent = (
                f"{source} has no column {_listed(self.absent)}: taken as missing in all records"
            )
            other = f"; it has {_listed(self.unknown)}, which the model does not know"
            warnings.append(absent + (other if self.unknown else ""))
        return warnings + self.warnings_of_values(source, REMEDY)

    def complete(self, schema: Schema) -> LocalData:
        """Return the class and the features of all records; a missing column is missing values."""
        records, codes, numbers = self.data.records, self.data.codes, self.data.numbers
        unknown = {n: np.full(records, len(v.states)) for n, v in schema.variables.items()}
        gone = {name: np.full(records, np.nan) for name in schema.numerics}
        return LocalData(schema.variables, unknown | {**codes}, schema.numerics, gone | {**numbers})

    def warnings_of_values(self, source: object, remedy: str = "") -> list[str]:
        """Return warnings about unseen values, by column."""
        has = f"{source} has %s that the model does not know, taken as %s: "
        columns = dict.fromkeys(value.column for value in self.unseen)
        unseen = _listed(map(self._unseen_of, columns), "; ")
        counts = ((v, counted(v.records, "record")) for v in self.nearest)
        nearest = _listed(f"{v.column}: {v.text!r} as {v.state!r} ({n})" for v, n in counts)
        return [
            *([has % ("values", "missing") + unseen + remedy] if self.unseen else []),
            *([has % ("numbers", "the nearest state") + nearest] if self.nearest else []),
        ]

    def _unseen_of(self, name: str) -> str:
        """Return a column's unseen values as text, the most frequent first."""
        values = sorted((v for v in self.unseen if v.column == name), key=lambda v: -v.records)
        shown = [f"{v.text!r} ({counted(v.records, 'record')})" for v in values[:MOST_VALUES]]
        rest = values[MOST_VALUES:]
        if rest:
            records = counted(sum(v.records for v in rest), "record")
            shown.append(f"{counted(len(rest), 'other value')} ({records})")
        variable = self.data.variables.get(name)
        if variable is None:
            shown.append("expected numbers")
        elif (self.data.codes[name] == len(variable.states)).all():
            shown.append(f"no record has one of its states, {_listed(variable.states)}")
        return f"{name}: {', '.join(shown)}"


def read_records(
    path: Path,
    variables: Mapping[str, Variable],
    *,
    missing_codes: Collection[str] = (),
    missing_state: bool = False,
    target: str | None = None,
    id_column: str | None = None,
    numerics: Mapping[str, Numeric] | None = None,
    ignore_case: Collection[str] = (),
    dialect: Dialect = RECOGNIZED,
    dictionary: Dictionary = NO_DICTIONARY,
) -> Records:
    """Read a file's columns in the states of variables.

    A value that is not one of its variable's states is missing, and is listed in `Records.unseen`.

    Parameters
    ----------
    path : Path
        A CSV file, which may be compressed, or Parquet; columns that are not variables are ignored.
    variables : mapping of str to Variable
        The variables, by name.
    missing_codes : collection of str
        The texts that stand for a missing value, beside the empty field.
    missing_state : bool, default=False
        Whether a last state "missing" is that of missing values, as in networks learned with
        ``missing="state"``.
    target : str, optional
        A variable whose column is ignored.
    id_column : str, optional
        The column of identifiers, which are kept unchanged.
    numerics : mapping of str to Numeric, optional
        The columns that stay numbers, by name.
    ignore_case : collection of str
        The columns in which a text that differs from a state only in case is this state.
    dialect : Dialect
        How a CSV file is written; what it does not say is recognized.
    dictionary : Dictionary
        Which texts become others, such as the year of a date.

    Returns
    -------
    records : Records
        The columns in the states of the variables, and the values that are not one of them.

    Raises
    ------
    DataError
        If the file cannot be read, or has no column of identifiers, no column of a variable, or no
        value that is one of its variable's states.
    """
    numerics = numerics or {}
    # Outer spaces of names and states must be kept in the file too.
    texts = (text for name, v in variables.items() for text in (name, *v.states))
    columns = read_table(
        path, keep_spaces=any(text != text.strip() for text in texts), dialect=dialect
    )
    columns = dictionary.prepared(columns)
    ids = None
    if id_column is not None:
        if id_column in {**variables, **numerics}:
            raise DataError(f"--id-column {id_column}: it is a variable of the model")
        if id_column not in columns:
            raise DataError(f"--id-column {id_column}: not found; {path} has {_listed(columns)}")
        ids = columns.pop(id_column)
    appended = {name for name in variables if missing_state and has_missing_state(variables[name])}
    how = Encoding(missing_codes, ignore_case=ignore_case)
    records = _encode(str(path), columns, variables, how, appended, target, numerics)
    return records._replace(ids=ids)


def read_frame(frame: DataFrame, network: Model, target: str | None = None) -> Records:
    """Read a data frame's columns in the states of a network's variables."""
    names = [str(name) for name in frame.columns]
    if not (set(names) - {target}) & set(network.variables):
        raise _none_of_the_variables("the data frame", names, network.variables, target)
    places = [place for place, name in enumerate(names) if name in network.variables]
    columns = columns_of("data frame", frame.iloc[:, places]).columns
    return _encode(
        "data frame", columns, network.variables, Encoding(), network.missing_states, target
    )


def _encode(
    source: str,
    columns: dict[str, TextColumn],
    variables: Mapping[str, Variable],
    how: Encoding,
    missing_states: Collection[str],
    target: str | None,
    numerics: Mapping[str, Numeric] = MappingProxyType({}),
) -> Records:
    others = [name for name in (*variables, *numerics) if name != target]
    names = [name for name in columns if name in others and name not in numerics]
    numbered = {name: numeric for name, numeric in numerics.items() if name in columns}
    if not names and not numbered:
        raise _none_of_the_variables(source, columns, [*variables, *numerics], target)
    states = {
        name: variables[name].states[: -1 if name in missing_states else None] for name in names
    }
    how, unknown = replace(how, states=states), list[Unseen | Nearest]()
    codes = {name: encode_known(source, name, columns[name], how, unknown).codes for name in names}
    numbers = {name: read_known_numbers(name, columns[name], how, unknown) for name in numbered}
    unseen = [value for value in unknown if isinstance(value, Unseen)]
    known = any((codes[name] < len(states[name])).any() for name in names)
    if unseen and not known and all(np.isnan(values).all() for values in numbers.values()):
        raise DataError(
            f"{source} has no value that the model knows: {unseen[0].column} has "
            f"{unseen[0].text!r}; the model has "
            f"{_listed(states.get(unseen[0].column, ['numbers']))}"
        )
    coded = {name: Variable(name, states[name], missing=True) for name in names}
    return Records(
        SiteData(coded, codes, numerics=numbered, numbers=numbers),
        absent=tuple(name for name in others if name not in columns),
        unknown=tuple(name for name in columns if name not in {*variables, *numerics}),
        unseen=tuple(unseen),
        nearest=tuple(value for value in unknown if isinstance(value, Nearest)),
        unused=target if target in columns else None,
    )


def _none_of_the_variables(
    source: str, columns: Collection[str], variables: Collection[str], target: str | None
) -> DataError:
    beside = " other than the target" if target in columns and target in variables else ""
    return DataError(
        f"{source} has no column of the model's variables{beside}: it has {_listed(columns)}; the "
        f"model has {_listed(variables)}"
    )


def _listed(names: Iterable[str], separator: str = ", ") -> str:
    """Return a list of names; of many names, the first few."""
    names = list(names)
    more = f"{separator}and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return separator.join(names[:MOST_LISTED]).replace("\n", " ") + more
