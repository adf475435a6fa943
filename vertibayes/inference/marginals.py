"""Joint distributions of a few variables without evidence.

The distribution of variables in one clique is a marginal of the clique. For variables in several
cliques, the conditional distributions of the cliques between them, each given the variables that it
shares with its parent, are multiplied and summed (Koller and Friedman 2009, section 10.3.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vertibayes.inference.algebra import PLAIN, Array
from vertibayes.inference.junction_tree import Clique, JunctionTree
from vertibayes.inference.propagation import Batch
from vertibayes.model import Model


@dataclass(frozen=True)
class Marginals:
    """The joint distributions of any few variables under a network."""

    tree: JunctionTree  # the junction tree of the network
    joints: Sequence[Array] = field(repr=False)  # the joint distribution of each clique

    @classmethod
    def of(cls, network: Model, tree: JunctionTree | None = None) -> Marginals:
        """Return the marginals of a network; its junction tree is made if it is not given."""
        tree = tree or JunctionTree.of(network.structure, network.cardinalities)
        beliefs = Batch(tree, network.cardinalities, {}).propagate(network)
        return cls(tree, [joint[0] for joint in beliefs.joints])

    def joint(self, members: Sequence[str]) -> Array:
        """Return the joint distribution of variables."""
        names = frozenset(members)
        roots = [c for c, parent in enumerate(self.tree.parents) if parent < 0]
        unknown = names.difference(*(self.tree.beneath[root] for root in roots))
        if unknown:
            raise ValueError(f"the network has no variable {min(unknown)!r}")
        parts = [names & self.tree.beneath[root] for root in roots]
        factors = [self._together(part) for part in parts if part]
        return _contracted(factors, tuple(members))

    def _together(self, kept: frozenset[str]) -> tuple[Clique, Array]:
        """Return the distribution of variables of one tree of the forest."""
        tree = self.tree
        top = max(c for c, held in enumerate(tree.beneath) if kept <= held)
        messages: dict[int, list[tuple[Clique, Array]]] = {}
        for clique in range(len(tree.cliques) - 1, top, -1):
            parent = tree.parents[clique]
            if parent >= 0 and kept & tree.beneath[clique] - set(tree.cliques[parent]):
                below = messages.pop(clique, [])
                messages.setdefault(parent, []).append(self._given_parent(clique, below, kept))
        return _summed_to([(tree.cliques[top], self.joints[top]), *messages.get(top, [])], kept)

    def _given_parent(
        self, clique: int, below: Iterable[tuple[Clique, Array]], kept: frozenset[str]
    ) -> tuple[Clique, Array]:
        """Return P(kept variables beneath | variables that the clique shares with its parent)."""
        names, joint = self.tree.cliques[clique], self.joints[clique]
        shared = self.tree.separator(clique)
        others = tuple(axis for axis, name in enumerate(names) if name not in shared)
        share = PLAIN.over(joint, joint.sum(axis=others, keepdims=True))
        return _summed_to([(names, share), *below], kept.union(shared))


def _summed_to(factors: list[tuple[Clique, Array]], kept: frozenset[str]) -> tuple[Clique, Array]:
    """Multiply factors and sum out all variables except `kept`."""
    held = {name for names, _ in factors for name in names}
    names = tuple(sorted(kept & held))
    return names, _contracted(factors, names)


def _contracted(factors: list[tuple[Clique, Array]], names: Clique) -> Array:
    """Multiply factors and sum out all variables except `names`, which become the axes."""
    axis: dict[str, int] = {}
    operands: list[Any] = []
    for members, array in factors:
        operands += [array, [axis.setdefault(name, len(axis)) for name in members]]
    pairwise = len(factors) > 2  # without it, numpy loops over all axes of all factors at once
    return np.asarray(np.einsum(*operands, [axis[name] for name in names], optimize=pairwise))


def divergence(truth: Model, model: Model) -> float:
    """Return KL(truth || model), in nats, of networks with the same structure.

    The divergence is the sum over families of the expected logarithm of the CPTs' ratio. It is
    infinite if a possible combination of values has probability zero in the model.
    """
    if truth.structure != model.structure or truth.variables != model.variables:
        raise ValueError("the networks must have the same structure and states")
    marginals = Marginals.of(truth)
    total = 0.0
    for family in truth.structure.families:
        joint = marginals.joint(family.members)
        seen = joint > 0
        with np.errstate(divide="ignore"):
            ratio = truth.cpts[family.child][seen] / model.cpts[family.child][seen]
        total += float((joint[seen] * np.log(ratio)).sum())
    return total
