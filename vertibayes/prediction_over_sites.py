"""Prediction of records whose values lie at several sites."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.odds_tables import odds_tables
from vertibayes.network import Network
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries import Predict
from vertibayes_protocols.variables import Rows, Variable


def predict_over_sites(
    study: OpenStudy,
    network: Network,
    target: str,
    evidence: Collection[str] | None = None,
    rows: Rows = Rows(),
) -> NDArray[np.float64]:
    """Return the distribution of a target for records whose values lie at several sites.

    The analyst learns these distributions, and no site learns a value of another site. The policy
    of each site that holds evidence counts the records (`most_scores`), because the analyst who
    chooses the network can read the evidence off the distributions.

    Parameters
    ----------
    study : OpenStudy
        The study whose records are predicted (`open_study`, or `SecureCounter.open_study`); its
        sites have committed the evidence.
    network : Network
        The network, with the states that the study's variables have.
    target : str
        The variable that is predicted. If a site holds it, its values are not used.
    evidence : collection of str, optional
        The variables whose values predict the target; all that the study and the network have in
        common if None.
    rows : Rows, default=all records
        The records, in the order of the study.

    Returns
    -------
    probabilities : ndarray of shape (records, states of the target)
        As `vertibayes.predict_proba` returns for the joined records, within 1e-6. Records that are
        impossible under the network are not marked.

    Raises
    ------
    ValueError
        If the study or the network does not have a variable, or a table of the evidence would have
        more than 4,096 rows (`odds_tables`).
    QueryRefusedError, ProtocolError
        As `Session.ask`.
    """
    needed = odds_tables(network, target, evidence_of(study, network, target, evidence))
    records = rows.count(study.study.records)
    if not needed.tables:
        return distributions(np.tile(needed.constant, (records, 1)))
    return distributions(study.ask(lambda joined: Predict.of(joined, needed.odds, rows)))


def evidence_of(
    study: OpenStudy, network: Network, target: str, names: Collection[str] | None
) -> dict[str, Variable]:
    """Return the variables of the evidence as the study has them."""
    known = study.study.variables
    if names is None:
        names = [name for name in known if name in network.variables and name != target]
    for name in names:
        if name not in known:
            raise ValueError(f"the study has no variable {name!r}; it has {', '.join(known)}")
    return {name: known[name] for name in names}


def distributions(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distribution of each row of log odds against the first state."""
    logs = np.column_stack([np.zeros(len(log_odds)), log_odds])
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
