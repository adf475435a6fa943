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
    """A structure and its CPTs: what inference and files know of a `Network`.

    Parameters
    ----------
    structure : Structure
        The structure.
    variables : mapping of str to Variable
        The variable of each node.
    cpts : mapping of str to ndarray
        The CPT of each node: axis 0 has the states of the node and sums to 1; the other axes have
        the states of the parents, in order.
    unseen : mapping of str to int
        The number of joint states of each node's parents that no record has; their distributions
        are uniform.
    missing_states : frozenset of str
        The nodes whose last state is that of missing values.

    Raises
    ------
    ValueError
        If a CPT has a wrong shape, or its columns do not sum to 1.
    """

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
