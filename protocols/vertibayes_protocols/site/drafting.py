"""Draft how a column becomes a variable, from its values, for a person to edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.binning import bins_of, plain
from vertibayes_protocols.site.encoded import Encoded, encode
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import Finding, UnsuitableColumnError
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import is_printable

SHARE = 0.2  # of the records in a proposed bin
MOST_SHOWN = 30  # states that a draft lists
DIGITS = 2  # of a proposed edge


class Draft(NamedTuple):
    """The draft of one column."""

    # Its settings, as {"states": ["f", "m"]} or {"cut": [Decimal(18)]}; empty: the data's states.
    spec: dict[str, Sequence[str] | Sequence[Decimal]]
    missing: float  # the share of the records without a value
    findings: tuple[Finding, ...] = ()  # what to check: values that may say missing, spellings
    left_out: Finding | None = None  # why the column cannot be a variable as it is


def draft(name: str, column: TextColumn, encoding: Encoding) -> Draft:
    """Draft how a column becomes a variable.

    Numbers of many values get bins of a fifth of the records each, with edges of two digits, which
    tell little of single records. Other columns get the states that they have.
    """
    says = encoding.says_missing
    gone = np.array([says(text, name) for text in column.texts], bool)[column.places]
    missing = float(gone.mean())
    for text in column.texts:
        if not says(text, name) and not is_printable(text):
            what = f"{text!r} has control characters"
            remedy = "replace line breaks in the file by spaces"
            return Draft({}, missing, left_out=Finding("control characters", what, remedy))
    how = replace(encoding, bins=SHARE, binning="intervals")
    try:
        encoded = encode("", name, column, how)
    except UnsuitableColumnError as error:
        return Draft({}, missing, left_out=error.finding)
    for spec in _proposed(encoded):
        if _is_accepted(name, column, encoding, spec):
            return Draft(spec, missing, encoded.findings)
    return Draft({}, missing, encoded.findings)


def identifies(column: TextColumn) -> bool:
    """Whether each record has a value, and no other record has the same."""
    return len(column.texts) == len(column) > 1 and all(text.strip() for text in column.texts)


def _proposed(encoded: Encoded) -> list[dict[str, Sequence[str] | Sequence[Decimal]]]:
    states = encoded.variable.states
    bins = bins_of(states)
    if bins is None:
        return [{"states": states}] if len(states) <= MOST_SHOWN else []
    edges = [one.high for one in bins if one.high is not None]
    rounded = sorted(set(map(_rounded, edges)))
    return [{"cut": rounded}, {"cut": edges}]


def _rounded(edge: Decimal) -> Decimal:
    step = Decimal(1).scaleb(edge.adjusted() - DIGITS + 1)
    whole = edge.quantize(step, ROUND_HALF_EVEN) if step > Decimal("1e-12") else edge
    return Decimal(plain(whole))


def _is_accepted(
    name: str,
    column: TextColumn,
    encoding: Encoding,
    spec: dict[str, Sequence[str] | Sequence[Decimal]],
) -> bool:
    """Whether the column can be encoded as drafted, and each bin has records."""
    states, cuts = spec.get("states"), spec.get("cut")
    declared = replace(
        encoding,
        states={} if states is None else {name: tuple(map(str, states))},
        cuts={} if cuts is None else {name: [Decimal(edge) for edge in cuts]},
    )
    if cuts is not None and any(low >= high for low, high in pairwise(map(Decimal, cuts))):
        return False
    try:
        encoded = encode("", name, column, declared)
    except DataError:
        return False
    counts = np.bincount(encoded.codes, minlength=len(encoded.variable.states))
    return bool((counts[: len(encoded.variable.states)] > 0).all())
