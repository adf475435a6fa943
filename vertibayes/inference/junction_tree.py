"""A junction tree, propagated for many records at once (Lauritzen and Spiegelhalter 1988).

Axis 0 of every array is the record. What is known of a record is a vector over the states of each
variable: ones where it may be, so that a missing cell is all ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.network import Network, Structure

Array: TypeAlias = NDArray[np.float64]
Clique: TypeAlias = tuple[str, ...]

MOST_STATES = 10_000_000  # of a clique


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
    def of(cls, structure: Structure, states: Mapping[str, int]) -> JunctionTree:
        """Make the tree of a structure, by eliminating the node of the smallest clique first.

        Parameters
        ----------
        structure : Structure
        states : mapping of str to int
            The number of states of each node.

        Raises
        ------
        ValueError
            If a clique has more than 10,000,000 states: it names the clique.
        """
        found = _eliminated(_moral(structure), states)
        cliques, parents = _forest(found)
        for clique in cliques:
            size = prod(states[name] for name in clique)
            if size > MOST_STATES:
                told = ", ".join(clique)
                raise ValueError(
                    f"the clique {told} has {size:,} states, {MOST_STATES:,} can be held"
                )
        homes = {
            family.child: next(
                i for i, clique in enumerate(cliques) if set(family.members) <= set(clique)
            )
            for family in structure.families
        }
        return cls(cliques, parents, homes)

    def separator(self, clique: int) -> Clique:
        """Return what a clique shares with its parent, in its own order."""
        if self.parents[clique] < 0:
            return ()
        above = self.cliques[self.parents[clique]]
        return tuple(name for name in self.cliques[clique] if name in above)


def _moral(structure: Structure) -> dict[str, set[str]]:
    neighbours: dict[str, set[str]] = {node: set() for node in structure.nodes}
    for family in structure.families:
        for a, b in combinations(family.members, 2):
            neighbours[a].add(b)
            neighbours[b].add(a)
    return neighbours


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
    left = list(maximal)
    while left:
        shared = [
            (len(c & set(cliques[p])), -i, p)
            for i, c in enumerate(left)
            for p in range(len(cliques))
        ]
        weight, place, parent = max(shared, default=(0, 0, -1))
        cliques.append(tuple(sorted(left.pop(-place))))
        parents.append(parent if weight else -1)
    return tuple(cliques), tuple(parents)


@dataclass(frozen=True)
class Beliefs:
    """The joint distribution of each clique, given what is known of each record.

    Parameters
    ----------
    tree : JunctionTree
    log_likelihood : ndarray of shape (n,)
        Of each record, in nats; minus infinity where what is known has probability zero.
    joints : list of ndarray of shape (n, states of the clique's variables, in order)
        Each record's sums to 1, or is 0 where what is known has probability zero.
    """

    tree: JunctionTree
    log_likelihood: Array
    joints: list[Array] = field(repr=False)

    def marginal(self, members: Sequence[str], clique: int | None = None) -> Array:
        """Return the joint distribution of variables that one clique holds.

        Returns
        -------
        marginal : ndarray of shape (n, states of `members`, in order)

        Raises
        ------
        ValueError
            If no clique holds them all.
        """
        wanted = set(members)
        places = range(len(self.joints)) if clique is None else [clique]
        home = next((i for i in places if wanted <= set(self.tree.cliques[i])), None)
        if home is None:
            raise ValueError(f"no clique holds all of {', '.join(members)}")
        names = self.tree.cliques[home]
        others = tuple(1 + i for i, name in enumerate(names) if name not in wanted)
        kept = [name for name in names if name in wanted]
        summed = self.joints[home].sum(axis=others)
        return np.asarray(summed).transpose(0, *(1 + kept.index(name) for name in members))


def propagate(
    tree: JunctionTree, network: Network, known: Mapping[str, Array] | None = None
) -> Beliefs:
    """Propagate what is known of some records through a tree.

    Parameters
    ----------
    tree : JunctionTree
        Of the network's structure.
    network : Network
    known : mapping of str to ndarray of shape (n, states), optional
        Of each variable of which something is known, the likelihood of its states; without any,
        one record of which nothing is known.

    Returns
    -------
    beliefs : Beliefs
    """
    potentials = _potentials(tree, network, known or {})
    records = potentials[0].shape[0]
    log_likelihood = np.zeros(records)
    up: list[Array] = [np.empty(0)] * len(potentials)
    for i in reversed(range(len(potentials))):
        message = _to_parent(tree, i, potentials[i])
        scale = message.reshape(records, -1).sum(axis=1)
        with np.errstate(divide="ignore"):
            log_likelihood += np.log(scale)
        up[i] = _divided(message, _column(scale, message.ndim))
        if tree.parents[i] >= 0:
            above = tree.parents[i]
            potentials[above] = potentials[above] * _beside(tree, i, above, up[i])
    joints: list[Array] = []
    for i, potential in enumerate(potentials):
        joint = potential
        if tree.parents[i] >= 0:
            above = tree.parents[i]
            summed = _from_parent(tree, i, joints[above])
            joint = joint * _beside(tree, i, i, _divided(summed, up[i]))
        total = joint.reshape(records, -1).sum(axis=1)
        joints.append(_divided(joint, _column(total, joint.ndim)))
    for joint in joints:
        joint[np.isneginf(log_likelihood)] = 0  # in all parts of a forest
    return Beliefs(tree, log_likelihood, joints)


def _potentials(tree: JunctionTree, network: Network, known: Mapping[str, Array]) -> list[Array]:
    """Return the product of the CPTs, and of what is known, at home in each clique."""
    records = max((len(array) for array in known.values()), default=1)
    found = [
        np.ones((records, *(len(network.variables[name].states) for name in clique)))
        for clique in tree.cliques
    ]
    for family in network.structure.families:
        home = tree.homes[family.child]
        cpt = _axes_as(network.cpts[family.child][None], family.members, tree.cliques[home])
        found[home] = found[home] * cpt
        if family.child in known:
            vector = _axes_as(known[family.child], (family.child,), tree.cliques[home])
            found[home] = found[home] * vector
    return found


def _axes_as(array: Array, names: Sequence[str], clique: Clique) -> Array:
    """Bring the axes of (n, names) into a clique's order, with an axis of 1 for the others."""
    order = sorted(range(len(names)), key=lambda i: clique.index(names[i]))
    moved = array.transpose(0, *(1 + i for i in order))
    lengths = {names[i]: array.shape[1 + i] for i in order}
    return moved.reshape(array.shape[0], *(lengths.get(name, 1) for name in clique))


def _to_parent(tree: JunctionTree, clique: int, joint: Array) -> Array:
    """Sum a clique over what its parent does not hold: axes those of the separator."""
    shared = tree.separator(clique)
    others = tuple(1 + i for i, n in enumerate(tree.cliques[clique]) if n not in shared)
    return np.asarray(joint.sum(axis=others))


def _from_parent(tree: JunctionTree, clique: int, joint: Array) -> Array:
    """Sum the parent of a clique over what the clique does not hold: the separator's axes."""
    shared, names = tree.separator(clique), tree.cliques[tree.parents[clique]]
    others = tuple(1 + i for i, name in enumerate(names) if name not in shared)
    kept = [name for name in names if name in shared]
    return np.asarray(joint.sum(axis=others)).transpose(
        0, *(1 + kept.index(name) for name in shared)
    )


def _beside(tree: JunctionTree, clique: int, target: int, message: Array) -> Array:
    """Bring a clique's message, over its separator, into the axes of a clique that holds it."""
    return _axes_as(message, tree.separator(clique), tree.cliques[target])


def _column(scale: Array, ndim: int) -> Array:
    return scale.reshape(-1, *(1,) * (ndim - 1))


def _divided(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where b is 0: what has no probability has no share."""
    return np.asarray(np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0))
