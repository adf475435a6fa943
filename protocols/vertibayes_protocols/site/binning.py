"""Bins for numeric columns, made at the site.

An edge is the shortest decimal between two neighbouring values; between two successive whole
numbers it is the lower one (``le_29``: up to 29). An edge is not a value of the data, but
reveals the value at its rank to about the last digit; where many values are distinct, that is
one person's value. Declared edges reveal nothing. The bin of a frequent value names it
(``eq_0``). Bins of equal width also show roughly where the column begins and ends.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import NamedTuple, TypeAlias

FEWEST_RECORDS = 10
PRECISION = 1000  # digits, more than between any two numbers of 300

Group: TypeAlias = tuple[int, int]  # places of the first and the last value of a bin
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_NAME = re.compile(rf"(?:le|lt)_{_NUMBER}|from_{_NUMBER}_to_{_NUMBER}|gt_{_NUMBER}|eq_{_NUMBER}")


class Bin(NamedTuple):
    """The numbers above `low`, up to `high`, without bins of their own; if equal, this number."""

    low: Decimal | None
    high: Decimal | None

    @property
    def single(self) -> bool:
        """Whether the bin holds one number only."""
        return self.low is not None and self.low == self.high

    def has(self, value: Decimal) -> bool:
        """Whether a number lies in the bin."""
        if self.single:
            return value == self.low
        return (self.low is None or self.low < value) and (self.high is None or value <= self.high)


def equal_frequency(values: Sequence[Decimal], counts: Sequence[int], share: float) -> list[Bin]:
    """Cut sorted distinct values into bins whose sizes are as equal as ties allow.

    There are at most ``1 / share`` bins of at least 10 records each. A value with more records than
    a bin should have gets its own bin; the other records are divided among the other bins.

    Examples
    --------
    >>> ages = [Decimal(age) for age in range(20, 50)]
    >>> bin_names(equal_frequency(ages, [2] * 30, share=1 / 3))
    ('le_29', 'from_29_to_39', 'gt_39')
    """
    groups, alone = _groups(counts, share)
    return _bins(values, groups, alone, _edge_of(values))


def intervals(values: Sequence[Decimal], counts: Sequence[int], share: float) -> list[Bin]:
    """Cut sorted distinct values into the bins of `equal_frequency`, each named as an interval.

    A value that has its own bin is then not named: the edges of all bins can be declared as cuts.

    Examples
    --------
    >>> hours = [Decimal(hour) for hour in (20, 40, 60)]
    >>> bin_names(equal_frequency(hours, [10, 80, 10], share=1 / 3))
    ('lt_40', 'eq_40', 'gt_40')
    >>> bin_names(intervals(hours, [10, 80, 10], share=1 / 3))
    ('le_30', 'from_30_to_50', 'gt_50')
    """
    groups, _ = _groups(counts, share)
    return _bins(values, groups, set(), _edge_of(values))


def _groups(counts: Sequence[int], share: float) -> tuple[list[Group], set[Group]]:
    """Return groups of values of sizes as equal as ties allow, and the frequent single values."""
    records = sum(counts)
    bins = min(_most_bins(share), records // FEWEST_RECORDS)
    heavy = [place for place, count in enumerate(counts) if count * bins > records]
    rest = records - sum(counts[place] for place in heavy)
    left = bins - len(heavy)
    groups: list[Group] = []
    for before, after in pairwise([-1, *heavy, len(counts)]):
        inside = sum(counts[before + 1 : after])
        if inside:
            several = max(1, min(round(inside / rest * left), inside // FEWEST_RECORDS))
            groups += _balanced(counts, (before + 1, after - 1), several)
            left, rest = left - several, rest - inside
        if after < len(counts):
            groups.append((after, after))
    return _merged(counts, groups), {(place, place) for place in heavy}


def _edge_of(values: Sequence[Decimal]) -> Callable[[Decimal, Decimal], Decimal]:
    """Return what gives the edge between two successive values."""
    whole = all(value == value.to_integral_value() for value in values)

    def edge(low: Decimal, high: Decimal) -> Decimal:
        return low if whole and high - low == 1 else shortest_between(low, high)

    return edge


def equal_width(values: Sequence[Decimal], counts: Sequence[int], share: float) -> list[Bin]:
    """Cut sorted distinct values into ``1 / share`` bins of equal width.

    Edges are rounded to a hundredth of their distance, and edges of whole numbers to whole numbers.
    A bin of fewer than 10 records is merged with its smaller neighbour.
    """
    with localcontext(prec=PRECISION):
        width = (values[-1] - values[0]) / _most_bins(share)
        whole = all(value == value.to_integral_value() for value in values)
        step = Decimal(1).scaleb(max(width.adjusted() - 2, 0 if whole else -PRECISION))
        rounded = {(values[0] + k * width).quantize(step) for k in range(1, _most_bins(share))}
    edges = sorted(rounded)
    places = [bisect_left(edges, value) for value in values]
    starts = [
        place for place in range(len(values)) if place == 0 or places[place] > places[place - 1]
    ]
    groups = [(first, after - 1) for first, after in pairwise([*starts, len(values)])]

    def edge(low: Decimal, _high: Decimal) -> Decimal:
        return edges[bisect_left(edges, low)]

    return _bins(values, _merged(counts, groups), set(), edge)


METHODS = {
    "equal-frequency": equal_frequency, "equal-width": equal_width, "intervals": intervals
}  # fmt: skip


def _most_bins(share: float) -> int:
    return int(share) if share >= 1 else int(1 / share + 1e-9)


def _balanced(counts: Sequence[int], run: Group, bins: int) -> list[Group]:
    """Cut a run of values into groups; into fewer groups if one had fewer than 10 records."""
    for fewer in range(bins, 1, -1):
        groups = _cut(counts, run, fewer)
        first, last = groups[-1]
        if sum(counts[first : last + 1]) >= FEWEST_RECORDS:
            return groups
    return [run]


def _cut(counts: Sequence[int], run: Group, bins: int) -> list[Group]:
    """Cut a run of values into groups; each ends where its size is nearest to an equal part."""
    groups: list[Group] = []
    first, last = run
    left, inside = sum(counts[first : last + 1]), 0
    for place in range(first, last + 1):
        count = counts[place]
        parts = bins - len(groups)
        if parts > 1 and inside >= FEWEST_RECORDS and (2 * inside + count) * parts > 2 * left:
            groups.append((first, place - 1))
            first, left, inside = place, left - inside, 0
        inside += count
    return [*groups, (first, last)]


def _merged(counts: Sequence[int], groups: Sequence[Group]) -> list[Group]:
    """Merge groups of fewer than 10 records with their smaller neighbours."""
    merged = list(groups)
    while len(merged) > 1:
        sizes = [sum(counts[first : last + 1]) for first, last in merged]
        place = min(range(len(sizes)), key=sizes.__getitem__)
        if sizes[place] >= FEWEST_RECORDS:
            break
        around = [p for p in (place - 1, place + 1) if 0 <= p < len(sizes)]
        other = min(around, key=sizes.__getitem__)
        first, second = sorted((place, other))
        merged[first : second + 1] = [(merged[first][0], merged[second][1])]
    return merged


def _bins(
    values: Sequence[Decimal],
    groups: Sequence[Group],
    alone: set[Group],
    edge: Callable[[Decimal, Decimal], Decimal],
) -> list[Bin]:
    """Return the bins of groups of values; each group in `alone` is a single value."""
    bins: list[Bin] = []
    low: Decimal | None = None
    for place, group in enumerate(groups):
        value = values[group[1]]
        following = groups[place + 1] if place + 1 < len(groups) else None
        if group in alone:
            bins.append(Bin(value, value))
            low = value
        elif following is None:
            bins.append(Bin(low, None))
        else:
            first = values[following[0]]
            high = first if following in alone else edge(value, first)
            bins.append(Bin(low, high))
            low = high
    return bins


def shortest_between(low: Decimal, high: Decimal) -> Decimal:
    """Return the decimal with the fewest digits strictly between two numbers.

    Examples
    --------
    >>> shortest_between(Decimal("3.14159"), Decimal("3.2"))
    Decimal('3.15')
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


def bins_at(edges: Sequence[Decimal]) -> list[Bin]:
    """Return the bins between inner edges: up to the first, up to the next, above the last.

    Examples
    --------
    >>> bin_names(bins_at([Decimal("2.5"), Decimal(7)]))
    ('le_2.5', 'from_2.5_to_7', 'gt_7')
    """
    return [Bin(low, high) for low, high in pairwise([None, *edges, None])]


def bin_names(bins: Sequence[Bin]) -> tuple[str, ...]:
    """Return the bins' names: ``le_2.5``, ``from_2.5_to_7``, ``gt_7``; ``lt_0``, ``eq_0``."""
    following = [*bins[1:], None]
    return tuple(_name(one, other) for one, other in zip(bins, following, strict=True))


def _name(this: Bin, following: Bin | None) -> str:
    if this.low is None:
        if this.high is None:
            return "all"
        before = following is not None and following.single
        return f"{'lt' if before else 'le'}_{plain(this.high)}"
    if this.single:
        return f"eq_{plain(this.low)}"
    if this.high is None:
        return f"gt_{plain(this.low)}"
    return f"from_{plain(this.low)}_to_{plain(this.high)}"


def plain(value: Decimal) -> str:
    """Return a number's digits, without an exponent or trailing zeros."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def bins_of(names: Sequence[str]) -> list[Bin] | None:
    """Return the bins of `bin_names`; None unless the names are those of all bins, in order."""
    bins: list[Bin] = []
    for match in map(_NAME.fullmatch, names):
        if match is None:
            return None
        up_to, low, high, above, alone = (g if g is None else Decimal(g) for g in match.groups())
        if alone is not None:
            bins.append(Bin(alone, alone))
        elif low is not None:
            bins.append(Bin(low, high))
        else:
            bins.append(Bin(above, up_to))
    return bins if len(bins) > 1 and _follow(bins) and tuple(names) == bin_names(bins) else None


def _follow(bins: Sequence[Bin]) -> bool:
    """Whether each bin begins where the previous one ends, or is a single later number."""
    for one, other in pairwise(bins):
        if one.high is None or other.low is None or not one.high <= other.low:
            return False
        if one.high < other.low and not (one.single and other.single):
            return False
    return all(b.low is None or b.high is None or b.low <= b.high for b in bins)


def bin_of(value: Decimal, bins: Sequence[Bin]) -> int | None:
    """Return the place of a value's bin; None if no bin has it, as beside single values."""
    inside = [place for place, one in enumerate(bins) if one.has(value)]
    return next((place for place in inside if bins[place].single), inside[0] if inside else None)
