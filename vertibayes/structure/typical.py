"""What searches typically ask for, where the tables depend on the data: for forecasts, not bounds.

The figures are medians over ASIA, CHILD, INSURANCE, ALARM, WATER, HAILFINDER, HEPAR2 and WIN95PTS
(8 to 76 variables, 10,000 records). Tables grew with the pairs of variables on all of them: the
networks differ by a factor of two in each direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from math import comb
from typing import NamedTuple

from protocols.variables import Family
from vertibayes.structure.search import Search

MOST_FAMILIES = 10_000  # of which a forecast is made; the cost of more tables is scaled


class Typical(NamedTuple):
    """What a search typically asks for.

    Attributes
    ----------
    tables_per_pair : int
        The number of tables for each pair of variables.
    calls : int
        The number of calls.
    """

    tables_per_pair: int
    calls: int


TYPICAL: Mapping[str, Typical] = {
    "hybrid": Typical(7, 9),
    "hill_climbing": Typical(4, 9),
    "tabu": Typical(9, 8),
    "pc": Typical(4, 3),
}


def typical_families(search: Search, tables_per_pair: int) -> tuple[list[Family], float]:
    """Return families like those that a search typically asks for, and how many stand for one.

    They are pairs, and triples for all further tables, spread evenly over the variables.
    """
    pairs = comb(len(search.names), 2)
    triples = comb(len(search.names), 3) if search.max_parents > 1 else 0
    triples = min(triples, (tables_per_pair - 1) * pairs)
    scale = max(1.0, (pairs + triples) / MOST_FAMILIES)
    families = [
        *_spread(search.names, 2, round(pairs / scale)),
        *_spread(search.names, 3, round(triples / scale)),
    ]
    return families, scale


def _spread(names: Sequence[str], size: int, number: int) -> Iterator[Family]:
    """Yield families of some variables, evenly spread over all sets of this size."""
    step = max(1, comb(len(names), size) // max(number, 1))
    for *parents, child in islice(islice(combinations(names, size), 0, None, step), number):
        yield Family(child, tuple(parents))
