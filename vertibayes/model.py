"""Models: a structure with its CPTs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vertibayes.dag import Structure
from vertibayes_protocols.variables import Variable


@dataclass(frozen=True)
class Model:
    """A structure and its CPTs, as in `Network`: what inference and files know of one."""

    structure: Structure
    variables: Mapping[str, Variable]
    cpts: Mapping[str, NDArray[np.float64]] = field(repr=False)
    unseen: Mapping[str, int] = field(default_factory=dict)
    missing_states: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for node in self.structure.nodes:
            family = (node, *self.structure.parents[node])
            shape = tuple(len(self.variables[name].states) for name in family)
            cpt = self.cpts[node]
            if cpt.shape != shape:
                raise ValueError(f"the CPT of {node} must have the shape {shape}, got {cpt.shape}")
            if not (cpt >= 0).all() or not np.allclose(cpt.sum(axis=0), 1, atol=1e-9):
                raise ValueError(f"a column of the CPT of {node} is not a distribution")

    @property
    def cardinalities(self) -> dict[str, int]:
        """The number of states of each variable."""
        return {name: len(variable.states) for name, variable in self.variables.items()}

    def rows(self, node: str) -> list[list[float]]:
        """Return the CPT of a node as rows: its distribution given each joint state of its parents.

        The state of the last parent changes fastest.
        """
        cpt = self.cpts[node]
        return cpt.reshape(cpt.shape[0], -1).T.tolist()
