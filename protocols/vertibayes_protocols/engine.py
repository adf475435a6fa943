"""The engine of all queries: it checks their effects, charges and notes them, and knows no kind.

consider    plan, effects, whom it asks, records, tables, what it takes      site and dealer
            columns, number, budgets, record sets, whether it fits           site; data last
answer      budgets again; number, records and charge: on disk; ledger       site
            then the program, whose first byte leaves after that
note        what was revealed, or was asked if the session broke             analyst
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Generic, TypeVar, assert_never

from vertibayes_mpc.errors import ProtocolError
from vertibayes_mpc.rounds import Program, Round
from vertibayes_protocols.effects import (
    ByRule,
    Effects,
    Freely,
    Planned,
    RecordStatistics,
    Scored,
    Winners,
)
from vertibayes_protocols.errors import refusing
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.query import At, Query
from vertibayes_protocols.record_checks import (
    check_number,
    check_records,
    check_values,
    remember_records,
)
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole

R = TypeVar("R")
P = TypeVar("P")


@dataclass
class Considered(Generic[R, P]):
    """A query to which a party agrees: its plan, and its effects as this party sees them."""

    query: Query[R, P]
    plan: P = field(repr=False)
    effects: Effects = field(repr=False)


# ---- a party agrees, or refuses ------------------------------------------------------------------


def consider(role: SiteRole | DealerRole, query: Query[R, P]) -> Considered[R, P]:
    """Return a query with its plan and effects, or refuse it; nothing is changed."""
    with refusing(role.party):
        at = At.of(role)
        plan = query.plan(at)
        effects = query.effects(plan, at)
        _check_sizes(role.policy, query, effects, at)
        if isinstance(role, SiteRole):
            role.policy.check_shown(effects.columns)
            check_number(role, effects.number)
            if not query.is_paid(role):
                _check_budgets(role, effects)
            if effects.counts is not None:
                check_records(role, effects.counts)
                check_values(role, effects)
            query.fits(role, plan)
        else:
            query.fits_dealer(role, plan)
    return Considered(query, plan, effects)


def _check_sizes(policy: Policy, query: Query[R, P], effects: Effects, at: At) -> None:
    """Refuse what is too wide, too large or too long, before more is computed of it."""
    if effects.counts is not None:
        assert at.joined is not None  # it is a set of records of a study
        policy.check_records(effects.counts, at.joined.study.records)
    if query.parties != effects.asks:
        raise ValueError("the query asks other parties than the holders and the dealer")
    if at.party not in effects.asks:
        raise ValueError("the query does not ask this party")
    policy.check_tables(effects.tables)
    for planned in effects.takes:
        policy.check_planned(planned.memory, planned.seconds, planned.less)
        policy.check_stored(planned.stored)


def _check_budgets(site: SiteRole, effects: Effects) -> None:
    """Refuse what exceeds what is left of a site's budgets, or what its policy never allows."""
    policy, memory, leaves = site.policy, site.memory, effects.leaves
    if leaves is not None and not isinstance(leaves, Winners):
        is_noisy = effects.noise is not None
        policy.check_alone(memory.spent, memory.left_plain, is_noisy=is_noisy)
    match leaves:
        case Freely():
            policy.check_freely()
        case ByRule(tables):
            policy.check_released(memory.released, *tables)
        case Scored(records, what):
            policy.check_scores(memory.scored, records, what)
        case Winners(bits) if site.run is not None:
            policy.check_chosen(memory.chosen, bits)
        case RecordStatistics() | Winners() | None:
            pass
        case _:
            assert_never(leaves)
    if isinstance(leaves, ByRule | RecordStatistics):
        _check_noise(site, leaves)


def _check_noise(site: SiteRole, leaves: ByRule | RecordStatistics) -> None:
    """Refuse noise that costs more than is left or cannot be drawn here, and exact sums."""
    policy, noise = site.policy, leaves.noise
    if leaves.dishonest is not None:
        policy.check_dishonest(leaves.dishonest)
    if noise is not None:
        if site.run is not None and isinstance(leaves, RecordStatistics):
            policy.check_study_epsilon(noise.cost.eps, site.run.approved.contract.runs)
        policy.check_budget(site.memory.spent, noise.cost)
        if noise.mechanism and find_spec("opendp") is None:
            raise ValueError(f"{noise.mechanism} noise needs OpenDP, which is not installed")
    elif isinstance(leaves, RecordStatistics):
        policy.check_exact()


# ---- a site answers ------------------------------------------------------------------------------


def answer(role: SiteRole | DealerRole, considered: Considered[R, P]) -> Program[None]:
    """Run a party's program, after a site has charged and noted the query's effects."""
    query, plan = considered.query, considered.plan
    if isinstance(role, DealerRole):
        yield from query.run_dealer(role, plan)
        return
    if considered.effects.counts is not None:
        remember_records(role, considered.effects.counts)
    given = _Given(role, considered, is_done=query.is_paid(role))
    if given.is_done:
        given.note_charged()
    if not query.gives_late:
        given.give()
    yield from given.guard(query.run_site(role, plan, given.give))


@dataclass
class _Given:
    """Gives a query once: charges and notes it, before the first message to the analyst."""

    site: SiteRole
    considered: Considered[Any, Any]
    is_done: bool = False

    def give(self) -> None:
        """Charge and note the effects."""
        site, effects = self.site, self.considered.effects
        try:
            _check_budgets(site, effects)
        except ValueError as error:
            raise ProtocolError(site.party, str(error)) from None
        self.is_done = True
        contract = b"" if site.run is None else site.run.approved.contract.digest
        site.memory.apply(effects, contract, ends_run=self.considered.query.ends_run)
        note(site, effects)
        if effects.leaves is not None and not isinstance(effects.leaves, Winners):
            site.note_budget()

    def note_charged(self) -> None:
        """Note what was charged before, if a crash or a full disk kept it from the ledger."""
        site = self.site
        assert site.run is not None  # no other query is paid
        _, used = site.memory.runs.count(site.run.approved.contract.digest)
        if site.ledger.releases < used:
            note(site, self.considered.effects)

    def guard(self, program: Program[None]) -> Program[None]:
        """Run a program that sends the analyst nothing before the query was given."""
        resume: Callable[[], Round] = partial(next, program)
        while True:
            try:
                step = resume()
            except StopIteration:
                return
            if self.site.analyst in step.outbox and not self.is_done:
                raise AssertionError(f"{self.considered.query.kind!r} answers before it is given")
            try:
                resume = partial(program.send, (yield step))
            except GeneratorExit:
                program.close()
                raise
            except BaseException as error:
                resume = partial(program.throw, error)


# ---- the analyst ---------------------------------------------------------------------------------


def prepare(role: AnalystRole, query: Query[R, P]) -> Considered[R, P]:
    """Return a query with its plan and effects, or refuse one that would take too long."""
    at = At.of(role)
    plan = query.plan(at)
    effects = query.effects(plan, at)
    for step in effects.takes:
        check_time(role, step)
    return Considered(query, plan, effects)


def check_time(role: AnalystRole, planned: Planned) -> None:
    """Refuse a query that takes longer than the analyst allows; its memory is the study's."""
    with refusing(role.party):
        role.policy.check_planned(0, planned.seconds, planned.less)


def open_answers(role: AnalystRole, considered: Considered[R, P]) -> Program[R]:
    """Run the analyst's program; note what was revealed, or what was asked if it fails."""
    query, plan, effects = considered.query, considered.plan, considered.effects
    try:
        result = yield from query.run_analyst(role, plan)
        effects = query.revealed(plan, At.of(role), result)
    finally:
        note(role, effects)
    return result


def note(role: SiteRole | AnalystRole, effects: Effects) -> None:
    """Note in a party's ledger what is revealed."""
    role.ledger.open(effects.opens)
    for fact in effects.says:
        role.ledger.note(*fact)
