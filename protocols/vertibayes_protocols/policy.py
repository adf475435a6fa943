"""The rules by which a party answers queries."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import get_args

from vertibayes_protocols.budget import ROUNDING, Cost, Released
from vertibayes_protocols.release import Rule, RuleKind
from vertibayes_protocols.settings import MASKED_TABLES, CountBy, declared, settings_of
from vertibayes_protocols.variables import Rows

GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class Policy:
    """The rules of one party, which refuses a query that breaks one of them.

    By default tables, cells and bits of all studies carry one a month for a year, of ALARM's size.

    Examples
    --------
    >>> policy = Policy(variables=["age", "smoker"], most_variables=3)
    >>> policy.shows("age"), policy.shows("income")
    (True, False)
    >>> policy.check_tables([(4, 81)])
    Traceback (most recent call last):
    ValueError: a table of 4 variables, at most 3 are allowed
    """

    variables: Collection[str] | None = None  # the variables that the party shows; None: all
    most_variables: int = declared("whole", 8, least=1)  # in one table
    fewest_records: int = declared("whole", 10, least=1)  # counted, or left out if any are
    most_row_sets: int = declared("whole", 50, least=1)  # different record sets, in all studies
    most_cells: int = declared("whole", 20_000_000, least=1)  # in all tables of one query
    most_failed_meets: int = declared("whole", 100, least=1)  # other lists since the last equal one
    most_sessions: int = declared("whole", 8, least=1)  # at the same time; analysts share equally
    most_released_tables: int = declared("whole", 1_000, least=1)  # by all approved studies
    most_released_cells: int = declared("whole", 100_000, least=1)  # of these tables together
    most_choice_bits: int = declared("whole", 60_000, least=1)  # of winners in all approved studies
    most_memory: int = declared("size", GIBIBYTE, least=1)  # of one query at this party
    most_minutes: float = declared("number", 60.0, above=0)  # of all parties' work in one query
    most_stored: int = declared("size", 16 * GIBIBYTE, least=1)  # masked columns of one study
    # Two such sums that differ in one member reveal this member's counts.
    exact_sums: bool = declared("flag", False)  # sums without noise over sites with other records
    # Neighbours can solve the numbers of many rounds for the records.
    exact_neighbours: bool = declared("flag", False)  # own statistics, without noise, to neighbours
    most_epsilon: float = declared("number", 1.0, least=0)  # of all releases with noise together
    most_delta: float = declared("number", 1e-5, least=0)  # of all these releases
    most_scores: int = declared("whole", 0, least=0)  # records whose scores leave, in all studies
    dishonest: float = declared("number", 0.0, least=0, below=1)  # share of accomplices, at least
    free_tables: bool = declared("flag", False, old="exact_tables")  # any query within this policy
    # Ways of counting; another than the default has other parties whom an owner must trust.
    count_by: tuple[str, ...] = declared("texts", (MASKED_TABLES,), choices=get_args(CountBy))
    most_failed_runs: int = declared("whole", 10, least=1)  # of a study, that release nothing
    # The floors of each approved study, whatever its owner approved before.
    rules: tuple[str, ...] = declared("texts", get_args(RuleKind), choices=get_args(RuleKind))
    least_fewest: int = declared("whole", 1, least=1)  # of counts without noise: exact has 1
    most_epsilon_of_a_study: float = declared("number", math.inf, above=0)  # of all its runs
    most_runs: int = declared("whole", 1000, least=1)
    noise_alone: bool = declared("flag", False)  # never results with noise and others without it

    def __post_init__(self) -> None:
        if isinstance(self.variables, str):
            raise TypeError(f"`variables` must be a collection of names, got {self.variables!r}")
        for setting in settings_of(Policy):
            value = getattr(self, setting.name)
            kind = tuple if setting.choices else Real
            if not isinstance(value, kind) or not setting.accepts(value):  # a nan is not
                expected = setting.limits or setting.expected
                raise ValueError(f"`{setting.name}` must be {expected}, got {value}")

    def shows(self, variable: str) -> bool:
        """Whether the party shows a variable."""
        return self.variables is None or variable in self.variables

    def check_shown(self, variables: Iterable[str]) -> None:
        """Refuse a query about variables that the party does not show."""
        if hidden := [variable for variable in variables if not self.shows(variable)]:
            raise ValueError(f"it does not show {', '.join(hidden)}")

    def check_tables(self, tables: Iterable[tuple[int, int]]) -> None:
        """Refuse tables, each as (variables, cells), that are too wide or too large together."""
        total = 0
        for variables, cells in tables:
            total += cells
            if variables > (most := self.most_variables):
                raise ValueError(f"a table of {variables} variables, at most {most} are allowed")
        if total > self.most_cells:
            reason = f"tables of {total} cells, at most {self.most_cells} are allowed in a query"
            raise ValueError(reason)

    def check_planned(self, memory: int, seconds: float, less: str) -> None:
        """Refuse a query that takes too much memory or time."""
        if memory > (most := self.most_memory):
            raise ValueError(
                f"the query takes up to {memory:,} bytes of memory at a party, and its policy "
                f"allows most_memory = {most:,}: {less}"
            )
        if seconds > 60 * self.most_minutes:
            raise ValueError(
                f"the query takes about {seconds:,.0f} s of work of all parties, and its policy "
                f"allows most_minutes = {self.most_minutes:g}: {less}"
            )

    def check_stored(self, stored: int) -> None:
        """Refuse a study whose masked columns take too many bytes at one site."""
        if stored > (most := self.most_stored):
            raise ValueError(
                f"the study's masked columns take {stored:,} bytes at each site, and its policy "
                f"allows most_stored = {most:,}: study fewer variables, or those of fewer states"
            )

    def check_released(self, released: Released, tables: int, cells: int) -> None:
        """Refuse a release that exceeds the number of tables or cells of all approved studies."""
        after = released.plus(tables, cells)
        limits = (
            (after.tables, self.most_released_tables, "tables"),
            (after.cells, self.most_released_cells, "cells"),
        )
        for total, most, what in limits:
            if total > most:
                raise ValueError(
                    f"with this release, approved studies would have released {total:,} {what}: "
                    f"its policy allows most_released_{what} = {most:,}"
                )

    def check_freely(self) -> None:
        """Refuse exact tables without a rule, also in an approved study, unless allowed."""
        if not self.free_tables:
            reason = "exact tables without a rule are not allowed: its policy sets no free_tables"
            raise ValueError(reason)

    def check_way(self, count_by: CountBy) -> None:
        """Refuse a way of counting that is not allowed: it says whom the owner must trust."""
        if count_by not in self.count_by:
            allowed = ", ".join(self.count_by) or "none"
            raise ValueError(f"tables counted by {count_by}: its policy allows count_by {allowed}")

    def check_chosen(self, chosen: int, bits: int) -> None:
        """Refuse choices whose winners exceed the bits of all approved studies."""
        if chosen + bits > (most := self.most_choice_bits):
            raise ValueError(
                f"with these choices, approved studies would have shown winners of "
                f"{chosen + bits:,} bits: its policy allows most_choice_bits = {most:,}"
            )

    def check_scores(self, scored: int, records: int, what: str) -> None:
        """Refuse scores of too many records; `scored` records were scored so far."""
        if records > (left := self.most_scores - scored):
            raise ValueError(
                f"{what} of {records} records: {max(left, 0)} are left of most_scores = "
                f"{self.most_scores}"
            )

    def check_exact(self) -> None:
        """Refuse a sum without noise, unless exact sums are allowed."""
        if not self.exact_sums:
            reason = "sums without noise are not allowed: its policy does not set exact_sums"
            raise ValueError(reason)

    def check_neighbours(self) -> None:
        """Refuse to show own statistics to neighbours, unless allowed."""
        if not self.exact_neighbours:
            raise ValueError(
                "neighbours would see its own statistics: its policy does not set "
                'exact_neighbours; sums with mixing = "mean" do not show them'
            )

    def check_exposed(self, records: int) -> None:
        """Refuse to show own statistics of too few records."""
        if records < (fewest := self.fewest_records):
            raise ValueError(f"neighbours would see statistics of fewer than {fewest} records")

    def check_budget(self, spent: Cost, cost: Cost) -> None:
        """Refuse a release that overspends the budget by both its bounds; say how much is left."""
        limit, most = self.most_epsilon, self.most_delta
        if spent.permits(cost, limit, most):
            return
        if spent.without_delta().permits(cost.without_delta(), limit, most):
            left = max(most - spent.delta, 0.0)
            price, budget = f"delta {cost.delta:.4g}", f"most_delta = {most:g}"
        else:
            left = spent.left(limit, most)
            price, budget = f"epsilon {cost.eps:.4g}", f"most_epsilon = {limit:g}"
        raise ValueError(f"the release costs {price}: {left:.4g} is left of {budget}")

    def beyond(self, rule: Rule | None, runs: int) -> Iterator[tuple[str, str]]:
        """Yield what exceeds the floors of approved studies: a key of [release], and why."""
        if runs > (most := self.most_runs):
            yield "runs", f"the study has {runs:,} runs: its policy allows most_runs = {most:,}"
        if rule is None:
            return
        if rule.kind not in self.rules:
            allowed = ", ".join(self.rules) or "none"
            yield "rule", f"the rule of the study is {rule.kind}: its policy allows rules {allowed}"
        if rule.smallest < (least := self.least_fewest):
            key = "rule" if rule.kind == "exact" else "fewest"
            shown = f"the study releases numbers from {rule.smallest} on"
            yield key, f"{shown}: its policy allows none below least_fewest = {least:,}"
        if rule.is_noisy and (excess := self._excess(rule.epsilon, runs)):
            yield "epsilon", excess

    def _excess(self, epsilon: float, runs: int) -> str:
        """Return why releases of a study exceed its largest epsilon; empty if they do not."""
        together, most = epsilon * runs, self.most_epsilon_of_a_study
        if together <= most * (1 + ROUNDING):
            return ""
        return (
            f"the runs of the study have epsilon {together:.4g} together: its policy allows "
            f"most_epsilon_of_a_study = {most:g}"
        )

    def check_study_epsilon(self, epsilon: float, runs: int) -> None:
        """Refuse a release whose epsilon, times the runs of its study, is too large."""
        if excess := self._excess(epsilon, runs):
            raise ValueError(excess)

    def check_alone(self, spent: Cost, plain: int, *, is_noisy: bool) -> None:
        """Refuse results without noise beside earlier ones with it, or the other way round."""
        if self.noise_alone and (plain if is_noisy else spent.eps):
            earlier, this = ("without", "with") if is_noisy else ("with", "without")
            raise ValueError(
                f"results {earlier} noise have left this site, and these would leave {this} it: "
                "its policy sets noise_alone"
            )

    def check_dishonest(self, dishonest: float) -> None:
        """Refuse terms under which too few members may work with the analyst."""
        if dishonest < self.dishonest:
            raise ValueError(
                f"the terms allow a share of {dishonest:g} of the members to work with the "
                f"analyst: its policy expects at least dishonest = {self.dishonest:g}"
            )

    def check_records(self, rows: Rows, records: int) -> None:
        """Refuse tables that count, or leave out, too few records."""
        chosen = rows.count(records)
        if chosen < self.fewest_records:
            reason = f"tables over {chosen} records, at least {self.fewest_records} are required"
            raise ValueError(reason)
        if 0 < records - chosen < self.fewest_records:
            raise ValueError(
                f"tables over {chosen} of {records} records: they would leave out "
                f"{records - chosen}, and at least {self.fewest_records} are required"
            )


# Of parties in one process: one person holds all data.
FREE = Policy(free_tables=True, count_by=get_args(CountBy))
ALLOW_ALL = Policy(  # each party answers every query
    free_tables=True,
    count_by=get_args(CountBy),
    fewest_records=1,
    most_cells=1 << 40,
    most_variables=1 << 20,
    most_minutes=math.inf,
    most_released_tables=1 << 62,
    most_released_cells=1 << 62,
    most_choice_bits=1 << 62,
    most_memory=1 << 50,
    exact_sums=True,
    exact_neighbours=True,
    most_epsilon=math.inf,
    most_delta=math.inf,
    most_scores=1 << 62,
)
