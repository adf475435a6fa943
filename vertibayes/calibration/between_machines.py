"""The analyst's side of a calibration between sites: its rounds, in parts of one session each.

A part begins with those who are there. A site that leaves meanwhile is left out; if it is there
again when the next part begins, it listens for a round and takes part again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from vertibayes_mpc.errors import PartyGoneError
from vertibayes_protocols.calibration.agreed import Calibration
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.local import Wholes
from vertibayes_protocols.errors import QueryRefusedError, TransportError
from vertibayes_protocols.queries import Consensus, ReleasedConsensus
from vertibayes_protocols.queries.calibration.consensus_query import LOST
from vertibayes_protocols.roles import AnalystRole, Party
from vertibayes_protocols.session import Session

OpenSession: TypeAlias = Callable[[], AbstractContextManager[tuple[Session, frozenset[Party]]]]

ATTEMPTS = 3  # at a part, while sites leave in the middle of it


class Part(NamedTuple):
    """Rounds with the same sites."""

    # The number of the first round, from 1, and how many there are.
    first: int
    rounds: int
    # Who was away, and who was back and listened for a round.
    absent: tuple[Party, ...]
    back: tuple[Party, ...]
    parties: tuple[Party, ...]  # who has finished the part: the losses are those on their records


class CalibratedSites(NamedTuple):
    """What the analyst learns from a calibration."""

    statistics: Floats  # the mean of the sites' statistics after the last round, for one record
    soft: Floats  # the soft 0-1 loss of each round, summed over records, before the sites updated
    # As of `ReleasedConsensus`.
    errors: Wholes
    records: Wholes
    repairs: Wholes
    parts: tuple[Part, ...]  # who was there


def calibrate_sites(
    open_session: OpenSession,
    agreed: Calibration,
    rounds: int,
    *,
    rounds_per_part: int = 16,
    finished: Callable[[Part], None] = lambda _: None,
) -> CalibratedSites:
    """Have sites calibrate a classifier (`vertibayes_protocols.queries.calibration`)."""
    if min(rounds, rounds_per_part) < 1:
        raise ValueError(
            f"rounds and rounds_per_part must be at least 1, got {rounds} and {rounds_per_part}"
        )
    calibration: int | None = None
    parts, released, left = list[Part](), list[ReleasedConsensus](), set(agreed.network.nodes)
    for first in range(1, rounds + 1, rounds_per_part):
        count = min(rounds_per_part, rounds + 1 - first)
        query_of = partial(_query_of, agreed, first, count, calibration, rounds)
        query, result = _part(open_session, left, query_of)
        calibration, left = query.calibration, set(result.parties)
        parts.append(Part(first, count, query.absent, query.back, result.parties))
        released.append(result)
        finished(parts[-1])
    statistics = released[-1].statistics
    assert statistics is not None  # the last part reveals them
    traces = zip(*((r.soft, r.errors, r.records, r.repairs) for r in released), strict=True)
    soft, errors, records, repairs = (np.concatenate(trace) for trace in traces)
    return CalibratedSites(statistics, soft, errors, records, repairs, tuple(parts))


def _query_of(
    agreed: Calibration,
    first: int,
    rounds: int,
    calibration: int | None,
    last: int,
    analyst: AnalystRole,
    absent: Collection[Party],
    left: Collection[Party],
) -> Consensus:
    """Return the query for a part; all but `left`, who have finished the part before, are back."""
    away = set(agreed.network.nodes) - set(left) - set(absent)
    return Consensus.of(
        analyst,
        agreed,
        rounds,
        first=first,
        last=last,
        calibration=calibration,
        absent=absent,
        back=away if first > 1 else (),
        reveal=first + rounds > last,
    )


def _part(
    open_session: OpenSession, left: Collection[Party], query_of: Callable[..., Consensus]
) -> tuple[Consensus, ReleasedConsensus]:
    """Run a part; begin it again if too few sites are left at its end."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with open_session() as (session, absent):
                return _ask(session, absent, left, query_of)
        except (PartyGoneError, TransportError):
            if attempt == ATTEMPTS:
                raise
    raise AssertionError  # the last attempt returns or raises


def _ask(
    session: Session,
    absent: Collection[Party],
    left: Collection[Party],
    query_of: Callable[..., Consensus],
) -> tuple[Consensus, ReleasedConsensus]:
    """Ask for a part; a site that has lost its statistics since the part before is back."""
    lost = set[Party]()
    while True:
        query = query_of(session.role, absent, set(left) - lost)
        try:
            return query, session.ask(query)
        except QueryRefusedError as refusal:
            if refusal.reason != LOST or refusal.site in query.back:
                raise
            lost.add(refusal.site)  # killed and started again between two parts
