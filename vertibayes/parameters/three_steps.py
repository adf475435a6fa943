"""The three steps of VertiBayes, as the paper has them (van Daalen et al. 2024, fig. 1).

1. Fit an intermediate network by maximum likelihood; a missing value is a state.
2. Draw synthetic records with missing values from the intermediate network.
3. Fit the final CPTs to the synthetic records by EM.

Step 3 uses exact EM, where the published code imputes the mode. The steps lose information: where a
parent is missing, the intermediate network makes the child independent of its grandparents, and so
are the synthetic records. `fit_em_from_tables` reveals the same tables and is closer to the truth
(docs/results.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vertibayes.counting import Counter
from vertibayes.dag import Structure
from vertibayes.model import with_missing_state
from vertibayes.parameters.cpt import network_from
from vertibayes.parameters.em import EmFit, fit_em
from vertibayes.sampling import sample
from vertibayes.settings import PSEUDO_COUNT
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Rows


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
    counter, structure, rows
        As `fit_cpts`.
    pseudo_count, restarts, progress
        Of EM in step 3, as `fit_em`.
    records : int, optional
        The number of synthetic records; as many as the counted records if None.
    seed : int, default=0
        The seed of the synthetic records and of the starts.

    Returns
    -------
    fit : EmFit
    synthetic : SiteData
        The synthetic records, with missing values.

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
    """Draw records with missing values from the intermediate network: steps 1 and 2.

    Given parent states that no record has, a child has its distribution over all records.
    """
    seen = []
    for table in counter.tables(structure.families, missing=True, rows=rows):
        child = table.sum(axis=tuple(range(1, table.ndim))).reshape(-1, *(1,) * (table.ndim - 1))
        seen.append(np.where(table.any(axis=0), table, child))
    named = {node: with_missing_state(counter.variables[node]) for node in structure.nodes}
    intermediate = network_from(structure, named, seen)
    drawn = sample(intermediate, rows.count(counter.records) if records is None else records, seed)
    variables = {name: counter.variables[name] for name in drawn.codes}
    return SiteData(variables, drawn.codes)  # the state "missing" has the code of a missing value
