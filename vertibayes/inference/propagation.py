"""Exact inference for many records at once; equal computations are done only once.

Each value of a record is known or missing. If all variables of a separator of the junction tree are
known, the cliques on its two sides do not affect each other. The computations for a clique
therefore depend only on the record's *case* in this clique:

    upward      the values of its variables, and the upward case of each child across a separator
                with a missing value
    downward    its upward case, and the downward case of its parent across such a separator

Records share most cases: 10,000 records of ALARM with a tenth of the values missing have a few
hundred cases per clique. Cases depend on the records and not on the CPTs. EM therefore finds them
once in a `Batch`, which it propagates under one network after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.algebra import LOGARITHMS, PLAIN, Algebra, Array
from vertibayes.inference.junction_tree import Clique, JunctionTree
from vertibayes.model import Model

Places: TypeAlias = NDArray[np.intp]

APART = -1  # the case of a neighbour that has no effect
MOST_NUMBERS = 1 << 23  # per batch: 64 MiB, of which about three copies exist at a time


class _Cases(NamedTuple):
    """The distinct cases of one clique in one direction."""

    of_record: Places  # the case of each record
    first: Places  # the first record of each case
    counts: Array  # how many records have each case

    @classmethod
    def of(cls, keys: list[Places]) -> _Cases:
        """Return the cases of records; records of one case have equal integers in all `keys`."""
        key = np.zeros(len(keys[0]), np.intp)
        for part in keys:
            shifted = part - part.min(initial=0)
            key = key * (shifted.max(initial=0) + 1) + shifted
            key = np.unique(key, return_inverse=True)[1]
        _, first, of_record = np.unique(key, return_index=True, return_inverse=True)
        return cls(of_record, first, np.bincount(of_record, minlength=len(first)).astype(float))


class Batch:
    """Records and their cases in a junction tree."""

    def __init__(
        self,
        tree: JunctionTree,
        states: Mapping[str, int],
        codes: Mapping[str, NDArray[np.integer]],
    ) -> None:
        check_codes(states, codes)
        self.tree, self.states = tree, states
        self.records = len(next(iter(codes.values()))) if codes else 1
        self._codes = {name: np.full(self.records, count) for name, count in states.items()}
        self._codes |= {name: np.asarray(column, np.intp) for name, column in codes.items()}
        cliques, never = range(len(tree.cliques)), np.zeros(self.records, np.bool_)
        missing = {name: column == states[name] for name, column in self._codes.items()}
        self._joined = [  # of each clique: whether its separator has a missing value, by record
            np.any([never, *(missing[name] for name in tree.separator(clique))], axis=0)
            for clique in cliques
        ]
        up: dict[int, _Cases] = {}
        for clique in reversed(cliques):
            keys = [self._codes[name] for name in tree.cliques[clique]]
            for child in tree.children[clique]:
                keys.append(np.where(self._joined[child], up[child].of_record, APART))
            up[clique] = _Cases.of(keys)
        self._up, self._down = [up[clique] for clique in cliques], list[_Cases]()
        for clique, parent in enumerate(tree.parents):
            keys = [self._up[clique].of_record]
            if parent >= 0:
                keys.append(np.where(self._joined[clique], self._down[parent].of_record, APART))
            self._down.append(_Cases.of(keys))

    @property
    def numbers(self) -> int:
        """The number of floating-point numbers in all distributions of cliques."""
        sizes = [prod(self.states[name] for name in clique) for clique in self.tree.cliques]
        pairs = zip(sizes, self._up, self._down, strict=True)
        return sum(size * (len(up.first) + len(down.first)) for size, up, down in pairs)

    def propagate(self, network: Model) -> Beliefs:
        """Compute all distributions under a network that has the structure of the tree."""
        try:
            with np.errstate(under="raise", over="raise"):
                return self._propagate(network, PLAIN)
        except FloatingPointError:  # the probabilities of states differ too much for floating point
            return self._propagate(network, LOGARITHMS)

    def _propagate(self, network: Model, algebra: Algebra) -> Beliefs:
        potentials, scales = self._upward(_products(self.tree, network, algebra), algebra)
        joints = self._downward(potentials, algebra)
        logs = [algebra.logarithms(scale) for scale in scales]
        return Beliefs(self, [algebra.probabilities(joint) for joint in joints], logs)

    def _upward(self, products: list[Array], algebra: Algebra) -> tuple[list[Array], list[Array]]:
        """Return, by upward case, each clique's distribution given the values below; its scale."""
        upward, scales = [np.empty(0)] * len(products), [np.empty(0)] * len(products)
        for clique in reversed(range(len(products))):
            potential = algebra.times(algebra.of(self._known(clique)), products[clique])
            for child in self.tree.children[clique]:
                names = self.tree.separator(child)
                summed = _summed(upward[child], self.tree.cliques[child], names, algebra)
                at = self._neighbour(self._up[clique], child, self._up[child])
                message = axes_as(_with_ones(summed, algebra)[at], names, self.tree.cliques[clique])
                potential = algebra.times(potential, message)
            scale = algebra.total(potential, tuple(range(1, potential.ndim)))
            whole = scale.reshape(-1, *(1,) * (potential.ndim - 1))
            upward[clique], scales[clique] = algebra.over(potential, whole), scale
        return upward, scales

    def _downward(self, potentials: list[Array], algebra: Algebra) -> list[Array]:
        """Return each clique's distribution given all known values, by downward case."""
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
                message = np.where(apart, below, _with_ones(above, algebra)[at])
                own = algebra.times(own, axes_as(algebra.over(message, below), names, held))
            joints.append(own)
        return joints

    def _neighbour(self, cases: _Cases, clique: int, other: _Cases) -> Places:
        """Return, for each case, the neighbour's case across a clique's separator, or APART."""
        return np.where(self._joined[clique][cases.first], other.of_record[cases.first], APART)

    def _known(self, clique: int) -> Array:
        """Return, by upward case, 1 for the joint states of a clique that the values allow."""
        names, first = self.tree.cliques[clique], self._up[clique].first
        allowed = np.ones((len(first), *(self.states[name] for name in names)))
        for name in names:
            vectors = np.vstack([np.eye(self.states[name]), np.ones(self.states[name])])
            allowed *= axes_as(vectors[self._codes[name][first]], (name,), names)
        return allowed


def batches(
    tree: JunctionTree,
    states: Mapping[str, int],
    codes: Mapping[str, NDArray[np.integer]],
    most_numbers: int = MOST_NUMBERS,
) -> list[Batch]:
    """Halve records until each batch can be propagated in bounded memory, or is one record."""
    whole = Batch(tree, states, codes)
    if whole.numbers <= most_numbers or whole.records == 1:
        return [whole]
    half = whole.records // 2
    halves = slice(half), slice(half, None)
    parts = [{n: column[rows] for n, column in codes.items()} for rows in halves]
    return [batch for part in parts for batch in batches(tree, states, part, most_numbers)]


@dataclass(frozen=True)
class Beliefs:
    """The joint distribution of each clique given the known values of each record.

    Where the known values have probability zero, the log-likelihood is minus infinity, and
    marginals are 0. Expected counts are then meaningless.
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
        """The log-likelihood of all records, in nats."""
        cases = self.batch._up
        return sum(float(c.counts @ logs) for logs, c in zip(self._logs, cases, strict=True))

    def marginal(self, members: Clique) -> Array:
        """Return the distribution of variables that one clique holds, for each record."""
        home = self._home(members)
        joint = _summed(self.joints[home], self.batch.tree.cliques[home], members)
        possible = np.isfinite(self.log_likelihoods)
        return joint[self.batch._down[home].of_record] * _column(possible, joint.ndim)

    def expected_counts(self, members: Clique) -> Array:
        """Return the sum over records of the distributions of variables that one clique holds."""
        home = self._home(members)
        weighted = np.tensordot(self.batch._down[home].counts, self.joints[home], axes=1)
        (counts,) = _summed(weighted[None], self.batch.tree.cliques[home], members)
        return np.asarray(counts)

    def _home(self, members: Clique) -> int:
        for place, clique in enumerate(self.batch.tree.cliques):
            if set(members) <= set(clique):
                return place
        raise ValueError(f"no clique holds all of {', '.join(members)}")


def check_codes(states: Mapping[str, int], codes: Mapping[str, NDArray[np.integer]]) -> None:
    """Refuse invalid codes."""
    if len({len(column) for column in codes.values()}) > 1:
        raise ValueError("the columns of codes must have the same length")
    for name, column in codes.items():
        if name not in states:
            raise ValueError(f"the network has no variable {name!r}")
        if not np.issubdtype(column.dtype, np.integer):
            raise TypeError(f"{name}: codes must be integers, got the type {column.dtype}")
        if len(column) and not 0 <= column.min() <= column.max() <= states[name]:
            raise ValueError(f"{name}: codes must be between 0 and {states[name]}")


def _products(tree: JunctionTree, network: Model, algebra: Algebra) -> list[Array]:
    """Return the product of the CPTs that are assigned to each clique."""
    products = [
        algebra.of(np.ones([len(network.variables[name].states) for name in clique]))
        for clique in tree.cliques
    ]
    for family in network.structure.families:
        home = tree.homes[family.child]
        cpt = algebra.of(network.cpts[family.child])[None]
        (factor,) = axes_as(cpt, family.members, tree.cliques[home])
        products[home] = algebra.times(products[home], factor)
    return products


def axes_as(array: Array, names: Clique, clique: Clique) -> Array:
    """Bring the axes of an array into the order of a clique."""
    order = sorted(range(len(names)), key=lambda i: clique.index(names[i]))
    moved = array.transpose(0, *(1 + i for i in order))
    lengths = {names[i]: array.shape[1 + i] for i in order}
    return moved.reshape(array.shape[0], *(lengths.get(name, 1) for name in clique))


def _summed(array: Array, clique: Clique, names: Clique, algebra: Algebra = PLAIN) -> Array:
    """Sum (n, clique) over all variables except `names`, which become the axes, in their order."""
    others = tuple(1 + i for i, name in enumerate(clique) if name not in names)
    kept = [name for name in clique if name in names]
    summed = algebra.total(array, others)
    return summed.transpose(0, *(1 + kept.index(name) for name in names))


def _with_ones(messages: Array, algebra: Algebra) -> Array:
    """Append a message of ones, which the index APART selects."""
    return np.concatenate([messages, algebra.of(np.ones((1, *messages.shape[1:])))])


def _column(values: NDArray[np.bool_], ndim: int) -> NDArray[np.bool_]:
    return values.reshape(-1, *(1,) * (ndim - 1))
