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

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from protocols.variables import Family
from vertibayes.inference.marginals import Marginals
from vertibayes.inference.propagation import Array
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
        How many cells more are opened than without this step.
    """

    child: str
    neighbour: str
    cells: int


def widen(
    network: Network,
    missing: Mapping[str, float],
    cells: int,
    most_variables: int | None = None,
) -> tuple[Widening, ...]:
    """Choose the neighbours that bring most for each cell that they open, one after the other.

    Parameters
    ----------
    network : Network
        Fitted to the families' tables.
    missing : mapping of str to float
        Of each variable, the share of its cells that are missing.
    cells : int
        How many may be opened in all.
    most_variables : int, optional
        How many variables a table may have; not limited if None.
    """
    choice = _Choice(network, missing, cells, most_variables)
    steps: list[Widening] = []
    while True:
        left = cells - sum(step.cells for step in steps)
        affordable = [option for option in choice.options() if option[1].cells <= left]
        if not affordable:
            return tuple(steps)
        _, step = max(affordable, key=lambda option: option[0])
        steps.append(step)
        choice.take(step)


class _Choice:
    """The tables as they grow, and what each neighbour would bring."""

    def __init__(
        self,
        network: Network,
        missing: Mapping[str, float],
        cells: int,
        most_variables: int | None,
    ) -> None:
        self._marginals = Marginals.of(network)
        self._missing, self._cells, self._most = missing, cells, most_variables
        self._codes = {
            name: len(variable.states) + (missing[name] > 0)
            for name, variable in network.variables.items()
        }
        self._neighbours = network.structure.moral_neighbours()
        self._families = {family.child: family for family in network.structure.families}
        self._tables = {child: family.members for child, family in self._families.items()}
        self._options = {child: self._looked_at(child) for child in self._families}

    def options(self) -> Iterator[tuple[float, Widening]]:
        """Return all steps that can be taken, each with its gain for a cell."""
        for options in self._options.values():
            yield from options

    def take(self, step: Widening) -> None:
        """Widen a table."""
        self._tables[step.child] += (step.neighbour,)
        self._options[step.child] = self._looked_at(step.child)

    def _looked_at(self, child: str) -> list[tuple[float, Widening]]:
        family, table = self._families[child], self._tables[child]
        if self._most is not None and len(table) >= self._most:
            return []
        opened = self._size(table) if len(table) > len(family.members) else 0
        near = set().union(*(self._neighbours[name] for name in table)).difference(table)
        found = []
        for neighbour in sorted(near):
            more = self._size((*table, neighbour)) - opened
            gain = self._gain(family, table, neighbour) if more <= self._cells else 0.0
            if gain > LEAST_GAIN:
                found.append((gain / more, Widening(child, neighbour, more)))
        return found

    def _size(self, table: tuple[str, ...]) -> int:
        return prod(self._codes[name] for name in table)

    def _gain(self, family: Family, table: tuple[str, ...], neighbour: str) -> float:
        joint = self._marginals.joint((*table, neighbour))
        members = len(family.members)
        parameters: int = (joint.shape[0] - 1) * prod(joint.shape[1:members])
        shares = [self._missing[name] for name in table]
        gaps = [axis for axis, share in enumerate(shares) if share > 0]
        gain = 0.0
        for lost in (s for k in range(1, len(gaps) + 1) for s in combinations(gaps, k)):
            if lost[0] < members:  # else the family is complete
                chance = prod(q if axis in lost else 1 - q for axis, q in enumerate(shares))
                gain += chance * _told(joint, lost)
        return parameters * (1 - self._missing[neighbour]) * gain


def _told(joint: Array, lost: tuple[int, ...]) -> float:
    """Return the share of what is unknown of lost axes, given the others, that the last one tells.

    I(lost; last | others) / H(lost | others).
    """
    alone = joint.sum(axis=-1)
    unknown = _entropy(alone) - _entropy(alone.sum(axis=lost))
    left = _entropy(joint) - _entropy(joint.sum(axis=lost))
    return (unknown - left) / unknown if unknown > 1e-12 else 0.0


def _entropy(distribution: Array) -> float:
    seen = distribution[distribution > 0]
    return float(-(seen * np.log(seen)).sum())
