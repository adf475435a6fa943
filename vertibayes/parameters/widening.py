"""Which tables are worth being opened one variable wider, where cells are missing.

A record that misses a member of a family says little of the family's CPT; a neighbour of the family
that it does not miss says more. What a neighbour w adds to a table is the share of the missing
information that it brings, times the number of free parameters that it is missing for:

    gain = (r - 1) q  sum_S P(just S is missing) P(w is known) I(S; w | rest) / H(S | rest)

over the sets S of missing members with one of the family, r the child's states and q the parents'
configurations. All of it follows from the network and the shares of missing cells that the tables
of the families have shown: choosing opens nothing.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from protocols.variables import Variable
from vertibayes.counting.counter import MOST_CELLS
from vertibayes.inference.algebra import Array
from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network

LEAST_GAIN = 1e-3  # in parameters


class Widening(NamedTuple):
    """One step: a family's table with one neighbour more.

    Parameters
    ----------
    child : str
        Of the family.
    neighbour : str
        What its table is widened by.
    cells : int
        How many cells more are opened than without this step: those of the wider table, less those
        of the narrower if that is not wanted any more; none if another table has the same members.
    """

    child: str
    neighbour: str
    cells: int


def widen(
    network: Network,
    variables: Mapping[str, Variable],
    missing: Mapping[str, float],
    cells: int,
    most_variables: int | None = None,
) -> tuple[Widening, ...]:
    """Choose the neighbours that bring most for each cell that they open, one after the other.

    Parameters
    ----------
    network : Network
        Fitted to the families' tables, which are open.
    variables : mapping of str to Variable
        As they are counted: with a further code where cells may be missing.
    missing : mapping of str to float
        Of each variable, the share of its cells that are missing.
    cells : int
        How many may be opened in all.
    most_variables : int, optional
        How many variables a table may have; not limited if None.

    Returns
    -------
    steps : tuple of Widening
        In the order of their choice; the sum of their cells is that of the tables to be opened.
    """
    choice = _Choice(network, variables, missing, cells, most_variables)
    steps: list[Widening] = []
    while True:
        left = cells - sum(step.cells for step in steps)
        affordable = [option for option in choice.options() if option[1].cells <= left]
        if not affordable:
            return tuple(steps)
        _, step = max(affordable, key=lambda option: option[0] / max(option[1].cells, 1))
        steps.append(step)
        choice.take(step)


class _Choice:
    """The tables as they grow, and what each neighbour would bring."""

    def __init__(
        self,
        network: Network,
        variables: Mapping[str, Variable],
        missing: Mapping[str, float],
        cells: int,
        most_variables: int | None,
    ) -> None:
        self._marginals = Marginals.of(network)
        self._missing, self._most = missing, most_variables
        self._codes = {name: variables[name].codes for name in network.variables}
        self._most_cells = min(cells, MOST_CELLS)
        self._neighbours = network.structure.moral_neighbours()
        families = network.structure.families
        self._own = {family.child: len(family.members) for family in families}
        self._tables = {family.child: family.members for family in families}
        self._open = {frozenset(family.members) for family in families}
        self._planned: Multiset[frozenset[str]] = Multiset()
        self._gains = {child: self._looked_at(child) for child in self._tables}

    def options(self) -> Iterator[tuple[float, Widening]]:
        """Return all steps that can be taken, each with its gain."""
        for child, gains in self._gains.items():
            for neighbour, gain in gains.items():
                yield gain, Widening(child, neighbour, self._more(child, neighbour))

    def take(self, step: Widening) -> None:
        """Widen a table."""
        before = frozenset(self._tables[step.child])
        if before not in self._open:
            self._planned[before] -= 1
        self._tables[step.child] += (step.neighbour,)
        self._planned[before | {step.neighbour}] += 1
        self._gains[step.child] = self._looked_at(step.child)

    def _more(self, child: str, neighbour: str) -> int:
        """Return how many cells more a step opens."""
        before = frozenset(self._tables[child])
        after = before | {neighbour}
        opened = 0 if after in self._open or self._planned[after] else self._size(after)
        is_spared = before not in self._open and self._planned[before] == 1
        return opened - (self._size(before) if is_spared else 0)

    def _size(self, members: frozenset[str]) -> int:
        return prod(self._codes[name] for name in members)

    def _looked_at(self, child: str) -> dict[str, float]:
        """Return what each neighbour of a table that can be opened would bring."""
        table = self._tables[child]
        if self._most is not None and len(table) >= self._most:
            return {}
        found = {}
        near = set().union(*(self._neighbours[name] for name in table)).difference(table)
        for neighbour in sorted(near):
            after = frozenset((*table, neighbour))
            more = self._size(after) - self._size(frozenset(table))
            if after in self._open or more <= self._most_cells:
                joint = self._marginals.joint((*table, neighbour))
                told = gain(joint, [self._missing[n] for n in table], self._own[child])
                found[neighbour] = told * (1 - self._missing[neighbour])
        return {neighbour: value for neighbour, value in found.items() if value > LEAST_GAIN}


def gain(joint: Array, missing: list[float], own: int) -> float:
    """Return what a neighbour that is known in all records adds to a table: in parameters.

    Parameters
    ----------
    joint : ndarray
        The distribution of the table's members, the family's first, and of the neighbour, last.
    missing : list of float
        Of each member, the share of its cells that are missing.
    own : int
        How many members are the family's.
    """
    parameters: int = (joint.shape[0] - 1) * prod(joint.shape[1:own])
    gaps = [axis for axis, share in enumerate(missing) if share > 0]
    alone = joint.sum(axis=-1)
    of_all, of_alone = _entropy(joint), _entropy(alone)
    total = 0.0
    for lost in (s for k in range(1, len(gaps) + 1) for s in combinations(gaps, k)):
        if lost[0] < own:  # else the family is complete
            unknown = of_alone - _entropy(alone.sum(axis=lost))
            left = of_all - _entropy(joint.sum(axis=lost))
            chance = prod(q if axis in lost else 1 - q for axis, q in enumerate(missing))
            total += chance * (unknown - left) / unknown if unknown > 1e-12 else 0.0
    return parameters * total


def _entropy(distribution: Array) -> float:
    seen = distribution[distribution > 0]
    return float(-(seen * np.log(seen)).sum())
