"""The records of all nodes of a simulation, padded in groups so that nodes update at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.calibration.classifier import Examples, GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.local import Update, Wholes, statistics_of, update

BLOCK = 1 << 22  # values of columns in a group: bounds what one product needs beside them

Places = NDArray[np.intp]


class _Group(NamedTuple):
    """Nodes of similar sizes: the largest has fewer than twice the records of the smallest."""

    nodes: Places
    examples: Examples


class NodeRecords:
    """The records of nodes, in the order of `examples`."""

    def __init__(self, classifier: GenerativeClassifier, examples: Mapping[str, Examples]) -> None:
        self.classifier = classifier
        self.names = tuple(examples)
        self.sizes: Wholes = np.array([len(part.classes) for part in examples.values()], np.int64)
        parts = list(examples.values())
        self._groups = [_padded(nodes, parts) for nodes in _similar(self.sizes, classifier.width)]
        self._place = np.zeros((len(parts), 2), np.intp)  # of each node: its group, and where
        for number, group in enumerate(self._groups):
            self._place[group.nodes, 0] = number
            self._place[group.nodes, 1] = np.arange(len(group.nodes))
        self.sums: Floats = np.stack([statistics_of(classifier, part) for part in parts])

    def update(self, statistics: Floats, nodes: Places) -> Update:
        """Return the updates of some nodes."""
        result = Update(
            np.empty_like(statistics),
            np.empty(len(nodes)),
            np.empty(len(nodes), np.int64),
            np.empty(len(nodes), np.int64),
        )
        of_group, within = self._place[nodes].T
        for number in np.unique(of_group):
            chosen = np.flatnonzero(of_group == number)
            part = self._part(self._groups[number], within[chosen])
            for whole, some in zip(
                result, update(self.classifier, statistics[chosen], part), strict=True
            ):
                whole[chosen] = some
        return result

    @staticmethod
    def _part(group: _Group, within: Places) -> Examples:
        if np.array_equal(within, np.arange(len(group.nodes))):
            return group.examples  # no copy where the whole group updates
        columns, classes = group.examples
        return Examples(columns[within], classes[within])


def _similar(sizes: Wholes, width: int) -> list[Places]:
    """Return groups of nodes whose numbers of records have as many bits, of at most `BLOCK`."""
    bits = np.array([int(size).bit_length() for size in sizes])
    groups = []
    for count in np.unique(bits):
        nodes = np.flatnonzero(bits == count)
        some = max(1, BLOCK // max(1, width << int(count)))
        groups += [nodes[at : at + some] for at in range(0, len(nodes), some)]
    return groups


def _padded(nodes: Places, parts: list[Examples]) -> _Group:
    """Return the records of nodes side by side; a class of -1 fills up."""
    longest = max(len(parts[node].classes) for node in nodes)
    columns = np.zeros((len(nodes), longest, parts[nodes[0]].columns.shape[1]))
    classes = np.full((len(nodes), longest), -1)
    for place, node in enumerate(nodes):
        size = len(parts[node].classes)
        columns[place, :size], classes[place, :size] = parts[node]
    return _Group(nodes, Examples(columns, classes))
