"""What a run of an approved study takes of a site's budgets, and what is left of them.

`vertibayes approve` and `Begin` compare both, and `vertibayes check --meet` by `Begin`: a run that
a budget would end begins at no site, and shows nothing. Known before a run are the bits of winners
at most, tables and noise exactly (of declared queries at least), and cells at least: which parents
are learned, and the states at the other sites, are not known. What the runs of other open sessions
still need is reserved, until they end. What a resumed run has used itself is not compared again,
except the bits of a step that broke: they count twice, because a party that lies in one of the two
executions learns from both (`vertibayes_protocols.queries.approved_run`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from math import prod
from typing import Any, NamedTuple

from vertibayes_protocols.approval import Approved
from vertibayes_protocols.budget import Cost, Released, rho_of
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.releases.plan import ReleaseNoise
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.run_record import GIVEN, RunRecord
from vertibayes_protocols.variables import Family


class Need(NamedTuple):
    """What a run takes of one budget."""

    what: str
    needed: float
    bound: str  # "at most " or "at least ", if the number is a bound
    used: float  # by all studies so far
    reserved: float  # for the runs of other open sessions
    limit: str  # the name in the policy
    most: float
    reason: str  # why the run does not fit; empty if it does

    @property
    def left(self) -> float:
        """What is left for this run and later ones."""
        return max(self.most - self.used - self.reserved, 0)


class Taken(NamedTuple):
    """What runs, or a query of one, take."""

    tables: Released = Released()
    cost: Cost = Cost()
    scores: int = 0
    bits: int = 0

    def plus(self, other: Taken) -> Taken:
        """Return what both take together."""
        tables, cost = self.tables.plus(*other.tables), self.cost.plus(other.cost)
        return Taken(tables, cost, self.scores + other.scores, self.bits + other.bits)


NOTHING = Taken()


def needs_of(
    approved: Approved,
    policy: Policy,
    memory: SiteMemory,
    states: Mapping[str, int],
    records: int,
    record: RunRecord | None = None,
    *,
    reserved: Taken = NOTHING,
) -> list[Need]:
    """Return what a run takes of each budget, and what is left for it.

    `states` are those of the site's own variables, by their number, `record` is what a run that is
    resumed has shown so far, and `reserved` is what other open runs take.
    """
    tables, cost, scores, bits = taken_by(approved, states, records, record)
    used, held = memory.released, reserved.tables
    counts = (
        ("tables of approved studies", "", tables.tables, used.tables, held.tables),
        ("cells of these tables", "at least ", tables.cells, used.cells, held.cells),
        ("bits of winners of choices", "at most ", bits, memory.chosen, reserved.bits),
        ("records with scores", "", scores, memory.scored, reserved.scores),
    )
    limits = "most_released_tables", "most_released_cells", "most_choice_bits", "most_scores"
    needs = [
        _count(*each, limit, getattr(policy, limit))
        for each, limit in zip(counts, limits, strict=True)
    ]
    needs += _epsilon(cost, policy, memory.spent, reserved.cost, approved.contract)
    return [_explained(need, record) for need in needs if need.needed]


def taken_by(
    approved: Approved,
    states: Mapping[str, int],
    records: int,
    record: RunRecord | None = None,
    answered: int = 0,
) -> Taken:
    """Return what a run still takes, behind its record or so many declared queries."""
    if record is not None and record.state == GIVEN:
        return NOTHING
    contract, shown = approved.contract, 0 if record is None else record.bits
    own = {name: states[name] for name in contract.variables if name in states}
    taken = Taken(bits=max(approved.takes.bits - shown, 0)).plus(_released(approved, own))
    for query in contract.queries[answered:]:
        taken = taken.plus(_of_query(query, contract, own, records))
    return taken


def _count(
    what: str, bound: str, needed: int, used: int, reserved: int, limit: str, most: int
) -> Need:
    need = Need(what, needed, bound, used, reserved, limit, most, "")
    if needed <= most - used - reserved:
        return need
    reason = (
        f"a run of the study needs {bound}{needed:,} {what}: {need.left:,} are left of {limit} = "
        f"{most:,}"
    )
    return need._replace(reason=reason)


def _explained(need: Need, record: RunRecord | None) -> Need:
    """Return a need whose reason also says what is used twice, or reserved."""
    reason = need.reason
    broke = 0 if record is None else record.charged - record.bits
    if reason and broke and need.limit == "most_choice_bits":
        reason += (
            f"; {broke:,} bits of steps of this run that broke count twice: the site's owner can "
            "increase most_choice_bits by as many"
        )
    if reason and need.reserved:
        reason += "; runs that are open here need a part of the rest: wait for their end"
    return need._replace(reason=reason)


def _epsilon(
    cost: Cost, policy: Policy, spent: Cost, reserved: Cost, contract: Contract
) -> Iterator[Need]:
    """Yield what noise takes, if there is any: two bounds add it up (`Policy.check_budget`)."""
    reason = ""
    try:
        if cost.eps:
            policy.check_budget(spent.plus(reserved), cost)
    except ValueError as error:
        reason = str(error)
    used, _ = spent.proved(policy.most_delta)
    total, _ = spent.plus(reserved).proved(policy.most_delta)
    what, bound = "epsilon of all releases with noise", "at least " if contract.queries else ""
    limit, most = "most_epsilon", policy.most_epsilon
    yield Need(what, cost.eps, bound, used, total - used, limit, most, reason)


def _released(approved: Approved, states: Mapping[str, int]) -> Taken:
    """Return what the release of a study with steps takes, of which the families are known."""
    families, rule = approved.takes.families, approved.contract.rule
    tables = Released(len(families), sum(_cells(family, states) for family in families))
    if rule is None or not rule.is_noisy or not families:
        return Taken(tables)
    asked = FamilyTables(families, False, rule)
    return Taken(tables, ReleaseNoise(asked, len(approved.contract.sites)).cost)


def _cells(family: Family, states: Mapping[str, int]) -> int:
    """Return how many cells a table has at least: the states at other sites are not known."""
    return prod(states.get(name, 1) for name in family.members)


def _of_query(
    query: Mapping[str, Any], contract: Contract, states: Mapping[str, int], records: int
) -> Taken:
    """Return what a declared query takes at a site, at least."""
    kind, fields = query["kind"], query["fields"]
    if kind in ("predict", "score table"):
        return _of_odds(kind, fields, contract, states, records)
    if kind == "scores":
        return Taken(scores=fields["last"])
    if kind in ("sums", "updates") and (noise := fields["terms"]["privacy"]) is not None:
        return Taken(cost=_noise(noise["noise"], noise["eps"], noise["delta"]))
    if kind == "report":
        return Taken(cost=Cost.of(fields["asked"]["eps"]))
    if kind == "publish":  # its epsilon is that of a count, and each own feature has a table
        features = {*states} - {fields["split"]["target"]["name"]}
        return Taken(cost=Cost.of(fields["eps"] * len(features)))
    return Taken()


def _of_odds(
    kind: str,
    fields: Mapping[str, Any],
    contract: Contract,
    states: Mapping[str, int],
    records: int,
) -> Taken:
    """Return what a prediction takes at a site with one of its variables: scores, or a table."""
    odds = fields["odds"]
    named = {*chain.from_iterable(odds["tables"])}
    if kind == "predict":
        everyone = 1 if contract.alignment else records  # aligned: how many is not known
        is_asked = not named.isdisjoint(states)
        return Taken(scores=(fields["rows"]["last"] or everyone) if is_asked else 0)
    if (named | {odds["target"]}).isdisjoint(states):
        return Taken()
    rule, bins = Rule(**fields["rule"]), len(fields["thresholds"][1]) + 1
    cost = _noise(rule.kind, rule.epsilon, rule.delta) if rule.is_noisy else Cost()
    return Taken(Released(1, len(odds["states"]) * bins), cost)


def _noise(kind: str, eps: float, delta: float) -> Cost:
    """Return the least that noise of such an epsilon costs."""
    return Cost(eps, delta, rho_of(eps, delta)) if kind == "gaussian" else Cost.of(eps)
