"""Exact inference for many records at once, each distinct computation done once.

A record's cells are known or missing. Where a separator of the junction tree is known in full, the
two sides of it have nothing to tell each other; so what a clique must be computed for is named by

    upward      the cells of its variables, and the upward case of each child across a separator
                with a missing cell
    downward    its upward case, and the downward case of its parent across such a separator

Records share most of these cases: 10,000 records of ALARM with a tenth of the cells missing have
a few hundred in a clique. They depend on the cells alone, so that a `Batch` finds them once and is
propagated again and again, under one network after another (EM).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.algebra import LOGARITHMS, PLAIN, Algebra, Array
from vertibayes.inference.junction_tree import Clique, JunctionTree
from vertibayes.network import Network

Places: TypeAlias = NDArray[np.intp]

APART = -1  # the case of a neighbour that has nothing to tell


@dataclass(frozen=True)
class _Cases:
    """The distinct cases of one clique in one direction.

    Parameters
    ----------
    of_record : ndarray of shape (n,)
        The case of each record.
    first : ndarray of shape (cases,)
        A record of each case.
    weight : ndarray of shape (cases,)
        The weight of its records together.
    """

    of_record: Places
    first: Places
    weight: Array

    @classmethod
    def of(cls, keys: list[Places], weight: Array) -> _Cases:
        """Find the cases that keys, one integer a record each, tell apart."""
        key = np.zeros(len(weight), np.intp)
        for part in keys:
            shifted = part - part.min(initial=0)
            key = key * (shifted.max(initial=0) + 1) + shifted
            key = np.unique(key, return_inverse=True)[1]
        _, first, of_record = np.unique(key, return_index=True, return_inverse=True)
        total = np.bincount(of_record, weight, len(first)).astype(float)
        return cls(of_record, first, total)


class Batch:
    """Records and their cases in a junction tree.

    Parameters
    ----------
    tree : JunctionTree
    states : mapping of str to int
        The number of states of each variable.
    codes : mapping of str to ndarray of shape (n,), dtype int
        Of each variable of which something is known, the code of its state; ``states[name]`` where
        it is missing.
    weight : ndarray of shape (n,), optional
        How often each record counts; once if None.

    Raises
    ------
    ValueError
        If a variable is unknown, codes are of different lengths, or beyond their variable's.
    TypeError
        If codes are no integers.
    """

    def __init__(
        self,
        tree: JunctionTree,
        states: Mapping[str, int],
        codes: Mapping[str, NDArray[np.integer]],
        weight: Array | None = None,
    ) -> None:
        check_codes(states, codes)
        self.tree, self.states = tree, states
        self.records = len(next(iter(codes.values()))) if codes else 1
        self.weight = np.ones(self.records) if weight is None else weight
        self._codes = {name: np.full(self.records, count) for name, count in states.items()}
        self._codes |= {name: np.asarray(column, np.intp) for name, column in codes.items()}
        self._joined = [self._is_joined(clique) for clique in range(len(tree.cliques))]
        self._up = self._upward_cases()
        self._down = self._downward_cases()

    def _is_joined(self, clique: int) -> NDArray[np.bool_]:
        """Tell of each record whether a clique and its parent have something to tell each other."""
        joined = np.zeros(self.records, np.bool_)
        for name in self.tree.separator(clique):
            joined |= self._codes[name] == self.states[name]
        return joined

    def _upward_cases(self) -> list[_Cases]:
        found: dict[int, _Cases] = {}
        for clique in reversed(range(len(self.tree.cliques))):
            keys = [self._codes[name] for name in self.tree.cliques[clique]]
            for child in self.tree.children[clique]:
                keys.append(np.where(self._joined[child], found[child].of_record, APART))
            found[clique] = _Cases.of(keys, self.weight)
        return [found[clique] for clique in range(len(self.tree.cliques))]

    def _downward_cases(self) -> list[_Cases]:
        found: list[_Cases] = []
        for clique, parent in enumerate(self.tree.parents):
            keys = [self._up[clique].of_record]
            if parent >= 0:
                keys.append(np.where(self._joined[clique], found[parent].of_record, APART))
            found.append(_Cases.of(keys, self.weight))
        return found

    @property
    def cases(self) -> int:
        """How many distributions of cliques are computed, upward and downward."""
        return sum(len(cases.first) for cases in (*self._up, *self._down))

    @property
    def numbers(self) -> int:
        """How many numbers these are: what a propagation holds at once, several times over."""
        sizes = [prod(self.states[name] for name in clique) for clique in self.tree.cliques]
        pairs = zip(sizes, self._up, self._down, strict=True)
        return sum(size * (len(up.first) + len(down.first)) for size, up, down in pairs)

    def propagate(self, network: Network) -> Beliefs:
        """Compute all distributions under a network.

        Parameters
        ----------
        network : Network
            Over the variables of the batch, with the structure of its tree.

        Returns
        -------
        beliefs : Beliefs
        """
        try:
            with np.errstate(under="raise", over="raise"):
                return self._propagate(network, PLAIN)
        except FloatingPointError:  # states that differ by more than floating point holds
            return self._propagate(network, LOGARITHMS)

    def _propagate(self, network: Network, algebra: Algebra) -> Beliefs:
        potentials, scales = self._upward(_products(self.tree, network, algebra), algebra)
        joints = self._downward(potentials, algebra)
        logs = [algebra.logarithms(scale) for scale in scales]
        return Beliefs(self, [algebra.probabilities(joint) for joint in joints], logs)

    def _upward(self, products: list[Array], algebra: Algebra) -> tuple[list[Array], list[Array]]:
        """Return each clique's distribution given what lies below it, and what scales it.

        For its upward cases.
        """
        found, scales = [np.empty(0)] * len(products), [np.empty(0)] * len(products)
        for clique in reversed(range(len(products))):
            potential = algebra.times(algebra.of(self._known(clique)), products[clique])
            for child in self.tree.children[clique]:
                names = self.tree.separator(child)
                message = _summed(found[child], self.tree.cliques[child], names, algebra)
                at = self._neighbour(self._up[clique], child, self._up[child])
                told = _with_ones(message, algebra)[at]
                potential = algebra.times(
                    potential, axes_as(told, names, self.tree.cliques[clique])
                )
            scale = algebra.total(potential, tuple(range(1, potential.ndim)))
            whole = scale.reshape(-1, *(1,) * (potential.ndim - 1))
            found[clique], scales[clique] = algebra.over(potential, whole), scale
        return found, scales

    def _downward(self, potentials: list[Array], algebra: Algebra) -> list[Array]:
        """Return each clique's distribution given all that is known, for its downward cases."""
        joints: list[Array] = []
        for clique, parent in enumerate(self.tree.parents):
            cases, held = self._down[clique], self.tree.cliques[clique]
            own = potentials[clique][self._up[clique].of_record[cases.first]]
            if parent >= 0 and self._joined[clique].any():
                names = self.tree.separator(clique)
                above = _summed(joints[parent], self.tree.cliques[parent], names, algebra)
                at = self._neighbour(cases, clique, self._down[parent])
                below = _summed(own, held, names, algebra)
                apart = _column(at == APART, below.ndim)
                told = np.where(apart, below, _with_ones(above, algebra)[at])
                own = algebra.times(own, axes_as(algebra.over(told, below), names, held))
            joints.append(own)
        return joints

    def _neighbour(self, cases: _Cases, clique: int, other: _Cases) -> Places:
        """Return, for each case, the other's case across the separator of a clique, or APART."""
        return np.where(self._joined[clique][cases.first], other.of_record[cases.first], APART)

    def _known(self, clique: int) -> Array:
        """Return 1 for the states that a clique's variables may have, for its upward cases."""
        names, first = self.tree.cliques[clique], self._up[clique].first
        found = np.ones((len(first), *(self.states[name] for name in names)))
        for name in names:
            vectors = np.vstack([np.eye(self.states[name]), np.ones(self.states[name])])
            found *= axes_as(vectors[self._codes[name][first]], (name,), names)
        return found


@dataclass(frozen=True)
class Beliefs:
    """The joint distribution of each clique, given what is known of each record.

    Where that has probability zero, the log-likelihood is minus infinity and marginals are 0;
    expected counts are then meaningless.
    """

    batch: Batch
    joints: list[Array] = field(repr=False)
    _logs: list[Array] = field(repr=False)

    @property
    def log_likelihoods(self) -> Array:
        """The log-likelihood of each record, in nats: shape (n,)."""
        total: Array = np.zeros(self.batch.records)
        for logs, cases in zip(self._logs, self.batch._up, strict=True):
            total += logs[cases.of_record]
        return total

    @property
    def log_likelihood(self) -> float:
        """That of all records, by their weights."""
        cases = self.batch._up
        return sum(float(c.weight @ logs) for logs, c in zip(self._logs, cases, strict=True))

    def marginal(self, members: Clique) -> Array:
        """Return the distribution of variables that one clique holds.

        Returns
        -------
        marginal : ndarray of shape (n, states of `members`, in order)

        Raises
        ------
        ValueError
            If no clique holds them all.
        """
        home = self._home(members)
        joint = _summed(self.joints[home], self.batch.tree.cliques[home], members)
        possible = np.isfinite(self.log_likelihoods)
        return joint[self.batch._down[home].of_record] * _column(possible, joint.ndim)

    def expected_counts(self, members: Clique) -> Array:
        """Return the sum over records of the distributions of variables that one clique holds.

        Returns
        -------
        counts : ndarray of shape (states of `members`, in order)

        Raises
        ------
        ValueError
            If no clique holds them all.
        """
        home = self._home(members)
        weighted = np.tensordot(self.batch._down[home].weight, self.joints[home], axes=1)
        (counts,) = _summed(weighted[None], self.batch.tree.cliques[home], members)
        return np.asarray(counts)

    def _home(self, members: Clique) -> int:
        for place, clique in enumerate(self.batch.tree.cliques):
            if set(members) <= set(clique):
                return place
        raise ValueError(f"no clique holds all of {', '.join(members)}")


def check_codes(states: Mapping[str, int], codes: Mapping[str, NDArray[np.integer]]) -> None:
    """Refuse codes that are not those of variables.

    Raises
    ------
    ValueError
        If a variable is unknown, codes are of different lengths, or beyond their variable's.
    TypeError
        If codes are no integers.
    """
    if len({len(column) for column in codes.values()}) > 1:
        raise ValueError("the columns of codes must have one length, got several")
    for name, column in codes.items():
        if name not in states:
            raise ValueError(f"no variable {name!r}")
        if not np.issubdtype(column.dtype, np.integer):
            raise TypeError(f"{name}: codes must be integers, got the type {column.dtype}")
        if len(column) and not 0 <= column.min() <= column.max() <= states[name]:
            raise ValueError(f"{name}: a code that it does not have")


def _products(tree: JunctionTree, network: Network, algebra: Algebra) -> list[Array]:
    """Return the product of the CPTs at home in each clique."""
    found = [
        algebra.of(np.ones([len(network.variables[name].states) for name in clique]))
        for clique in tree.cliques
    ]
    for family in network.structure.families:
        home = tree.homes[family.child]
        cpt = algebra.of(network.cpts[family.child])[None]
        (factor,) = axes_as(cpt, family.members, tree.cliques[home])
        found[home] = algebra.times(found[home], factor)
    return found


def axes_as(array: Array, names: Clique, clique: Clique) -> Array:
    """Bring the axes of (n, names) into a clique's order, with an axis of 1 for the others."""
    order = sorted(range(len(names)), key=lambda i: clique.index(names[i]))
    moved = array.transpose(0, *(1 + i for i in order))
    lengths = {names[i]: array.shape[1 + i] for i in order}
    return moved.reshape(array.shape[0], *(lengths.get(name, 1) for name in clique))


def _summed(array: Array, clique: Clique, names: Clique, algebra: Algebra = PLAIN) -> Array:
    """Sum (n, clique) over all but some of its variables, which become the axes, in their order."""
    others = tuple(1 + i for i, name in enumerate(clique) if name not in names)
    kept = [name for name in clique if name in names]
    summed = algebra.total(array, others)
    return summed.transpose(0, *(1 + kept.index(name) for name in names))


def _with_ones(messages: Array, algebra: Algebra) -> Array:
    """Append a message of ones, which APART finds."""
    return np.concatenate([messages, algebra.of(np.ones((1, *messages.shape[1:])))])


def _column(values: NDArray[np.bool_], ndim: int) -> NDArray[np.bool_]:
    return values.reshape(-1, *(1,) * (ndim - 1))
