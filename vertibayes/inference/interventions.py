"""Interventions: the network in which some variables are set from outside (Pearl 2009).

An intervention sets a variable to a state for every record, whatever its causes are. The variable
therefore loses its parents, and every other CPT stays as it is: the mutilated network. That is the
effect of an action only if the edges into and out of the variable are causal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from vertibayes.dag import Structure
from vertibayes.inference.algebra import Array
from vertibayes.model import Model

M = TypeVar("M", bound=Model)


def intervene(network: M, states: Mapping[str, str]) -> M:
    """Return the network in which variables are set to states, without their parents.

    References
    ----------
    Pearl, J. (2009). Causality, 2nd edition, equation 3.10. doi:10.1017/CBO9780511803161
    """
    cpts = {name: _certain(network, name, state) for name, state in states.items()}
    parents = {**network.structure.parents, **dict.fromkeys(states, ())}
    return replace(
        network,
        structure=Structure(parents),
        cpts={**network.cpts, **cpts},
        unseen={node: count for node, count in network.unseen.items() if node not in states},
    )


def _certain(network: Model, name: str, state: str) -> Array:
    """Return the CPT of a variable without parents that has one state always."""
    if name not in network.variables:
        raise ValueError(
            f"the network has no variable {name!r}; it has {', '.join(network.structure.nodes)}"
        )
    states = network.variables[name].states
    if state not in states:
        raise ValueError(f"{name} has no state {state!r}; its states are {', '.join(states)}")
    return np.array([float(other == state) for other in states])
