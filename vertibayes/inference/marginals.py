"""Joint distributions of a few variables, nothing being known of any record.

Variables of one clique are summed out of it. For others, the conditional distributions of the
cliques between them, given what each shares with its parent, are multiplied, and summed on the way
(Koller and Friedman 2009, section 10.3.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vertibayes.inference.algebra import PLAIN, Array
from vertibayes.inference.junction_tree import Clique, JunctionTree
from vertibayes.inference.propagation import Batch
from vertibayes.network import Network


@dataclass(frozen=True)
class Marginals:
    """The distributions of any few variables under a network.

    Parameters
    ----------
    tree : JunctionTree
    joints : sequence of ndarray
        Of each clique, its joint distribution.
    """

    tree: JunctionTree
    joints: Sequence[Array] = field(repr=False)

    @classmethod
    def of(cls, network: Network, tree: JunctionTree | None = None) -> Marginals:
        """Return those of a network; its junction tree is made if it is not given.

        Raises
        ------
        ValueError
            If the structure's cliques are too large.
        """
        tree = tree or JunctionTree.of(network.structure, network.cardinalities)
        beliefs = Batch(tree, network.cardinalities, {}).propagate(network)
        return cls(tree, [joint[0] for joint in beliefs.joints])

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
            If a variable is none of the network's.
        """
        wanted = frozenset(members)
        roots = [c for c, parent in enumerate(self.tree.parents) if parent < 0]
        unknown = wanted.difference(*(self.tree.beneath[root] for root in roots))
        if unknown:
            raise ValueError(f"no variable {min(unknown)!r}")
        parts = [wanted & self.tree.beneath[root] for root in roots]
        factors = [self._together(part) for part in parts if part]
        return _contracted(factors, tuple(members))

    def _together(self, wanted: frozenset[str]) -> tuple[Clique, Array]:
        """Return the distribution of variables of one tree of the forest."""
        tree = self.tree
        top = max(c for c, held in enumerate(tree.beneath) if wanted <= held)
        told: dict[int, list[tuple[Clique, Array]]] = {}
        for clique in range(len(tree.cliques) - 1, top, -1):
            parent = tree.parents[clique]
            if parent >= 0 and wanted & tree.beneath[clique] - set(tree.cliques[parent]):
                below = told.pop(clique, [])
                told.setdefault(parent, []).append(self._given_parent(clique, below, wanted))
        return _summed_to([(tree.cliques[top], self.joints[top]), *told.get(top, [])], wanted)

    def _given_parent(
        self, clique: int, below: Iterable[tuple[Clique, Array]], wanted: frozenset[str]
    ) -> tuple[Clique, Array]:
        """Return P(wanted variables beneath | what the clique shares with its parent)."""
        names, joint = self.tree.cliques[clique], self.joints[clique]
        shared = self.tree.separator(clique)
        others = tuple(axis for axis, name in enumerate(names) if name not in shared)
        share = PLAIN.over(joint, joint.sum(axis=others, keepdims=True))
        return _summed_to([(names, share), *below], wanted.union(shared))


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
