"""Trees of most information: Chow and Liu's tree, and naive Bayes with a tree of features (TAN)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import log2

from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.structure.search import Search
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate, Choices, Score
from vertibayes_protocols.variables import Family


@dataclass
class _Part:
    """A tree of the forest so far: its nodes, and those from which all edges may lead away."""

    nodes: set[str]
    roots: set[str]


@dataclass
class _Forest:
    """A forest that grows, such that each of its trees can be directed as the constraints say."""

    search: Search
    features: tuple[str, ...]
    given: tuple[str, ...]  # the class of TAN
    edges: list[Edge] = field(default_factory=list)  # pairs sorted by name
    part_of: dict[str, _Part] = field(init=False)
    directions: set[Edge] = field(init=False)  # that the constraints and sizes allow

    def __post_init__(self) -> None:
        required = set(self.search.constraints.required)
        pairs = [pair for pair in combinations(self.features, 2) if self._fits(pair, required)]
        both = [edge for x, y in pairs for edge in ((x, y), (y, x))]
        allows = self.search.constraints.allows
        self.directions = {e for e in both if allows(*e) and e[::-1] not in required}
        self.part_of = {name: _Part({name}, {name}) for name in self.features}
        for parent, child in sorted(required):
            if {parent, child} <= set(self.features) and not self.join(parent, child):
                raise ValueError(
                    f"the required edge {parent} -> {child} does not fit into a tree: of the "
                    "required edges, a node may have one parent, and none may close a cycle"
                )

    @property
    def parts(self) -> list[_Part]:
        """The trees, by the names that come first in each."""
        return list({id(part): part for part in self.part_of.values()}.values())

    def may(self, parent: str, child: str) -> bool:
        """Whether an edge between two trees may have a direction."""
        return (parent, child) in self.directions and child in self.part_of[child].roots

    def joins(self, x: str, y: str) -> bool:
        """Whether an edge would join two trees into one that can be directed."""
        apart = self.part_of[x] is not self.part_of[y]
        return apart and (self.may(x, y) or self.may(y, x))

    def join(self, x: str, y: str) -> bool:
        """Add an edge; return False if it would not join two trees."""
        if not self.joins(x, y):
            return False
        one, other = self.part_of[x], self.part_of[y]
        roots = one.roots if self.may(x, y) else set()
        roots = roots | other.roots if self.may(y, x) else roots
        part = _Part(one.nodes | other.nodes, roots)
        self.part_of |= dict.fromkeys(part.nodes, part)
        self.edges.append((min(x, y), max(x, y)))
        return True

    def edges_from(self, node: str) -> list[Edge]:
        """Return the edges that may join the tree of a node to another, sorted by name."""
        pairs = ((min(node, other), max(node, other)) for other in self.features if other != node)
        return sorted((x, y) for x, y in pairs if self.joins(x, y))

    def _fits(self, pair: Edge, required: set[Edge]) -> bool:
        """Whether the table of a pair is small enough; that of a required edge is not asked for."""
        return not required.isdisjoint((pair, pair[::-1])) or self.search.fits(self.family(*pair))

    def family(self, x: str, y: str) -> Family:
        """Return the family whose table has the information of a pair."""
        return Family(x, (*self.given, y))

    def information(self, edge: Edge) -> Candidate:
        """Return the mutual information of a pair times its records, given the class."""
        x, y = edge
        return Score(self.family(x, y)), Score(Family(x, self.given), within=(y,), sign=-1)

    def directed(self) -> dict[str, tuple[str, ...]]:
        """Return the parent of each node: edges lead away from each tree's first root by name."""
        parents: dict[str, tuple[str, ...]] = dict.fromkeys(self.features, ())
        for part in self.parts:
            stack = [(min(part.roots), "")]
            while stack:
                node, parent = stack.pop()
                parents[node] = (parent,) if parent else ()
                ends = (edge for edge in self.edges if node in edge)
                others = (y if x == node else x for x, y in ends)
                stack += [(other, node) for other in others if other != parent]
        return parents


def chow_liu_steps(search: Search) -> Steps[Structure]:
    """Find the tree of most mutual information (Chow and Liu 1968).

    Trees grow as in Boruvka's algorithm: of each node the edge of most information that leads out
    of its tree is chosen, then of each tree the best of its nodes' edges. All trees are joined by
    them at once, so that their number at least halves with each pair of calls. Of equal edges the
    first by name is taken, so that no cycle arises. With missing cells the information of a pair
    counts the records that are complete in both. The first call asks for all pairs, so that a
    counter is asked once (`TableChooser`).

    The tree contains the required edges and no forbidden ones; edges lead away from the first node
    by name from which the constraints allow it. If constraints allow some pairs one direction only,
    an edge joins two trees only if the result can be directed, and the tree need not be the one of
    most information. Pairs that are not allowed may leave several trees.

    References
    ----------
    Chow and Liu (1968), doi:10.1109/TIT.1968.1054142.
    """
    forest = _Forest(search, search.names, ())
    if search.max_parents > 0:
        yield from _grow(forest)
    return Structure(forest.directed())


def tan_steps(search: Search) -> Steps[Structure]:
    """Find the tree-augmented naive Bayes structure (Friedman, Geiger and Goldszmidt 1997).

    The class is a parent of all features, except those of which the constraints forbid it, or whose
    required parents are as many as allowed. The features form the tree of most mutual information
    given the class; see `chow_liu_steps`.

    References
    ----------
    Friedman, Geiger and Goldszmidt (1997), doi:10.1023/A:1007465528199.
    """
    forest = _features(search)
    (target,) = forest.given
    if search.max_parents > 1:
        yield from _grow(forest)
    parents: dict[str, tuple[str, ...]] = {target: ()}
    for name, of_tree in forest.directed().items():
        by_class = len(of_tree) < search.max_parents and search.constraints.allows(target, name)
        parents[name] = (target, *of_tree) if by_class else of_tree
    return Structure({name: parents[name] for name in search.names})


def _pairs(forest: _Forest) -> Iterator[Edge]:
    """Return the pairs of which any edge may join trees."""
    for x, y in combinations(forest.features, 2):
        if forest.joins(x, y):
            yield x, y


def _features(search: Search) -> _Forest:
    """Return the forest of the features of TAN, without edges except required ones."""
    target = search.class_variable
    if target is None:
        raise ValueError("tan needs a class: none was given; name one of the variables")
    if target not in search.variables:
        known = ", ".join(search.names)
        raise ValueError(f"the class of tan must be one of {known}, got {target!r}")
    for parent, child in search.constraints.required:
        if child == target:
            raise ValueError(
                f"the required edge {parent} -> {child} contradicts tan, in which the class "
                f"{target} has no parents"
            )
    return _Forest(search, tuple(name for name in search.names if name != target), (target,))


def _grow(forest: _Forest) -> Steps[None]:
    """Join trees until no edge joins two."""
    best: dict[str, Edge] = {}  # of a node, the edge that won among those out of its tree
    while True:
        out = {name: forest.edges_from(name) for name in forest.features}
        stale = {name: out[name] for name in out if best.get(name) not in out[name]}
        won = yield from _winners(forest, {name: edges for name, edges in stale.items() if edges})
        best = {name: edge for name, edge in (best | won).items() if out[name]}
        if not best:
            return
        of_parts = {
            min(part.nodes): sorted({best[name] for name in part.nodes if name in best})
            for part in forest.parts
        }
        edges = yield from _winners(forest, {part: of for part, of in of_parts.items() if of})
        for x, y in sorted(set(edges.values())):
            forest.join(x, y)  # what one-way constraints no longer allow is left out


def _winners(forest: _Forest, edges: Mapping[str, list[Edge]]) -> Steps[dict[str, Edge]]:
    """Ask which edge of each list has most information, once for lists that are equal."""
    sets = list({tuple(of): None for of in edges.values() if len(of) > 1})
    won = {tuple(of): of[0] for of in edges.values()}
    if sets:
        candidates = tuple(tuple(map(forest.information, of)) for of in sets)
        search = forest.search
        places = yield Choices(candidates, search.missing, search.rows, score="likelihood")
        won |= {of: of[place] for of, place in zip(sets, places, strict=True)}
    return {name: won[tuple(of)] for name, of in edges.items()}


def chow_liu_widest(search: Search) -> list[Family]:
    """Return the families of all pairs; none for a structure without edges."""
    forest = _Forest(search, search.names, ())
    return [forest.family(x, y) for x, y in _pairs(forest)] if search.max_parents > 0 else []


def tan_widest(search: Search) -> list[Family]:
    """Return the families of all pairs of features, given the class; none for naive Bayes."""
    forest = _features(search)
    return [forest.family(x, y) for x, y in _pairs(forest)] if search.max_parents > 1 else []


def tree_calls(variables: int, max_parents: int) -> int:
    """Return how many calls there are at most.

    Two calls join two trees or more. Without constraints they halve the number of trees at least;
    if constraints allow one direction only they may join no more than two.
    """
    del max_parents
    return max(1, 2 * (variables - 1))


def tree_bits(variables: int, max_parents: int) -> float:
    """Return how many bits the winners have at most: each node and each tree has one per round."""
    each = log2(max(variables, 1)) + 1
    return tree_calls(variables, max_parents) * variables * each
