"""What a release rule costs: how much worse the CPTs are than those of exact tables."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from vertibayes.counting.released import ReleasedCounter
from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network
from vertibayes.parameters.cpt import network_from
from vertibayes.validation.divergence import divergence

DRAWS = 5  # of noise, for an estimate


class CutCost(NamedTuple):
    """What the rule cut costs.

    Attributes
    ----------
    share : float
        The share of the records that are in counts which were cut: the mean over the tables.
    most : float
        The largest such share of a table.
    nats_at_most : float or None
        A bound, in nats per record: by how much the mean log-likelihood of the records is lower
        than under the CPTs of the exact tables. None if it has no bound.
    """

    share: float
    most: float
    nats_at_most: float | None


def cut_cost(counter: ReleasedCounter, pseudo_count: float) -> CutCost | None:
    """Return what the rule cut costs; None if the tables do not tell how many records were cut.

    A table over all records has the sum n, so that n minus the sum of the released counts are the
    m records in counts that were cut. A count c below k, of N with the same parent states of which
    N' are released, gets the probability a / (N' + r a) instead of (c + a) / (N + r a), with the
    pseudo-count a and r states. Each of the m records loses ln((c + a) / a) at most, as N' <= N,
    and other records lose nothing: the loss is m / n ln((k - 1 + a) / a) at most in each table.

    Parameters
    ----------
    counter : ReleasedCounter
        The released tables.
    pseudo_count : float
        The number that was added to each count.
    """
    request, n = counter.request, counter.records
    names = {name for family in request.families for name in family.members}
    any_missing = any(counter.variables[name].missing for name in names)
    if not n or (any_missing and not request.missing):
        return None
    shares = [1 - float(table.sum()) / n for table in counter.released]
    bound = None
    if pseudo_count and not any_missing:
        bound = sum(shares) * log((request.rule.fewest - 1 + pseudo_count) / pseudo_count)
    return CutCost(sum(shares) / len(shares), max(shares), bound)


def noise_cost(network: Network, records: int, deviation: float, pseudo_count: float) -> float:
    """Estimate what noise on the released tables costs, in nats per record (KL divergence).

    The estimate draws noise of the same size again, on the expected tables of the learned network,
    and learns CPTs from these: it is the divergence of the learned network from the mean of these
    draws. It uses the network alone, and tells nothing that the network does not.

    Parameters
    ----------
    network : Network
        The network learned from the released tables.
    records : int
        The number of records.
    deviation : float
        The standard deviation of the noise of a count.
    pseudo_count : float
        The number that was added to each count.
    """
    marginals, rng = Marginals.of(network), np.random.default_rng(0)
    tables = [records * marginals.joint(f.members) for f in network.structure.families]
    total = 0.0
    for _ in range(DRAWS):
        noise = [rng.laplace(0, deviation / sqrt(2), table.shape) for table in tables]
        noisy = [np.maximum(np.rint(t + z), 0) for t, z in zip(tables, noise, strict=True)]
        again = network_from(network.structure, network.variables, noisy, pseudo_count)
        total += divergence(network, again)
    return total / DRAWS
