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
from typing import Any

import numpy as np

from vertibayes_mpc.commitments import MOST_INDICATORS
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.queries.align import Align
from vertibayes_protocols.queries.commit_query import Commit
from vertibayes_protocols.queries.describe import Describe
from vertibayes_protocols.queries.meet import Meet
from vertibayes_protocols.queries.study_run import StudyRun
from vertibayes_protocols.query import Query, Use
from vertibayes_protocols.roles import Party, SiteRole
from vertibayes_protocols.session import AnyQuery
from vertibayes_protocols.wire import declared_of, difference

DECLARED: dict[type[AnyQuery], tuple[str, ...]] = {  # which fields a contract declares
    Align: (),
    Meet: (),
    Describe: (),
    Commit: ("dealer", "most_indicators"),
}  # fmt: skip


def declare(query: AnyQuery) -> dict[str, Any]:
    """Return what a contract has of a query, as JSON.

    Parameters
    ----------
    query : Query
        The query as the analyst asks it.
    """
    names = DECLARED.get(type(query))
    fields = declared_of(query) if names is None else {n: _plain(getattr(query, n)) for n in names}
    return {"kind": query.kind, "fields": fields}


def declare_opening(dealer: Party, alignment: Alignment | None) -> tuple[dict[str, Any], ...]:
    """Return what a contract has of the queries that `open_study` asks.

    Parameters
    ----------
    dealer : Party
        The dealer of the study.
    alignment : Alignment or None
        Who is in the study.
    """
    kinds: list[type[AnyQuery]] = [Meet, Describe]
    if alignment is not None:
        kinds = [*([] if alignment.level == 1 else [Describe]), Align, *kinds]
    commit = {"dealer": dealer, "most_indicators": MOST_INDICATORS}
    opening = [{"kind": query.kind, "fields": {}} for query in kinds]
    return (*opening, {"kind": Commit.kind, "fields": commit})


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

    def check(self, query: AnyQuery) -> None:
        """Refuse a query that is not the next one, and any query if the approval is withdrawn."""
        self._check_approval()
        fields = self.contract.queries[self._place_of(query)]["fields"]
        if (name := difference(fields, declare(query)["fields"])) is not None:
            raise self._refused(f"{name} of {query.kind!r} is not that of the contract")
        self._check_parties(query)
        if isinstance(query, Query):
            try:
                query.matches(self.contract)
            except ValueError as error:
                raise self._refused(str(error)) from None

    def _place_of(self, query: AnyQuery) -> int:
        """Return the place of a query's kind, at the next place or after it."""
        for place, declared in enumerate(self.contract.queries):
            if place >= self._place and declared["kind"] == query.kind:
                return place
            if place >= self._place and declared["kind"] == Align.kind:
                raise self._refused(f"the contract has an alignment before {query.kind!r}")
        raise self._refused(f"the contract has no further query of the kind {query.kind!r}")

    def _check_parties(self, query: AnyQuery) -> None:
        sites = set(self.contract.site_names)
        if not set(query.parties) <= {*sites, self.contract.dealer[0]}:
            raise self._refused("the query asks parties that are not those of the contract")
        if isinstance(query, Align):
            self._check_alignment(query)
        if isinstance(query, Align | Meet):
            self._check_keys(query)
        is_due = self.contract.alignment is not None and self.site.people is None
        if is_due and isinstance(query, Meet | Commit):
            raise self._refused("the people of the contract are not aligned: align them first")
        if isinstance(query, Commit) and not (
            {name for name, *_ in query.variables} <= set(self.contract.variables)
        ):
            raise self._refused("the query names variables that the contract does not have")
        if isinstance(query, Query):
            try:
                query.matches(self.contract)
            except ValueError as error:
                raise self._refused(str(error)) from None

    def begin(self, query: AnyQuery) -> None:
        """Note the run in the site's memory; the first answer uses it up, or what a query says."""
        if isinstance(query, Align | Meet | Describe | Commit):
            return
        use = query.uses_run(self.site) if isinstance(query, Query) else None
        if use is None:
            use = Use(not self._is_used, not self._is_used)
            self._is_used = True
        if use.begins:
            self.site.memory.begin_run(self.contract.digest)
        if use.ends:
            self.site.memory.use_run(self.contract.digest)

    def end(self, query: AnyQuery) -> None:
        """Advance behind a query that was answered."""
        self._place = self._place_of(query) + 1
