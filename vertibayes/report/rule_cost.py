"""What a release rule costs: how much worse the CPTs are than those of exact tables."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from vertibayes.counting import PlainCounter
from vertibayes.counting.hidden_counts import with_estimates
from vertibayes.counting.released import ReleasedCounter
from vertibayes.inference.marginals import Marginals, divergence
from vertibayes.network import Network
from vertibayes.parameters.cpt import network_from
from vertibayes.sampling import sample

DRAWS = 5  # of noise, for an estimate


class CutCost(NamedTuple):
    """What the rule cut costs."""

    share: float  # the share of the records that are in counts which were cut
    most: float  # the largest such share of a table
    nats_about: float | None


def cut_cost(counter: ReleasedCounter, network: Network, pseudo_count: float) -> CutCost | None:
    """Estimate what the rule cut costs; None if the tables do not show how many records were cut.

    A table over all records has the sum n, so that n minus the sum of the released counts are the
    records in counts that were cut. The divergence is estimated on as many records that are drawn
    from the learned network: their tables are cut, and CPTs learned from them as from the released
    ones. The estimate uses the network alone, and tells nothing that the network does not. It is
    too low where much was cut, because the network has not learned what is hidden.
    """
    request, n = counter.request, counter.records
    names = {name for family in request.families for name in family.members}
    any_missing = any(counter.variables[name].missing for name in names)
    if not n or (any_missing and not request.missing):
        return None
    shares = [1 - float(table.sum()) / n for table in counter.released]
    about = None if any_missing or not pseudo_count else _cut_again(counter, network, pseudo_count)
    return CutCost(sum(shares) / len(shares), max(shares), about)


def _cut_again(counter: ReleasedCounter, network: Network, pseudo_count: float) -> float:
    """Return the divergence of CPTs from cut tables from those of exact tables of drawn records."""
    request, families = counter.request, network.structure.families
    exact = PlainCounter(sample(network, counter.records, seed=0)).tables(families)
    shown = [np.where(table < request.rule.fewest, 0, table) for table in exact]
    again = replace(request, families=families)
    estimated = with_estimates(ReleasedCounter(network.variables, counter.records, again, shown))
    learned, truth = (
        network_from(network.structure, network.variables, tables, pseudo_count)
        for tables in (estimated.released, exact)
    )
    return divergence(truth, learned)


def noise_cost(network: Network, records: int, deviation: float, pseudo_count: float) -> float:
    """Estimate what noise on the released tables costs, in nats per record (KL divergence).

    The estimate draws noise of the same size again, on the expected tables of the learned network,
    and learns CPTs from these: it is the divergence of the learned network from the mean of these
    draws. It uses the network alone, and tells nothing that the network does not.
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
