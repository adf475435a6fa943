"""Junction trees of discrete Bayesian networks (Lauritzen and Spiegelhalter 1988)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TypeAlias

from vertibayes.dag import Structure

Clique: TypeAlias = tuple[str, ...]

MOST_STATES = 10_000_000  # of all cliques


@dataclass(frozen=True)
class JunctionTree:
    """The cliques of a triangulated moral graph, as a rooted forest."""

    cliques: tuple[Clique, ...]  # the variables of each clique; parents come before children
    parents: tuple[int, ...]  # the parent of each clique, to which it sends its message
    homes: Mapping[str, int] = field(repr=False)  # the clique that holds the family of each node

    @classmethod
    def of(
        cls, structure: Structure, states: Mapping[str, int], most_states: int = MOST_STATES
    ) -> JunctionTree:
        """Make the tree of a structure, by eliminating the node of the smallest clique first."""
        cliques, parents = _forest(_eliminated(structure.moral_neighbours(), states))
        sizes = [prod(states[name] for name in clique) for clique in cliques]
        if sum(sizes) > most_states:
            largest = cliques[sizes.index(max(sizes))]
            raise ValueError(
                f"inference needs cliques of {sum(sizes):,} states, at most {most_states:,} are "
                f"possible: the largest is {', '.join(largest)} with {max(sizes):,}; learn with "
                "fewer parents"
            )
        homes = {
            family.child: next(
                i for i, clique in enumerate(cliques) if set(family.members) <= set(clique)
            )
            for family in structure.families
        }
        return cls(cliques, parents, homes)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each clique, which send it their messages."""
        children: list[list[int]] = [[] for _ in self.cliques]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(child)
        return tuple(map(tuple, children))

    @cached_property
    def beneath(self) -> tuple[frozenset[str], ...]:
        """The variables that each clique and the cliques below it hold."""
        held = [frozenset(clique) for clique in self.cliques]
        for child in reversed(range(len(held))):
            if self.parents[child] >= 0:
                held[self.parents[child]] |= held[child]
        return tuple(held)

    def separator(self, clique: int) -> Clique:
        """Return the variables that a clique shares with its parent, in the clique's order."""
        if self.parents[clique] < 0:
            return ()
        above = self.cliques[self.parents[clique]]
        return tuple(name for name in self.cliques[clique] if name in above)


def _eliminated(neighbours: dict[str, set[str]], states: Mapping[str, int]) -> list[set[str]]:
    """Return the cliques in the order of elimination, which empties `neighbours`."""
    cliques = []
    while neighbours:
        node = min(
            neighbours, key=lambda n: (prod(states[m] for m in neighbours[n]) * states[n], n)
        )
        around = neighbours.pop(node)
        cliques.append({node, *around})
        for name in around:
            neighbours[name] |= around - {name}
            neighbours[name].discard(node)
    return cliques


def _forest(sets: list[set[str]]) -> tuple[tuple[Clique, ...], tuple[int, ...]]:
    """Join the maximal cliques that share the most variables to a forest, roots first."""
    maximal = [c for i, c in enumerate(sets) if not any(c < d or c == d for d in sets[:i])]
    maximal = [c for c in maximal if not any(c < d for d in maximal)]
    cliques: list[Clique] = []
    parents: list[int] = []
    best = dict.fromkeys(range(len(maximal)), (0, -1))  # how many variables shared, with which one
    while best:
        nearest = max(best, key=lambda i: (best[i][0], -i))
        shared, parent = best.pop(nearest)
        for other in best:
            best[other] = max(best[other], (len(maximal[nearest] & maximal[other]), len(cliques)))
        cliques.append(tuple(sorted(maximal[nearest])))
        parents.append(parent if shared else -1)
    return tuple(cliques), tuple(parents)
