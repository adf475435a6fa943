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
    """No model was learned, but something was revealed."""

    def __init__(self, reason: str, ledger: Ledger) -> None:
        super().__init__(reason)
        self.ledger = ledger


@dataclass
class Learned:
    """A model, and what its training and its test have cost and revealed."""

    model: NaiveBayes
    promise: Promise | None  # of the noise; None without
    ledger: Ledger
    sites: Mapping[str, Sequence[str]] = field(default_factory=dict)  # who holds which columns
    holders: Mapping[str, str] | None = None  # of each column, for the drawing
    bytes: dict[str, int] = field(default_factory=dict)  # by sender
    rounds: int = 0
    log_proba: Floats | None = None  # of the tested records
    predicted_by: str = "the model"  # how these were predicted
    test_seconds: float = 0.0  # what the test took, and everything
    seconds: float = 0.0  # what the test took, and everything
    records: int | None = None  # how many it was learned from; None where nobody knows
    parties: tuple[str, ...] = ()  # who took part, where parties hold records
    models: Mapping[str, NaiveBayes] = field(default_factory=dict)
    prepare: Callable[[LocalData], LocalData] = lambda data: data
    predictions: list[tuple[object, ...]] = field(default_factory=list)
    people: AlignedPeople | None = None
    warnings: list[str] = field(default_factory=list)  # what the user should know
    left_out: Mapping[str, str] = field(default_factory=dict)
    study: Mapping[str, Any] | None = None  # what identifies a study between machines

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
