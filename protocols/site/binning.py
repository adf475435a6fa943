"""Bins for numeric columns, made at the site, whose edges are no values of the data."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation, localcontext
from itertools import pairwise

FEWEST_RECORDS = 10
PRECISION = 1000  # digits, more than between any two numbers of 300


def bin_edges(values: Sequence[Decimal], counts: Sequence[int], share: float) -> list[Decimal]:
    """Cut sorted distinct values into consecutive bins of enough records.

    Each bin has at least ``share`` of the records and at least 10; a last bin that is too small
    joins the one before (van Daalen et al. 2024, "Experimental setup").

    Parameters
    ----------
    values : sequence of Decimal
        Distinct, ascending.
    counts : sequence of int
        Records of each value.
    share : float
        Of all records, in (0, 1].

    Returns
    -------
    edges : list of Decimal
        The inner edges, each the shortest decimal strictly between two neighbouring values, so that
        no record changes its bin and no value is published.
    """
    wanted = max(Decimal(str(share)) * sum(counts), Decimal(FEWEST_RECORDS))
    ends: list[int] = []
    inside = 0
    for place, count in enumerate(counts):
        inside += count
        if inside >= wanted and place + 1 < len(values):
            ends.append(place)
            inside = 0
    if ends and inside < wanted:
        ends.pop()
    return [shortest_between(values[end], values[end + 1]) for end in ends]


def shortest_between(low: Decimal, high: Decimal) -> Decimal:
    """Return the decimal with the fewest digits strictly between two numbers.

    Raises
    ------
    ValueError
        If `low` is not below `high`.
    """
    if not low < high:
        raise ValueError(f"nothing lies between {low} and {high}")
    exponent = max(abs(low), abs(high)).adjusted() + 1
    with localcontext(prec=PRECISION):
        while True:
            step = Decimal(1).scaleb(exponent)
            candidate = (low // step + (low >= 0 or low % step == 0)) * step + 0  # no -0
            if low < candidate < high:
                return candidate
            exponent -= 1


def bin_names(edges: Sequence[Decimal]) -> tuple[str, ...]:
    """Return the bins' names, as intervals: ``(-inf,2.5]``, ``(2.5,7]``, ``(7,inf)``."""
    ends = ["-inf", *(f"{edge:f}" for edge in edges), "inf"]
    names = [f"({low},{high}]" for low, high in pairwise(ends)]
    return (*names[:-1], names[-1][:-1] + ")")


def edges_of(names: Sequence[str]) -> list[Decimal] | None:
    """Take `bin_names` back; None if these are no bins' names."""
    try:
        edges = [Decimal(name.rpartition(",")[2][:-1]) for name in names[:-1]]
    except InvalidOperation:
        return None
    return edges if tuple(names) == bin_names(edges) else None


def bin_of(value: Decimal, edges: Sequence[Decimal]) -> int:
    """Return the bin of a value."""
    return bisect_left(edges, value)
