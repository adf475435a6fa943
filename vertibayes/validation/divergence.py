"""The distance of a network from the true network, for studies in which it is known."""

from __future__ import annotations

import numpy as np

from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network


def divergence(truth: Network, model: Network) -> float:
    """Return KL(truth || model), in nats, of networks with the same structure.

    The divergence is the sum over families of the expected logarithm of the CPTs' ratio. It is
    infinite if a possible combination of values has probability zero in the model.
    """
    if truth.structure != model.structure or truth.variables != model.variables:
        raise ValueError("the networks must have the same structure and states")
    marginals = Marginals.of(truth)
    total = 0.0
    for family in truth.structure.families:
        joint = marginals.joint(family.members)
        seen = joint > 0
        with np.errstate(divide="ignore"):
            ratio = truth.cpts[family.child][seen] / model.cpts[family.child][seen]
        total += float((joint[seen] * np.log(ratio)).sum())
    return total
