"""Joint distributions of a few variables, nothing being known of any record.

Variables of one clique are summed out of it. For others, the conditional distributions of the
cliques between them, given what each shares with its parent, are multiplied, and summed on the way
(Koller and Friedman 2009, section 10.3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vertibayes.inference.junction_tree import Clique, JunctionTree
from vertibayes.inference.propagation import Array, Batch
from vertibayes.network import Network, Structure


class Marginals:
    """The distributions of any few variables under one network after another of a structure.

    Parameters
    ----------
    structure : Structure
    states : mapping of str to int
        The number of states of each node.

    Raises
    ------
    ValueError
        If the structure's cliques are too large.
    """

    def __init__(self, structure: Structure, states: Mapping[str, int]) -> None:
        self._tree = JunctionTree.of(structure, states)
        self._nothing_known = Batch(self._tree, states, {})
        self._joints: list[Array] = []

    @classmethod
    def of(cls, network: Network) -> Marginals:
        """Return those under one network."""
        states = {name: len(variable.states) for name, variable in network.variables.items()}
        return cls(network.structure, states).under(network)

    def under(self, network: Network) -> Marginals:
        """Go over to another network of the structure."""
        self._joints = [joint[0] for joint in self._nothing_known.propagate(network).joints]
        return self

    def joint(self, members: Sequence[str]) -> Array:
        """Return the joint distribution of variables.

        Parameters
        ----------
        members : sequence of str
            One at least, none twice.

        Returns
        -------
        joint : ndarray of shape (states of `members`, in order)

        Raises
        ------
        ValueError
            If a variable is none of the structure's.
        """
        wanted = frozenset(members)
        roots = [c for c, parent in enumerate(self._tree.parents) if parent < 0]
        factors = [
            self._marginal(root, wanted & self._tree.beneath[root])
            for root in roots
            if wanted & self._tree.beneath[root]
        ]
        unknown = wanted.difference(*(names for names, _ in factors))
        if unknown:
            raise ValueError(f"no variable {min(unknown)!r}")
        return _contracted(factors, tuple(members))

    def _marginal(self, clique: int, wanted: frozenset[str]) -> tuple[Clique, Array]:
        """Return the distribution of variables that the tree beneath a clique holds."""
        held = frozenset(self._tree.cliques[clique])
        if not wanted <= held:
            for child in self._tree.children[clique]:
                if wanted <= self._tree.beneath[child]:
                    return self._marginal(child, wanted)
        factors = [(self._tree.cliques[clique], self._joints[clique])]
        factors += self._beneath(clique, wanted)
        return _summed_to(factors, wanted)

    def _beneath(self, clique: int, wanted: frozenset[str]) -> list[tuple[Clique, Array]]:
        """Return what each child tells of the wanted variables that its parent does not hold."""
        held = frozenset(self._tree.cliques[clique])
        return [
            self._conditional(child, wanted)
            for child in self._tree.children[clique]
            if wanted & self._tree.beneath[child] - held
        ]

    def _conditional(self, clique: int, wanted: frozenset[str]) -> tuple[Clique, Array]:
        """Return P(wanted variables beneath | what the clique shares with its parent)."""
        names, joint = self._tree.cliques[clique], self._joints[clique]
        shared = self._tree.separator(clique)
        others = tuple(axis for axis, name in enumerate(names) if name not in shared)
        given = joint.sum(axis=others, keepdims=True)
        share = np.divide(joint, given, out=np.zeros_like(joint), where=given > 0)
        return _summed_to([(names, share), *self._beneath(clique, wanted)], wanted.union(shared))


def _summed_to(factors: list[tuple[Clique, Array]], kept: frozenset[str]) -> tuple[Clique, Array]:
    """Multiply factors and sum out all variables but some of them."""
    held = {name for names, _ in factors for name in names}
    names = tuple(sorted(kept & held))
    return names, _contracted(factors, names)


def _contracted(factors: list[tuple[Clique, Array]], names: Clique) -> Array:
    """Multiply factors and sum out all variables but `names`, which become the axes."""
    axis: dict[str, int] = {}
    operands: list[Any] = []
    for members, array in factors:
        operands += [array, [axis.setdefault(name, len(axis)) for name in members]]
    pairwise = len(factors) > 2  # else numpy loops over all axes of all factors at once
    return np.asarray(np.einsum(*operands, [axis[name] for name in names], optimize=pairwise))
