"""Encode a column of text as a variable and its codes, or as numbers between bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.site import inspection
from vertibayes_protocols.site.binning import bin_of, bins_of
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import Finding
from vertibayes_protocols.site.numerals import number, read_each
from vertibayes_protocols.site.states import StateFinder, States, in_any_case
from vertibayes_protocols.site.statistics import Numeric
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable


class Encoded(NamedTuple):
    """A variable, and its code in each record: shape (n,), dtype uint8 or uint16."""

    variable: Variable
    codes: NDArray[np.unsignedinteger]  # ``len(states)`` where the value is missing
    findings: tuple[Finding, ...] = ()  # which texts may mean something else


class Numbers(NamedTuple):
    """A column of numbers, and the number of each record: shape (n,), dtype float64."""

    numeric: Numeric
    values: NDArray[np.float64]  # nan where it is missing; one beyond the bounds is kept
    findings: tuple[Finding, ...] = ()


def read_column_of_numbers(
    source: str, name: str, column: TextColumn, encoding: Encoding
) -> Numbers:
    """Read a column that stays numbers: one of ``encoding.bounds``."""
    finder, numeric = StateFinder(source, name, column, encoding), encoding.numerics[name]
    if not finder.counts:
        raise finder.unsuitable("no values", "no values")
    values, findings = finder.between(numeric)
    return Numbers(numeric, values, (*findings, *finder.few_known()))


def encode(source: str, name: str, column: TextColumn, encoding: Encoding) -> Encoded:
    """Encode a column.

    Without declared states, the states are the column's texts in their natural order (`scales`), or
    up to 16 distinct numbers, ascending. More numbers are binned. A column that had states or bins
    in an earlier study keeps them; new texts follow them as further states, those of few records as
    `OTHER`.
    """
    finder = StateFinder(source, name, column, encoding)
    if not finder.counts:
        raise finder.unsuitable("no values", "no values")
    if name in encoding.earlier and name not in {*encoding.states, *encoding.cuts}:
        coding = _as_earlier(finder)
    elif name in encoding.states:
        coding = finder.declared(tuple(encoding.states[name]))
    elif name in encoding.cuts:
        coding = finder.cut(encoding.cuts[name])
    else:
        coding = finder.found()
    states = coding.states
    if len(states) < 2:
        raise finder.unsuitable("constant", f"one value, {states[0]!r}, {finder.everywhere()}")
    if len(states) > encoding.max_states:
        raise finder.unsuitable(
            "too many states",
            f"{len(states)} states, more than {encoding.max_states}",
            f"{encoding.advice.states(len(states))} keeps it",
        )
    encoded = _codes(name, column, states, coding.code_of)
    try:
        encoded.variable.check_printable()
    except ValueError:
        raise finder.not_printable() from None
    found = (*coding.findings, *finder.kept_identifiers(), *finder.few_known())
    return encoded._replace(findings=found)


def _as_earlier(finder: StateFinder) -> States:
    """Return the states and bins of earlier studies, and the states that are new."""
    encoding, name = finder.encoding, finder.name
    states = tuple(encoding.earlier[name])
    code_of = _codes_of(states, finder.counts)
    if name in encoding.ignore_case:
        code_of = in_any_case(code_of, finder.counts)
    new = sorted(text for text in finder.counts if text not in code_of)
    if bins_of(states) is None:
        every = (*states, *new)
        coding = States(every, {state: code for code, state in enumerate(every)} | code_of)
        return finder.without_rare(coding, kept=states)
    words = [text for text in new if not inspection.says_missing(text, among_numbers=True)]
    if words:
        raise finder.unsuitable(
            "beside its earlier bins",
            f"{words[0]!r} is in none of the bins that it had in earlier studies",
            f"if it says missing: {encoding.advice.missing_code(words[0])}",
        )
    return States(states, code_of)


class Nearest(NamedTuple):
    """A number that is not one of a variable's numbers, and the state that it counts as."""

    column: str
    text: str
    records: int
    state: str


class Unseen(NamedTuple):
    """A value that is not one of a variable's states, and the number of records that have it."""

    column: str
    text: str
    records: int


def encode_known(
    source: str,
    name: str,
    column: TextColumn,
    encoding: Encoding,
    unseen: list[Unseen | Nearest] | None = None,
) -> Encoded:
    """Encode a column in declared states; if the states are bins, each number is in its bin.

    If all states are numbers, a text that writes one of them in another way ("1.0" for "1") is that
    state. With a list `unseen`, other numbers near the states count as the nearest one (`near`),
    and other texts as missing; the list then has both.
    """
    states = tuple(encoding.states[name])
    texts = [t for t in column.texts if t in states or not encoding.says_missing(t, name)]
    code_of = _codes_of(states, texts)
    if name in encoding.ignore_case:
        code_of = in_any_case(code_of, texts)
    unknown = [text for text in texts if text not in code_of]
    if unknown and unseen is None:
        raise StateFinder(source, name, column, encoding).not_one_of(unknown[0], states)
    if unseen is not None:
        close = near(states, unknown)
        shown = _unseen(name, column, unknown)
        unseen += [Nearest(*u, states[close[u.text]]) if u.text in close else u for u in shown]
        code_of |= close
    return _codes(name, column, states, code_of)


def near(states: Sequence[str], texts: Iterable[str]) -> dict[str, int]:
    """Return the nearest state of other numbers, if the states are three or more numbers or bins.

    A number may lie between the states, or beyond them by up to half of their range. One that is
    farther than they are from each other, and repeats 7, 8 or 9, or is the only negative one, may
    say missing: it has no state.

    Examples
    --------
    >>> near(["0", "1", "2", "4"], ["3", "5", "9", "-1", "many"])
    {'3': 2, '5': 3}
    """
    values = [number(state) for state in states]
    known = [value for value in values if value is not None]
    bins = bins_of(states)
    if bins is not None:
        ends = [(one.low, one.high) for one in bins]
        known = [end for pair in ends for end in pair if end is not None]
    elif len(known) == len(states) > 2:
        ends = [(value, value) for value in known]
    else:
        return {}
    known.sort()
    low, high = known[0], known[-1]
    gap = max((b - a for a, b in pairwise(known)), default=Decimal(0))
    found: dict[str, int] = {}
    for text in texts:
        if (value := number(text)) is None:
            continue
        beyond = max(low - value, value - high)
        code = len({*f"{abs(value):f}"}) == 1 and f"{abs(value):f}"[0] in "789"
        if 2 * beyond > high - low or (beyond > gap and code) or value < 0 <= low:
            continue
        away = [(_distance(value, *pair), pair[0] != pair[1]) for pair in ends]
        found[text] = away.index(min(away))
    return found


def _distance(value: Decimal, low: Decimal | None, high: Decimal | None) -> Decimal:
    """Return how far a number is from those between two others; None is without end."""
    below = Decimal(0) if low is None else low - value
    above = Decimal(0) if high is None else value - high
    return max(below, above, Decimal(0))


def _codes_of(states: tuple[str, ...], texts: Iterable[str]) -> dict[str, int]:
    """Return the codes of states and of texts that are in one, or write one in another way."""
    code_of = {state: code for code, state in enumerate(states)}
    unlike = [text for text in texts if text not in code_of]
    if (bins := bins_of(states)) is not None:
        for text, value in read_each(unlike).items():
            if (place := bin_of(value, bins)) is not None:
                code_of[text] = place
    values = [number(state) for state in states]
    if None not in values:
        place_of = {value: code for code, value in enumerate(values)}
        equal = {text: number(text) for text in unlike}
        code_of |= {text: place_of[value] for text, value in equal.items() if value in place_of}
    return code_of


def read_known_numbers(
    name: str, column: TextColumn, encoding: Encoding, unseen: list[Unseen | Nearest]
) -> NDArray[np.float64]:
    """Return the numbers of new records, each text read by itself; other texts are missing."""
    texts = [text for text in column.texts if not encoding.says_missing(text, name)]
    values = read_each(texts)
    unseen += _unseen(name, column, [text for text in texts if text not in values])
    known = np.array([float(values.get(text, math.nan)) for text in column.texts], np.float64)
    return np.asarray(known[column.places])


def _unseen(name: str, column: TextColumn, unknown: Sequence[str]) -> Iterator[Unseen]:
    used = np.bincount(column.places, minlength=len(column.texts)).tolist()
    counts = dict(zip(column.texts, used, strict=True))
    return (Unseen(name, text, counts[text]) for text in unknown if counts[text])


def _codes(
    name: str, column: TextColumn, states: tuple[str, ...], code_of: Mapping[str, int]
) -> Encoded:
    dtype = np.uint8 if len(states) < 256 else np.uint16
    table = np.array([code_of.get(text, len(states)) for text in column.texts], dtype)
    codes = table[column.places]
    missing = bool((codes == len(states)).any())
    return Encoded(Variable(name, states, missing), codes)
