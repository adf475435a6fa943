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

from collections.abc import Mapping
from typing import Any

from vertibayes_mpc.commitments import MOST_INDICATORS
from vertibayes_protocols.alignment import Alignment, AlignmentRequest
from vertibayes_protocols.approval import Approved, Asked, Use
from vertibayes_protocols.contract import ALIGN, DESCRIBE, opening_of
from vertibayes_protocols.queries.approved_run import StudyRun
from vertibayes_protocols.queries.opening.needs import Taken, taken_by
from vertibayes_protocols.roles import Party, SiteRole
from vertibayes_protocols.wire import declared_of, difference


def declare(query: Asked) -> dict[str, Any]:
    """Return what a contract has of a query, as JSON."""
    return {"kind": query.kind, "fields": declared_of(query)}


def declare_opening(
    dealer: Party, alignment: Alignment | AlignmentRequest | None
) -> tuple[dict[str, Any], ...]:
    """Return what a contract has of the queries that `open_study` asks."""
    *kinds, commit = opening_of(alignment)
    study = {"dealer": dealer, "most_indicators": MOST_INDICATORS}
    opening = [{"kind": kind, "fields": {}} for kind in kinds]
    return (*opening, {"kind": commit, "fields": {"study": study}})


class DeclaredRun(StudyRun):
    """A run of a study whose contract declares its queries."""

    def __init__(self, site: SiteRole, approved: Approved) -> None:
        super().__init__(site, approved)
        self._place = 0  # in the contract's queries
        self._is_used = False

    def takes(self, states: Mapping[str, int], records: int) -> Taken:
        """Return what the queries still take that were not answered."""
        return taken_by(self.approved, states, records, answered=self._place)

    def check(self, query: Asked) -> None:
        """Refuse a query that is not the next one, and any query if the approval is withdrawn."""
        self._check_approval()
        fields = self.contract.queries[self._place_of(query)]["fields"]
        if (name := difference(fields, declare(query)["fields"])) is not None:
            raise self._refused(f"{name} of {query.kind!r} is not that of the contract")
        self._check_parties(query)
        self._check_contract(query)

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

    def begin(self, query: Asked) -> None:
        """Note the run in the site's memory; the first answer uses it up, or what a query says."""
        if query.phase != "answer":
            return
        use = query.uses_run(self.site.party, self.site.checkpoints)
        if use is None:
            use = Use(not self._is_used, not self._is_used)
            self._is_used = True
        if use.begins:
            self.site.memory.runs.begin(self.contract.digest)
        if use.ends:
            self.site.memory.runs.use(self.contract.digest)

    def end(self, query: Asked) -> None:
        """Advance behind a query that was answered."""
        self._place = self._place_of(query) + 1
