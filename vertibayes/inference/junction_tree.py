"""Junction trees of discrete Bayesian networks (Lauritzen and Spiegelhalter 1988)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TypeAlias

from vertibayes.network import Structure

Clique: TypeAlias = tuple[str, ...]

MOST_STATES = 10_000_000  # of all cliques


@dataclass(frozen=True)
class JunctionTree:
    """The cliques of a triangulated moral graph, as a rooted forest.

    Parameters
    ----------
    cliques : tuple of tuple of str
        Parents before children.
    parents : tuple of int
        Of each clique, the one that it sends its message to; -1 at a root.
    homes : mapping of str to int
        Of each node, the clique that holds its family.
    """

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    homes: Mapping[str, int] = field(repr=False)

    @classmethod
    def of(
        cls, structure: Structure, states: Mapping[str, int], most_states: int = MOST_STATES
    ) -> JunctionTree:
        """Make the tree of a structure, by eliminating the node of the smallest clique first.

        Parameters
        ----------
        structure : Structure
        states : mapping of str to int
            The number of states of each node.
        most_states : int, default=10_000_000
            Of all cliques together.

        Raises
        ------
        ValueError
            If the cliques have more states: it names the largest.
        """
        found = _eliminated(structure.moral_neighbours(), states)
        cliques, parents = _forest(found)
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
        """Of each clique, those that send it their messages."""
        found: list[list[int]] = [[] for _ in self.cliques]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(child)
        return tuple(map(tuple, found))

    @cached_property
    def beneath(self) -> tuple[frozenset[str], ...]:
        """Of each clique, the variables that it and the cliques below it hold."""
        found = [frozenset(clique) for clique in self.cliques]
        for child in reversed(range(len(found))):
            if self.parents[child] >= 0:
                found[self.parents[child]] |= found[child]
        return tuple(found)

    def separator(self, clique: int) -> Clique:
        """Return what a clique shares with its parent, in its own order."""
        if self.parents[clique] < 0:
            return ()
        above = self.cliques[self.parents[clique]]
        return tuple(name for name in self.cliques[clique] if name in above)


def _eliminated(neighbours: dict[str, set[str]], states: Mapping[str, int]) -> list[set[str]]:
    """Return the cliques that elimination makes, in its order; `neighbours` is used up."""
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


def _forest(found: list[set[str]]) -> tuple[tuple[Clique, ...], tuple[int, ...]]:
    """Join the maximal cliques where they share most: a spanning forest, roots first."""
    maximal = [c for i, c in enumerate(found) if not any(c < d or c == d for d in found[:i])]
    maximal = [c for c in maximal if not any(c < d for d in maximal)]
    cliques: list[Clique] = []
    parents: list[int] = []
    best = dict.fromkeys(range(len(maximal)), (0, -1))  # what each shares, and with which clique
    while best:
        nearest = max(best, key=lambda i: (best[i][0], -i))
        shared, parent = best.pop(nearest)
        for other in best:
            best[other] = max(best[other], (len(maximal[nearest] & maximal[other]), len(cliques)))
        cliques.append(tuple(sorted(maximal[nearest])))
        parents.append(parent if shared else -1)
    return tuple(cliques), tuple(parents)
