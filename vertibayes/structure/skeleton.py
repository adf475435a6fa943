"""The skeleton of a structure: which variables are neighbours, by tests of independence.

The tests are those of PC-stable: all tests of a level are asked for in one call, and edges are
removed after all answers, so that the result does not depend on an order of the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb, inf, prod
from typing import NamedTuple

from vertibayes.edges import Edge
from vertibayes.structure.chi_square import half_quantile
from vertibayes.structure.search import Search
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate, Choices, Constant, Score
from vertibayes_protocols.variables import Family

ALPHA = 0.05
LEVELS = 2  # variables on which a test conditions
RECORDS_PER_CELL = 10


@dataclass(frozen=True)
class Skeleton:
    """An undirected graph, and what separates the nodes that are not neighbours."""

    neighbours: Mapping[str, tuple[str, ...]]  # the neighbours of each node, sorted by name
    separators: Mapping[Edge, tuple[str, ...]]
    separating: Mapping[Edge, frozenset[str]]

    @property
    def pairs(self) -> list[Edge]:
        """The pairs of neighbours, each sorted by name."""
        return [(x, y) for x, others in self.neighbours.items() for y in others if x < y]


class _Test(NamedTuple):
    """Whether two variables are independent given others; all names are sorted."""

    x: str
    y: str
    given: tuple[str, ...]

    @property
    def family(self) -> Family:
        """The family whose table decides the test."""
        return Family(self.x, (*self.given, self.y))


def skeleton_steps(
    search: Search,
    *,
    alpha: float = ALPHA,
    levels: int = LEVELS,
    records_per_cell: int = RECORDS_PER_CELL,
) -> Steps[Skeleton]:
    """Find the neighbours by PC-stable's tests: one call for each level.

    Level k tests each pair of neighbours given each k neighbours of either. A test compares twice
    the difference of log-likelihoods G2 = 2 (LL(x | S, y) - LL(x | S)), over the records that are
    complete in x, y and S, with a quantile of the chi-square distribution. A test is not made, and
    the pair stays, if its table would be too large (`Search.fits`) or has too many cells for the
    records. A pair with a required edge stays; a pair of which both directions are forbidden is
    never one of neighbours, and has no separator.

    References
    ----------
    Colombo and Maathuis (2014), Order-independent constraint-based causal structure learning,
    algorithm 4.1. https://jmlr.org/papers/v15/colombo14a.html
    """
    lengths = search.lengths
    most_cells = _most_cells(search, records_per_cell)
    neighbours = _start(search)
    separators: dict[Edge, tuple[str, ...]] = {}
    separating: dict[Edge, frozenset[str]] = {}
    for level in range(levels + 1):
        tests = [
            test
            for test in _tests_of(search, neighbours, level, lengths, most_cells)
            if prod(map(lengths.__getitem__, test.family.members)) <= most_cells
            and search.fits(test.family)
        ]
        if not tests:  # a test of a higher level has more cells than one of this level
            break
        sets = tuple(_candidates(lengths, test, alpha) for test in tests)
        winners = yield Choices(sets, search.missing, search.rows, score="likelihood")
        for test, winner in zip(tests, winners, strict=True):
            if winner == 0:
                pair = test.x, test.y
                separators.setdefault(pair, test.given)
                separating[pair] = separating.get(pair, frozenset()).union(test.given)
                neighbours[test.x].discard(test.y)
                neighbours[test.y].discard(test.x)
    sorted_neighbours = {name: tuple(sorted(neighbours[name])) for name in search.names}
    return Skeleton(sorted_neighbours, separators, separating)


def skeleton_widest(
    search: Search, *, levels: int = LEVELS, records_per_cell: int = RECORDS_PER_CELL
) -> list[Family]:
    """Return a family for each pair and level: the widest of which `skeleton_steps` may ask.

    The number of tests depends on the data; it may be larger or smaller than that of the families.
    """
    lengths = search.lengths
    most_cells = _most_cells(search, records_per_cell)
    largest, families = sorted(search.names, key=lambda name: -lengths[name]), []
    for x, y in _tested(search, _start(search)):
        given: tuple[str, ...] = ()
        for level in range(levels + 1):
            family = Family(x, (*given, y))
            if prod(map(lengths.__getitem__, family.members)) <= most_cells and search.fits(family):
                families.append(family)
            others = [name for name in largest if name not in (x, y)]
            given = tuple(sorted(others[: level + 1]))
    return families


def skeleton_bits(variables: int, levels: int) -> float:
    """Return how many bits the winners have at most: two for each test of each level."""
    pairs, others = comb(variables, 2), max(variables - 2, 0)
    return float(sum(2 * pairs * comb(others, level) for level in range(levels + 1)))


def _most_cells(search: Search, records_per_cell: int) -> float:
    return search.records / records_per_cell if records_per_cell else inf


def _start(search: Search) -> dict[str, set[str]]:
    """Return the complete graph without the pairs of which both directions are forbidden."""
    neighbours: dict[str, set[str]] = {name: set() for name in search.names}
    for x, y in combinations(search.names, 2):
        if search.constraints.allows(x, y) or search.constraints.allows(y, x):
            neighbours[x].add(y)
            neighbours[y].add(x)
    return neighbours


def _tested(search: Search, neighbours: Mapping[str, set[str]]) -> Iterator[Edge]:
    """Return the pairs of neighbours that no edge is required of, sorted by name."""
    required = {frozenset(edge) for edge in search.constraints.required}
    for x, y in combinations(search.names, 2):
        if y in neighbours[x] and frozenset((x, y)) not in required:
            yield x, y


def _tests_of(
    search: Search,
    neighbours: Mapping[str, set[str]],
    level: int,
    lengths: Mapping[str, int],
    most_cells: float,
) -> Iterator[_Test]:
    """Return the tests of a level: given neighbours of either variable."""
    least = prod(sorted(lengths.values())[:level])
    for x, y in _tested(search, neighbours):
        if lengths[x] * lengths[y] * least > most_cells:
            continue  # none of many sets would do
        sets = {
            given
            for one in (x, y)
            for given in combinations(sorted(neighbours[one] - {x, y}), level)
        }
        yield from (_Test(x, y, given) for given in sorted(sets))


def _candidates(
    lengths: Mapping[str, int], test: _Test, alpha: float
) -> tuple[Candidate, Candidate]:
    """Return independence and dependence, as log-likelihoods over the same records."""
    degrees = (lengths[test.x] - 1) * (lengths[test.y] - 1)
    degrees *= prod(map(lengths.__getitem__, test.given))
    threshold = Constant(half_quantile(degrees, alpha))
    alone = Score(Family(test.x, test.given), within=(test.y,))
    return (alone, threshold), (Score(test.family),)
