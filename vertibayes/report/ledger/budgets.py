"""What a site has used of its limits, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from vertibayes_protocols.alignment import AlignmentLimits
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.metrics import Used
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.storage.meet_counts import ALIGNMENTS
from vertibayes_protocols.storage.memory import SiteMemory


class Budget(NamedTuple):
    """What was used of one limit."""

    what: str
    used: float
    most: float | None  # the limit; None if it is not known or does not exist
    limit: str  # the name of the limit in the site's file; empty without a limit

    @property
    def cells(self) -> tuple[str, str, str]:
        """What was used, what is left, and the limit, as texts."""
        if not self.limit:
            return _number(self.used), "", "no limit"
        if self.most is None:
            return _number(self.used), "not known", self.limit
        left = _number(max(self.most - self.used, 0)) if self.most else "not allowed"
        return _number(self.used), left, f"{self.limit} = {_number(self.most)}"

    @property
    def share(self) -> float:
        """The share of the limit that was used, at most 1."""
        return min(self.used / self.most, 1.0) if self.most else 0.0


def budgets_of(
    memory: SiteMemory, policy: Policy | None, limits: AlignmentLimits | None = None
) -> list[Budget]:
    """Return what a site has released, and what is left of it."""
    released = memory.released
    known = [vars(each) for each in (policy, limits) if each is not None]
    most = dict(chain.from_iterable(each.items() for each in known))
    numbers = [
        ("tables of approved studies", released.tables, "most_released_tables"),
        ("cells of these tables", released.cells, "most_released_cells"),
        ("bits of winners of choices", memory.chosen, "most_choice_bits"),
        ("records with scores", memory.scored, "most_scores"),
        ("record sets", len(memory.sets), "most_row_sets"),
        *((f"failed meets with {peer} ({different} different, {unanswered} unanswered)",
           different + unanswered, "most_failed_meets")
          for peer, (different, unanswered) in memory.meets.known().items() if peer != ALIGNMENTS),
        *([("alignments of the list of people", memory.alignments, "most_alignments")]
          if memory.alignments else []),
    ]  # fmt: skip
    budgets = [Budget(what, used, most.get(name), name) for what, used, name in numbers]
    freely = memory.released_freely.tables
    budgets.append(Budget("exact tables of free queries", freely, None, ""))
    return [*_epsilon(memory, policy), *budgets]


def used_of_limits(file: SiteFile) -> list[Used]:
    """Return what a site has used of each limit over all studies; of meets, with one other site."""
    memory = SiteMemory.read(file.memory) if file.memory.exists() else SiteMemory()
    limits = None if file.matching is None else file.matching.limits
    known = [b for b in budgets_of(memory, file.policy, limits) if b.most is not None]
    used = {b.limit: (b.limit, b.used, b.most) for b in sorted(known, key=lambda b: b.used)}
    return [(limit, used, most) for limit, used, most in used.values() if most is not None]


def _epsilon(memory: SiteMemory, policy: Policy | None) -> Iterator[Budget]:
    """Yield what the releases with noise cost together: proved for the delta of the policy."""
    if policy is not None:
        eps, _ = memory.spent.proved(policy.most_delta)
        yield Budget("epsilon of all releases with noise", eps, policy.most_epsilon, "most_epsilon")
    if memory.spent.eps and memory.left_plain:
        what = "tables, sums or scores without noise, which epsilon does not bound"
        yield Budget(what, memory.left_plain, None, "")


def _number(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:.4g}"
