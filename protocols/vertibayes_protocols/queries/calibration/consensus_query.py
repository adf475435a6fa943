"""The query of a calibration (`queries.calibration.consensus`): its fields and its checks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import wire
from vertibayes_protocols.calibration.agreed import MOST_ROUNDS, Calibration
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.local import Wholes
from vertibayes_protocols.calibration.nodes import Attendance
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.queries.sums.statistics import check_numbered
from vertibayes_protocols.query import Query
from vertibayes_protocols.roles import AnalystRole


class ReleasedConsensus(NamedTuple):
    """What the analyst learns from some rounds."""

    # The mean of the nodes' statistics, of shape (classes, width), in units of m0 or, of a relay,
    # for one record; None if the query does not reveal them.
    statistics: Floats | None
    # The soft 0-1 loss of each round, summed over the records of `parties`: of what the nodes had
    # received, before they updated.
    soft: Floats
    errors: Wholes  # of each round, how many of these records were classified wrongly,
    records: Wholes  # how many there are,
    repairs: Wholes  # and how many statistics were not valid
    parties: tuple[Party, ...]  # the nodes that have finished the rounds


@dataclass(frozen=True, slots=True)
class ConsensusQuery(Query[ReleasedConsensus, Calibration]):
    """Ask sites for some rounds of a calibration; `parties` are the nodes that are there."""

    number: int = field(metadata=wire.FREE)
    analyst: bytes = field(metadata=wire.FREE)  # the analyst's public key, as of `StatisticsQuery`
    calibration: int = field(metadata=wire.FREE)  # the number of the calibration
    agreed: Calibration  # what is calibrated, over which network
    last: int | None
    absent: tuple[str, ...] = field(metadata=wire.FREE)
    back: tuple[str, ...] = field(metadata=wire.FREE)
    first: int = field(metadata=wire.FREE)
    rounds: int = field(metadata=wire.FREE)
    most_gone: int = field(metadata=wire.FREE)  # how many of the parties may be gone at the end
    reveal: bool = field(metadata=wire.FREE)

    def __post_init__(self) -> None:
        for number in (self.number, self.calibration):
            check_numbered(number, self.analyst)
        if not 1 <= self.first <= self.end <= MOST_ROUNDS:
            raise ValueError(
                f"rounds must be from 1 to {MOST_ROUNDS}, got {self.first} to {self.end}"
            )
        nodes, back, absent = set(self.agreed.network.nodes), {*self.back}, {*self.absent}
        if back & absent or not back | absent <= nodes:
            raise ValueError("absent nodes, and nodes that are back, must be nodes, and not both")
        there = len(nodes - absent)
        if there < 2:
            raise ValueError(f"{there} of {len(nodes)} nodes are there, two are needed")
        if there - self.most_gone < max(2, there // 2 + 1) or self.most_gone < 0:
            raise ValueError(
                f"most_gone = {self.most_gone} of {there} parties: two or more, and more than half,"
                " must be left"
            )

    @classmethod
    def of(
        cls,
        analyst: AnalystRole,
        agreed: Calibration,
        rounds: int,
        *,
        first: int = 1,
        last: int | None = None,
        calibration: int | None = None,
        absent: Collection[Party] = (),
        back: Collection[Party] = (),
        most_gone: int | None = None,
        reveal: bool = True,
    ) -> Self:
        """Return the analyst's next query for a calibration."""
        number = analyst.next_number()
        parties = tuple(sorted(set(agreed.network.nodes) - set(absent)))
        return cls(
            parties=parties,
            number=number,
            analyst=analyst.keys.public,
            calibration=number if calibration is None else calibration,
            agreed=agreed,
            last=last,
            absent=tuple(sorted(absent)),
            back=tuple(sorted(back)),
            first=first,
            rounds=rounds,
            most_gone=max(0, len(parties) - 1) // 2 if most_gone is None else most_gone,
            reveal=reveal,
        )

    def matches(self, contract: Contract) -> None:
        """Refuse rounds after the last one that is approved, and statistics before it."""
        del contract  # it has the last round, too
        last = self.last or 0
        if self.end > last or (self.reveal and self.end < last):
            raise ValueError(
                f"rounds {self.first} to {self.end}: the contract has {last}, and reveals after "
                "these"
            )

    @property
    def end(self) -> int:
        """The number of the last round that is asked for."""
        return self.first + self.rounds - 1

    @property
    def asked(self) -> tuple[Party, ...]:
        """The nodes that are not absent, sorted."""
        return tuple(sorted(set(self.agreed.network.nodes) - set(self.absent)))

    def attendance(self, number: int) -> Attendance:
        """Return who is there in a round, by its number."""
        back = frozenset(self.back if number == self.first else ())
        return Attendance(self.agreed.links, frozenset(self.absent), back)

    def starts(self, party: Party) -> bool:
        """Whether a site begins with its start, and not with what it had."""
        return self.first == 1 or party in self.back

    @property
    def need(self) -> int:
        """How many parties must answer: the others may be gone."""
        return len(self.parties) - self.most_gone

    @property
    def digest(self) -> bytes:
        """Names the query in all labels of its sums."""
        return label("consensus", wire.encode(self))

    @property
    def same(self) -> bytes:
        """Names what stays the same in all queries of one calibration."""
        unchanging = replace(
            self, parties=(), number=self.calibration, absent=(), back=(), first=1, rounds=1,
            most_gone=0, reveal=False,
        )  # fmt: skip
        return label("calibration", wire.encode(unchanging))
