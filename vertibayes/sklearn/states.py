"""Columns of data frames as states: numbers are binned in `fit`, and meet the same bins later."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vertibayes.network import Network
from vertibayes.records import Records
from vertibayes_protocols.site.binning import Bin, bins_of
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoded import Unseen, encode_known
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import Advice
from vertibayes_protocols.site.frame import columns_of
from vertibayes_protocols.variables import Variable

EXACT_DIGITS = 15  # decimals of so few digits are floating-point numbers and back, unchanged
LARGEST_WHOLE = 2**53  # larger whole numbers are not exact as floating-point numbers
IN_PYTHON = Advice(
    exclude="drop {names}",
    categorical="astype('category') for {names}",
    ignore_case="str.lower() for {names}",
    more_states="max_states={count}",
    cut="pandas.cut for COLUMN",
    edges="pandas.cut",
    identifies="use {names} as the index",
    missing="replace {code} by None",
    for_shell=False,
)


def encoded(
    sites: Mapping[str, pd.DataFrame], encoding: Encoding
) -> tuple[dict[str, SiteData], dict[str, str]]:
    """Return the data of each site, and why columns are left out."""
    how = replace(encoding, advice=IN_PYTHON)
    data = {
        site: SiteData.from_frame(frame, how, site=site, strict=False)
        for site, frame in sites.items()
    }
    reports = [each.report for each in data.values()]
    return data, {name: report.reason(name) for report in reports for name in report.left_out}


def warn_of(left_out: Mapping[str, str]) -> None:
    """Warn about columns that are left out."""
    if left_out:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        warnings.warn(f"columns are left out of the network: {reasons}", stacklevel=4)


def with_class(
    frame: pd.DataFrame, name: str, y: NDArray[Any], classes: NDArray[Any]
) -> pd.DataFrame:
    """Return records with their class as a column of declared states."""
    texts = [str(label) for label in classes]
    if len(set(texts)) < len(texts) or not all(map(str.strip, texts)):
        raise ValueError(f"the classes must be different texts, got {', '.join(map(repr, texts))}")
    codes: NDArray[Any] = pd.Index(classes, tupleize_cols=False).get_indexer(pd.Index(y))
    if (codes < 0).any():
        unknown = np.asarray(y)[codes < 0][0]
        raise ValueError(
            f"y has the class {unknown!r}, which is not one of the declared classes, "
            f"{', '.join(texts)}"
        )
    column = pd.Categorical.from_codes(codes, categories=pd.Index(texts))
    return frame.assign(**{name: column})


# ---- new records ---------------------------------------------------------------------------------


def known_states(frame: pd.DataFrame, network: Network, target: str) -> SiteData:
    """Return records in the states of a network; warn of values without one: missing."""
    states = {
        name: variable.states[: -1 if name in network.missing_states else None]
        for name, variable in network.variables.items()
    }
    codes: dict[str, NDArray[np.unsignedinteger]] = {}
    unseen: list[Unseen] = []
    for place, name in enumerate(map(str, frame.columns)):
        if name in states and name != target:
            column = frame.iloc[:, place]
            fast = _codes_of_numbers(column, states[name])
            codes[name] = _codes_of(name, column, states[name], unseen) if fast is None else fast
    codes[target] = np.full(len(frame), len(states[target]), np.uint16)
    data = SiteData({name: Variable(name, states[name], missing=True) for name in codes}, codes)
    if unseen:
        told = Records(data, (), (), tuple(unseen)).warning_of_values("X")
        warnings.warn(told, stacklevel=3)
    return data


def _codes_of(
    name: str, column: pd.Series[Any], states: Sequence[str], unseen: list[Unseen]
) -> NDArray[np.unsignedinteger]:
    """Return the codes of a column as text, as files are read."""
    texts = columns_of("X", column.to_frame(name)).columns[name]
    return encode_known("X", name, texts, Encoding(states={name: states}), unseen).codes


def _codes_of_numbers(
    column: pd.Series[Any], states: Sequence[str]
) -> NDArray[np.unsignedinteger] | None:
    """Return the bins of a column of numbers; None if only the texts of its values say them.

    It compares floating-point numbers where the texts would be compared as decimals. The result is
    the same if all edges have so few digits that they are the texts of their floating-point
    numbers.
    """
    bins = bins_of(states)
    if bins is None or not (column.dtype == np.float64 or column.dtype.kind in "iu"):
        return None
    numbers = column.to_numpy(np.float64, na_value=np.nan)
    if (np.abs(numbers) >= LARGEST_WHOLE).any() or not all(map(_is_exact, bins)):
        return None
    dtype = np.uint8 if len(states) < 256 else np.uint16
    codes: NDArray[Any] = np.full(len(numbers), len(states), dtype)
    for place, one in sorted(enumerate(bins), key=lambda numbered: numbered[1].single):
        low = -np.inf if one.low is None else float(one.low)
        high = np.inf if one.high is None else float(one.high)
        codes[(numbers == low) if one.single else (low < numbers) & (numbers <= high)] = place
    unknown = (codes == len(states)) & ~np.isnan(numbers)
    return None if unknown.any() else codes


def _is_exact(one: Bin) -> bool:
    """Whether both edges of a bin are the texts of their floating-point numbers."""
    edges = (edge for edge in (one.low, one.high) if edge is not None)
    return all(
        len(edge.as_tuple().digits) <= EXACT_DIGITS and Decimal(repr(float(edge))) == edge
        for edge in edges
    )
