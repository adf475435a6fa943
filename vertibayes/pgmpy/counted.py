"""Scores and tests of pgmpy over a counter, for pgmpy's searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from pgmpy.base import DAG
from pgmpy.structure_score import BIC, BaseStructureScore

from vertibayes.counting.counter import Counter
from vertibayes.pgmpy.tables import Tables, no_records
from vertibayes_protocols.variables import Family

Scoring: TypeAlias = Callable[..., BaseStructureScore]  # takes data, and state_names=
Testing: TypeAlias = Callable[..., Any]  # takes data=


class CountedScore(BaseStructureScore):  # type: ignore[misc]
    """A score of pgmpy over a counter.

    With missing values, a score is over the records that are complete in its variables, and the
    penalty of BIC over all records: as pgmpy scores a data frame with missing values.

    Parameters
    ----------
    counter : Counter
    scoring : callable, default=BIC
        A class of `pgmpy.structure_score` for discrete variables, or a function that makes such a
        score, as ``functools.partial(BDeu, equivalent_sample_size=5)``.

    Raises
    ------
    ValueError
        If it is not a score of discrete variables.

    Examples
    --------
    >>> import numpy as np
    >>> from vertibayes import PlainCounter, SiteData, Variable
    >>> codes = {"x": np.array([0, 0, 1, 1], np.uint8), "y": np.array([0, 1, 1, 1], np.uint8)}
    >>> data = SiteData({name: Variable(name, ("no", "yes")) for name in codes}, codes)
    >>> round(CountedScore(PlainCounter(data)).local_score("y", ("x",)), 4)
    -2.7726
    """

    def __init__(self, counter: Counter, scoring: Scoring = BIC) -> None:
        self.counter, self.scoring = counter, scoring
        names = {name: sorted(v.states) for name, v in counter.variables.items()}  # as pgmpy does
        self.tables = Tables(counter)
        super().__init__(no_records(counter), state_names=names)
        self._prior = scoring(no_records(counter), state_names=names)
        _check_discrete(self._prior, "supported_datatype", "score")
        self._scores: dict[Family, float] = {}

    def local_score(self, variable: str, parents: Sequence[str]) -> float:
        """Return the score of a variable given its parents."""
        family = Family(variable, tuple(parents))
        if family not in self._scores:
            if self.tables.only_noted(family):
                return 0.0
            records = self.tables.records(family, incomplete=True)
            score = self.scoring(records, state_names=self.state_names)
            self._scores[family] = float(score.local_score(*family))
        return self._scores[family]

    def score(self, model: DAG) -> float:
        """Return the score of a structure, whose tables are asked for in one call."""
        with self.tables.together():
            super().score(model)
        return float(super().score(model))

    def structure_prior(self, model: DAG) -> float:
        """Return the logarithm of the prior of a structure."""
        return float(self._prior.structure_prior(model))

    def structure_prior_ratio(self, operation: str) -> float:
        """Return by how much an operation changes the logarithm of the prior."""
        return float(self._prior.structure_prior_ratio(operation))


class CountedTest:
    """A test of conditional independence of pgmpy over a counter.

    With missing values, a test is over the records that are complete in its variables.

    Parameters
    ----------
    counter : Counter
    testing : callable
        A class of `pgmpy.ci_tests` for discrete variables, or a function that makes such a test.

    Attributes
    ----------
    statistic_, p_value_, effect_size_
        Of the last test.

    Raises
    ------
    ValueError
        If it is not a test of discrete variables.
    """

    def __init__(self, counter: Counter, testing: Testing) -> None:
        self.counter, self.testing, self.tables = counter, testing, Tables(counter)
        _check_discrete(testing(data=no_records(counter)), "data_types", "test")
        self._results: dict[Family, tuple[float, float, float]] = {}

    def run_test(self, X: str, Y: str, Z: Iterable[str] = ()) -> tuple[float, float]:  # noqa: N803
        """Return the statistic and the p-value of X and Y given Z."""
        family = Family(X, (Y, *Z))
        if family not in self._results:
            if self.tables.only_noted(family):
                return 0.0, 1.0
            test = self.testing(data=self.tables.records(family))
            test.run_test(X=X, Y=Y, Z=list(family.parents[1:]))
            self._results[family] = test.statistic_, test.p_value_, test.effect_size_
        self.statistic_, self.p_value_, self.effect_size_ = self._results[family]
        return self.statistic_, self.p_value_

    def is_independent(
        self,
        X: str,  # noqa: N803
        Y: str,  # noqa: N803
        Z: Iterable[str] = (),  # noqa: N803
        significance_level: float = 0.05,
    ) -> bool:
        """Whether the p-value of X and Y given Z is not below the level."""
        return bool(self.run_test(X, Y, Z)[1] >= significance_level)

    __call__ = is_independent


def _check_discrete(given: Any, tag: str, what: str) -> None:
    """Refuse what is no score or test, and those of numbers."""
    kinds = given.get_tag(tag) if hasattr(given, "get_tag") else ()
    if kinds is not None and "discrete" not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise ValueError(
            f"a {what} of pgmpy for discrete variables expected, got {type(given).__name__}"
        )
