"""What a release tells: a verdict for each table, differences of tables, and the tracing bound."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import exp
from typing import Any, Literal, TypeAlias

import numpy as np

from vertibayes.counting import Table
from vertibayes.counting.released import ReleasedCounter
from vertibayes.network import Network
from vertibayes.report.release.appetite import NO_DOMINANCE, Appetite
from vertibayes.report.release.differences import (
    Difference,
    SmallCell,
    differences,
    small_cells,
)
from vertibayes.report.release.tracing import FALSE_ALARMS, Tracing, tracing
from vertibayes.settings import USED_BY
from vertibayes.words import counted
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family, Variable, axis_lengths

Status: TypeAlias = Literal["pass", "review", "fail"]


@dataclass(frozen=True)
class Verdict:
    """What an output checker has to know about one table."""

    family: Family  # the axes of the table
    table: Table  # the table as it was released
    status: Status  # fail: a count that the threshold forbids is shown
    smallest: int | None  # the smallest released count that is not 0
    below: int  # the number of cells from 1 to below the threshold; 0 with noise
    zeros: int  # the number of cells that are 0; 0 with noise
    differences: int  # the number of listed differences in which the table has the smaller margin
    reasons: tuple[str, ...]  # what each check says: threshold, dominance, differencing


@dataclass(frozen=True)
class Assessment:
    """What a release tells.

    Attributes
    ----------
    request : FamilyTables
        What was released, and the rule.
    variables : mapping of str to Variable
        The variables of the tables.
    verdicts : tuple of Verdict
        One for each table, in the order of the request.
    differences : tuple of Difference
        The small differences of margins; empty with noise.
    small : tuple of SmallCell
        The small counts of tables and margins; empty with noise.
    tracing : Tracing
        The bound of tracing attacks.
    appetite : Appetite
        The limits of the verdicts.
    """

    request: FamilyTables
    variables: Mapping[str, Variable]
    verdicts: tuple[Verdict, ...]
    differences: tuple[Difference, ...]
    small: tuple[SmallCell, ...]
    tracing: Tracing
    appetite: Appetite

    @property
    def rule(self) -> Rule:
        """The rule of the release."""
        return self.request.rule

    def states(self, name: str) -> tuple[str, ...]:
        """Return the names of the states on the axis of a variable."""
        variable = self.variables[name]
        with_missing = self.request.missing and variable.missing
        return (*variable.states, "(missing)") if with_missing else variable.states

    def as_json(self) -> Mapping[str, Any]:
        """Return the entry `release` of summary.json."""
        return {
            "rule": rule_as_json(self.rule),
            "threshold": None if self.rule.is_noisy else self.appetite.threshold,
            **self.appetite.as_json(self.rule),
            "tables": len(self.verdicts),
            "cells": sum(verdict.table.size for verdict in self.verdicts),
            "verdicts": dict(Tally(verdict.status for verdict in self.verdicts)),
            "small_cells": len(self.small),
            "differences": len(self.differences),
            "tracing": self.tracing._asdict(),
        }

    def sentences(self) -> list[str]:
        """Return what the command prints about the release."""
        statuses = Tally(verdict.status for verdict in self.verdicts)
        counts = ", ".join(f"{statuses[s]} {s}" for s in ("pass", "review", "fail"))
        listed = (
            f"{counted(len(self.small), 'small count')} and "
            f"{counted(len(self.differences), 'small difference')} are listed"
        )
        tables = counted(len(self.verdicts), "table")
        return [f"Release of {tables}: {counts}; {listed}.", *self.traced()]

    def traced(self) -> list[str]:
        """Return the sentences about tracing; noise bounds its power too (Kairouz et al. 2015)."""
        if not self.rule.is_noisy:
            return [self.tracing.sentence()]
        delta = self.rule.delta if self.rule.kind == "gaussian" else 0.0
        power = min(FALSE_ALARMS * exp(min(self.rule.epsilon, 50.0)) + delta, 1.0)
        bound = f"It bounds what the tables alone tell: at most {power:.1%} are recognized."
        if f"{power:.1%}" == "100.0%":
            bound = "It is too weak to bound what the tables alone tell."
        return [self.tracing.sentence(), f"The noise is not in these figures. {bound}"]


def assess(
    counter: ReleasedCounter, network: Network, appetite: Appetite | None = None
) -> Assessment:
    """Assess released tables and the network that was learned from them.

    Parameters
    ----------
    counter : ReleasedCounter
        The released tables.
    network : Network
        The network learned from them.
    appetite : Appetite, optional
        The limits; those of the rule if not given.
    """
    request = counter.request
    appetite = appetite or Appetite(request.rule.fewest)
    fewest = appetite.threshold
    judge = partial(_verdict, replace(request.rule, fewest=fewest), appetite.zeros)
    tables = list(zip(request.families, counter.released, strict=True))
    listed: list[Difference] = []
    small: list[SmallCell] = []
    if not request.rule.is_noisy:
        if request.rule.kind != "rounded":  # differences of multiples count nobody
            listed = differences(tables, counter.records, fewest)
        small = small_cells(tables, fewest)
    hiding = Tally(difference.smaller for difference in listed)
    verdicts = [
        _noisy(request.rule, *table) if request.rule.is_noisy else judge(*table, n)
        for table, n in zip(tables, map(hiding.__getitem__, range(len(tables))), strict=True)
    ]
    lengths = axis_lengths(counter.variables, request.missing)
    bound = tracing(network, request.families, lengths, counter.records)
    return Assessment(
        request, counter.variables, tuple(verdicts), tuple(listed), tuple(small), bound, appetite
    )


def rule_as_json(rule: Rule) -> Mapping[str, Any]:
    """Return a rule with the settings that it uses, as JSON data."""
    used = {name: getattr(rule, name) for name, kinds in USED_BY.items() if rule.kind in kinds}
    return {"kind": rule.kind, **used}


def _verdict(rule: Rule, judged: bool, family: Family, table: Table, hidden: int) -> Verdict:
    """Judge a table of counts; `judged` says whether a person judges exact zeros."""
    seen = table[table > 0]
    smallest = int(seen.min()) if seen.size else None
    below, zeros = int((seen < rule.fewest).sum()), int((table == 0).sum())
    exact_zeros = zeros if rule.kind == "exact" else 0
    status: Status = "fail" if below else "review" if hidden or (judged and exact_zeros) else "pass"
    reasons = [_threshold(rule, smallest, below), NO_DOMINANCE, _differencing(rule, hidden)]
    if exact_zeros:
        allowed = "" if judged else ", which the risk appetite allows"
        reasons.append(f"zeros: {counted(exact_zeros, 'cell')} without any record{allowed}")
    return Verdict(family, table, status, smallest, below, zeros, hidden, tuple(reasons))


def _threshold(rule: Rule, smallest: int | None, below: int) -> str:
    if smallest is None:
        return "threshold: all counts are 0"
    if below:
        return f"threshold: {counted(below, 'cell')} from 1 to {rule.fewest - 1}"
    return f"threshold: the smallest count that is not 0 is {smallest}, at least {rule.fewest}"


def _differencing(rule: Rule, hidden: int) -> str:
    if rule.kind == "rounded":
        return "differencing does not apply: each count is rounded"
    if not hidden:
        return f"differencing: no difference from 1 to {rule.fewest - 1}"
    return f"differencing: {counted(hidden, 'difference')} from 1 to {rule.fewest - 1}"


def _noisy(rule: Rule, family: Family, table: Table) -> Verdict:
    """Leave a table with noise to a person: whether epsilon suffices is no matter of counts."""
    reasons = (
        "threshold and differencing do not apply: each cell has noise",
        NO_DOMINANCE,
        f"promise: {rule.promise} for all tables together, not for the structure",
    )
    return Verdict(family, np.asarray(table), "review", None, 0, 0, 0, reasons)
