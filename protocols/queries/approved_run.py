"""A run of an approved study at a site: which query it answers next, and no other.

    Begin                       the digest of an approved contract   (protocols.queries.begin)
    Meet, Describe, Commit      once each: the contract's parties, keys and variables
    Choose or Release, ...      the steps of the study's learner, which the site derives itself

The site runs the learner of the contract and sends it the winners that the site itself has learned
in `Choose`. The content of a query must equal the step that this learner asks for. An analyst
therefore chooses nothing in a run: neither a candidate nor the order, nor what is released.

Security: what a site answers follows from the contract, the data and nothing else. The winners are
those that the sites' protocol has shown to this site; the analyst never sends them. A run begins on
disk before columns are committed, and is used up on disk before tables are released.
Leakage: as of the queries. Cost: the steps are derived once more at each site; no message.
"""

from __future__ import annotations

from collections.abc import Generator

from mpc.commitments import BLOCK_ROWS
from protocols.approval import Approved, Step, Winners
from protocols.choices import Choices
from protocols.errors import refusing
from protocols.queries.choose import Choose, portions
from protocols.queries.commit import Commit
from protocols.queries.describe import Describe
from protocols.queries.meet import Meet
from protocols.queries.release_query import Release
from protocols.queries.study_run import StudyRun
from protocols.roles import SiteRole
from protocols.session import AnyQuery
from protocols.study import CHOICE_INDICATORS

OPENING = (Meet, Describe, Commit)


class ApprovedRun(StudyRun):
    """A run of a study whose learner asks steps.

    Parameters
    ----------
    site : SiteRole
    approved : Approved
    """

    def __init__(self, site: SiteRole, approved: Approved) -> None:
        super().__init__(site, approved)
        self._opened = 0  # queries of `OPENING` that were answered
        self._steps: Generator[Step, Winners, object] | None = None
        self._due: list[Step] = []  # the portions of the step that are not answered yet
        self._won: Winners = ()  # of the portions that are
        self._is_over = False
        self._is_used = False

    def check(self, query: AnyQuery) -> None:
        """Refuse a query that is not the next one, and any query if the approval is withdrawn."""
        self._check_approval()
        if self._opened < len(OPENING):
            kind = OPENING[self._opened]
            if type(query) is not kind:
                raise self._refused(f"the next query is {kind.kind!r}, got {query.kind!r}")
            self._check_opening(query)
            return
        step = self._next()
        if step is None:
            raise self._refused("the study has ended: begin another session for another run")
        with refusing(self.site.party):  # arrays that describe no choices
            asked = _step_of(query)
        if asked != step:
            what = "choose" if isinstance(step, Choices) else "release"
            raise self._refused(
                f"the query {query.kind!r} is not the next step of the study, a {what!r} with the "
                "content that the contract and the winners give"
            )

    def _check_opening(self, query: AnyQuery) -> None:
        sites, dealer = self.contract.site_names, self.contract.dealer[0]
        asked = sites if isinstance(query, Describe) else (*sites, dealer)
        if sorted(query.parties) != sorted(asked):
            raise self._refused(f"the parties of {query.kind!r} are not those of the contract")
        if isinstance(query, Meet):
            keys = self.contract.keys
            if tuple(query.keys) != tuple(keys[party] for party in query.parties):
                raise self._refused("the keys of the parties are not those of the contract")
        if isinstance(query, Commit):
            self._check_variables(query)

    def _check_variables(self, query: Commit) -> None:
        if tuple(name for name, *_ in query.variables) != self.contract.variables:
            raise self._refused("the variables, or their order, are not those of the contract")
        if query.memory != self.contract.memory:
            raise self._refused(
                f"queries may take {query.memory:,} bytes of memory: the contract says "
                f"{self.contract.memory:,}"
            )
        if (query.block_rows, query.most_indicators) != (BLOCK_ROWS, CHOICE_INDICATORS):
            raise self._refused(  # they decide, too, which tables are too large for a candidate
                f"columns are committed in blocks of {query.block_rows} rows and with up to "
                f"{query.most_indicators} indicators: approved studies have {BLOCK_ROWS} rows and "
                f"{CHOICE_INDICATORS} indicators"
            )
        mine = {name for name, *_, holders in query.variables if self.site.party in holders}
        if mine != set(self.site.shown):
            raise self._refused(
                f"{self.site.party} holds other variables of the contract than the query says"
            )

    def begin(self, query: AnyQuery) -> None:
        """Note the run in the site's memory: it begins with the columns, and a release uses it."""
        digest = self.contract.digest
        if isinstance(query, Commit):
            self.site.memory.begin_run(digest)
        elif isinstance(query, Release) and not self._is_used:
            self._is_used = True
            self.site.memory.use_run(digest)

    def end(self, query: AnyQuery) -> None:
        """Advance: collect the winners of a choice, and derive the next step when all are there."""
        if self._opened < len(OPENING):
            self._opened += 1
            return
        step = self._due.pop(0)
        if isinstance(step, Choices):
            assert self.site.joined is not None  # since Commit
            self._won += self.site.joined.won
        del query

    def _next(self) -> Step | None:
        """Return the next portion of a step; None after the last step."""
        while not self._due and not self._is_over:  # choices without a set have no portion
            try:
                self._due = self._portions(self._advance())
            except StopIteration:
                self._is_over = True
            except ValueError as error:
                raise self._refused(f"the contract does not fit the study: {error}") from None
        return self._due[0] if self._due else None

    def _advance(self) -> Step:
        assert self.site.joined is not None  # since Commit
        if self._steps is None:
            assert self.approved.steps is not None  # of a contract without declared queries
            self._steps = self.approved.steps(self.site.joined.study)
            return next(self._steps)
        won, self._won = self._won, ()
        return self._steps.send(won)

    def _portions(self, step: Step) -> list[Step]:
        assert self.site.joined is not None  # since Commit
        return [*portions(self.site.joined.study, step)] if isinstance(step, Choices) else [step]


def _step_of(query: AnyQuery) -> Step | None:
    """Return the step that a query asks for; None if it is another kind of query."""
    if isinstance(query, Choose):
        return query.choices
    return query.tables if isinstance(query, Release) else None
