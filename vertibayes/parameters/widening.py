"""Choose the tables that should be revealed with more variables, where values are missing.

A record that misses a member of a family contributes little to the family's CPT. A neighbour of the
family whose value is known contributes more. The gain of a neighbour w for a table is the expected
share of the missing information that w provides, times the number of the CPT's free parameters:

    gain = (r - 1) q  sum_S P(exactly S is missing) P(w is known) I(S; w | rest) / H(S | rest)

The sum is over the sets S of missing members with at least one member of the family; r is the
number of the child's states and q the number of joint states of the parents. The gain follows from
the network and from the shares of missing values in the families' tables: the choice reveals no
table.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from vertibayes.counting.counter import MOST_CELLS
from vertibayes.inference.algebra import Array
from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network
from vertibayes_protocols.variables import Variable

LEAST_GAIN = 1e-3  # in parameters


class Widening(NamedTuple):
    """One step: a neighbour is added to the table of a family."""

    child: str  # the child of the family
    neighbour: str  # the variable that is added to the table
    cells: int  # the number of cells that this step reveals in addition


def widen(
    network: Network,
    variables: Mapping[str, Variable],
    missing: Mapping[str, float],
    cells: int,
    most_variables: int | None = None,
) -> tuple[Widening, ...]:
    """Choose neighbours one after the other, each with the highest gain per revealed cell."""
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
    """The tables as they become wider, and the gain of each neighbour."""

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
        self._revealed = {frozenset(family.members) for family in families}
        self._planned: Multiset[frozenset[str]] = Multiset()
        self._gains = {child: self._gains_of(child) for child in self._tables}

    def options(self) -> Iterator[tuple[float, Widening]]:
        """Yield all possible steps, each with its gain."""
        for child, gains in self._gains.items():
            for neighbour, gain in gains.items():
                yield gain, Widening(child, neighbour, self._more(child, neighbour))

    def take(self, step: Widening) -> None:
        """Widen a table by a step."""
        before = frozenset(self._tables[step.child])
        if before not in self._revealed:
            self._planned[before] -= 1
        self._tables[step.child] += (step.neighbour,)
        self._planned[before | {step.neighbour}] += 1
        self._gains[step.child] = self._gains_of(step.child)

    def _more(self, child: str, neighbour: str) -> int:
        """Return the number of cells that a step reveals in addition."""
        before = frozenset(self._tables[child])
        after = before | {neighbour}
        added = 0 if after in self._revealed or self._planned[after] else self._size(after)
        is_spared = before not in self._revealed and self._planned[before] == 1
        return added - (self._size(before) if is_spared else 0)

    def _size(self, members: frozenset[str]) -> int:
        return prod(self._codes[name] for name in members)

    def _gains_of(self, child: str) -> dict[str, float]:
        """Return the gain of each neighbour by which a table can be widened."""
        table = self._tables[child]
        if self._most is not None and len(table) >= self._most:
            return {}
        gains = {}
        near = set().union(*(self._neighbours[name] for name in table)).difference(table)
        for neighbour in sorted(near):
            after = frozenset((*table, neighbour))
            more = self._size(after) - self._size(frozenset(table))
            if after in self._revealed or more <= self._most_cells:
                joint = self._marginals.joint((*table, neighbour))
                if_known = gain(joint, [self._missing[n] for n in table], self._own[child])
                gains[neighbour] = if_known * (1 - self._missing[neighbour])
        return {neighbour: value for neighbour, value in gains.items() if value > LEAST_GAIN}


def gain(joint: Array, missing: list[float], own: int) -> float:
    """Return the gain of a neighbour that is known in all records, in parameters."""
    parameters: int = (joint.shape[0] - 1) * prod(joint.shape[1:own])
    incomplete = [axis for axis, share in enumerate(missing) if share > 0]
    alone = joint.sum(axis=-1)
    of_all, of_alone = _entropy(joint), _entropy(alone)
    total = 0.0
    sizes = range(1, len(incomplete) + 1)
    for lost in (s for k in sizes for s in combinations(incomplete, k)):
        if lost[0] < own:  # otherwise the family is complete
            unknown = of_alone - _entropy(alone.sum(axis=lost))
            left = of_all - _entropy(joint.sum(axis=lost))
            chance = prod(q if axis in lost else 1 - q for axis, q in enumerate(missing))
            total += chance * (unknown - left) / unknown if unknown > 1e-12 else 0.0
    return parameters * total


def _entropy(distribution: Array) -> float:
    seen = distribution[distribution > 0]
    return float(-(seen * np.log(seen)).sum())
