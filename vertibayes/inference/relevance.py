"""Which part of a network matters for a target, given which variables of a record are known.

Two rules leave out the rest (Koller and Friedman 2009, sections 3.3 and 9.5):

    barren     a variable that is not known, nor the target, nor an ancestor of either, sums to 1
    separated  what known variables cut off from the target in the moral graph of the others is a
               constant factor

What remains are the families with at least one member that is *open*: the target, or a variable
that is not known and is connected with it. Their known members are all of a record that matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.network import Structure

Flags = NDArray[np.bool_]


class Part(NamedTuple):
    """The part of a network that matters for some records.

    Parameters
    ----------
    records : ndarray of shape (k,), dtype int
        Their places.
    children : tuple of str
        The nodes whose CPTs matter.
    open : frozenset of str
        The target, and the variables to be summed out.
    """

    records: NDArray[np.intp]
    children: tuple[str, ...]
    open: frozenset[str]


def parts(structure: Structure, known: Mapping[str, Flags], target: str) -> Iterator[Part]:
    """Group records by the part of a network that matters for them.

    Parameters
    ----------
    structure : Structure
    known : mapping of str to ndarray of shape (n,), dtype bool
        Of each node, which records have a value of it.
    target : str
        Taken as not known.

    Yields
    ------
    part : Part
        Each record is in one.
    """
    nodes = list(structure.nodes)
    table = np.array([known[name] for name in nodes]).reshape(len(nodes), -1)
    table[nodes.index(target)] = False
    patterns, pattern_of = _distinct(table)
    opened, active = _marked(structure, patterns, target)
    found, part_of = _distinct(np.concatenate([opened, active]))
    of_record = part_of[pattern_of]
    order = np.argsort(of_record, kind="stable")
    ends = np.cumsum(np.bincount(of_record, minlength=found.shape[1]))
    for records, marks in zip(np.split(order, ends[:-1]), found.T, strict=True):
        is_open, is_active = marks[: len(nodes)], marks[len(nodes) :]
        children = tuple(name for name, yes in zip(nodes, is_active, strict=True) if yes)
        names = frozenset(name for name, yes in zip(nodes, is_open, strict=True) if yes)
        yield Part(records, children, names)


def _distinct(table: Flags) -> tuple[Flags, NDArray[np.intp]]:
    """Return the distinct columns of a table of flags, and which of them each column is."""
    packed = np.ascontiguousarray(np.packbits(table, axis=0).T)
    rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    return table[:, first], place


def _marked(structure: Structure, known: Flags, target: str) -> tuple[Flags, Flags]:
    """Return, for each node and pattern, whether it is open, and whether its CPT matters."""
    place = {name: row for row, name in enumerate(structure.nodes)}
    families = [[place[name] for name in family.members] for family in structure.families]
    order = [place[name] for name in structure.order()]
    needed = known.copy()
    needed[place[target]] = True
    for child in reversed(order):
        needed[families[child][1:]] |= needed[child]
    opened, active = np.zeros_like(known), np.zeros_like(known)
    opened[place[target]] = True
    while True:  # open variables open their families' other members, until no more are opened
        before = int(opened.sum())
        for child in (*order, *reversed(order)):
            members = families[child]
            active[child] = needed[child] & opened[members].any(axis=0)
            opened[members] |= active[child] & ~known[members]
        if int(opened.sum()) == before:
            return opened, active
