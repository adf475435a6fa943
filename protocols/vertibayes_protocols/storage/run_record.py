"""What a site remembers of a run of an approved study: the winners that were shown, step by step.

A run whose session breaks is resumed from this record, and never from what the analyst says. A step
is a query: a portion of choices, or the release. Of a release the site keeps the share that it
sends, so that an answer that was lost is given again, byte for byte.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from vertibayes_mpc.ring import Elements, Packed

OPEN, KEPT, GIVEN = range(3)  # of a release: not counted yet; share kept; share sent or about to be


class Shown(NamedTuple):
    """What a step has shown to the analyst and all sites."""

    won: tuple[int, ...]  # of each set, the place of the winner
    decided: tuple[bool, ...]  # of each set, whether exact scores have the same winner


@dataclass
class RunRecord:
    """The record of one run."""

    study: bytes  # the id of the study
    begun: int = 0  # how many steps have begun,
    asked: bytes = b""  # and a digest of them; empty in a memory of wire version 8 or older
    shown: list[Shown] = field(default_factory=list)  # what the steps have shown that were answered
    state: int = OPEN  # `OPEN`, `KEPT` or `GIVEN`
    label: bytes = b""  # the label of the release whose share is kept
    # The share, as `Ring.pack` packs it; in a memory of wire version 8 or older, its elements.
    share: Elements = field(default_factory=lambda: np.zeros(0, np.uint8), repr=False)
    bits: int = 0  # of the winners in `shown`; in an older memory, at least
    charged: int = 0  # bits, with those of steps that broke; in an older memory, as `bits`

    def begin(self, place: int, asked: bytes) -> None:
        """Note that a step begins, and forget a share that has not been sent."""
        if place + 1 >= self.begun:
            self.begun, self.asked = place + 1, asked
        self.state, self.label, self.share = OPEN, b"", np.zeros(0, np.uint8)

    def keep_share(self, name: bytes, share: Packed) -> None:
        """Keep the share of a release."""
        self.state, self.label, self.share = KEPT, name, share.copy()

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return {
            "study": self.study.hex(),
            "begun": self.begun,
            "asked": self.asked.hex(),
            "shown": [[list(won), list(map(int, decided))] for won, decided in self.shown],
            "state": self.state,
            "label": self.label.hex(),
            "share": [self.share.dtype.str, b64encode(self.share.tobytes()).decode()],
            "bits": self.bits,
            "charged": self.charged,
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
        asked = bytes.fromhex(content.get("asked", ""))
        bits = int(content.get("bits", sum(2 * len(won) for won, _ in shown)))
        charged = int(content.get("charged", bits))
        return cls(study, begun, asked, shown, state, name, share, bits, charged)


class Runs:
    """The runs of approved studies at a site, by contract; `keep` writes what has changed."""

    def __init__(self, keep: Callable[[bool], None]) -> None:
        self._counts: dict[str, tuple[int, int]] = {}  # of runs that began, that released
        self._last: dict[str, RunRecord] = {}
        self._keep = keep

    def count(self, contract: bytes) -> tuple[int, int]:
        """Return how many runs of a contract, by its digest, have begun and have released."""
        return self._counts.get(contract.hex(), (0, 0))

    def last(self, contract: bytes, study: bytes) -> RunRecord | None:
        """Return the record of a contract's last run, if it is of this study."""
        record = self._last.get(contract.hex())
        return record if record is not None and record.study == study else None

    def unfinished(self, contract: bytes) -> RunRecord | None:
        """Return the record of a contract's last run, unless it has released its tables."""
        record = self._last.get(contract.hex())
        return None if record is None or record.state == GIVEN else record

    def only_study(self, contract: bytes) -> bytes:
        """Return the id of the study of a contract's only run; empty if it had several or none."""
        record = self._last.get(contract.hex())
        return record.study if record is not None and self.count(contract)[0] == 1 else b""

    def begin(self, contract: bytes, study: bytes = b"") -> None:
        """Remember that a run begins, before anything of the data is answered."""
        self._add(contract, begun=1)
        self._last.pop(contract.hex(), None)
        if study:
            self._last[contract.hex()] = RunRecord(study)
        self._keep(True)

    def use(self, contract: bytes) -> None:
        """Remember that a run is used up, before its tables are released."""
        self._add(contract, used=1)
        self._keep(True)

    def end(self, contract: bytes) -> None:
        """Note that a run is used up and its release given; the caller writes it."""
        self._add(contract, used=1)
        if contract.hex() in self._last:
            self._last[contract.hex()].state = GIVEN

    def begin_step(self, contract: bytes, place: int, asked: bytes) -> None:
        """Remember that a step of a run begins; one that has begun before counts as a failed run.

        `asked` is a digest of this step and of all before it.
        What was kept of a release that begins again is forgotten: it has not left the site.
        """
        record = self._last[contract.hex()]
        if place < record.begun:
            self._add(contract, begun=1)
        record.begin(place, asked)
        self._keep(True)

    def charge(self, contract: bytes, bits: int) -> None:
        """Note the bits of a step before it is answered; the caller writes it."""
        if contract.hex() in self._last:
            self._last[contract.hex()].charged += bits

    def end_step(self, contract: bytes, shown: Shown, bits: int) -> None:
        """Remember the winners of a step, which have at most so many bits."""
        record = self._last[contract.hex()]
        record.shown.append(shown)
        record.bits += bits
        self._keep(True)

    def forget(self, contract: bytes) -> None:
        """Forget a run whose winners were not the same twice: it cannot be resumed."""
        self._last.pop(contract.hex(), None)
        self._keep(True)

    def keep_share(self, contract: bytes, name: bytes, share: Packed) -> None:
        """Keep this site's share of a release, before any site sends its own."""
        self._last[contract.hex()].keep_share(name, share)
        self._keep(True)

    def _add(self, contract: bytes, begun: int = 0, used: int = 0) -> None:
        before = self.count(contract)
        self._counts[contract.hex()] = before[0] + begun, before[1] + used

    # ---- the memory's file -----------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Return what the memory's file has of them."""
        steps = {contract: record.as_json() for contract, record in self._last.items()}
        return {"runs": self._counts, "steps": steps}

    def load(self, notes: Mapping[str, Any]) -> None:
        """Take the runs of a memory's file."""
        self._counts = {by: (int(begun), int(used)) for by, (begun, used) in notes["runs"].items()}
        self._last = {by: RunRecord.of_json(record) for by, record in notes["steps"].items()}
