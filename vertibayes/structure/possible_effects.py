"""Effects over all directions that data and experts allow: one effect, or a range (IDA).

Equivalent structures fit the data equally well. Given the parents of the exposure, all of them give
the same effect, so that one structure for each possible set of parents gives all effects. If the
exposure does not cause the outcome in a structure, its effect there is 0, and every risk is the
share of the outcome. Arrows that experts fixed keep their direction.

References
----------
Maathuis, Kalisch and Buehlmann (2009), Estimating high-dimensional intervention effects from
observational data. doi:10.1214/09-AOS685
Perkovic, Kalisch and Maathuis (2017), Interpreting and using CPDAGs with background knowledge.
https://arxiv.org/abs/1707.02171
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan, nan, prod
from typing import TypeAlias

from vertibayes.counting import Counter
from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.inference.adjustment import (
    MOST_SETS,
    adjustment_sets,
    check_names,
    is_adjustment_set,
    is_cause,
)
from vertibayes.inference.effects import (
    NO_COUNTS,
    Counted,
    Effect,
    counted_tables,
    effect_in,
    of_table,
)
from vertibayes.inference.intervals import Interval
from vertibayes.inference.marginals import Marginals
from vertibayes.model import Model
from vertibayes.structure.equivalence import structures_by_parents
from vertibayes_protocols.variables import Family, Variable

Sets: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Directions:
    """The structures that data and experts allow, one for each set of parents of an exposure."""

    exposure: str
    outcome: str
    structures: tuple[Structure, ...]

    @classmethod
    def of(
        cls, structure: Structure, exposure: str, outcome: str, fixed: Collection[Edge] = ()
    ) -> Directions:
        """Return the structures that are equivalent to one and have fixed edges.

        Raises
        ------
        ValueError
            If the structure has no such variables, they are the same, or as
            `vertibayes.structure.equivalence.structures_by_parents`.
        """
        check_names(structure, exposure, outcome, ())
        return cls(exposure, outcome, structures_by_parents(structure, exposure, fixed))

    @cached_property
    def causal(self) -> tuple[Structure, ...]:
        """The structures in which the exposure causes the outcome."""
        return tuple(s for s in self.structures if is_cause(s, self.exposure, self.outcome))

    @property
    def undecided(self) -> tuple[Edge, ...]:
        """The edges of the exposure that have one direction in some structures only."""
        first = self.structures[0]
        edges = (edge for edge in first.edges if self.exposure in edge)
        return tuple(e for e in edges if any(e not in s.edges for s in self.structures))

    def sets(self, *, excluded: Collection[str] = (), most: int = MOST_SETS) -> Sets:
        """Return the minimal adjustment sets that are valid in all structures, smallest first."""
        from networkx import descendants

        x, y = self.exposure, self.outcome
        late = set().union(*(descendants(s.to_networkx(), x) for s in self.structures)) - {y}
        found = adjustment_sets(self.structures[0], x, y, excluded={*excluded, *late}, most=most)
        others = self.structures[1:]
        return tuple(z for z in found if all(is_adjustment_set(s, x, y, z) for s in others))

    def smallest_sets(
        self, variables: Mapping[str, Variable], excluded: Collection[str] = ()
    ) -> Sets:
        """Return the adjustment sets of the smallest tables that give all effects.

        If the effect is determined, this is one set that is valid in all structures. Otherwise it
        is one for each structure in which the exposure causes the outcome; each is listed once.
        Other variables than those given are excluded.

        Raises
        ------
        ValueError
            If a structure has no adjustment set.
        """
        x, y, nodes = self.exposure, self.outcome, self.structures[0].nodes
        excluded = {*excluded, *(name for name in nodes if name not in variables)} - {x, y}
        if self.is_determined:
            choices = [self.sets(excluded=excluded)]
        else:
            choices = [adjustment_sets(s, x, y, excluded=excluded) for s in self.causal]
        if not all(choices):
            without = f" without {', '.join(sorted(excluded))}" if excluded else ""
            raise ValueError(f"no adjustment set{without} separates the effect of {x} on {y}")

        def size(names: Sequence[str]) -> tuple[int, Sequence[str]]:
            return prod(len(variables[name].states) for name in names), names

        return tuple(dict.fromkeys(min(sets, key=size) for sets in choices))

    @cached_property
    def is_determined(self) -> bool:
        """Whether all structures give the same effect."""
        return len(self.structures) == 1 or not self.causal or bool(self.sets())


@dataclass(frozen=True)
class EffectRange:
    """The effects of an exposure on an outcome that data and experts allow."""

    effects: tuple[Effect, ...] = field(repr=False)  # at least one

    @property
    def exposure(self) -> Variable:
        """The exposure."""
        return self.effects[0].exposure

    @property
    def outcome(self) -> Variable:
        """The outcome."""
        return self.effects[0].outcome

    @property
    def unsure(self) -> str:
        """Why there are no intervals: a clause, empty if there are."""
        return next((effect.unsure for effect in self.effects if effect.unsure), "")

    def risk(self, outcome: str, exposure: str) -> Interval:
        """Return the lowest and the highest risk; nan if no records have the exposure."""
        return _ends(effect.risk(outcome, exposure) for effect in self.effects)

    def difference(self, outcome: str, exposure: str, baseline: str) -> Interval:
        """Return the lowest and the highest difference; as `risk`."""
        return _ends(effect.difference(outcome, exposure, baseline) for effect in self.effects)

    def ratio(self, outcome: str, exposure: str, baseline: str) -> Interval:
        """Return the lowest and the highest ratio; as `risk`."""
        return _ends(effect.ratio(outcome, exposure, baseline) for effect in self.effects)

    def risk_interval(self, outcome: str, exposure: str) -> Interval | None:
        """Return what the intervals of 95 % of all risks cover; None if one has none."""
        return _union([effect.risk_interval(outcome, exposure) for effect in self.effects])

    def difference_interval(self, outcome: str, exposure: str, baseline: str) -> Interval | None:
        """Return what the intervals of all differences cover; as `risk_interval`."""
        return _union([e.difference_interval(outcome, exposure, baseline) for e in self.effects])

    def ratio_interval(self, outcome: str, exposure: str, baseline: str) -> Interval | None:
        """Return what the intervals of all ratios cover; as `risk_interval`."""
        return _union([e.ratio_interval(outcome, exposure, baseline) for e in self.effects])


def _ends(values: Iterable[float]) -> Interval:
    numbers = list(values)
    return Interval(*((nan, nan) if any(map(isnan, numbers)) else (min(numbers), max(numbers))))


def _union(intervals: Sequence[Interval | None]) -> Interval | None:
    known = [interval for interval in intervals if interval is not None]
    if len(known) < len(intervals):
        return None
    return Interval(min(each.low for each in known), max(each.high for each in known))


def effects_in(
    network: Model, exposure: str, outcome: str, directions: Directions | None = None
) -> EffectRange:
    """Return the effects under a network and all equivalent ones that keep its fixed edges.

    Parameters
    ----------
    network : Network
    exposure, outcome : str
        Two of its variables.
    directions : Directions, optional
        The structures; those with the network's fixed edges if not given.

    Returns
    -------
    effects : EffectRange
        Of one effect if it is determined.

    Raises
    ------
    ValueError
        As `effect_in` and `Directions.of`.
    """
    structure = network.structure
    directions = directions or Directions.of(structure, exposure, outcome, network.fixed)
    variables = network.variables[exposure], network.variables[outcome]
    marginals = Marginals.of(network)

    def effect(one: Structure) -> Effect:
        parents = one.parents[exposure]
        if one not in directions.causal:
            share = marginals.joint([outcome])
            none = _no_effect(Counted(share[:, None], unsure=NO_COUNTS), variables)
            return replace(none, adjusted=None, records=0)
        if set(parents) == set(structure.parents[exposure]):
            return effect_in(network, exposure, outcome)
        joint = marginals.joint([outcome, exposure, *parents])
        by_parents = of_table(Counted(joint, unsure=NO_COUNTS), variables, parents)
        return replace(by_parents, adjusted=None, records=0)

    shown = directions.structures[: 1 if directions.is_determined else None]
    return EffectRange(tuple(map(effect, shown)))


def standardized_range(
    counter: Counter,
    directions: Directions,
    *,
    excluded: Collection[str] = (),
    deviation: float | None = None,
) -> EffectRange:
    """Return the effects over structures by the g-formula, from a table for each adjustment set.

    For each structure in which the exposure is a cause, the smallest table is taken; structures
    that accept the same set share it. Together the tables say less than one of all their variables,
    if no value is missing: records that miss a variable are in the tables without it.

    Parameters
    ----------
    counter : Counter
        The source of the tables, which one call asks for.
    directions : Directions
        The structures. If their effect is determined, one set is used that is valid in all.
    excluded : collection of str, default=()
        The variables that may not be adjusted for; so are those that the counter does not have.
    deviation : float, optional
        As `vertibayes.inference.effects.standardized`.

    Returns
    -------
    effects : EffectRange
        Of one effect if it is determined; otherwise an effect without a cause comes last.

    Raises
    ------
    ValueError
        If a structure has no adjustment set, or as `vertibayes.inference.effects.standardized`.
    """
    x, y = directions.exposure, directions.outcome
    sets = directions.smallest_sets(counter.variables, excluded)
    tables = counted_tables(counter, [Family(y, (x, *names)) for names in sets], deviation)
    variables = counter.variables[x], counter.variables[y]
    effects = [of_table(one, variables, names) for one, names in zip(tables, sets, strict=True)]
    if not directions.is_determined and len(directions.causal) < len(directions.structures):
        effects.append(_no_effect(tables[0], variables))
    return EffectRange(tuple(effects))


def _no_effect(counted_table: Counted, variables: tuple[Variable, Variable]) -> Effect:
    """Return the effect if the exposure is no cause: each risk is the share of the outcome."""
    table, error, unsure = counted_table
    share = table.reshape(len(table), -1).sum(axis=1)[:, None]
    one = of_table(
        Counted(share, error * (table.size // len(table)), unsure), _alone(variables), ()
    )
    exposures = len(variables[0].states)
    return replace(
        one,
        exposure=variables[0],
        risks=one.risks.repeat(exposures, axis=0),
        spread=one.spread and one.spread.of_equal(exposures),
        never={},
    )


def _alone(variables: tuple[Variable, Variable]) -> tuple[Variable, Variable]:
    return Variable(variables[0].name, variables[0].states[:1]), variables[1]
