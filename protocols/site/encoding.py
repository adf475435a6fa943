"""From a column of text to a variable and its codes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.site.binning import METHODS, bin_of, bins_of
from protocols.site.findings import COMMAND_LINE, Advice, Finding
from protocols.site.numerals import number, read_each
from protocols.site.states import StateFinder
from protocols.site.text import TextColumn
from protocols.variables import Variable


@dataclass(frozen=True)
class Encoding:
    """How a site encodes its columns.

    Parameters
    ----------
    missing_codes : collection of str
        What says that a value is missing, beside the empty text: in all columns, or in one as
        ``COLUMN=CODE``.
    states : mapping of str to sequence of str
        Declared states, in order, of some columns; the others' are found.
    categorical : collection of str
        Columns whose texts are names, numbers and dates too: never binned.
    bins : float, default=0.1
        The share of the records in a bin of a numeric column.
    max_states : int, default=100
    cuts : mapping of str to sequence of Decimal
        The inner edges of the bins of some columns, ascending.
    binning : str, default="equal-frequency"
        How other numeric columns are cut; or "equal-width".
    ignore_case : collection of str
        Columns in which texts that differ only in case are one state, named as most of them are.
    own_bins : mapping of str to float
        The shares of the records in a bin of some columns, where it is not `bins`.
    advice : Advice
        What findings about its columns advise.

    Raises
    ------
    ValueError, TypeError
        If a number is out of range, edges do not ascend, or a collection of texts is one text.
    """

    missing_codes: Collection[str] = ()
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    categorical: Collection[str] = ()
    bins: float = 0.1
    max_states: int = 100
    cuts: Mapping[str, Sequence[Decimal]] = field(default_factory=dict)
    binning: str = "equal-frequency"
    ignore_case: Collection[str] = ()
    own_bins: Mapping[str, float] = field(default_factory=dict)
    advice: Advice = COMMAND_LINE

    def __post_init__(self) -> None:
        for name in ("missing_codes", "categorical", "ignore_case"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a collection of texts, not one text")
        for share in (self.bins, *self.own_bins.values()):
            if not 0 < share <= 0.5:
                raise ValueError(
                    f"bins must be above 0 and at most 0.5 of the records, got {share}"
                )
        if not 2 <= self.max_states <= 65_000:
            raise ValueError(f"max_states must be from 2 to 65000, got {self.max_states}")
        if self.binning not in METHODS:
            raise ValueError(f"binning must be {' or '.join(METHODS)}, got {self.binning!r}")
        for name, edges in self.cuts.items():
            if not edges or any(low >= high for low, high in pairwise(edges)):
                raise ValueError(f"the edges of {name!r} must be one number or more, ascending")

    def says_missing(self, text: str, name: str) -> bool:
        """Whether a text of a column says that the value is missing."""
        codes = self.missing_codes
        return not text.strip() or text in codes or f"{name}={text}" in codes


class Encoded(NamedTuple):
    """A variable, and for each record its code: shape (n,), dtype uint8 or uint16.

    The code is ``len(states)`` where the value is missing. The findings say what of the column may
    mean something else.
    """

    variable: Variable
    codes: NDArray[np.unsignedinteger]
    findings: tuple[Finding, ...] = ()


def encode(source: str, name: str, column: TextColumn, encoding: Encoding) -> Encoded:
    """Encode a column.

    Without declared states, text and up to 16 distinct numbers are their own states (numbers in
    their order, text in that of its characters); more numbers are binned.

    Raises
    ------
    UnsuitableColumnError
        If it tells nothing as it is: no values, one state, more states than allowed, identifiers,
        dates, or numbers with words among them.
    DataError
        If a value is not one of the declared states: it names the record.
    """
    given = StateFinder(source, name, column, encoding)
    if not given.counts:
        raise given.unsuitable("no values", "no values")
    if name in encoding.states:
        found = given.declared(tuple(encoding.states[name]))
    elif name in encoding.cuts:
        found = given.cut(encoding.cuts[name])
    else:
        found = given.found()
    states = found.states
    if len(states) < 2:
        raise given.unsuitable("constant", f"one value, {states[0]!r}, {given.everywhere()}")
    if len(states) > encoding.max_states:
        raise given.unsuitable(
            "too many states",
            f"{len(states)} states, more than {encoding.max_states}",
            f"{encoding.advice.states(len(states))} keeps it",
        )
    encoded = _codes(name, column, states, found.code_of)
    return encoded._replace(findings=(*found.findings, *given.few_known()))


class Unseen(NamedTuple):
    """A value that is none of a variable's states, and how many records have it."""

    column: str
    text: str
    records: int


def encode_known(
    source: str,
    name: str,
    column: TextColumn,
    encoding: Encoding,
    unseen: list[Unseen] | None = None,
) -> Encoded:
    """Encode a column in declared states; numbers find their bins if the states are bins.

    If the states are all numbers, a text that is one of them written otherwise ("1.0" for "1") is
    that state.

    Parameters
    ----------
    source, name, column, encoding
        As `encode`.
    unseen : list of Unseen, optional
        Takes the values that are none of the states, which are then missing; they are refused if
        None.

    Raises
    ------
    DataError
        If a value is none of the states: it names the source, the column and the record.
    """
    states = tuple(encoding.states[name])
    code_of = {state: code for code, state in enumerate(states)}
    texts = [t for t in column.texts if t in code_of or not encoding.says_missing(t, name)]
    bins = bins_of(states)
    if bins is not None:
        for text, value in read_each(texts).items():
            place = bin_of(value, bins)
            if text not in code_of and place is not None:
                code_of[text] = place
    _take_equal_numbers(texts, states, code_of)
    unknown = [text for text in texts if text not in code_of]
    if unknown and unseen is None:
        raise StateFinder(source, name, column, encoding).not_one_of(unknown[0], states)
    if unknown and unseen is not None:
        used = np.bincount(column.places, minlength=len(column.texts))
        counts = dict(zip(column.texts, used.tolist(), strict=True))
        unseen.extend(Unseen(name, text, counts[text]) for text in unknown if counts[text])
    return _codes(name, column, states, code_of)


def _take_equal_numbers(
    texts: Sequence[str], states: Sequence[str], code_of: dict[str, int]
) -> None:
    """Add the texts that are equal, as numbers, to a state, if all states are numbers."""
    values = [number(state) for state in states]
    if None in values or all(text in code_of for text in texts):
        return
    place = {value: code for code, value in enumerate(values)}
    for text in texts:
        value = number(text)
        if text not in code_of and value is not None and value in place:
            code_of[text] = place[value]


def _codes(
    name: str, column: TextColumn, states: tuple[str, ...], code_of: Mapping[str, int]
) -> Encoded:
    dtype = np.uint8 if len(states) < 256 else np.uint16
    table = np.array([code_of.get(text, len(states)) for text in column.texts], dtype)
    codes = table[column.places]
    missing = bool((codes == len(states)).any())
    return Encoded(Variable(name, states, missing), codes)
