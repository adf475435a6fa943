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
from protocols.site.encoding import Encoding, encode_known
from protocols.site.frame import columns_of
from protocols.site.text import TextColumn, read_columns
from protocols.variables import Variable
from vertibayes.network import Network
from vertibayes.parameters.cpt import has_missing_state

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
    """

    data: SiteData
    lacking: tuple[str, ...]
    unknown: tuple[str, ...]

    def doubt(self, path: Path) -> str | None:
        """Return a warning if the file lacks a variable: what it has instead may be a typo."""
        if not self.lacking:
            return None
        told = f"{path} has no column {', '.join(self.lacking)}: taken as missing in all records"
        unknown = ", ".join(self.unknown)
        return f"{told}; it has {unknown}, which the model does not know" if unknown else told


def read_records(
    path: Path,
    variables: Mapping[str, Variable],
    *,
    missing_codes: Collection[str] = (),
    missing_state: bool = False,
    target: str | None = None,
) -> Records:
    """Read a file's columns in the states of variables.

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

    Returns
    -------
    records : Records

    Raises
    ------
    DataError
        If the file cannot be read, has none of the variables, or a value that is none of its
        variable's states: it names the file, the column and the record.
    """
    appended = {name for name in variables if missing_state and has_missing_state(variables[name])}
    columns = read_columns(path, keep_spaces=_have_spaces(variables))
    return _encode(str(path), columns, variables, missing_codes, appended, target)


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
        raise _none_of_the_variables("the data frame", names, network.variables)
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
    columns.pop(target or "", None)
    variables = {name: variable for name, variable in variables.items() if name != target}
    names = [name for name in columns if name in variables]
    if not names:
        raise _none_of_the_variables(source, columns, variables)
    states = {
        name: variables[name].states[: -1 if name in missing_states else None] for name in names
    }
    how = Encoding(missing_codes, states)
    codes = {name: encode_known(source, name, columns[name], how).codes for name in names}
    known = {name: Variable(name, states[name], missing=True) for name in names}
    lacking = tuple(name for name in variables if name not in columns)
    unknown = tuple(name for name in columns if name not in variables)
    return Records(SiteData(known, codes), lacking, unknown)


def _none_of_the_variables(
    source: str, columns: Iterable[str], variables: Iterable[str]
) -> DataError:
    return DataError(
        f"{source} has none of the model's variables: it has {', '.join(columns)}, the model "
        f"{', '.join(variables)}"
    )


def _have_spaces(variables: Mapping[str, Variable]) -> bool:
    """Whether names or states have outer spaces, so that those of a file are not trimmed."""
    texts = (text for name, v in variables.items() for text in (name, *v.states))
    return any(text != text.strip() for text in texts)
