"""What a run of an approved study takes of a site's budgets, and what is left of them.

`vertibayes approve` and `Begin` compare both, and `vertibayes check --meet` by `Begin`: a run that
a budget would end begins at no site, and shows nothing. Known before a run are the bits of winners
at most, tables and noise exactly (of declared queries at least), and cells at least: which parents
are learned, and the states at the other sites, are not known. What a resumed run has used itself is
not compared again.
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
    limit: str  # the name in the policy
    most: float
    reason: str  # why the run does not fit; empty if it does

    @property
    def left(self) -> float:
        """What is left for this run and later ones."""
        return max(self.most - self.used, 0)


class _Taken(NamedTuple):
    """What a run, or a query of it, takes."""

    tables: Released = Released()
    cost: Cost = Cost()
    scores: int = 0
    bits: int = 0

    def plus(self, other: _Taken) -> _Taken:
        """Return what both take together."""
        tables, cost = self.tables.plus(*other.tables), self.cost.plus(other.cost)
        return _Taken(tables, cost, self.scores + other.scores, self.bits + other.bits)


def needs_of(
    approved: Approved,
    policy: Policy,
    memory: SiteMemory,
    states: Mapping[str, int],
    records: int,
    record: RunRecord | None = None,
) -> list[Need]:
    """Return what a run takes of each budget, and what is left for it.

    `states` are those of the site's own variables of the study, by their number, and `record` is
    what a run that is resumed has shown so far.
    """
    if record is not None and record.state == GIVEN:
        return []
    contract, shown = approved.contract, 0 if record is None else record.bits
    taken = _Taken(bits=max(approved.takes.bits - shown, 0)).plus(_released(approved, states))
    for query in contract.queries:
        taken = taken.plus(_of_query(query, contract, states, records))
    tables, cost = taken.tables, taken.cost
    released, words = memory.released, "of approved studies"
    counts = (
        (f"tables {words}", "", tables.tables, released.tables, "most_released_tables"),
        ("cells of these tables", "at least ", tables.cells, released.cells, "most_released_cells"),
        ("bits of winners of choices", "at most ", taken.bits, memory.chosen, "most_choice_bits"),
        ("records with scores", "", taken.scores, memory.scored, "most_scores"),
    )
    needs = [_count(*each, getattr(policy, each[-1])) for each in counts]
    return [*(need for need in needs if need.needed), *_epsilon(cost, policy, memory, contract)]


def _count(what: str, bound: str, needed: int, used: int, limit: str, most: int) -> Need:
    need = Need(what, needed, bound, used, limit, most, "")
    if needed <= most - used:
        return need
    reason = (
        f"a run of the study needs {bound}{needed:,} {what}: {need.left:,} are left of {limit} = "
        f"{most:,}"
    )
    return need._replace(reason=reason)


def _epsilon(cost: Cost, policy: Policy, memory: SiteMemory, contract: Contract) -> Iterator[Need]:
    """Yield what noise takes, if there is any: two bounds add it up (`Policy.check_budget`)."""
    if not cost.eps:
        return
    reason = ""
    try:
        policy.check_budget(memory.spent, cost)
    except ValueError as error:
        reason = str(error)
    used, _ = memory.spent.proved(policy.most_delta)
    what, bound = "epsilon of all releases with noise", "at least " if contract.queries else ""
    yield Need(what, cost.eps, bound, used, "most_epsilon", policy.most_epsilon, reason)


def _released(approved: Approved, states: Mapping[str, int]) -> _Taken:
    """Return what the release of a study with steps takes, of which the families are known."""
    families, rule = approved.takes.families, approved.contract.rule
    tables = Released(len(families), sum(_cells(family, states) for family in families))
    if rule is None or not rule.is_noisy or not families:
        return _Taken(tables)
    asked = FamilyTables(families, False, rule)
    return _Taken(tables, ReleaseNoise(asked, len(approved.contract.sites)).cost)


def _cells(family: Family, states: Mapping[str, int]) -> int:
    """Return how many cells a table has at least: the states at other sites are not known."""
    return prod(states.get(name, 1) for name in family.members)


def _of_query(
    query: Mapping[str, Any], contract: Contract, states: Mapping[str, int], records: int
) -> _Taken:
    """Return what a declared query takes at a site, at least."""
    kind, fields = query["kind"], query["fields"]
    if kind in ("predict", "score table"):
        return _of_odds(kind, fields, contract, states, records)
    if kind == "scores":
        return _Taken(scores=fields["last"])
    if kind in ("sums", "updates") and (noise := fields["terms"]["privacy"]) is not None:
        return _Taken(cost=_noise(noise["noise"], noise["eps"], noise["delta"]))
    if kind == "report":
        return _Taken(cost=Cost.of(fields["asked"]["eps"]))
    if kind == "publish":  # its epsilon is that of a count, and each own feature has a table
        features = {*states} - {fields["split"]["target"]["name"]}
        return _Taken(cost=Cost.of(fields["eps"] * len(features)))
    return _Taken()


def _of_odds(
    kind: str,
    fields: Mapping[str, Any],
    contract: Contract,
    states: Mapping[str, int],
    records: int,
) -> _Taken:
    """Return what a prediction takes at a site with one of its variables: scores, or a table."""
    odds = fields["odds"]
    named = {*chain.from_iterable(odds["tables"])}
    if kind == "predict":
        everyone = 1 if contract.alignment else records  # aligned: how many is not known
        is_asked = not named.isdisjoint(states)
        return _Taken(scores=(fields["rows"]["last"] or everyone) if is_asked else 0)
    if (named | {odds["target"]}).isdisjoint(states):
        return _Taken()
    rule, bins = Rule(**fields["rule"]), len(fields["thresholds"][1]) + 1
    cost = _noise(rule.kind, rule.epsilon, rule.delta) if rule.is_noisy else Cost()
    return _Taken(Released(1, len(odds["states"]) * bins), cost)


def _noise(kind: str, eps: float, delta: float) -> Cost:
    """Return the least that noise of such an epsilon costs."""
    return Cost(eps, delta, rho_of(eps, delta)) if kind == "gaussian" else Cost.of(eps)
