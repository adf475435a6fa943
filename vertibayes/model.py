"""Models: a structure with its CPTs; variables whose missing values are a state, the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.words import offered
from vertibayes_protocols.variables import Variable

MISSING_STATE = "missing"


def without_missing(variable: Variable) -> Variable:
    """Return a variable without missing values."""
    return Variable(variable.name, variable.states)


def with_missing_state(variable: Variable) -> Variable:
    """Return a variable whose missing values are its last state."""
    if not variable.missing:
        return variable
    name = MISSING_STATE
    while name in variable.states:
        name += "_"
    return Variable(variable.name, (*variable.states, name))


def has_missing_state(variable: Variable) -> bool:
    """Whether the name of a variable's last state is that of missing values."""
    return variable.states[-1].rstrip("_") == MISSING_STATE


def place_of(variable: Variable, state: str) -> int:
    """Return the place of a state."""
    if state not in variable.states:
        known = offered(state, variable.states)
        raise ValueError(f"{variable.name} has no state {state!r}; its states are {known}")
    return variable.states.index(state)


@dataclass(frozen=True)
class Model:
    """A structure and its CPTs, as in `Network`: what inference and files know of one."""

    structure: Structure
    variables: Mapping[str, Variable]
    cpts: Mapping[str, NDArray[np.float64]] = field(repr=False)
    unseen: Mapping[str, int] = field(default_factory=dict)
    missing_states: frozenset[str] = frozenset()
    fixed: frozenset[Edge] = frozenset()

    def __post_init__(self) -> None:
        for node in self.structure.nodes:
            family = (node, *self.structure.parents[node])
            shape = tuple(len(self.variables[name].states) for name in family)
            cpt = self.cpts[node]
            if cpt.shape != shape:
                raise ValueError(f"the CPT of {node} must have the shape {shape}, got {cpt.shape}")
            if not (cpt >= 0).all() or not np.allclose(cpt.sum(axis=0), 1, atol=1e-9):
                raise ValueError(f"a column of the CPT of {node} is not a distribution")
        if unknown := sorted(self.fixed.difference(self.structure.edges)):
            raise ValueError(f"the fixed edge {' -> '.join(unknown[0])} is no edge of the network")

    @property
    def cardinalities(self) -> dict[str, int]:
        """The number of states of each variable."""
        return {name: len(variable.states) for name, variable in self.variables.items()}

    def variable(self, name: str) -> Variable:
        """Return a variable; refuse a name that the network does not have."""
        if name not in self.variables:
            known = offered(name, self.variables)
            raise ValueError(f"the network has no variable {name!r}; it has {known}")
        return self.variables[name]

    def check_states(self, variable: Variable, where: str) -> None:
        """Refuse other states than the network's, the last of which may be for missing values."""
        expected = self.variable(variable.name)
        appended = has_missing_state(expected) and variable.states == expected.states[:-1]
        if variable.states != expected.states and not appended:
            raise ValueError(
                f"{variable.name} has other states {where} than in the network, or in another order"
            )

    def rows(self, node: str) -> list[list[float]]:
        """Return the CPT of a node as rows: its distribution given each joint state of its parents.

        The state of the last parent changes fastest.
        """
        cpt = self.cpts[node]
        return cpt.reshape(cpt.shape[0], -1).T.tolist()

    def do(self, states: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Return the network in which variables are set to states, without their parents.

        That is the effect of an action only if the edges into and out of the variables are causal
        (Pearl 2009, Causality, 2nd edition, equation 3.10). Names that are identifiers can be
        keywords. A ValueError refuses what the network does not have.

        Examples
        --------
        >>> network = Model(
        ...     Structure({"rain": (), "wet": ("rain",)}),
        ...     {name: Variable(name, ("no", "yes")) for name in ("rain", "wet")},
        ...     {"rain": np.array([0.8, 0.2]), "wet": np.array([[0.9, 0.1], [0.1, 0.9]])},
        ... )
        >>> network.do(wet="yes").structure.edges
        ()
        """
        given = {**(states or {}), **more}
        certain: dict[str, NDArray[np.float64]] = {}
        for name, state in given.items():
            variable = self.variable(name)
            certain[name] = np.zeros(len(variable.states))
            certain[name][place_of(variable, state)] = 1
        return replace(
            self,
            fixed=frozenset(edge for edge in self.fixed if edge[1] not in given),
            structure=Structure({**self.structure.parents, **dict.fromkeys(given, ())}),
            cpts={**self.cpts, **certain},
            unseen={node: count for node, count in self.unseen.items() if node not in given},
        )
