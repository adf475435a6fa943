"""Grow-shrink trees: which of its predecessors become the parents of a variable.

From the required parents, a variable takes the predecessor with the highest gain, again and again,
as long as a gain is above 0 (grow); then it drops the parent whose loss is best, as long as the
score does not fall (shrink). The tree of a variable has a node for each set of parents on the way:
its branches, best first, are the same for all orders of the variables. A node is expanded only when
an order needs it, so that only its families are asked for.

References
----------
Andrews, Ramsey, Sanchez-Romero, Camchong and Kummerfeld (2023), Fast scalable and accurate
discovery of DAGs using the best order score search and grow-shrink trees, NeurIPS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeAlias

from vertibayes.structure.family_scores import DECIMALS, FamilyScores, Wanted
from vertibayes.structure.graphs import Mask, Parents, elements


class Taken(NamedTuple):
    """The parents that a variable takes, and their score."""

    score: float
    parents: Mask


@dataclass(slots=True, eq=False)
class Node:
    """A set of parents on the way, and which predecessors could follow.

    `branches` are the further parents that raise the score, best first; None before the node is
    expanded. What a node has left are the candidates of its branches and those after them: an
    earlier one that were a predecessor would have been taken.
    """

    parents: Mask
    left: Mask
    branches: list[tuple[int, Node]] | None = None
    end: Taken | None = None


Missing: TypeAlias = dict[Node, "GrowShrinkTree"]  # nodes that must be expanded, each with its tree


class GrowShrinkTree:
    """The grow-shrink tree of one variable."""

    def __init__(self, scores: FamilyScores, child: int, among: Mask) -> None:
        self._scores, self._child = scores, child
        self._required = scores.required[child]
        self._among = among & scores.allowed[child] & ~self._required
        self.predecessors, self.successors = self._among | self._required, 0
        self._root = Node(self._required, self._among)
        self._ends: dict[Mask, Taken] = {}

    def family(self, before: Mask, missing: Missing) -> Taken | None:
        """Return the family given predecessors; None, and a node into `missing`, if not known.

        The score is -inf if a required parent is not a predecessor.
        """
        if self._required & ~before:
            return Taken(-inf, self._required)
        before &= self._among
        if before not in self._ends:
            node = self._last(before)
            if node.branches is None:
                missing[node] = self
                return None
            node.end = node.end or self._shrink(node.parents)
            self._ends[before] = node.end
        return self._ends[before]

    def grown(self, before: Mask) -> Mask:
        """Return the parents as far as they are known."""
        return self._last(before & self._among).parents

    def wanted(self, node: Node) -> list[Wanted]:
        """Return the families that a node needs before it can be expanded."""
        return self._scores.moves(self._child, node.parents, node.left)

    def expand(self, node: Node) -> None:
        """Give a node its branches, best first; its families must be known."""
        score = self._scores.score
        now, left = score(self._child, node.parents), node.left
        gains = []
        for x in self._scores.candidates(self._child, node.parents, node.left):
            gain = round(score(self._child, node.parents | 1 << x) - now, DECIMALS)
            if gain > 0:
                gains.append((-gain, x))
        node.branches = []
        for _, x in sorted(gains):
            left &= ~(1 << x)
            node.branches.append((x, Node(node.parents | 1 << x, left)))

    def _last(self, before: Mask) -> Node:
        """Follow the first branches that are predecessors to the last node that is known."""
        node: Node | None = self._root
        while node is not None:
            last = node
            node = next((n for x, n in last.branches or () if before >> x & 1), None)
        return last

    def _shrink(self, parents: Mask) -> Taken:
        score = self._scores.score
        best = score(self._child, parents)
        while rest := parents & ~self._required:
            without = {x: score(self._child, parents & ~(1 << x)) for x in elements(rest)}
            x = max(without, key=lambda x: round(without[x], DECIMALS))
            if round(without[x] - best, DECIMALS) < 0:
                break
            best, parents = without[x], parents & ~(1 << x)
        return Taken(best, parents)


def trees_of(scores: FamilyScores, among: Sequence[Mask]) -> list[GrowShrinkTree]:
    """Return the tree of each variable."""
    trees = [GrowShrinkTree(scores, child, allowed) for child, allowed in enumerate(among)]
    for child, tree in enumerate(trees):
        for predecessor in elements(tree.predecessors):
            trees[predecessor].successors |= 1 << child
    return trees


def dag_of(trees: Sequence[GrowShrinkTree], order: Sequence[int]) -> Parents:
    """Return the structure of an order, as far as it is known."""
    before, dag = 0, [0] * len(order)
    for child in order:
        family = trees[child].family(before, {})
        dag[child] = trees[child].grown(before) if family is None else family.parents
        before |= 1 << child
    return dag
