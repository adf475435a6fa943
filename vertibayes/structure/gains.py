"""How much each edge of a structure raises its BIC, from tables that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.table_scores import Table, free_parameters, log_likelihoods, nats_per_parameter


def edge_gains(
    counter: Counter, structure: Structure, *, missing: bool = False
) -> Mapping[Edge, float]:
    """Return by how much the BIC of each edge's family falls without the edge, in nats.

    Both families are scored from the table of the larger one, and so over the same records. A
    counter that has the tables of the structure's families is asked nothing.
    """
    nats = nats_per_parameter(counter.records)
    families = [family for family in structure.families if family.parents]
    tables = counter.tables(families, missing=missing)
    gains = {
        (parent, family.child): gain
        for family, table in zip(families, tables, strict=True)
        for parent, gain in zip(family.parents, _gains(table, nats), strict=True)
    }
    return {edge: gains[edge] for edge in structure.edges}


def _gains(table: Table, nats: float) -> Sequence[float]:
    """Return the gain of each parent of a family, in the order of the table's axes."""
    without = [np.asarray(table.sum(axis=axis)) for axis in range(1, table.ndim)]
    whole, *others = _bics([table, *without], nats)
    return [whole - other for other in others]


def _bics(tables: Sequence[Table], nats: float) -> list[float]:
    likelihoods = log_likelihoods(tables)
    penalties = [nats * free_parameters(table.shape) for table in tables]
    return [own - penalty for own, penalty in zip(likelihoods, penalties, strict=True)]
