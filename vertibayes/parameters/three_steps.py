"""The three steps of VertiBayes, as the paper has them (van Daalen et al. 2024, fig. 1).

1. An intermediate network: CPTs by maximum likelihood, missing being a state.
2. Synthetic records drawn from it, missing cells included.
3. The final CPTs by EM on these.

Exact EM is used in step 3, where the published code imputed the mode. The steps themselves lose
information: where a parent is missing, the intermediate network makes its child independent of its
grandparents, and the synthetic records carry that on. `fit_em_from_tables` opens the same tables
and is closer to the truth (docs/results.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from protocols.site.data import SiteData
from protocols.variables import Rows
from vertibayes.counting import Counter, Table
from vertibayes.network import Structure
from vertibayes.parameters.cpt import PSEUDO_COUNT, network_from, with_missing_state
from vertibayes.parameters.em import EmFit, fit_em
from vertibayes.parameters.synthetic import sample


def fit_three_steps(
    counter: Counter,
    structure: Structure,
    *,
    pseudo_count: float = PSEUDO_COUNT,
    records: int | None = None,
    restarts: int = 0,
    seed: int = 0,
    rows: Rows = Rows(),
    progress: Callable[[int, int], None] | None = None,
) -> tuple[EmFit, SiteData]:
    """Fit the CPTs of a structure by the three steps.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    pseudo_count : float, default=0.5
        Added in the third step; 0 for maximum likelihood.
    records : int, optional
        How many to draw; as many as there are if None.
    restarts : int, default=0
        Further random starts of EM.
    seed : int, default=0
        Of the synthetic records and the starts.
    rows : Rows
        The records to learn from; all by default.
    progress : callable, optional
        Of the third step, as `fit_em`.

    Returns
    -------
    fit : EmFit
    synthetic : SiteData
        The synthetic records, with missing cells.

    Raises
    ------
    ValueError
        As `draw_synthetic` and `fit_em`.
    """
    synthetic = draw_synthetic(counter, structure, records=records, seed=seed, rows=rows)
    fit = fit_em(
        synthetic,
        structure,
        pseudo_count=pseudo_count,
        restarts=restarts,
        seed=seed,
        progress=progress,
    )
    return fit, synthetic


def draw_synthetic(
    counter: Counter,
    structure: Structure,
    *,
    records: int | None = None,
    seed: int = 0,
    rows: Rows = Rows(),
) -> SiteData:
    """Draw records, missing cells included, from the intermediate network: steps 1 and 2.

    Where no record has a parent configuration, the child has its distribution over all records.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    records : int, optional
        How many; as many as there are in the rows if None.
    seed : int, default=0
    rows : Rows
        The records that the intermediate network has; all by default.

    Returns
    -------
    synthetic : SiteData

    Raises
    ------
    ValueError
        If a node is unknown, or `records` negative.
    """
    tables = counter.tables(structure.families, missing=True, rows=rows)
    named = {node: with_missing_state(counter.variables[node]) for node in structure.nodes}
    intermediate = network_from(structure, named, [_seen_or_all(table) for table in tables])
    drawn = sample(intermediate, rows.count(counter.records) if records is None else records, seed)
    variables = {name: counter.variables[name] for name in drawn.codes}
    return SiteData(variables, drawn.codes)  # the code of the state "missing" is that of a gap


def _seen_or_all(table: Table) -> Table:
    """Fill the columns of a family's table that have no record with the child's counts."""
    child = table.sum(axis=tuple(range(1, table.ndim)))
    return np.where(table.any(axis=0), table, child.reshape(-1, *(1,) * (table.ndim - 1)))
