"""Compute the distribution of a target for many records at once, by variable elimination.

Known values are put into the CPTs first, so that the arrays have axes only for the variables that
are summed out, however many states the known variables have. Records for which the same part of the
network matters are computed together, and equal records only once. Two rules leave out the rest of
the network (Koller and Friedman 2009, sections 3.3 and 9.5):

    barren     an unknown variable that is neither the target nor an ancestor of the target or of a
               known variable sums to 1
    separated  variables that known variables separate from the target in the moral graph of the
               remaining variables are a constant factor

The families that remain have at least one *open* member: the target, or an unknown variable that is
connected with it. Of the known values of a record, only those in these families matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.dag import Structure
from vertibayes.inference.algebra import LOGARITHMS, PLAIN, Algebra, Array
from vertibayes.inference.propagation import axes_as
from vertibayes.model import Model

Names: TypeAlias = tuple[str, ...]
Factor: TypeAlias = tuple[Names, Array]  # the array's first axis: cases, or 1 if all are equal
Places: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = Mapping[str, NDArray[np.integer]]

MOST_STATES = 10_000_000  # of a factor
NUMBERS = 1 << 18  # of the largest array at a time: 2 MiB, which fits into a processor cache


class Part(NamedTuple):
    """The part of a network that matters for some records."""

    records: Places  # the places of the records
    children: tuple[str, ...]  # the nodes whose CPTs matter
    open: frozenset[str]  # the target, and the variables that are summed out


def parts(structure: Structure, known: Mapping[str, Flags], target: str) -> Iterator[Part]:
    """Group records by the part of a network that matters for them."""
    nodes = list(structure.nodes)
    table = np.array([known[name] for name in nodes]).reshape(len(nodes), -1)
    table[nodes.index(target)] = False
    patterns, pattern_of = _distinct(table)
    marked, part_of = _distinct(np.concatenate(_marked(structure, patterns, target)))
    of_record = part_of[pattern_of]
    order = np.argsort(of_record, kind="stable")
    ends = np.cumsum(np.bincount(of_record, minlength=marked.shape[1]))
    for records, marks in zip(np.split(order, ends[:-1]), marked.T, strict=True):
        is_open, is_active = marks[: len(nodes)], marks[len(nodes) :]
        children = tuple(name for name, yes in zip(nodes, is_active, strict=True) if yes)
        names = frozenset(name for name, yes in zip(nodes, is_open, strict=True) if yes)
        yield Part(records, children, names)


def _distinct(table: Flags) -> tuple[Flags, Places]:
    """Return the distinct columns of a table of flags, and the place of each column among them."""
    packed = np.ascontiguousarray(np.packbits(table, axis=0).T)
    rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    return table[:, first], place


def _marked(structure: Structure, known: Flags, target: str) -> tuple[Flags, Flags]:
    """Return, by node and pattern, whether the node is open, and whether its CPT matters."""
    place = {name: row for row, name in enumerate(structure.nodes)}
    families = [[place[name] for name in family.members] for family in structure.families]
    order = [place[name] for name in structure.order()]
    needed = known.copy()
    needed[place[target]] = True
    for child in reversed(order):
        needed[families[child][1:]] |= needed[child]
    is_open, active = np.zeros_like(known), np.zeros_like(known)
    is_open[place[target]] = True
    while True:  # an open variable makes the unknown members of its families open
        before = int(is_open.sum())
        for child in (*order, *reversed(order)):
            members = families[child]
            active[child] = needed[child] & is_open[members].any(axis=0)
            is_open[members] |= active[child] & ~known[members]
        if int(is_open.sum()) == before:
            return is_open, active


def eliminated(network: Model, part: Part, codes: Codes, target: str) -> Array:
    """Return the distribution of a target for the records of one part."""
    families = [(child, *network.structure.parents[child]) for child in part.children]
    values = sorted(set(chain(*families)) - part.open)
    cases, case_of = _cases([codes[n][part.records] for n in values], part)
    scopes = [frozenset(family) & part.open for family in families]
    order, largest = _order(scopes, network.cardinalities, target)
    by_case = np.empty((cases.shape[1], len(network.variables[target].states)))
    rows = max(1, NUMBERS // largest)
    for start in range(0, len(by_case), rows):
        given = dict(zip(values, cases[:, start : start + rows], strict=True))
        by_case[start : start + rows] = _distribution(network, families, given, order)
    return np.asarray(by_case[case_of])


def _cases(columns: Sequence[NDArray[np.integer]], part: Part) -> tuple[Places, Places]:
    """Return the distinct columns of known values, and which of them each record has."""
    count = len(part.records)
    if not columns:
        return np.empty((0, 1), np.intp), np.zeros(count, np.intp)
    if len(part.open) == 1:  # a product of rows of CPTs is cheaper than a search for equal records
        return np.array(columns, np.intp), np.arange(count)
    rows, place = np.unique(np.array(columns, np.intp).T, axis=0, return_inverse=True)
    return rows.T, place.reshape(count)


def _order(
    scopes: Sequence[frozenset[str]], states: Mapping[str, int], target: str
) -> tuple[list[str], int]:
    """Return the order in which variables are summed out, and the size of the largest array."""
    left = list(scopes)
    order: list[str] = []
    largest: tuple[int, frozenset[str]] = max((prod(states[n] for n in s), s) for s in left)
    while hidden := frozenset(chain(*left)) - {target}:
        unions = {n: frozenset(chain(*(s for s in left if n in s))) for n in sorted(hidden)}
        sizes = {name: prod(states[n] for n in union) for name, union in unions.items()}
        name = min(sizes, key=lambda n: sizes[n])
        if sizes[name] > largest[0]:
            largest = sizes[name], unions[name]
        left = [s for s in left if name not in s] + [unions[name] - {name}]
        order.append(name)
    if largest[0] > MOST_STATES:
        raise ValueError(
            f"prediction sums over {largest[0]:,} joint states of {', '.join(sorted(largest[1]))}, "
            f"which some records do not have; at most {MOST_STATES:,} are possible: give more "
            "columns, or learn with fewer parents"
        )
    return order, largest[0]


def _distribution(
    network: Model, families: Sequence[Names], given: Codes, order: Sequence[str]
) -> Array:
    """Return the target's distribution for each case."""
    try:
        with np.errstate(under="raise", over="raise"):
            return _summed_out(network, families, given, order, PLAIN)
    except FloatingPointError:  # the probabilities of states differ too much for floating point
        return _summed_out(network, families, given, order, LOGARITHMS)


def _summed_out(
    network: Model,
    families: Sequence[Names],
    given: Codes,
    order: Sequence[str],
    algebra: Algebra,
) -> Array:
    factors = [_factor(family, network.cpts[family[0]], given, algebra) for family in families]
    for name in order:
        touched = [factor for factor in factors if name in factor[0]]
        names, product = _product(touched, algebra)
        summed = algebra.total(product, (1 + names.index(name),))
        rest = tuple(n for n in names if n != name)
        factors = [factor for factor in factors if name not in factor[0]]
        factors.append((rest, _scaled(summed, algebra)))
    return algebra.probabilities(_product(factors, algebra)[1])


def _factor(family: Names, cpt: Array, given: Codes, algebra: Algebra) -> Factor:
    """Put known values into a CPT."""
    axes = [axis for axis, name in enumerate(family) if name in given]
    rest = [axis for axis, name in enumerate(family) if name not in given]
    by_value = cpt.transpose(*axes, *rest)
    array = by_value[tuple(given[family[axis]] for axis in axes)] if axes else by_value[None]
    return tuple(family[axis] for axis in rest), algebra.of(array)


def _product(factors: Sequence[Factor], algebra: Algebra) -> Factor:
    """Multiply factors, small ones first; scale each product so that few numbers underflow."""
    names = tuple(sorted({name for scope, _ in factors for name in scope}))
    product: Array | None = None
    for scope, array in sorted(factors, key=lambda factor: factor[1].ndim):
        factor = axes_as(array, scope, names)
        product = factor if product is None else algebra.times(product, factor)
        product = _scaled(product, algebra)
    assert product is not None
    return names, product


def _scaled(array: Array, algebra: Algebra) -> Array:
    """Divide each case by its sum; zeros stay zeros."""
    total = algebra.total(array, tuple(range(1, array.ndim)))
    return algebra.over(array, total.reshape(-1, *(1,) * (array.ndim - 1)))
