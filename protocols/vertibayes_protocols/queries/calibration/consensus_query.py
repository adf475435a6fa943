"""The query of a calibration (`queries.calibration.consensus`): fields, and what sites refuse."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from math import floor
from typing import NamedTuple, Self

import numpy as np

from vertibayes_mpc.masked_sum import Neighbourhood, compromise_probability
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import wire
from vertibayes_protocols.calibration.agreed import MOST_ROUNDS, Calibration
from vertibayes_protocols.calibration.classifier import Examples
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.local import Wholes
from vertibayes_protocols.calibration.nodes import Attendance
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.queries.calibration.neighbourhood_sums import least_of, summing
from vertibayes_protocols.queries.sums.statistics import (
    check_numbered,
    check_own_records,
    site_records,
)
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.query import Query
from vertibayes_protocols.roles import AnalystRole, SiteRole

LOST = "its process was started again, and it has lost its statistics of this calibration"


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
        return Attendance(self.agreed.links, frozenset(self.absent), back, number)

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


def check_site(site: SiteRole, query: ConsensusQuery) -> None:
    """Refuse nodes, neighbours and records; reasons that say something of the data come last."""
    agreed = query.agreed
    _check_pinned(site, agreed)
    _check_sums(site, query)
    exposed = is_exposed(site.party, query)
    if exposed:
        site.policy.check_neighbours()
    check_own_records(
        site, Terms(agreed.spec.declaration, len(agreed.network.nodes), agreed.most_records)
    )
    records = records_of(site, agreed)
    _check_memory(site, agreed, records)
    if exposed:
        site.policy.check_exposed(records)
    if not query.starts(site.party) and site.checkpoints.get(query.same, query.first - 1) is None:
        raise ValueError(LOST)


def _check_pinned(site: SiteRole, agreed: Calibration) -> None:
    nodes = agreed.network.nodes
    if strangers := set(nodes) - {site.party} - set(site.signing_keys):
        reason = f"no signing key of {min(strangers)} is pinned here"
        raise ValueError(f"{reason}; it is the second half of what keygen prints")
    if site.dealer in nodes:  # whose key is pinned too
        raise ValueError("the dealer holds no records: it cannot be a node")


def _check_sums(site: SiteRole, query: ConsensusQuery) -> None:
    """Refuse sums that dishonest members could open."""
    groups = [(len(query.parties), query.need)]
    if not query.agreed.shown:
        hoods = _hoods(site.party, query.attendance(query.first)).values()
        groups += [(len(hood), least_of(hood)) for hood in hoods]
    for members, least in groups:
        _check_honest(site, members, least)


def _check_honest(site: SiteRole, members: int, least: int) -> None:
    """Refuse a sum that dishonest members, with an aggregator that lies, could open."""
    if not site.policy.dishonest:
        return
    corrupt = floor(site.policy.dishonest * members)
    if least - corrupt < 2:
        reason = f"fewer than two honest members could be in a sum over {members} sites"
        raise ValueError(reason)
    if compromise_probability(members, Neighbourhood(members - 1, least), corrupt):
        reason = (
            f"{corrupt} of {members} members could open the vector of another with an aggregator "
            f"that sends two lists: the sum must need more than {(members + corrupt) // 2} members,"
            f" and it needs {least}"
        )
        raise ValueError(reason)


def _hoods(party: Party, there: Attendance) -> dict[Party, tuple[Party, ...]]:
    """Return the neighbours to whose sums a site contributes, and who is in each sum."""
    return {node: hood for node, hood in summing(there).items() if party in hood}


def is_exposed(party: Party, query: ConsensusQuery) -> bool:
    """Whether neighbours see a site's own statistics, or can separate them from a sum.

    With unequal weights, a sum adds counts that are divided by different numbers. Who knows these
    finds remainders of the counts of each site by the Chinese remainder theorem. If all neighbours
    of a node's neighbours are its own, except one site, its sums of two rounds differ by what they
    had of this site.
    """
    if query.agreed.shown:
        return True
    for there in (query.attendance(query.first), query.attendance(query.first + 1)):
        if query.agreed.mixing == "metropolis" and _weighs_unequally(party, there):
            return True  # weights of a plain mean are equal
        if any(_is_alone(party, there, node, hood) for node, hood in summing(there).items()):
            return True
    return False


def _weighs_unequally(party: Party, there: Attendance) -> bool:
    """Whether neighbours have unequal weights in a sum to which a site contributes."""
    hoods = {n: h for n, h in _hoods(party, there).items() if n not in there.back}
    if not hoods:
        return False
    weights = there.network.without(there.absent | there.back).metropolis_weights
    return any(len({weights[node][peer] for peer in hood}) > 1 for node, hood in hoods.items())


def _is_alone(party: Party, there: Attendance, node: Party, hood: tuple[Party, ...]) -> bool:
    """Whether a node's neighbours hear a site, and nobody else beside them and the node."""
    near = {node, *hood}
    beyond = (p for peer in hood for p in there.senders(peer) if p not in near)
    return next(beyond, None) == party and all(peer == party for peer in beyond)


def _check_memory(site: SiteRole, agreed: Calibration, records: int) -> None:
    """Refuse a classifier for which the records take too much memory."""
    needed = 8 * records * (agreed.classifier.width + 3 * len(agreed.classifier.classes))
    if needed > (most := site.policy.most_memory):
        reason = f"the calibration needs {needed} bytes for its records, at most {most} are allowed"
        raise ValueError(reason)


def examples_of(site: SiteRole, agreed: Calibration) -> Examples:
    """Return the site's records whose class is known."""
    batches = site_records(site, agreed.spec.declaration)
    columns, classes = zip(*(agreed.classifier.examples(b) for b in batches), strict=True)
    return Examples(np.concatenate(columns), np.concatenate(classes))


def records_of(site: SiteRole, agreed: Calibration) -> int:
    """Return how many records of a known class the site has."""
    target = agreed.spec.variables[agreed.spec.target]
    batches = site_records(site, agreed.spec.declaration)
    return sum(int((b.codes[target.name] < len(target.states)).sum()) for b in batches)
