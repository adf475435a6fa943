"""Effects of an exposure on an outcome: standardized risks from one table, or from a network.

The g-formula (Robins 1986) gives the risk if every record had the same exposure x:

    P(y | do(x)) = sum over strata z of P(y | x, z) P(z)

z are the states of an adjustment set. The table of outcome, exposure and adjustment set is all that
the formula needs. A stratum without a record of some exposure says nothing of it: such strata are
left out for all exposures alike, so that risks are compared over the same records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vertibayes.counting import Counter
from vertibayes.counting.counter import Table
from vertibayes.inference.adjustment import check_names, check_roles
from vertibayes.inference.algebra import Array
from vertibayes.inference.marginals import Marginals
from vertibayes.model import Model, place_of
from vertibayes.words import counted, percent
from vertibayes_protocols.variables import Family, Variable


@dataclass(frozen=True)
class Effect:
    """The distribution of an outcome if all records had one exposure, for each exposure."""

    # The variable that is set, and the variable of which the risks are.
    exposure: Variable
    outcome: Variable
    risks: Array = field(repr=False)  # P(outcome | do(exposure)), one distribution per row
    adjusted: tuple[str, ...] | None = None  # the variables over which the risks are standardized
    records: int = 0  # the number of records that are complete in the table; 0 without a table
    never: Mapping[str, float] = field(default_factory=dict)
    used: float = 1.0

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

    Parameters
    ----------
    network : Network
        The network; its edges are taken as causes.
    exposure, outcome : str
        Two of its variables.

    Raises
    ------
    ValueError
        If the network has no such variables, they are the same, or its cliques are too large.
    """
    check_names(network.structure, exposure, outcome, ())
    states = network.variables[exposure].states
    worlds = (network.do({exposure: state}) for state in states)
    risks = np.array([Marginals.of(world).joint([outcome]) for world in worlds])
    return Effect(network.variables[exposure], network.variables[outcome], risks)


def standardized(
    counter: Counter, exposure: str, outcome: str, adjust: Sequence[str] = ()
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

    Returns
    -------
    effect : Effect
        The risks of the outcome, if all records had one exposure.

    Raises
    ------
    ValueError
        If a variable is unknown or has two roles, if the table cannot be counted, if no record is
        complete in it, or if no stratum has every exposure.

    References
    ----------
    Robins, J. (1986). A new approach to causal inference in mortality studies with a sustained
    exposure period. Mathematical Modelling 7, 1393-1512. doi:10.1016/0270-0255(86)90088-6
    """
    check_roles(exposure, outcome, adjust)
    (table,) = counter.tables([Family(outcome, (exposure, *adjust))])
    if not table.any():
        raise ValueError(f"no record is complete in {', '.join((outcome, exposure, *adjust))}")
    cells = table.reshape(*table.shape[:2], -1)
    exposed = cells.sum(axis=0)
    strata = exposed.sum(axis=0)
    occurs = exposed > 0
    states = counter.variables[exposure].states
    never = dict(zip(states, (~occurs @ strata / strata.sum()).tolist(), strict=True))
    common = occurs[occurs.any(axis=1)].all(axis=0)
    if not common.any():
        raise ValueError(
            f"no stratum of {', '.join(adjust)} has every state of {exposure}: adjust for fewer "
            "variables or states"
        )
    return Effect(
        counter.variables[exposure],
        counter.variables[outcome],
        _g_formula(cells[:, :, common]),
        tuple(adjust),
        int(strata.sum()),
        never,
        float(strata[common].sum() / strata.sum()),
    )


def _g_formula(cells: Table) -> Array:
    """Return P(y | do(x)) from counts of (y, x, stratum); nan for an exposure without records."""
    exposed = cells.sum(axis=0)
    weights = exposed.sum(axis=0) / exposed.sum()
    with np.errstate(invalid="ignore"):
        shares = cells / exposed
    return np.asarray((shares @ weights).T)
