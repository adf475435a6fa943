"""Find the part of a network that matters for a target, given which variables are known.

Two rules leave out the rest (Koller and Friedman 2009, sections 3.3 and 9.5):

    barren     an unknown variable that is neither the target nor an ancestor of the target or of a
               known variable sums to 1
    separated  variables that known variables separate from the target in the moral graph of the
               remaining variables are a constant factor

The families that remain have at least one *open* member: the target, or an unknown variable that is
connected with it. Of the known values of a record, only those in these families matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.dag import Structure

Flags = NDArray[np.bool_]


class Part(NamedTuple):
    """The part of a network that matters for some records."""

    records: NDArray[np.intp]  # the places of the records
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


def _distinct(table: Flags) -> tuple[Flags, NDArray[np.intp]]:
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
