"""Records in the states of variables that are known already: to predict and to validate.

A file coded by itself finds other states, or the same ones in another order; its codes would mean
other things to a network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from protocols.errors import DataError
from protocols.site.data import SiteData
from protocols.site.encoding import Encoding, Unseen, encode_known
from protocols.site.frame import columns_of
from protocols.site.text import TextColumn, read_columns
from protocols.variables import Variable
from vertibayes.network import Network
from vertibayes.parameters.cpt import has_missing_state
from vertibayes.report.words import counted

MOST_LISTED = 10  # names in a message
MOST_VALUES = 3  # of a column in a message
MEND = " (codes for missing: name them with --missing-codes)"

if TYPE_CHECKING:
    from pandas import DataFrame


class Records(NamedTuple):
    """What a file has of some variables.

    Parameters
    ----------
    data : SiteData
    lacking : tuple of str
        The variables that the file has no column of.
    unknown : tuple of str
        The columns that are none of the variables.
    unseen : tuple of Unseen
        The values that are none of their variable's states; they are missing in `data`.
    ids : TextColumn, optional
        The identifiers, if a column of them was named.
    unused : str, optional
        The target, if the file has a column of it.
    """

    data: SiteData
    lacking: tuple[str, ...]
    unknown: tuple[str, ...]
    unseen: tuple[Unseen, ...] = ()
    ids: TextColumn | None = None
    unused: str | None = None

    def doubts(self, source: object) -> list[str]:
        """Return warnings: a column of the target, missing ones (maybe typos), unseen values."""
        found = []
        if self.unused is not None:
            found.append(f"{source} has a column of the target, {self.unused}: it is not used")
        if self.lacking:
            doubt = (
                f"{source} has no column {_listed(self.lacking)}: taken as missing in all records"
            )
            other = f"; it has {_listed(self.unknown)}, which the model does not know"
            found.append(doubt + (other if self.unknown else ""))
        if self.unseen:
            found.append(self.doubt_of_values(source) + MEND)
        return found

    def doubt_of_values(self, source: object) -> str:
        """Return a warning of unseen values, a column after the other."""
        columns = dict.fromkeys(value.column for value in self.unseen)
        return (
            f"{source} has values that the model does not know, taken as missing: "
            f"{_listed(map(self._unseen_of, columns), '; ')}"
        )

    def _unseen_of(self, name: str) -> str:
        """Return a column's unseen values in words, the most frequent first."""
        values = sorted((v for v in self.unseen if v.column == name), key=lambda v: -v.records)
        shown = [f"{v.text!r} ({counted(v.records, 'record')})" for v in values[:MOST_VALUES]]
        rest = values[MOST_VALUES:]
        if rest:
            records = counted(sum(v.records for v in rest), "record")
            shown.append(f"{counted(len(rest), 'other value')} ({records})")
        variable = self.data.variables[name]
        if (self.data.codes[name] == len(variable.states)).all():
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
) -> Records:
    """Read a file's columns in the states of variables.

    A value that is none of its variable's states is missing, and `Records.unseen` has it.

    Parameters
    ----------
    path : Path
        A CSV file, maybe compressed; columns that are no variable are not looked at.
    variables : mapping of str to Variable
        ``network.variables``, for a network.
    missing_codes : collection of str
        What says that a value is missing, beside the empty field.
    missing_state : bool, default=False
        Whether the variables' last state "missing", where they have one, is that of the missing
        cells, as networks learned with ``missing="state"`` have it.
    target : str, optional
        A variable that is not looked at.
    id_column : str, optional
        A column of identifiers, to be kept as they are.

    Returns
    -------
    records : Records

    Raises
    ------
    DataError
        If the file cannot be read, has no column of identifiers, none of the variables, or no value
        of any variable that is one of its states: it names the file.
    """
    columns = read_columns(path, keep_spaces=_have_spaces(variables))
    ids = _taken(path, columns, variables, id_column)
    appended = {name for name in variables if missing_state and has_missing_state(variables[name])}
    found = _encode(str(path), columns, variables, missing_codes, appended, target)
    return found._replace(ids=ids)


def read_frame(frame: DataFrame, network: Network, target: str | None = None) -> Records:
    """Read a data frame's columns in the states of a network's variables.

    Parameters
    ----------
    frame : DataFrame
        Columns that are no variable are ignored.
    network : Network
        The last states of its ``missing_states`` are those of missing values.
    target : str, optional
        A variable that is ignored.

    Raises
    ------
    DataError
        As `read_records`; also as `protocols.site.frame.columns_of`.
    """
    names = [str(name) for name in frame.columns]
    if not (set(names) - {target}) & set(network.variables):
        raise _none_of_the_variables("the data frame", names, network.variables, target)
    places = [place for place, name in enumerate(names) if name in network.variables]
    columns = columns_of("data frame", frame.iloc[:, places]).columns
    return _encode("data frame", columns, network.variables, (), network.missing_states, target)


def _encode(
    source: str,
    columns: dict[str, TextColumn],
    variables: Mapping[str, Variable],
    missing_codes: Collection[str],
    missing_states: Collection[str],
    target: str | None,
) -> Records:
    others = {name: variable for name, variable in variables.items() if name != target}
    names = [name for name in columns if name in others]
    if not names:
        raise _none_of_the_variables(source, columns, variables, target)
    states = {
        name: variables[name].states[: -1 if name in missing_states else None] for name in names
    }
    how, unseen = Encoding(missing_codes, states), list[Unseen]()
    codes = {name: encode_known(source, name, columns[name], how, unseen).codes for name in names}
    if unseen and all((codes[name] == len(states[name])).all() for name in names):
        raise DataError(
            f"{source} has no value that the model knows: {unseen[0].column} has "
            f"{unseen[0].text!r}; the model has {_listed(states[unseen[0].column])}"
        )
    known = {name: Variable(name, states[name], missing=True) for name in names}
    return Records(
        SiteData(known, codes),
        lacking=tuple(name for name in others if name not in columns),
        unknown=tuple(name for name in columns if name not in variables),
        unseen=tuple(unseen),
        unused=target if target in columns else None,
    )


def _taken(
    path: Path,
    columns: dict[str, TextColumn],
    variables: Collection[str],
    id_column: str | None,
) -> TextColumn | None:
    """Take the identifiers out of a file's columns."""
    if id_column is None:
        return None
    if id_column in variables:
        raise DataError(f"--id-column {id_column}: a variable of the model, not an identifier")
    if id_column not in columns:
        raise DataError(f"--id-column {id_column}: {path} has {_listed(columns)}")
    return columns.pop(id_column)


def _none_of_the_variables(
    source: str, columns: Collection[str], variables: Collection[str], target: str | None
) -> DataError:
    beside = " other than the target" if target in columns and target in variables else ""
    return DataError(
        f"{source} has no column of the model's variables{beside}: it has {_listed(columns)}; the "
        f"model has {_listed(variables)}"
    )


def _have_spaces(variables: Mapping[str, Variable]) -> bool:
    """Whether names or states have outer spaces, so that those of a file are not trimmed."""
    texts = (text for name, v in variables.items() for text in (name, *v.states))
    return any(text != text.strip() for text in texts)


def _listed(names: Iterable[str], separator: str = ", ") -> str:
    """Return names, the first few of many."""
    names = list(names)
    more = f"{separator}and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return separator.join(names[:MOST_LISTED]) + more
