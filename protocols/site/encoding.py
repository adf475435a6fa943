"""From a column of text to a variable and its codes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.errors import DataError
from protocols.site.binning import bin_edges, bin_names, bin_of, edges_of
from protocols.site.text import TextColumn
from protocols.variables import Variable

MOST_DIGITS = 300  # of a number; longer ones are text
FEW_WORDS = 3  # that may stand among numbers by mistake
MOST_NUMBERS = 16  # more distinct numbers than these are binned


class Advice(NamedTuple):
    """What errors about a column advise, in the words of where its encoding is said.

    ``{name}`` stands for the column, ``{text}`` for a value; the defaults are the command line's.
    """

    leave_out: str = "leave it out with --exclude {name}"
    more_states: str = "raise --max-states"
    identifies: str = "name it with --id-column, else leave it out with --exclude"
    missing: str = "name it with --missing-codes {text}"
    word: str = "name it with --missing-codes if it says missing, or the column with --categorical"


COMMAND_LINE = Advice()


@dataclass(frozen=True)
class Encoding:
    """How a site encodes its columns.

    Parameters
    ----------
    missing_codes : collection of str
        What says that a value is missing, beside the empty text.
    states : mapping of str to sequence of str
        Declared states, in order, of some columns; the others' are found.
    categorical : collection of str
        Columns whose numbers are names: never binned.
    bins : float, default=0.1
        The smallest share of the records in a bin of a numeric column.
    most_states : int, default=100
    advice : Advice
        What errors about its columns advise.

    Raises
    ------
    ValueError, TypeError
        If a number is out of range, or the missing codes are one text.
    """

    missing_codes: Collection[str] = ()
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    categorical: Collection[str] = ()
    bins: float = 0.1
    most_states: int = 100
    advice: Advice = COMMAND_LINE

    def __post_init__(self) -> None:
        if isinstance(self.missing_codes, str) or isinstance(self.categorical, str):
            raise TypeError("missing_codes and categorical are collections of texts, not one text")
        if not 0 < self.bins <= 0.5:
            raise ValueError(
                f"bins of {self.bins} of the records: more than 0, at most 0.5 is wanted"
            )
        if not 2 <= self.most_states <= 65_000:
            raise ValueError(f"at most {self.most_states} states: from 2 to 65000 is wanted")


class Encoded(NamedTuple):
    """A variable, and for each record its code: shape (n,), dtype uint8 or uint16.

    The code is ``len(states)`` where the value is missing.
    """

    variable: Variable
    codes: NDArray[np.unsignedinteger]


def encode(source: str, name: str, column: TextColumn, encoding: Encoding) -> Encoded:
    """Encode a column.

    Without declared states, text and up to 16 distinct numbers are their own states (numbers in
    their order, text in that of its characters); more numbers are binned.

    Raises
    ------
    DataError
        If it has no values, one state, more states than allowed, an undeclared state, or is an
        identifier: it names the source, the column and, where one is at fault, the record.
    """
    where = f"{source}: the column {name!r}"
    leave_out = encoding.advice.leave_out.format(name=name)
    used = np.bincount(column.places, minlength=len(column.texts))
    texts = [
        text
        for text, count in zip(column.texts, used, strict=True)
        if count and not is_missing(text, encoding)
    ]
    if not texts:
        raise DataError(f"{where} has no values; {leave_out}")
    if name in encoding.states:
        states = tuple(encoding.states[name])
        code_of = _declared(where, column, texts, encoding, states)
    else:
        _check_found(where, name, column, texts, encoding)
        states, code_of = _found(name, column, texts, used, encoding)
    if len(states) < 2 and name not in encoding.states and len(texts) > MOST_NUMBERS:
        raise DataError(
            f"{where} has {len(texts)} numbers on too few records for two bins; {leave_out}"
        )
    if len(states) < 2:
        raise DataError(f"{where} has one state, {states[0]!r}; {leave_out}")
    if len(states) > encoding.most_states:
        raise DataError(
            f"{where} has {len(states)} states, at most {encoding.most_states} are allowed; "
            f"{encoding.advice.more_states}, or {leave_out}"
        )
    return _codes(name, column, states, code_of)


def encode_known(source: str, name: str, column: TextColumn, encoding: Encoding) -> Encoded:
    """Encode a column in declared states; numbers find their bins if the states are bins.

    Raises
    ------
    DataError
        If a value is none of the states: it names the source, the column and the record.
    """
    states = tuple(encoding.states[name])
    edges = edges_of(states)
    known = {state: code for code, state in enumerate(states)}
    code_of: dict[str, int] = {}
    texts = [t for t in column.texts if t in known or not is_missing(t, encoding)]
    for text in texts:
        value = number(text) if edges is not None else None
        if text in known:
            code_of[text] = known[text]
        elif value is not None and edges is not None:
            code_of[text] = bin_of(value, edges)
    unknown = next((text for text in texts if text not in code_of), None)
    if unknown is not None:
        raise _none_of(f"{source}: the column {name!r}", column, unknown, states, encoding)
    return _codes(name, column, states, code_of)


def is_missing(text: str, encoding: Encoding) -> bool:
    """Whether a text says that the value is missing."""
    return not text.strip() or text in encoding.missing_codes


def number(text: str) -> Decimal | None:
    """Return the number that a text is, None if it is none."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    sensible = value.is_finite() and abs(value.adjusted()) <= MOST_DIGITS
    return value if sensible and len(value.as_tuple().digits) <= MOST_DIGITS else None


def _declared(
    where: str,
    column: TextColumn,
    texts: Sequence[str],
    encoding: Encoding,
    states: tuple[str, ...],
) -> dict[str, int]:
    code_of = {state: code for code, state in enumerate(states)}
    if len(code_of) < len(states):
        raise DataError(f"{where} has a declared state twice")
    for text in texts:
        if text not in code_of:
            raise _none_of(where, column, text, states, encoding)
    return {text: code_of[text] for text in texts}


def _none_of(
    where: str, column: TextColumn, text: str, states: Sequence[str], encoding: Encoding
) -> DataError:
    """Return the error about a value that is none of the states: it names its first record."""
    places = np.flatnonzero(column.places == column.texts.index(text))
    return DataError(
        f"{where}, record {places[0] + 1}: {text!r} is none of its states, {', '.join(states)} "
        f"({len(places)} such records); if it says missing, "
        + encoding.advice.missing.format(text=text)
    )


def _check_found(
    where: str, name: str, column: TextColumn, texts: Sequence[str], encoding: Encoding
) -> None:
    """Refuse identifiers, and numbers in which a few texts stand.

    Such a text is mostly a code for missing; as a state it would turn each number into one.
    """
    numbers = {text: number(text) for text in texts}
    values = {value for value in numbers.values() if value is not None}
    words = [text for text, value in numbers.items() if value is None]
    different = len(texts) if words else len(values)
    fractions = not words and any(value != value.to_integral_value() for value in values)
    if different == len(column) > 2 and not fractions:
        raise DataError(
            f"{where} is different in every record: if it identifies records, "
            + encoding.advice.identifies
        )
    categorical = name in encoding.categorical
    if 0 < len(words) <= FEW_WORDS and len(values) > MOST_NUMBERS and not categorical:
        records = int((column.places == column.texts.index(words[0])).sum())
        first = int(np.argmax(column.places == column.texts.index(words[0]))) + 1
        raise DataError(
            f"{where} has numbers but for {words[0]!r} ({records} records, first {first}): "
            + encoding.advice.word
        )


def _found(
    name: str,
    column: TextColumn,
    texts: Sequence[str],
    used: NDArray[np.integer],
    encoding: Encoding,
) -> tuple[tuple[str, ...], dict[str, int]]:
    numbers = {text: number(text) for text in texts}
    values = {value for value in numbers.values() if value is not None}
    if None in numbers.values():
        order = sorted(texts)
        return tuple(order), {text: code for code, text in enumerate(order)}
    if len(values) > MOST_NUMBERS and name not in encoding.categorical:
        counts = dict(zip(column.texts, used.tolist(), strict=True))
        return _binned(counts, numbers, encoding.bins)
    return _by_number({text: value for text, value in numbers.items() if value is not None})


def _by_number(numbers: Mapping[str, Decimal]) -> tuple[tuple[str, ...], dict[str, int]]:
    """Give each number a state, named by its first text: ``1`` and ``1.0`` are one."""
    first: dict[Decimal, str] = {}
    for text, value in numbers.items():
        first.setdefault(value, text)
    place = {value: code for code, value in enumerate(sorted(first))}
    states = tuple(first[value] for value in place)
    return states, {text: place[value] for text, value in numbers.items()}


def _binned(
    counts: Mapping[str, int], numbers: Mapping[str, Decimal | None], share: float
) -> tuple[tuple[str, ...], dict[str, int]]:
    records: dict[Decimal, int] = {}
    known = {text: value for text, value in numbers.items() if value is not None}
    for text, value in known.items():
        records[value] = records.get(value, 0) + counts[text]
    values = sorted(records)
    edges = bin_edges(values, [records[value] for value in values], share)
    return bin_names(edges), {text: bin_of(value, edges) for text, value in known.items()}


def _codes(
    name: str, column: TextColumn, states: tuple[str, ...], code_of: Mapping[str, int]
) -> Encoded:
    dtype = np.uint8 if len(states) < 256 else np.uint16
    table = np.array([code_of.get(text, len(states)) for text in column.texts], dtype)
    codes = table[column.places]
    missing = bool((codes == len(states)).any())
    return Encoded(Variable(name, states, missing), codes)
