"""What one person is asked: a code under a frequency oracle, or numbers under noise.

A question belongs to the plan, and all people know it. Its `perturb` is the client's part; its
tally, in `tallies`, is the aggregator's part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log, prod, tanh
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.noise import DiscreteLaplace
from vertibayes_mpc.oracles import FrequencyOracle
from vertibayes_mpc.oracles.draws import Draws
from vertibayes_mpc.randomness import Randomness
from vertibayes_protocols.site.statistics import HALF_BITS, LocalData, Numeric
from vertibayes_protocols.variables import Variable

Answers: TypeAlias = NDArray[Any]

HALF = 1 << 63  # of the 2^64 outcomes of a draw
TAIL_BITS = 100  # a number of a report is clamped with probability 2^-100
TANH_BELOW = 1 - 2.0**-50  # more than the rounding of a hyperbolic tangent


@dataclass(frozen=True)
class CodeQuestion:
    """Which class, or which state and class? The answer is one report of a frequency oracle.

    References
    ----------
    .. [1] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
       Classification. Sections 3.1.1 and 3.1.2.
    """

    name: str  # the name of the question in reports
    members: tuple[Variable, ...]  # the target; or a feature and the target
    oracle: FrequencyOracle  # perturbs the code

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table that is estimated."""
        return tuple(len(variable.states) for variable in self.members)

    @property
    def eps(self) -> float:
        """The privacy parameter of one answer."""
        return self.oracle.eps

    @staticmethod
    def domain_of(members: tuple[Variable, ...]) -> int:
        """Return the number of codes."""
        complete = prod(len(variable.states) for variable in members)
        return complete + any(variable.missing for variable in members)

    def codes(self, data: LocalData) -> NDArray[np.int64]:
        """Return each person's code: shape (n,)."""
        columns = np.array([data.codes[v.name] for v in self.members], np.int64)
        limits = np.array(self.shape)[:, None]
        complete = (columns < limits).all(axis=0)
        codes = np.ravel_multi_index(tuple(np.minimum(columns, limits - 1)), self.shape)
        return np.where(complete, codes, prod(self.shape))

    def perturb(self, data: LocalData, randomness: Randomness) -> Answers:
        """Perturb each person's code: the reports of the oracle."""
        return self.oracle.perturb(self.codes(data), randomness)


@dataclass(frozen=True)
class NumberQuestion:
    """What are the numbers, or their squares, at the place of the class? Others are zero.

    The answer hides a vector with one entry per column and class. All entries are zero, except
    those of the person's class, so that the answer hides the class too. A number is an integer
    about the middle of its bounds, from ``-reach`` to ``reach`` (its square from 0 to ``reach``).

    References
    ----------
    .. [1] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
       Classification. Sections 2.2.2, 2.2.3 and 3.2.
    """

    name: str  # the name of the question in reports
    columns: tuple[Numeric, ...]  # the columns that one answer is about
    power: int  # 1 for the numbers, 2 for their squares
    target: Variable  # the class
    eps: float  # the privacy parameter of one answer

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse an eps that the noise cannot express."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the sums that are estimated: columns, classes."""
        return len(self.columns), len(self.target.states)

    @property
    def reach(self) -> int:
        """The largest size of an entry."""
        return 1 << (self.power * HALF_BITS)

    def vectors(self, data: LocalData) -> NDArray[np.int64]:
        """Return each person's vector: shape (n, columns * classes)."""
        classes = np.asarray(data.codes[self.target.name], np.int64)
        vectors = np.zeros((data.records, *self.shape), np.int64)
        known = np.flatnonzero(classes < self.shape[1])
        for place, column in enumerate(self.columns):
            numbers = column.centred(data.numbers[column.name]) ** self.power
            vectors[known, place, classes[known]] = numbers[known]
        return vectors.reshape(data.records, prod(self.shape))


class LaplaceQuestion(NumberQuestion):
    """Numbers with discrete Laplace noise of scale 2 columns / eps on each entry.

    Two persons' vectors differ by 2 at most per column, in units of `reach`: at most two entries of
    a column differ, by 2 together. One column is approach 3 of the paper, all columns approach 1.
    """

    def check(self) -> None:
        """Refuse a scale that the sampler cannot draw."""
        _ = self.noise

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The noise of one entry."""
        return DiscreteLaplace(eps=self.eps, Delta=2 * len(self.columns) * self.reach)

    @cached_property
    def largest(self) -> int:
        """The largest number in a report: a larger one, which is rarer than 2^-100, is clamped."""
        noise = (TAIL_BITS + 1) * log(2) / float(self.noise.rate)
        return ceil(noise) + self.reach

    def perturb(self, data: LocalData, randomness: Randomness) -> Answers:
        """Add noise to each entry: shape (n, columns * classes), dtype int64.

        OpenDP draws the noise from the operating system's generator: `randomness` has no effect.
        """
        del randomness
        vectors = self.vectors(data)
        noisy = vectors + self.noise(vectors.size).reshape(vectors.shape)
        return np.asarray(np.clip(noisy, -self.largest, self.largest))


class OneBitQuestion(NumberQuestion):
    """One bit about one entry that the person draws uniformly: approach 2 of the paper.

    With v the entry in units of `reach`, the bit is 1 with probability (1 + v t) / 2, t = tanh(eps
    / 2) = (e^eps - 1) / (e^eps + 1). The probability is a multiple of 2^-64, and t is rounded down.
    The question has one column. That a person draws the column too is the choice of a question.

    References
    ----------
    .. [1] T. T. Nguyen, X. Xiao, Y. Yang, S. C. Hui, H. Shin, J. Shin (2016). Collecting and
       Analyzing Data from Smart Device Users with Local Differential Privacy. Algorithm 1.
    """

    def check(self) -> None:
        """Refuse an eps so small that no draw is moved."""
        if self.step < 1:
            raise ValueError(f"eps = {self.eps} is too small for one bit: give a larger eps")

    @cached_property
    def step(self) -> int:
        """How many of the 2^64 draws one unit of an entry moves from 0 to 1."""
        return int(HALF * (tanh(self.eps / 2) * TANH_BELOW)) // self.reach

    @property
    def size(self) -> float:
        """What a bit counts as, with its sign: entries in all, times reach / t."""
        return self.shape[1] * HALF / self.step

    def perturb(self, data: LocalData, randomness: Randomness) -> Answers:
        """Draw an entry and a bit for each person: ``2 * entry + bit``, dtype uint32."""
        draws, people = Draws(randomness), data.records
        entries = draws.below(self.shape[1], people)
        places = self.vectors(data)[np.arange(people), entries]
        # 2^63 + place * step is below 2^64: the sum of a negative place wraps around to it.
        moved = (places * self.step).astype(np.uint64)
        bits = draws.words(people) < np.uint64(HALF) + moved
        return (2 * entries + bits).astype(np.uint32)


Question: TypeAlias = CodeQuestion | LaplaceQuestion | OneBitQuestion
