"""A run of an approved study at a site: which query it answers next, and no other.

    Begin                       the digest of an approved contract   (queries.opening.begin)
    Align                       once, if the contract has an alignment: this one, at level 2 after
                                a Describe of its own
    Meet, Describe, Commit      once each: the contract's parties, keys and variables
    Choose or Release, ...      the steps of the study's learner, which the site derives itself

An analyst therefore chooses nothing in a run: neither a candidate nor the order, nor what is
released. A run that is resumed in another session continues from the site's record: with the next
step, or with the last one again, because another site or the analyst may not have seen its winners.

Security: what a site answers follows from the contract, the data and nothing else. The winners are
those that the sites' protocol has shown to this site; the analyst never sends them. A run begins on
disk before columns are committed, and is used up on disk before tables are released. A step that
begins a second time counts as a run that failed, and its bits count again: whoever lies in one of
the two executions learns no more than from two runs. If the winners differ from those shown before,
the run ends for good. A run that another release of vertibayes began is not resumed if this one
derives other steps: winners and shares would be taken for those of other candidates and tables.
Leakage: as of the queries. Cost: the steps are derived once more at each site; no message.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from math import ceil

from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.randomness import label
from vertibayes_protocols.approval import Approved, Asked, Step, Winners, is_valid
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.contract import Contract, grouped_digest, opening_of
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.queries.choices.choose import portions
from vertibayes_protocols.queries.opening.needs import Taken, taken_by
from vertibayes_protocols.record_checks import RARE
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.run_record import GIVEN, OPEN, RunRecord, Shown

OTHER_STEPS = (
    "the release of vertibayes that began this run takes other steps: resume the run with it at "
    "all parties, or begin another run"
)
OVER = "its approval ended on {}: its owner can approve it again, with another --until"


class StudyRun:
    """A run of an approved study at a site."""

    def __init__(self, site: SiteRole, approved: Approved) -> None:
        self.site, self.approved = site, approved

    @property
    def contract(self) -> Contract:
        """The contract that is run."""
        return self.approved.contract

    def takes(self, states: Mapping[str, int], records: int) -> Taken:
        """Return what the run still takes of the site's budgets; `states` are as of `needs_of`."""
        raise NotImplementedError

    def _check_approval(self) -> None:
        """Refuse any query if the approval is withdrawn, or its last day is past."""
        if self.approved.is_over:
            raise self._refused(OVER.format(self.approved.until))
        if not is_valid(self.approved, self.site.approvals):
            raise self._refused("its approval has been withdrawn or has changed")

    def _check_contract(self, query: Asked) -> None:
        """Refuse what free fields of a query have, and the contract has not."""
        try:
            query.matches(self.contract)
        except ValueError as error:
            raise self._refused(str(error)) from None

    def _refused(self, reason: str) -> QueryRefusedError:
        """Return the error that names the study."""
        study = grouped_digest(self.contract.digest)[:9]
        return QueryRefusedError(self.site.party, f"approved study {study}: {reason}")


class ApprovedRun(StudyRun):
    """A run of a study whose learner asks steps."""

    def __init__(
        self, site: SiteRole, approved: Approved, *, study: bytes = b"", resumed: bool = False
    ) -> None:
        super().__init__(site, approved)
        self._study, self._resumed = study, resumed
        self._place = 0  # of the next step, counted in portions
        self._opening = opening_of(approved.contract.alignment)
        self._opened = 0  # queries of these that were answered
        self._steps: Generator[Step, Winners, object] | None = None
        self._due: list[Step] = []  # the portions of the step that are not answered yet
        self._won: Winners = ()  # of the portions that are
        self._asked = b""  # a digest of all portions up to the last one that was answered
        self._is_over = False

    def takes(self, states: Mapping[str, int], records: int) -> Taken:
        """Return what the run still takes of the site's budgets: what it has not recorded."""
        joined = self.site.joined
        study = self._study if joined is None else joined.study.id
        record = self.site.memory.run_of(self.contract.digest, study)
        return taken_by(self.approved, states, records, record)

    def check(self, query: Asked) -> None:
        """Refuse a query that is not the next one, and any query if the approval is withdrawn."""
        self._check_approval()
        if self._opened < len(self._opening):
            kind = self._opening[self._opened]
            if query.kind != kind:
                raise self._refused(f"the next query is {kind!r}, got {query.kind!r}")
            if self._study and query.claims not in (b"", self._study):
                raise self._refused("the id of the study is not the one with which the run began")
            self._check_contract(query)
            if query.kind != "align":  # before it, who is in the study is not known
                self._check_states()
            return
        step = self._awaited(query.step)
        if step is None:
            raise self._refused("the study has ended: begin another session for another run")
        if query.step != step:
            what = "choose" if isinstance(step, Choices) else "release"
            raise self._refused(
                f"the query {query.kind!r} is not the next step of the study, a {what!r} with the "
                "content that the contract and the winners give"
            )
        self._check_again(query)

    def _check_states(self) -> None:
        """Refuse states of a few people under the rule cut: sums of tables show their counts.

        The counts of all others are exact, and whoever has the sums subtracts them.
        """
        site, rule = self.site, self.contract.rule
        if rule is None or rule.kind != "cut" or site.policy.free_tables:
            return
        data = site.data if site.placement is None else site.data.rows(site.placement.own)
        rare = data.rare_states(self.contract.variables, rule.fewest)
        if rare:
            raise QueryRefusedError(site.party, RARE.format(fewest=rule.fewest), ", ".join(rare))

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
            self._check_step(step, shown[self._place])
            if self._place == len(shown) - 1 and asked == step:
                return step
            self._pass(shown[self._place].won)
        step = self._next()
        self._check_step(step)
        return step

    def _check_step(self, step: Step | None, shown: Shown | None = None) -> None:
        """Refuse to resume a run whose record is of other steps than this release derives."""
        record = self._record
        fits = True
        if self._place == record.begun - 1:
            fits = step is not None and self._with(step) == record.asked
        if shown is not None:
            sets = step.sets if isinstance(step, Choices) else ()
            fits &= [*map(len, shown)] == [len(sets)] * 2
            fits &= all(0 <= place < len(one) for place, one in zip(shown.won, sets, strict=False))
        if not fits:
            raise self._refused(OTHER_STEPS)

    def _with(self, step: Step) -> bytes:
        """Return a digest of the steps so far and of the next one."""
        return label("steps", self._asked, repr(step))

    def _pass(self, won: Winners) -> None:
        """Advance behind a portion of which the winners are known."""
        self._asked = self._with(self._due.pop(0))
        self._won += won
        self._place += 1

    def _check_again(self, query: Asked) -> None:
        """Refuse a step that has begun once too often, and a release that does not fit the last."""
        record = self._record
        if query.gives_again and record.state == OPEN:
            raise self._refused("this site has kept no share of released tables")
        if record.state == GIVEN and not query.gives_again:
            raise self._refused("its tables were released: the same answer can be given again")
        if self._place < record.begun and not query.gives_again:
            self._check_failed()

    def _check_failed(self) -> None:
        begun, used = self.site.memory.runs.count(self.contract.digest)
        if begun - used >= (most := self.site.policy.most_failed_runs):
            raise self._refused(
                f"{most} of its runs, or steps of them, began and were not finished, which can be "
                "an attack: if you know why they failed, increase most_failed_runs in the policy"
            )

    def begin(self, query: Asked) -> None:
        """Note in the site's memory that the run begins, with its columns, and each step."""
        digest = self.contract.digest
        if self._opened < len(self._opening):
            if self._opened == len(self._opening) - 1 and not self._resumed:
                self.site.memory.runs.begin(digest, query.claims)
        elif not query.gives_again:
            asked = self._with(self._due[0])
            self.site.memory.runs.begin_step(digest, self._place, asked)

    def end(self, query: Asked) -> None:
        """Advance: record the winners of a choice, and derive the next step when all are there."""
        if self._opened < len(self._opening):
            self._opened += 1
            return
        step = query.step
        self._pass(self._recorded(step) if isinstance(step, Choices) else ())

    def _recorded(self, step: Choices) -> Winners:
        """Record what a step has shown, or compare it with the record; return the winners."""
        joined, record = self.site.joined, self._record
        assert joined is not None  # since Commit
        shown = Shown(joined.won, joined.decided)
        if self._place == len(record.shown):
            self.site.memory.runs.end_step(self.contract.digest, shown, ceil(step.bits))
        elif shown != record.shown[self._place]:
            self.site.memory.runs.forget(self.contract.digest)
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
