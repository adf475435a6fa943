"""What answers to one question add up to: the aggregator's part, in any order."""

from __future__ import annotations

from typing import Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles import Tally
from vertibayes_protocols.local_reports.questions import (
    Answers,
    CodeQuestion,
    LaplaceQuestion,
    OneBitQuestion,
    Question,
)

Floats: TypeAlias = NDArray[np.float64]


class QuestionTally(Protocol):
    """The sums of the answers to one question."""

    @property
    def n(self) -> int:
        """The number of answers."""
        ...

    def update(self, answers: Answers) -> None:
        """Add answers; if one is refused with a ValueError, none is added."""
        ...

    def merge(self, other: Self) -> None:
        """Add the answers of another tally of the same question."""
        ...

    def estimate(self) -> Floats:
        """Return the estimated sums over those who answered, in the question's shape."""
        ...

    def noise(self) -> Floats:
        """Return the variance of these sums that the noise causes."""
        ...

    def spread(self) -> Floats:
        """Return the variance among people of what is summed, estimated."""
        ...


class CodeTally:
    """Answers to a `CodeQuestion`."""

    def __init__(self, question: CodeQuestion) -> None:
        self.question, self.tally = question, Tally(question.oracle)

    @property
    def n(self) -> int:
        """The number of answers."""
        return self.tally.n

    def update(self, answers: Answers) -> None:
        """Add answers."""
        self.tally.update(answers)

    def merge(self, other: Self) -> None:
        """Add the answers of another tally."""
        self.tally.merge(other.tally)

    def estimate(self) -> Floats:
        """Return the estimated counts of complete records."""
        return self._complete(self.tally.estimate())

    def noise(self) -> Floats:
        """Return the variance of the oracle, at the estimated counts."""
        counts = np.clip(self.tally.estimate(), 0, self.n)
        return self._complete(np.asarray(self.question.oracle.variance(self.n, counts)))

    def spread(self) -> Floats:
        """Return the variance of a person's indicator of each code."""
        shares = np.clip(self.estimate() / max(self.n, 1), 0, 1)
        return np.asarray(shares * (1 - shares))

    def _complete(self, values: Floats) -> Floats:
        """Leave out the code of incomplete records."""
        shape = self.question.shape
        return values[: int(np.prod(shape))].reshape(shape)


class LaplaceTally:
    """Answers to a `LaplaceQuestion`."""

    def __init__(self, question: LaplaceQuestion) -> None:
        self.question, self.n = question, 0
        self.totals = np.zeros(question.shape, np.int64)
        self.squares = np.zeros(question.shape)

    def update(self, answers: Answers) -> None:
        """Add answers."""
        given, cells = np.asarray(answers), int(np.prod(self.question.shape))
        if given.dtype != np.int64 or given.ndim != 2 or given.shape[1] != cells:
            raise ValueError(
                f"{self.question.name}: answers must be int64 of shape (n, {cells}), "
                f"got {given.dtype} and {given.shape}"
            )
        largest = self.question.largest
        if ((given < -largest) | (given > largest)).any():
            raise ValueError(f"{self.question.name}: numbers must be from {-largest} to {largest}")
        self.totals += given.sum(axis=0).reshape(self.question.shape)
        self.squares += (given.astype(float) ** 2).sum(axis=0).reshape(self.question.shape)
        self.n += len(given)

    def merge(self, other: Self) -> None:
        """Add the answers of another tally."""
        self.totals += other.totals
        self.squares += other.squares
        self.n += other.n

    def estimate(self) -> Floats:
        """Return the sums: the mean of the noise is zero."""
        return self.totals.astype(float)

    def noise(self) -> Floats:
        """Return the variance of the noise of all answers."""
        return np.full(self.question.shape, self.n * self.question.noise.variance)

    def spread(self) -> Floats:
        """Return the variance of the numbers that is left without that of the noise."""
        people = max(self.n, 1)
        whole = self.squares / people - (self.totals / people) ** 2
        return np.maximum(whole - self.question.noise.variance, 0.0)


class OneBitTally:
    """Answers to a `OneBitQuestion`: how many of each."""

    def __init__(self, question: OneBitQuestion) -> None:
        self.question = question
        self.counts = np.zeros((question.shape[1], 2), np.int64)

    @property
    def n(self) -> int:
        """The number of answers."""
        return int(self.counts.sum())

    def update(self, answers: Answers) -> None:
        """Add answers."""
        given, most = np.asarray(answers), self.counts.size
        if given.dtype != np.uint32 or given.ndim != 1 or (given >= most).any():
            raise ValueError(
                f"{self.question.name}: answers must be uint32 of shape (n,) below {most}, "
                f"got {given.dtype} and {given.shape}"
            )
        self.counts += np.bincount(given, minlength=most).reshape(self.counts.shape)

    def merge(self, other: Self) -> None:
        """Add the answers of another tally."""
        self.counts += other.counts

    def estimate(self) -> Floats:
        """Return the ones minus the zeros, in the size of a bit."""
        balance = (self.counts[:, 1] - self.counts[:, 0]).astype(float)
        return (balance * self.question.size).reshape(self.question.shape)

    def noise(self) -> Floats:
        """Return the variance of the answers, which is almost all noise."""
        squares = self.counts.sum(axis=1) * self.question.size**2
        mean = self.estimate() ** 2 / max(self.n, 1)
        return np.asarray(squares.reshape(self.question.shape) - mean)

    def spread(self) -> Floats:
        """Return zero: `noise` has it."""
        return np.zeros(self.question.shape)


def tally_of(question: Question) -> QuestionTally:
    """Return an empty tally of a question."""
    if isinstance(question, CodeQuestion):
        return CodeTally(question)
    if isinstance(question, LaplaceQuestion):
        return LaplaceTally(question)
    return OneBitTally(question)
