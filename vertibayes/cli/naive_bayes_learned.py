"""What ``vertibayes nb`` has learned, and what that has cost and revealed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vertibayes.naive_bayes.base import Floats, NaiveBayes
from vertibayes_protocols.alignment import AlignedPeople
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.session import Traffic
from vertibayes_protocols.site.statistics import LocalData


class SpentError(ValueError):
    """No model was learned, but something was revealed.

    Parameters
    ----------
    reason : str
        What went wrong, in a sentence.
    ledger : Ledger
        What was revealed.
    """

    def __init__(self, reason: str, ledger: Ledger) -> None:
        super().__init__(reason)
        self.ledger = ledger


@dataclass
class Learned:
    """A model, and what its training and its test have cost and revealed.

    Attributes
    ----------
    model : NaiveBayes
    promise : Promise or None
        Of the noise; None without.
    ledger : Ledger
    sites : mapping of str to sequence of str
        Who holds which columns; nothing where parties hold records.
    holders : mapping of str to str, optional
        Of each column, for the drawing.
    bytes : dict of str to int
        By sender.
    rounds : int
    log_proba : ndarray of shape (n, n_classes), optional
        Of the tested records.
    predicted_by : str
        How these were predicted.
    test_seconds, seconds : float
        What the test took, and everything.
    records : int or None
        How many it was learned from; None where nobody knows.
    parties : tuple of str
        Who took part, where parties hold records.
    models : mapping of str to NaiveBayes
        The models of all parties, by gossip.
    prepare : callable
        Returns records as the model needs them.
    predictions : list of tuple
        For each record predicted over the sites: its place, its class, each class's probability.
    people : AlignedPeople, optional
        What the alignment of the sites' lists of people has shown.
    warnings : list of str
        What the user should know.
    left_out : mapping of str to str
        The reason for each column of the file that was left out.
    study : mapping, optional
        What identifies a study between machines.
    """

    model: NaiveBayes
    promise: Promise | None
    ledger: Ledger
    sites: Mapping[str, Sequence[str]] = field(default_factory=dict)
    holders: Mapping[str, str] | None = None
    bytes: dict[str, int] = field(default_factory=dict)
    rounds: int = 0
    log_proba: Floats | None = None
    predicted_by: str = "the model"
    test_seconds: float = 0.0
    seconds: float = 0.0
    records: int | None = None
    parties: tuple[str, ...] = ()
    models: Mapping[str, NaiveBayes] = field(default_factory=dict)
    prepare: Callable[[LocalData], LocalData] = lambda data: data
    predictions: list[tuple[object, ...]] = field(default_factory=list)
    people: AlignedPeople | None = None
    warnings: list[str] = field(default_factory=list)
    left_out: Mapping[str, str] = field(default_factory=dict)
    study: Mapping[str, Any] | None = None

    def add(self, traffic: Traffic) -> None:
        """Add what travelled in a session."""
        self.rounds += traffic.rounds
        for (sender, _), count in traffic.bytes_sent.items():
            self.bytes[sender] = self.bytes.get(sender, 0) + count

    def predict(self, tested: LocalData) -> None:
        """Predict records by the model."""
        self.log_proba = self.model.predict_log_proba(self.prepare(tested))

    def accuracies(self, tested: LocalData) -> list[float]:
        """Return the quartiles of the accuracy of all parties' models: nothing without them."""
        scores = [model.score(self.prepare(tested)) for model in self.models.values()]
        return np.quantile(scores, [0.25, 0.5, 0.75]).tolist() if scores else []
