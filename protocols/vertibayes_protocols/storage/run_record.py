"""What a site remembers of a run of an approved study: the winners that were shown, step by step.

A run whose session breaks is resumed from this record, and never from what the analyst says. A step
is a query: a portion of choices, or the release. Of a release the site keeps the share that it
sends, so that an answer that was lost is given again, byte for byte.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

OPEN, KEPT, GIVEN = range(3)  # of a release: not counted yet; share kept; share sent or about to be


class Shown(NamedTuple):
    """What a step has shown to the analyst and all sites."""

    won: tuple[int, ...]  # of each set, the place of the winner
    decided: tuple[bool, ...]  # of each set, whether exact scores have the same winner


@dataclass
class RunRecord:
    """The record of one run."""

    study: bytes  # the id of the study
    begun: int = 0  # how many steps have begun
    shown: list[Shown] = field(default_factory=list)  # what the steps have shown that were answered
    state: int = OPEN  # `OPEN`, `KEPT` or `GIVEN`
    label: bytes = b""  # the label of the release whose share is kept
    share: NDArray[np.unsignedinteger] = field(
        default_factory=lambda: np.zeros(0, np.uint64), repr=False
    )

    def begin(self, place: int) -> None:
        """Note that a step begins, and forget a share that has not been sent."""
        self.begun = max(self.begun, place + 1)
        self.state, self.label, self.share = OPEN, b"", np.zeros(0, np.uint64)

    def keep_share(self, name: bytes, share: NDArray[np.unsignedinteger]) -> None:
        """Keep the share of a release."""
        self.state, self.label, self.share = KEPT, name, share.copy()

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return {
            "study": self.study.hex(),
            "begun": self.begun,
            "shown": [[list(won), list(map(int, decided))] for won, decided in self.shown],
            "state": self.state,
            "label": self.label.hex(),
            "share": [self.share.dtype.str, b64encode(self.share.tobytes()).decode()],
        }

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> RunRecord:
        """Return the record of JSON data."""
        shown = [Shown(tuple(map(int, w)), tuple(map(bool, d))) for w, d in content["shown"]]
        kind, encoded = content["share"]
        share = np.frombuffer(b64decode(encoded, validate=True), np.dtype(kind))
        state, begun = int(content["state"]), int(content["begun"])
        if state not in (OPEN, KEPT, GIVEN) or begun < len(shown) or share.dtype.kind != "u":
            raise ValueError("the record of a run is damaged")
        study, name = bytes.fromhex(content["study"]), bytes.fromhex(content["label"])
        return cls(study, begun, shown, state, name, share)
