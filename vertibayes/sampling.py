"""Records drawn from a network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vertibayes.model import Model
from vertibayes_protocols.site.data import SiteData


def sample(network: Model, records: int, seed: int) -> SiteData:
    """Draw independent records, parents before children."""
    if records < 0:
        raise ValueError(f"the number of records must be at least 0, got {records}")
    generator = np.random.default_rng(seed)
    drawn: dict[str, NDArray[np.unsignedinteger]] = {}
    for node in network.structure.order():
        cpt = network.cpts[node]
        configuration = np.zeros(records, np.int64)
        for parent in network.structure.parents[node]:
            configuration *= len(network.variables[parent].states)
            configuration += drawn[parent]
        ends = np.cumsum(cpt.reshape(cpt.shape[0], -1), axis=0)[:-1, configuration]
        codes = (generator.random(records) >= ends).sum(axis=0)
        drawn[node] = codes.astype(np.uint8 if cpt.shape[0] <= 256 else np.uint16)
    nodes = network.structure.nodes
    return SiteData({n: network.variables[n] for n in nodes}, {n: drawn[n] for n in nodes})
