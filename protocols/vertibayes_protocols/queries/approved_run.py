"""A run of an approved study at a site: which query it answers next, and no other.

    Begin                       the digest of an approved contract   (queries.begin)
    Align                       once, if the contract has an alignment: this one, at level 2 after
                                a Describe of its own
    Meet, Describe, Commit      once each: the contract's parties, keys and variables
    Choose or Release, ...      the steps of the study's learner, which the site derives itself

The site runs the learner of the contract and sends it the winners that the site itself has learned
in `Choose`. The content of a query must equal the step that this learner asks for. An analyst
therefore chooses nothing in a run: neither a candidate nor the order, nor what is released.

The site writes to its memory that each step begins, and what it has shown. A run that is resumed in
another session continues from this record: with the next step, or with the last one again, because
another site or the analyst may not have seen its winners.

Security: what a site answers follows from the contract, the data and nothing else. The winners are
those that the sites' protocol has shown to this site; the analyst never sends them. A run begins on
disk before columns are committed, and is used up on disk before tables are released. A step that
begins a second time counts as a run that failed, and its bits count again: whoever lies in one of
the two executions learns no more than from two runs. If the winners differ from those shown before,
the run ends for good.
Leakage: as of the queries. Cost: the steps are derived once more at each site; no message.
"""

from __future__ import annotations

from collections.abc import Generator

from vertibayes_mpc.commitments import BLOCK_ROWS
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_protocols.approval import Approved, Step, Winners
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.errors import refusing
from vertibayes_protocols.queries.align import Align
from vertibayes_protocols.queries.choices.choose import Choose, portions
from vertibayes_protocols.queries.commit_query import Commit
from vertibayes_protocols.queries.describe import Describe
from vertibayes_protocols.queries.meet import Meet
from vertibayes_protocols.queries.releases.release import Release
from vertibayes_protocols.queries.study_run import StudyRun
from vertibayes_protocols.query import Query
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.session import AnyQuery
from vertibayes_protocols.storage.run_record import GIVEN, OPEN, RunRecord, Shown
from vertibayes_protocols.study import CHOICE_INDICATORS

OPENING: tuple[type[Align | Meet | Describe | Commit], ...] = (Meet, Describe, Commit)


class ApprovedRun(StudyRun):
    """A run of a study whose learner asks steps.

    Parameters
    ----------
    site : SiteRole
    approved : Approved
    study : bytes, default=b""
        The id of the study; any that is committed if empty.
    resumed : bool, default=False
        Whether the run continues from the site's record.
    """

    def __init__(
        self, site: SiteRole, approved: Approved, *, study: bytes = b"", resumed: bool = False
    ) -> None:
        super().__init__(site, approved)
        self._study, self._resumed = study, resumed
        self._place = 0  # of the next step, counted in portions
        self._opening = OPENING
        if (alignment := approved.contract.alignment) is not None:
            first = (Align,) if alignment.level == 1 else (Describe, Align)
            self._opening = (*first, *OPENING)
        self._opened = 0  # queries of these that were answered
        self._steps: Generator[Step, Winners, object] | None = None
        self._due: list[Step] = []  # the portions of the step that are not answered yet
        self._won: Winners = ()  # of the portions that are
        self._is_over = False

    def check(self, query: AnyQuery) -> None:
        """Refuse a query that is not the next one, and any query if the approval is withdrawn."""
        self._check_approval()
        if self._opened < len(self._opening):
            kind = self._opening[self._opened]
            if type(query) is not kind:
                raise self._refused(f"the next query is {kind.kind!r}, got {query.kind!r}")
            self._check_opening(query)
            return
        asked = query.step if isinstance(query, Query) else None
        step = self._awaited(asked)
        if step is None:
            raise self._refused("the study has ended: begin another session for another run")
        if asked != step:
            what = "choose" if isinstance(step, Choices) else "release"
            raise self._refused(
                f"the query {query.kind!r} is not the next step of the study, a {what!r} with the "
                "content that the contract and the winners give"
            )
        self._check_again(query)

    @property
    def _record(self) -> RunRecord:
        """The site's record of this run, since `Commit`."""
        assert self.site.joined is not None  # since Commit
        record = self.site.memory.run_of(self.contract.digest, self.site.joined.study.id)
        if record is None:
            raise self._refused("this site has forgotten the run: begin another run")
        return record

    def _awaited(self, asked: Step | None) -> Step | None:
        """Return the next step, behind those that are recorded; the last of these may be asked."""
        shown = self._record.shown
        while self._place < len(shown):
            step = self._next()
            if self._place == len(shown) - 1 and asked == step:
                return step
            self._pass(shown[self._place].won)
        return self._next()

    def _pass(self, won: Winners) -> None:
        """Advance behind a portion of which the winners are known."""
        self._due.pop(0)
        self._won += won
        self._place += 1

    def _check_again(self, query: AnyQuery) -> None:
        """Refuse a step that has begun once too often, and a release that does not fit the last."""
        record = self._record
        is_given_again = isinstance(query, Release) and query.again
        if is_given_again and record.state == OPEN:
            raise self._refused("this site has kept no share of released tables")
        if record.state == GIVEN and not is_given_again:
            raise self._refused("its tables were released: the same answer can be given again")
        if self._place < record.begun and not is_given_again:
            self._check_failed()

    def _check_failed(self) -> None:
        begun, used = self.site.memory.runs(self.contract.digest)
        if begun - used >= (most := self.site.policy.most_failed_runs):
            raise self._refused(
                f"{most} of its runs, or steps of them, began and were not finished, which can be "
                "an attack: if you know why they failed, increase most_failed_runs in the policy"
            )

    def _check_opening(self, query: AnyQuery) -> None:
        sites, dealer = self.contract.site_names, self.contract.dealer[0]
        shares_rows = isinstance(query, Align) and query.level == 2
        asked = sites if isinstance(query, Align | Describe) else (*sites, dealer)
        asked = (*sites, dealer) if shares_rows else asked
        if sorted(query.parties) != sorted(asked):
            raise self._refused(f"the parties of {query.kind!r} are not those of the contract")
        if isinstance(query, Align):
            if self._study and query.study != self._study:
                reason = "the id of the study is not the one with which the run began"
                raise self._refused(reason)
            self._check_alignment(query)
        if isinstance(query, Align | Meet):
            self._check_keys(query)
        if isinstance(query, Commit):
            self._check_variables(query)

    def _check_variables(self, query: Commit) -> None:
        if self._study and query.study != self._study:
            raise self._refused("the id of the study is not the one with which the run began")
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
        with refusing(self.site.party):
            mine = {*self.site.own(query.as_study())}
        if mine != set(self.site.shown):
            raise self._refused(
                f"{self.site.party} holds other variables of the contract than the query says"
            )

    def begin(self, query: AnyQuery) -> None:
        """Note in the site's memory that the run begins, with its columns, and each step."""
        digest = self.contract.digest
        if isinstance(query, Commit) and not self._resumed:
            self.site.memory.begin_run(digest, query.study)
        elif isinstance(query, Choose | Release) and not (
            isinstance(query, Release) and query.again
        ):
            self.site.memory.begin_step(digest, self._place)

    def end(self, query: AnyQuery) -> None:
        """Advance: record the winners of a choice, and derive the next step when all are there.

        Raises
        ------
        UnknownFaultyPartyError
            If a step that was asked again has other winners than before.
        """
        if self._opened < len(self._opening):
            self._opened += 1
            return
        self._pass(self._recorded() if isinstance(query, Choose) else ())

    def _recorded(self) -> Winners:
        """Record what a step has shown, or compare it with the record; return the winners."""
        joined, record = self.site.joined, self._record
        assert joined is not None  # since Commit
        shown = Shown(joined.won, joined.decided)
        if self._place == len(record.shown):
            self.site.memory.end_step(self.contract.digest, shown)
        elif shown != record.shown[self._place]:
            self.site.memory.forget_run(self.contract.digest)
            reason = "a step that was asked again has other winners: one of them lies"
            raise UnknownFaultyPartyError(joined.study.parties, reason)
        return shown.won

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
