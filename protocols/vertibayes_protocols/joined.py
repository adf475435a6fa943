"""A study that a party has joined: what it has committed, and what it was asked so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vertibayes_mpc.commitments import Commitments, Selection
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Rows

MOST_SELECTIONS = 4  # kept, of choices of records: more are drawn again when they are asked


@dataclass
class Joined:
    """A study that a party has joined."""

    study: Study
    commitments: Commitments
    seed: StreamKey | None = field(repr=False)  # the sites' common seed
    mark: bytes = b""  # at the analyst: what the sites agree that they have joined
    asked: int = 0  # at the analyst: the number of the last query for tables
    answered: set[Rows] = field(default_factory=set, repr=False)
    won: tuple[int, ...] = ()  # at the analyst and the sites
    decided: tuple[bool, ...] = ()  # at the analyst and the sites
    _selections: dict[Rows, Selection] = field(default_factory=dict, init=False, repr=False)

    def selection(self, rows: Rows) -> Selection:
        """Return the chosen records: places of a permutation that the analyst cannot foresee.

        The permutation sorts 64-bit numbers of the stream ``rows.seed`` under the sites' seed. A
        site knows it: one that works with the analyst can search for places to its liking.
        """
        if rows.count(self.commitments.records) == self.commitments.records:
            return Selection(self.commitments)
        if rows not in self._selections:
            if len(self._selections) == MOST_SELECTIONS:  # refused queries have them too
                del self._selections[next(iter(self._selections))]
            self._selections[rows] = self._select(rows)
        return self._selections[rows]

    def _select(self, rows: Rows) -> Selection:
        which = label("chosen", *(str(part) for part in rows))
        records = self.commitments.records
        if self.seed is None:
            return Selection(self.commitments, np.arange(rows.count(records)), which)
        keys = np.frombuffer(self.seed.expand(label("rows", rows.seed), 8 * records), "<u8")
        chosen = np.argsort(keys, kind="stable")[rows.first : rows.last]
        return Selection(self.commitments, np.sort(chosen), which)
