"""Supervised discretization: cut a column of numbers where the bins tell most about a class.

The column is at one site and the class may be at another. The site cuts its numbers into many fine
pre-bins, and the table of class and pre-bins is all that the method of Fayyad and Irani (MDLP)
needs. It cuts the pre-bins in two where the entropy of the class is lowest, keeps the cut if it
saves more bits than it costs to describe, and repeats this in both parts:

    gain > (log2(N - 1) + log2(3^k - 2) - k H + k1 H1 + k2 H2) / N

N is the number of records of the part, H the entropy of the class in it, in bits, and k the number
of classes that occur in it; k1, H1, k2 and H2 are those of the two sides.

Leakage: the analyst learns one table for each column, of the class and the pre-bins; all parties
learn the edges of the pre-bins, which are names of states.

References
----------
.. [1] U. Fayyad and K. Irani (1993). Multi-interval discretization of continuous-valued attributes
   for classification learning. IJCAI-93, 1022-1027.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import log2

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import Counter
from vertibayes.counting.counter import Table
from vertibayes.words import offered
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.variables import Family, Variable

TOLERANCE = 1e-12  # in bits: lower entropies differ by rounding only, and the first cut is kept


def mdlp_edges(table: Table, edges: Sequence[Decimal]) -> tuple[Decimal, ...]:
    """Return the edges between pre-bins at which MDLP cuts a column.

    Parameters
    ----------
    table : ndarray of shape (classes, pre-bins), dtype int64
        The number of records of each class in each pre-bin, ascending.
    edges : sequence of Decimal
        The edges between successive pre-bins, ascending.

    Returns
    -------
    cuts : tuple of Decimal
        The chosen edges, ascending; empty if no cut is worth its description.

    Raises
    ------
    ValueError
        If there is not one edge between each two pre-bins.

    Examples
    --------
    >>> table = np.array([[20, 20, 0, 0], [0, 0, 20, 20]])
    >>> mdlp_edges(table, [Decimal(1), Decimal(2), Decimal(3)])
    (Decimal('2'),)
    """
    if table.ndim != 2 or len(edges) != table.shape[1] - 1:
        raise ValueError(
            "a table must have two axes, and one edge between each two pre-bins: got the shape "
            f"{table.shape} and {len(edges)} edges"
        )
    below = np.concatenate([np.zeros((len(table), 1), np.int64), table.cumsum(axis=1)], axis=1)
    parts, places = [(0, table.shape[1])], []
    while parts:
        first, end = parts.pop()
        place = _best_cut(below[:, first : end + 1] - below[:, first : first + 1])
        if place is not None:
            places.append(first + place)
            parts += [(first, first + place), (first + place, end)]
    return tuple(edges[place - 1] for place in sorted(places))


def discretize(
    counter: Counter, columns: Sequence[str], target: str
) -> dict[str, tuple[Decimal, ...]]:
    """Return the edges at which MDLP cuts columns, all from one call for tables.

    Parameters
    ----------
    counter : Counter
        The source of one table for each column; records in which the column or the class is
        missing are left out of it.
    columns : sequence of str
        Variables whose states are intervals, as `pre_binned` returns them.
    target : str
        The class.

    Returns
    -------
    cuts : dict of str to tuple of Decimal
        The edges of each column; empty if MDLP does not cut it.

    Raises
    ------
    ValueError
        If a column has no pre-bins, the class is one of the columns, or a variable is unknown.
    """
    for name in (target, *columns):
        if name not in counter.variables:
            known = offered(name, counter.variables)
            raise ValueError(f"no variable {name!r}; known are {known}")
    edges = {name: edges_of(counter.variables[name]) for name in columns}
    without = [name for name, own in edges.items() if own is None]
    if without:
        raise ValueError(
            f"{', '.join(without)}: the states must be intervals; the site's binning must be "
            "intervals"
        )
    if target in columns:
        raise ValueError(f"{target} is the class: it cannot be one of the columns that are cut")
    tables = counter.tables([Family(target, (name,)) for name in columns])
    return {
        name: mdlp_edges(table, own or ())
        for (name, own), table in zip(edges.items(), tables, strict=True)
    }


def pre_binned(variables: Mapping[str, Variable]) -> list[str]:
    """Return the variables whose states are intervals between edges."""
    return [name for name, variable in variables.items() if edges_of(variable) is not None]


def edges_of(variable: Variable) -> tuple[Decimal, ...] | None:
    """Return the edges between the states of a variable; None if they are not intervals."""
    bins = bins_of(variable.states)
    if bins is None or any(one.single for one in bins):
        return None
    return tuple(one.high for one in bins[:-1] if one.high is not None)


def _best_cut(below: Table) -> int | None:
    """Return how many pre-bins of a part lie below its best cut; None if it is not worth it.

    `below` has the counts of each class below each edge, from 0 to the counts of the whole part.
    """
    whole = below[:, -1:]
    records = int(whole.sum())
    sizes = below.sum(axis=0)
    left, right = _entropy(below), _entropy(whole - below)
    after = (sizes * left + (records - sizes) * right) / max(records, 1)
    place = int(np.argmax(after <= after.min() + TOLERANCE))
    gain = float(after[0] - after[place])
    if gain <= TOLERANCE:
        return None
    halves = ((below[:, place], left[place]), (whole[:, 0] - below[:, place], right[place]))
    classes = int(np.count_nonzero(whole))
    delta = log2(3**classes - 2) - classes * float(after[0])
    delta += sum(np.count_nonzero(counts) * float(entropy) for counts, entropy in halves)
    return place if gain * records > log2(records - 1) + delta else None


def _entropy(counts: Table) -> NDArray[np.float64]:
    """Return the entropy of each column of counts, in bits; 0 without records."""
    totals = np.maximum(counts.sum(axis=0), 1)
    shares = counts / totals
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return np.asarray(-(shares * logs).sum(axis=0))
