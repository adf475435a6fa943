"""The likelihood of records under a network, by the junction tree alone."""

from __future__ import annotations

import numpy as np

from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.prediction import known_codes
from vertibayes.inference.propagation import batches


def log_likelihoods(network, data):
    """Return the log-likelihood of each record, in nats, summed over missing values."""
    tree = JunctionTree.of(network.structure, network.cardinalities)
    parts = batches(tree, network.cardinalities, known_codes(network, data))
    return np.concatenate([batch.propagate(network).log_likelihoods for batch in parts])
