"""How far a network is from a true one: for studies in which the truth is known."""

from __future__ import annotations

import numpy as np

from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network


def divergence(truth: Network, model: Network) -> float:
    """Return KL(truth || model), in nats, of networks with one structure.

    The sum over families of the expected logarithm of the CPTs' ratio: infinite if the model gives
    no chance to what the truth does.

    Raises
    ------
    ValueError
        If the networks have different structures or states.
    """
    if truth.structure != model.structure or truth.variables != model.variables:
        raise ValueError("networks of one structure, and over the same states, are wanted")
    marginals = Marginals.of(truth)
    total = 0.0
    for family in truth.structure.families:
        joint = marginals.joint(family.members)
        seen = joint > 0
        with np.errstate(divide="ignore"):
            ratio = truth.cpts[family.child][seen] / model.cpts[family.child][seen]
        total += float((joint[seen] * np.log(ratio)).sum())
    return total
