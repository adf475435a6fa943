"""A run of an approved study whose contract declares its queries: sums, reports, predictions.

    Begin                                    the digest of an approved contract
    Align                                    if the contract has an alignment; it is not passed over
    Sums | Updates | Report | ...            the contract's queries, in its order, once a session

The contract has the public fields of each query: what is counted, with which noise, over whom. A
site answers a query only if these fields are equal to the contract's. The contract does not fix the
number of a query, which parties are absent, and which rounds a session of a calibration runs.

Security: that of the queries; noise, bounds and budget are checked by each query as ever.
Leakage: as of the queries. Cost: no message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vertibayes_mpc.commitments import MOST_INDICATORS
from vertibayes_protocols.alignment import Alignment, AlignmentRequest
from vertibayes_protocols.approval import Approved, Asked
from vertibayes_protocols.contract import ALIGN, DESCRIBE, opening_of
from vertibayes_protocols.queries.consensus_query import Consensus
from vertibayes_protocols.queries.publish import Publish
from vertibayes_protocols.queries.report import Report
from vertibayes_protocols.queries.scores import Scores
from vertibayes_protocols.queries.study_run import StudyRun
from vertibayes_protocols.queries.sum_query import Sums
from vertibayes_protocols.queries.updates import Updates
from vertibayes_protocols.roles import Party, SiteRole
from vertibayes_protocols.wire import declared_of, difference

LAST_ROUND = "last round"  # in the declaration of a calibration

DECLARED: dict[type[Asked], tuple[str, ...]] = {  # which fields a contract declares
    Sums: (
        "variables", "numerics", "bounds", "families", "moments", "most_parties", "most_records",
        "noise", "shares", "via", "estimates",
    ),
    Updates: (
        "variables", "numerics", "bounds", "families", "moments", "most_parties", "most_records",
        "noise", "shares", "members", "iterations",
    ),
    Report: (
        "target", "variables", "numerics", "bounds", "most_records", "reports", "oracle", "shares",
        "bins", "approach", "missing",
    ),
    Publish: ("target", "classes", "class_counts", "eps", "first", "last"),
    Scores: ("target", "classes", "class_counts", "alpha", "via", "first", "last"),
    Consensus: (
        "target", "variables", "numerics", "bounds", "families", "nodes", "edges", "mixing",
        "start", "shown", "iterations", "most_records", "shares",
    ),
}  # fmt: skip


def declare(query: Asked, last_round: int | None = None) -> dict[str, Any]:
    """Return what a contract has of a query, as JSON.

    Parameters
    ----------
    query : Query
        The query as the analyst asks it.
    last_round : int, optional
        Of a calibration: the number of its last round.
    """
    names = DECLARED.get(type(query))
    fields = declared_of(query) if names is None else {n: _plain(getattr(query, n)) for n in names}
    if last_round is not None:
        fields[LAST_ROUND] = last_round
    return {"kind": query.kind, "fields": fields}


def declare_opening(
    dealer: Party, alignment: Alignment | AlignmentRequest | None
) -> tuple[dict[str, Any], ...]:
    """Return what a contract has of the queries that `open_study` asks.

    Parameters
    ----------
    dealer : Party
        The dealer of the study.
    alignment : Alignment, AlignmentRequest or None
        Who is in the study.
    """
    *kinds, commit = opening_of(alignment)
    study = {"dealer": dealer, "most_indicators": MOST_INDICATORS}
    opening = [{"kind": kind, "fields": {}} for kind in kinds]
    return (*opening, {"kind": commit, "fields": {"study": study}})


def _plain(value: Any) -> Any:
    """Return a field as JSON: lists, texts and numbers; a nan is a text."""
    if isinstance(value, np.ndarray):
        return [value.dtype.str, _plain(value.tolist())]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


class DeclaredRun(StudyRun):
    """A run of a study whose contract declares its queries.

    Parameters
    ----------
    site : SiteRole
    approved : Approved
    """

    def __init__(self, site: SiteRole, approved: Approved) -> None:
        super().__init__(site, approved)
        self._place = 0  # in the contract's queries
        self._is_used = False

    def check(self, query: Asked) -> None:
        """Refuse a query that is not the next one, and any query if the approval is withdrawn."""
        self._check_approval()
        fields = self.contract.queries[self._place_of(query)]["fields"]
        asked = declare(query, fields.get(LAST_ROUND))["fields"]
        if (name := difference(fields, asked)) is not None:
            raise self._refused(f"{name} of {query.kind!r} is not that of the contract")
        self._check_parties(query)
        self._check_contract(query)
        if isinstance(query, Consensus):
            self._check_rounds(query, fields)

    def _place_of(self, query: Asked) -> int:
        """Return the place of a query's kind, at the next place or after it."""
        for place, declared in enumerate(self.contract.queries):
            if place >= self._place and declared["kind"] == query.kind:
                return place
            if place >= self._place and declared["kind"] == ALIGN:
                raise self._refused(f"the contract has an alignment before {query.kind!r}")
        raise self._refused(f"the contract has no further query of the kind {query.kind!r}")

    def _check_parties(self, query: Asked) -> None:
        sites = set(self.contract.site_names)
        if not set(query.parties) <= {*sites, self.contract.dealer[0]}:
            raise self._refused("the query asks parties that are not those of the contract")
        is_due = self.contract.alignment is not None and self.site.people is None
        if is_due and query.kind not in (DESCRIBE, ALIGN):
            raise self._refused("the people of the contract are not aligned: align them first")
        if isinstance(query, Sums) and sorted(n for b in query.blocks for n in b) != sorted(sites):
            raise self._refused("the members of the sum are not the sites of the contract")
        if isinstance(query, Publish | Scores):
            named = {query.target, *(name for name, *_ in query.features)}
            self._check_names(named)

    def _check_names(self, names: set[str]) -> None:
        if not names <= set(self.contract.variables):
            raise self._refused("the query names variables that the contract does not have")

    def _check_rounds(self, query: Consensus, fields: Mapping[str, Any]) -> None:
        last, end = fields[LAST_ROUND], query.first + query.rounds - 1
        if end > last or (query.reveal and end < last):
            raise self._refused(
                f"rounds {query.first} to {end}: the contract has {last}, and reveals after these"
            )

    def begin(self, query: Asked) -> None:
        """Note the run in the site's memory; the first query about records uses it up.

        A calibration has several sessions: its first round begins a run, and the query that
        reveals its model uses it up. Rounds that are asked again begin a run, too, also if they
        broke, because sums over different sites differ by the numbers of one site.
        """
        digest = self.contract.digest
        if query.phase != "answer":
            return
        if isinstance(query, Consensus):
            if self._begins(query):
                self.site.memory.begin_run(digest)
            if query.reveal:
                self.site.memory.use_run(digest)
        elif not self._is_used:
            self._is_used = True
            self.site.memory.begin_run(digest)
            self.site.memory.use_run(digest)

    def _begins(self, query: Consensus) -> bool:
        """Note which rounds begin; return whether from a start, or rounds that began before."""
        last = query.first + query.rounds - 1
        is_again = self.site.checkpoints.begin(query.same, query.first, last)
        return is_again or query.first == 1 or self.site.party in query.back

    def end(self, query: Asked) -> None:
        """Advance behind a query that was answered."""
        self._place = self._place_of(query) + 1
