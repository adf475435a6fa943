"""VDPNB: naive Bayes of records whose attributes lie at several sites.

    Public    all            schema, who holds what, n_j of each class, alpha
    Train     P_k            n_ij + noise, in 0 .. n_j: `Publish`
    Predict   P_k, dealer    ln P(x | c_j) of each record: `Scores`

Each site counts by a class column that all know, as the paper has it. Where one site alone knows
the class, `NaiveBayes.fit_counter` over a federation reveals the tables to the analyst, exact and
without noise; `tables_of` takes each site's part of such a model, to predict with it: which then
tells the site how the classes lie in its own features.

Noise protects the training records, however many scores are asked: it is drawn once, for the tables
that are published, and scores are computed from these. Scores of chosen records reveal the tables,
which the analyst has: of a record, and of those that differ from it in one value, a feature with r
states shows r ratios, which with their sum of one are the column of its CPT, and times the public
n_j + r alpha its counts. Security, leakage and cost are those of the two queries
(`vertibayes_protocols.queries.columns`).

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes_protocols.queries import Scores
from vertibayes_protocols.queries.columns.scoring import Floats
from vertibayes_protocols.queries.columns.split import Split, Table, Tables
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.statistics import apart


def tables_of(model: NaiveBayes, names: Sequence[str]) -> dict[str, Table]:
    """Return the counts of some features of a fitted model, to predict with at their site."""
    arrays = apart(model.schema.statistics, model.schema.variables, model.sums_)
    counts = dict(zip(model.schema.categorical, arrays[0][1:], strict=True))
    return {name: np.maximum(counts[name], 0) for name in names}


def model_of(split: Split, tables: Tables) -> NaiveBayes:
    """Return the model of all sites' tables, if they are published."""
    flat = [tables[name].reshape(-1) for name in split.schema.categorical]
    sums = np.concatenate([np.array(split.class_counts, np.int64), *flat])
    return NaiveBayes(split.schema, alpha=split.alpha).fit_sums(sums)


def predict_joint_log_proba(
    session: Session,
    dealer: str,
    split: Split,
    tables: Tables,
    records: tuple[int, int],
    via: str = "additive",
) -> Floats:
    """Return ``ln P(x, y)`` of records whose attributes lie at the sites of a session."""
    return session.ask(Scores.of(session.role, split, dealer, tables, records, via))


def most_probable(split: Split, joint: Floats) -> NDArray[np.str_]:
    """Return the most probable class, the first of equals, of each record: shape (n,)."""
    best: NDArray[np.str_] = np.array(split.schema.target.states)[joint.argmax(axis=1)]
    return best
