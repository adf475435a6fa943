"""The query of a calibration (`queries.consensus`): its fields and its checks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.aggregation import MOST_TIME
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import wire
from vertibayes_protocols.calibration.agreed import MOST_ROUNDS, Calibration, ClassifierSpec
from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import Wholes
from vertibayes_protocols.calibration.nodes import Attendance
from vertibayes_protocols.queries.statistics_query import bounds_of, numerics_of
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import Query
from vertibayes_protocols.variables import Family, Variable


class ReleasedConsensus(NamedTuple):
    """What the analyst learns from some rounds.

    Attributes
    ----------
    statistics : ndarray of shape (classes, width), dtype float64, or None
        The mean of the nodes' statistics, in units of m0 or, of a relay, for one record; None if
        the query does not reveal them.
    soft : ndarray of shape (rounds,), dtype float64
        The soft 0-1 loss of each round, summed over the records of `parties`: of what the nodes
        had received, before they updated.
    errors, records, repairs : ndarray of shape (rounds,), dtype int64
        How many of these records were classified wrongly, how many there are, and how many
        statistics were not valid.
    parties : tuple of Party
        The nodes that have finished the rounds, over which all of this is summed.
    """

    statistics: Floats | None
    soft: Floats
    errors: Wholes
    records: Wholes
    repairs: Wholes
    parties: tuple[Party, ...]


@dataclass(frozen=True, slots=True)
class Consensus(Query[ReleasedConsensus]):
    """Ask sites for some rounds of a calibration; `parties` are the nodes that are there.

    Parameters
    ----------
    number : int
        Above that of all sums of this analyst that a site has taken part in.
    analyst : bytes
        The analyst's public key, as of `StatisticsQuery`.
    calibration : int
        The number of the calibration: that of its first query.
    target : str
        The class.
    variables, numerics, bounds, families
        As of `StatisticsQuery`; without families, the classifier is naive Bayes.
    nodes, edges : tuple
        The communication network.
    absent, back : tuple of str
        The nodes that are away, and those that were and have lost their statistics.
    mixing, start, shown, iterations, most_records
        As of `Calibration`.
    shares : ndarray of shape (2,), dtype float64
        The learning rate and m0.
    first, rounds : int
        The number of the first round, from 1, and how many there are.
    most_gone : int
        How many of the parties may be gone at the end.
    reveal : bool
        Whether the analyst learns the mean of the statistics.
    """

    kind: ClassVar[str] = "consensus"
    number: int
    analyst: bytes
    calibration: int
    target: str
    variables: tuple[tuple[str, tuple[str, ...]], ...]
    numerics: tuple[str, ...]
    bounds: NDArray[np.float64]
    families: tuple[tuple[str, ...], ...]
    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    absent: tuple[str, ...]
    back: tuple[str, ...]
    mixing: str
    start: str
    shown: bool
    iterations: int
    most_records: int
    shares: NDArray[np.float64]
    first: int
    rounds: int
    most_gone: int
    reveal: bool

    @classmethod
    def of(
        cls,
        analyst: AnalystRole,
        agreed: Calibration,
        rounds: int,
        *,
        first: int = 1,
        calibration: int | None = None,
        absent: Collection[Party] = (),
        back: Collection[Party] = (),
        most_gone: int | None = None,
        reveal: bool = True,
    ) -> Consensus:
        """Return the analyst's next query for a calibration.

        Parameters
        ----------
        analyst : AnalystRole
            Numbers the query.
        agreed : Calibration
            What is calibrated, over which network.
        rounds : int
            How many rounds.
        first : int, default=1
            The number of the first of them.
        calibration : int, optional
            The number of the calibration; None begins one.
        absent, back, reveal
            As of `Consensus`.
        most_gone : int, optional
            How many parties may be gone at the end; by default as many as are fewer than half.

        Raises
        ------
        ValueError
            If the query cannot be run.
        """
        number, spec = analyst.next_number(), agreed.spec
        parties = tuple(sorted(set(agreed.network.nodes) - set(absent)))
        query = cls(
            parties=parties,
            number=number,
            analyst=analyst.keys.public,
            calibration=number if calibration is None else calibration,
            target=spec.target,
            variables=tuple((v.name, v.states) for v in spec.variables.values()),
            numerics=tuple(spec.numerics),
            bounds=bounds_of(spec.numerics),
            families=tuple(family.members for family in spec.families),
            nodes=agreed.network.nodes,
            edges=agreed.network.edges,
            absent=tuple(sorted(absent)),
            back=tuple(sorted(back)),
            mixing=agreed.mixing,
            start=agreed.start,
            shown=agreed.shown,
            iterations=agreed.iterations,
            most_records=agreed.most_records,
            shares=np.array([agreed.rate, agreed.size]),
            first=first,
            rounds=rounds,
            most_gone=max(0, len(parties) - 1) // 2 if most_gone is None else most_gone,
            reveal=reveal,
        )
        query.agreed()
        return query

    def agreed(self) -> Calibration:
        """Return what is calibrated.

        Raises
        ------
        ValueError
            If the query cannot be run.
        """
        variables = {name: Variable(name, states) for name, states in self.variables}
        numerics = numerics_of(self.numerics, self.bounds)
        if len(variables) + len(numerics) < len(self.variables) + len(self.numerics):
            raise ValueError("a variable is declared twice")
        if self.shares.shape != (2,) or self.shares.dtype != np.float64:
            raise ValueError("the query must have two numbers: the learning rate and m0")
        if len(set(self.nodes)) < len(self.nodes):
            raise ValueError("a node is named twice")
        rate, size = self.shares.tolist()
        families = tuple(Family(child, tuple(parents)) for child, *parents in self.families)
        self._check_rounds()
        return Calibration(
            ClassifierSpec(self.target, variables, numerics, families),
            Graph.of(self.nodes, self.edges),
            self.most_records,
            cast("Mixing", self.mixing),
            cast("Start", self.start),
            self.shown,
            rate,
            size,
            self.iterations,
        )

    def _check_rounds(self) -> None:
        """Refuse parties and rounds that do not fit, with a ValueError."""
        for number in (self.number, self.calibration):
            if not 0 <= number <= MOST_TIME:
                raise ValueError(f"sum number {number}: it must be from 0 to 2**62")
        last = self.first + self.rounds - 1
        if not 1 <= self.first <= last <= MOST_ROUNDS:
            raise ValueError(f"rounds must be from 1 to {MOST_ROUNDS}, got {self.first} to {last}")
        if set(self.back) & set(self.absent) or not {*self.back, *self.absent} <= set(self.nodes):
            raise ValueError("absent nodes, and nodes that are back, must be nodes, and not both")
        if set(self.parties) != set(self.nodes) - set(self.absent):
            raise ValueError("the parties must be the nodes that are not absent")
        there = len(self.parties)
        if there < 2:
            raise ValueError(f"{there} of {len(self.nodes)} nodes are there, two are needed")
        if there - self.most_gone < max(2, there // 2 + 1) or self.most_gone < 0:
            raise ValueError(
                f"most_gone = {self.most_gone} of {there} parties: two or more, and more than half,"
                " must be left"
            )

    def attendance(self, agreed: Calibration, number: int) -> Attendance:
        """Return who is there in a round.

        Parameters
        ----------
        agreed, number
            What `agreed` returns, and the number of the round.
        """
        back = frozenset(self.back if number == self.first else ())
        return Attendance(agreed.links, frozenset(self.absent), back)

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
        changing = replace(
            self, parties=(), number=0, absent=(), back=(), first=0, rounds=0, most_gone=0,
            reveal=False,
        )  # fmt: skip
        return label("calibration", wire.encode(changing))
