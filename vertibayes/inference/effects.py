"""Effects of an exposure on an outcome: standardized risks from one table, or from a network.

The g-formula (Robins 1986) gives the risk if every record had the same exposure x:

    P(y | do(x)) = sum over strata z of P(y | x, z) P(z)

z are the states of an adjustment set. The table of outcome, exposure and adjustment set is all that
the formula needs. A stratum without a record of some exposure says nothing of it: such strata are
left out for all exposures alike, so that risks are compared over the same records.

References
----------
Robins, J. (1986). A new approach to causal inference in mortality studies with a sustained exposure
period. Mathematical Modelling 7, 1393-1512. doi:10.1016/0270-0255(86)90088-6
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

import numpy as np

from vertibayes.counting import Counter
from vertibayes.counting.counter import Table
from vertibayes.counting.released import ReleasedCounter
from vertibayes.inference.adjustment import check_names, check_roles
from vertibayes.inference.algebra import Array
from vertibayes.inference.intervals import Interval, Pair, Spread, Strata
from vertibayes.inference.marginals import Marginals
from vertibayes.model import Model, place_of
from vertibayes.words import counted, percent
from vertibayes_protocols.variables import Family, Variable

CLEAR = 10.0  # how often the smallest group of records must be the deviation of its noise
NO_COUNTS = "a model has no counts: --data gives them"


@dataclass(frozen=True)
class Effect:
    """The distribution of an outcome if all records had one exposure, for each exposure."""

    exposure: Variable  # the variable that is set
    outcome: Variable  # the variable of which the risks are
    risks: Array = field(repr=False)  # P(outcome | do(exposure)), one distribution per row
    adjusted: tuple[str, ...] | None = None  # the variables over which the risks are standardized
    records: int = 0  # the number of records that are complete in the table; 0 without a table
    never: Mapping[str, float] = field(default_factory=dict)
    used: float = 1.0
    spread: Spread | None = field(default=None, repr=False)  # None if there is no interval
    unsure: str = ""  # why there is no interval: a clause

    def risk(self, outcome: str, exposure: str) -> float:
        """Return P(outcome state | do(exposure state))."""
        return float(self.risks[place_of(self.exposure, exposure), place_of(self.outcome, outcome)])

    def difference(self, outcome: str, exposure: str, baseline: str) -> float:
        """Return the risk under an exposure minus the risk under a baseline; as `risk`."""
        return self.risk(outcome, exposure) - self.risk(outcome, baseline)

    def ratio(self, outcome: str, exposure: str, baseline: str) -> float:
        """Return the risk under an exposure over that under a baseline; as `risk`.

        It is infinite if only the risk under the baseline is 0, and nan if both are.
        """
        above, below = self.risk(outcome, exposure), self.risk(outcome, baseline)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.float64(above) / below)

    def risk_interval(self, outcome: str, exposure: str) -> Interval | None:
        """Return the interval of 95 % of a risk; None if it has none."""
        x, y = place_of(self.exposure, exposure), place_of(self.outcome, outcome)
        if self.spread is None or np.isnan(self.risks[x, y]):
            return None
        return self.spread.risk(y, x, float(self.risks[x, y]))

    def difference_interval(self, outcome: str, exposure: str, baseline: str) -> Interval | None:
        """Return the interval of 95 % of a difference; None if it has none."""
        difference = self.difference(outcome, exposure, baseline)
        if self.spread is None or np.isnan(difference):
            return None
        pair = self._pair(self.spread, outcome, exposure, baseline)
        return Interval(difference, difference) if pair is None else pair.difference

    def ratio_interval(self, outcome: str, exposure: str, baseline: str) -> Interval | None:
        """Return the interval of 95 % of a ratio; None if it has none, or both risks are 0."""
        ratio = self.ratio(outcome, exposure, baseline)
        if self.spread is None or np.isnan(ratio):
            return None
        pair = self._pair(self.spread, outcome, exposure, baseline)
        return Interval(ratio, ratio) if pair is None else pair.ratio

    def _pair(self, spread: Spread, outcome: str, exposure: str, baseline: str) -> Pair | None:
        places = place_of(self.exposure, exposure), place_of(self.exposure, baseline)
        risks = self.risk(outcome, exposure), self.risk(outcome, baseline)
        return spread.pair(place_of(self.outcome, outcome), places, risks)

    @property
    def assumptions(self) -> str:
        """What must hold for the risks to be effects, in plain words."""
        x, y = self.exposure.name, self.outcome.name
        if self.adjusted is None:
            return (
                "These risks assume that every arrow of the network is a cause, that no variable "
                "outside the network causes two of its variables, and that its CPTs are right."
            )
        if not self.adjusted:
            claim = f"nothing causes both {x} and {y}"
        else:
            claim = (
                f"given {', '.join(self.adjusted)}, nothing else causes both {x} and {y}, that {x} "
                "causes none of the variables adjusted for"
            )
        return (
            f"These risks assume that {claim}, and that records with missing values are like the "
            "others."
        )

    @property
    def basis(self) -> str:
        """What the risks come from, in plain words."""
        if self.adjusted is None:
            return "From the CPTs of the network, without the parents of the exposure."
        over = f"adjusted for {', '.join(self.adjusted)}" if self.adjusted else "not adjusted"
        text = f"From {counted(self.records, 'complete record')}, {over}."
        rare = {state: share for state, share in self.never.items() if share}
        if rare:
            shares = ", ".join(f"{percent(share)} for {state}" for state, share in rare.items())
            text += (
                f" Share of records in strata where a state of {self.exposure.name} never occurs: "
                f"{shares}; the risks are of {percent(self.used)} of the records."
            )
        return text


def effect_in(network: Model, exposure: str, outcome: str) -> Effect:
    """Return the effect of an exposure on an outcome under a network.

    Its edges are taken as causes. A ValueError refuses what the network does not have, and a
    network whose cliques are too large.
    """
    check_names(network.structure, exposure, outcome, ())
    states = network.variables[exposure].states
    worlds = (network.do({exposure: state}) for state in states)
    risks = np.array([Marginals.of(world).joint([outcome]) for world in worlds])
    variables = network.variables[exposure], network.variables[outcome]
    return Effect(*variables, risks, unsure=NO_COUNTS)


def standardized(
    counter: Counter,
    exposure: str,
    outcome: str,
    adjust: Sequence[str] = (),
    *,
    deviation: float | None = None,
) -> Effect:
    """Return the effect of an exposure on an outcome by the g-formula, from one table.

    Parameters
    ----------
    counter : Counter
        The source of the table, which counts the records that are complete in it.
    exposure, outcome : str
        Two variables of the counter.
    adjust : sequence of str, default=()
        The adjustment set: `vertibayes.inference.adjustment` lists the valid ones.
    deviation : float, optional
        Of released tables with noise: the standard deviation of the noise of each cell, which
        ``summary.json`` has under ``cost``. Without it there are no intervals.

    Returns
    -------
    effect : Effect

    Raises
    ------
    ValueError
        If a variable is unknown or has two roles, if the table cannot be counted, if no record is
        complete in it, or if no stratum has every exposure.
    """
    check_roles(exposure, outcome, adjust)
    family = Family(outcome, (exposure, *adjust))
    (counted_table,) = counted_tables(counter, [family], deviation)
    return of_table(
        counted_table, (counter.variables[exposure], counter.variables[outcome]), tuple(adjust)
    )


class Counted(NamedTuple):
    """A table, and how far its cells are from counts."""

    table: Table | Array  # of outcome, exposure and adjustment set, in this order
    error: float = 0.0  # the variance of each cell's error, beside that of the sample
    unsure: str = ""  # why no interval can be given


def counted_tables(
    counter: Counter, families: Sequence[Family], deviation: float | None
) -> list[Counted]:
    """Return the tables of families, from one call; errors as `standardized`."""
    if isinstance(counter, ReleasedCounter):
        tables = [_released(counter, family, deviation) for family in families]
    else:
        tables = [Counted(table) for table in counter.tables(families)]
    for family, (table, _, _) in zip(families, tables, strict=True):
        if not table.any():
            raise ValueError(f"no record is complete in {', '.join(family.members)}")
    return tables


def _released(counter: ReleasedCounter, family: Family, deviation: float | None) -> Counted:
    rule = counter.request.rule
    table, added, unsure = counter.with_noise(family)
    if rule.is_noisy:
        if deviation is None:
            unsure = "the deviation of the noise is not given (summary.json: cost)"
        return Counted(table, added * (deviation or 0.0) ** 2, unsure)
    return Counted(table, added * rule.fewest**2 / 12 if rule.kind == "rounded" else 0.0, unsure)


def of_table(
    counted_table: Counted, variables: tuple[Variable, Variable], adjust: tuple[str, ...]
) -> Effect:
    """Return the effect of an exposure on an outcome, the variables, from their table.

    A ValueError refuses a table of which no stratum has every exposure.
    """
    table, error, unsure = counted_table
    cells = table.reshape(*table.shape[:2], -1)
    exposed = np.maximum(cells.sum(axis=0), 0)
    strata = exposed.sum(axis=0)
    occurs = exposed > 0
    common = occurs[occurs.any(axis=1)].all(axis=0)
    if not common.any():
        raise ValueError(
            f"no stratum of {', '.join(adjust)} has every state of {variables[0].name}: adjust for "
            "fewer variables or states"
        )
    never = dict(zip(variables[0].states, (~occurs @ strata / strata.sum()).tolist(), strict=True))
    used = Strata(cells[:, :, common], exposed[:, common])
    smallest = float(used.exposed[occurs.any(axis=1)].min())
    if not unsure and smallest < CLEAR * sqrt(error * len(cells)):
        unsure = f"a group of about {smallest:.0f} records is too small for the noise"
    return Effect(
        *variables,
        used.risks,
        adjust,
        round(float(strata.sum())),
        never,
        float(strata[common].sum() / strata.sum()),
        None if unsure else used.spread(error),
        unsure,
    )
