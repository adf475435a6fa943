"""Which nodes are absent in which rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Away:
    """A schedule of absences: called with a round, it returns the nodes that are absent.

    Examples
    --------
    >>> away = Away(("a", "b"), {"b": [(3, 4)]})
    >>> away(2), away(3)
    (frozenset(), frozenset({'b'}))
    """

    nodes: tuple[str, ...]  # all nodes
    spans: Mapping[str, Sequence[tuple[int, int]]]

    def __post_init__(self) -> None:
        for node, spans in self.spans.items():
            if node not in self.nodes:
                raise ValueError(f"the schedule of absences names an unknown node: {node!r}")
            for first, last in spans:
                if not 1 <= first <= last:
                    raise ValueError(
                        f"{node}: an absence must be [first round, last round], with 1 <= first "
                        f"<= last, got [{first}, {last}]"
                    )
        for start in sorted({first for spans in self.spans.values() for first, _ in spans}):
            if len(self(start)) == len(self.nodes):
                raise ValueError(f"all nodes are absent in round {start}; at least one must stay")

    def __call__(self, number: int) -> frozenset[str]:
        """Return the nodes that are absent in a round."""
        return frozenset(
            node
            for node, spans in self.spans.items()
            if any(first <= number <= last for first, last in spans)
        )

    @classmethod
    def drawn(
        cls,
        nodes: Sequence[str],
        rounds: int,
        generator: np.random.Generator,
        *,
        leaving: float,
        returning: float,
    ) -> Self:
        """Draw a schedule in which nodes leave and come back independently of each other.

        All nodes are there in round 1. If all nodes that are there would leave at once, those
        nodes stay.
        """
        for name, chance in (("leaving", leaving), ("returning", returning)):
            if not 0 <= chance <= 1:
                raise ValueError(f"the probability of {name} must be in [0, 1], got {chance}")
        away = np.zeros((rounds + 2, len(nodes)), bool)  # from round 0 on
        for number in range(2, rounds + 1):
            draws, before = generator.random(len(nodes)), away[number - 1]
            after = np.where(before, draws >= returning, draws < leaving)
            away[number] = before if after.all() else after
        return cls(tuple(nodes), {n: _spans(away[:, v]) for v, n in enumerate(nodes)})


def _spans(away: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """Return the first and the last place of each run of True; the ends are False."""
    changes = np.flatnonzero(np.diff(away))
    return [(int(a) + 1, int(b)) for a, b in zip(changes[::2], changes[1::2], strict=True)]
