"""pgmpy's own searches and estimators over a `Counter`, so that they learn from a federation.

A score of pgmpy needs of a variable and its parents only how often their states occur together, and
so do a test of independence and the estimate of a CPT. For each of them, one table of the counter
becomes a data frame: the records of these variables alone, in another order. pgmpy computes the
rest, as it does from pooled records.

A search asks for one score after another. `fit` runs each step of `HillClimbSearch` and of
`ExpertInLoop` once without counts, to see what the step asks, and asks for its tables in one call.

Leakage: the tables that pgmpy asks for, and no others; a `SecureCounter` notes them in its ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
from pandas import Categorical, CategoricalDtype, DataFrame
from pgmpy.base import DAG
from pgmpy.ci_tests import get_ci_test
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteBayesianEstimator, DiscreteMLE
from pgmpy.structure_score import BIC, BaseStructureScore, get_scoring_method

from vertibayes.counting.counter import Counter, portions
from vertibayes.dag import Structure
from vertibayes_protocols.variables import Family, axis_lengths

Scoring: TypeAlias = "Callable[..., BaseStructureScore]"  # takes data, and state_names=
Testing: TypeAlias = Callable[..., Any]  # takes data=
Estimator = TypeVar("Estimator")

STEPS = "_legal_operations_dag", "_test_all"  # of HillClimbSearch, and of ExpertInLoop
FEWEST_ROWS = 2  # that pgmpy's searches accept


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
    >>> from vertibayes import PlainCounter, SiteData, Variable
    >>> codes = {"x": np.array([0, 0, 1, 1], np.uint8), "y": np.array([0, 1, 1, 1], np.uint8)}
    >>> data = SiteData({name: Variable(name, ("no", "yes")) for name in codes}, codes)
    >>> round(CountedScore(PlainCounter(data)).local_score("y", ("x",)), 4)
    -2.7726
    """

    def __init__(self, counter: Counter, scoring: Scoring = BIC) -> None:
        self.counter, self.scoring = counter, scoring
        names = {name: sorted(v.states) for name, v in counter.variables.items()}  # as pgmpy does
        self.tables, nobody = _Tables(counter), _nobody(counter)
        super().__init__(nobody, state_names=names)
        self._prior = scoring(nobody, state_names=names)
        if not isinstance(self._prior, BaseStructureScore):
            raise ValueError(f"a score of pgmpy expected, got {type(self._prior).__name__}")
        _check_discrete(self._prior, "supported_datatype", "a score")
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
        self.counter, self.testing, self.tables = counter, testing, _Tables(counter)
        _check_discrete(testing(data=_nobody(counter)), "data_types", "a test")

    def run_test(self, X: str, Y: str, Z: Iterable[str] = ()) -> tuple[float, float]:  # noqa: N803
        """Return the statistic and the p-value of X and Y given Z."""
        family = Family(X, (Y, *Z))
        if self.tables.only_noted(family):
            return 0.0, 1.0
        test = self.testing(data=self.tables.records(family))
        test.run_test(X=X, Y=Y, Z=list(Z))
        self.statistic_, self.p_value_ = test.statistic_, test.p_value_
        self.effect_size_ = test.effect_size_
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


def fit(estimator: Estimator, counter: Counter, model: DAG | None = None) -> Estimator:
    """Fit an estimator of pgmpy to the counts of a counter, as its own `fit` to pooled records.

    Parameters
    ----------
    estimator
        A search of pgmpy, as `HillClimbSearch` or `ExpertInLoop`, whose `scoring_method` or
        `ci_test` is a name, a class, or what `CountedScore` or `CountedTest` takes; or
        `DiscreteMLE` or `DiscreteBayesianEstimator`.
    counter : Counter
    model : DAG, optional
        The structure whose CPTs `DiscreteMLE` or `DiscreteBayesianEstimator` estimates.

    Returns
    -------
    estimator
        The same one, fitted.

    Raises
    ------
    TypeError
        If the estimator needs more of the records than scores, tests and CPTs do.
    ValueError
        If a parameter does not fit; no table is asked for then. Also if pgmpy asks for a table that
        is too large.

    Examples
    --------
    >>> from pgmpy.causal_discovery import HillClimbSearch
    >>> from vertibayes import PlainCounter, SiteData, Variable
    >>> codes = {"x": np.array([0, 1] * 20, np.uint8), "y": np.array([1, 0] * 20, np.uint8)}
    >>> data = SiteData({name: Variable(name, ("no", "yes")) for name in codes}, codes)
    >>> search = fit(HillClimbSearch("bic-d", show_progress=False), PlainCounter(data))
    >>> sorted(search.causal_graph_.nodes)
    ['x', 'y']
    """
    if isinstance(estimator, DiscreteMLE | DiscreteBayesianEstimator):
        _fit_cpts(estimator, counter, model)
        return estimator
    given = {name: getattr(estimator, name) for name in _COUNTED if hasattr(estimator, name)}
    if not given:
        raise TypeError(
            f"{type(estimator).__name__} cannot learn from counts: expected a search of pgmpy with "
            "`scoring_method` or `ci_test`, DiscreteMLE or DiscreteBayesianEstimator"
        )
    if model is not None:
        raise ValueError(f"{type(estimator).__name__} learns the structure: give it no `model`")
    counted = {name: _COUNTED[name](counter, value) for name, value in given.items()}
    _check_max_indegree(estimator, counter)
    if missing := [name for name, variable in counter.variables.items() if variable.missing]:
        raise ValueError(
            f"pgmpy's searches take no missing values, which {', '.join(missing)} have: leave "
            "these out, or use `vertibayes.learn_structure`"
        )
    steps = {name: getattr(estimator, name) for name in STEPS if hasattr(estimator, name)}
    tables = [each.tables for each in counted.values()]
    try:
        vars(estimator).update(counted, **{n: _in_one_call(s, tables) for n, s in steps.items()})
        estimator.fit(_unreadable(counter))  # type: ignore[attr-defined]
    finally:
        vars(estimator).update(given)
        for name in steps:
            del vars(estimator)[name]
    return estimator


class _Tables:
    """The tables of a counter, for one score after another."""

    def __init__(self, counter: Counter) -> None:
        self._counter, self._lock = counter, Lock()  # pgmpy's PC has several threads
        self._noted: dict[Family, None] | None = None

    def only_noted(self, family: Family) -> bool:
        """Whether a family is only noted now, to be asked for with others."""
        if self._noted is None:
            return False
        self._noted[family] = None
        return True

    @contextmanager
    def together(self) -> Iterator[None]:
        """Note the families of this context; at its end, ask for them in one call."""
        noted = self._noted = {}
        try:
            yield
        finally:
            self._noted = None
        self.ask(list(noted))

    def ask(self, families: Sequence[Family]) -> None:
        """Ask for tables, which the counter of a federation keeps."""
        self._counter.check(families)
        for portion in portions(axis_lengths(self._counter.variables, False), families):
            self._counter.tables(portion)

    def records(self, family: Family, *, incomplete: bool = False) -> DataFrame:
        """Return the records of a family's variables, and the incomplete ones as empty rows."""
        with self._lock:
            (table,) = self._counter.tables([family])
        cells = np.repeat(np.arange(table.size), table.ravel())
        empty = self._counter.records - len(cells) if incomplete else 0
        columns = {}
        for name, codes in zip(family.members, np.unravel_index(cells, table.shape), strict=True):
            states = self._counter.variables[name].states
            codes = np.pad(codes, (0, empty), constant_values=-1)
            column = Categorical.from_codes(codes, dtype=CategoricalDtype(list(states)))
            columns[name] = column.reorder_categories(sorted(states))  # as pgmpy orders them
        return DataFrame(columns)


class _Unreadable:
    """A cell of a data frame that has no records: whoever counts it learns that."""

    def __hash__(self) -> int:
        raise TypeError(
            "this part of pgmpy reads records, which a counter does not have: it cannot run over a "
            "federation"
        )


def _unreadable(counter: Counter) -> DataFrame:
    """Return a data frame with the columns of a counter, in which no record can be read."""
    return DataFrame({name: [_Unreadable()] * FEWEST_ROWS for name in counter.variables})


def _nobody(counter: Counter) -> DataFrame:
    """Return a data frame without records."""
    variables = counter.variables.values()
    return DataFrame({v.name: Categorical([], categories=sorted(v.states)) for v in variables})


def _in_one_call(step: Callable[..., Any], tables: Sequence[_Tables]) -> Callable[..., Any]:
    """Return a step of a search that first asks in one call for all tables of the step."""

    def asking(*args: Any, **kwargs: Any) -> Any:
        for each in tables:
            with each.together():
                list(step(*args, **kwargs))
        return step(*args, **kwargs)

    return asking


def _score_of(counter: Counter, given: Any) -> CountedScore:
    """Return the score that an estimator names."""
    if isinstance(given, CountedScore):
        return given
    if given is None or isinstance(given, str):
        given = type(get_scoring_method(given, _nobody(counter)))
    return CountedScore(counter, _maker(given, "scoring_method"))


def _test_of(counter: Counter, given: Any) -> CountedTest:
    """Return the test that an estimator names."""
    if isinstance(given, CountedTest):
        return given
    if given is None or isinstance(given, str):
        given = type(get_ci_test(given, data=_nobody(counter)))
    return CountedTest(counter, _maker(given, "ci_test"))


_COUNTED: Mapping[str, Callable[[Counter, Any], CountedScore | CountedTest]] = {
    "scoring_method": _score_of,
    "ci_test": _test_of,
}


def _maker(given: Any, name: str) -> Callable[..., Any]:
    """Refuse what makes no score or test, as one that has records already."""
    if not callable(given) or hasattr(given, "data"):
        raise ValueError(
            f"`{name}` must be a name, a class or a function that makes one of its data, got "
            f"{type(given).__name__}"
        )
    return given  # type: ignore[no-any-return]


def _check_discrete(given: Any, tag: str, what: str) -> None:
    """Refuse a score or a test of numbers."""
    kinds = given.get_tag(tag)
    if kinds is not None and "discrete" not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise ValueError(f"{what} of discrete variables expected, got {type(given).__name__}")


def _check_max_indegree(estimator: Any, counter: Counter) -> None:
    """Refuse a search that may ask for wider tables than the sites allow."""
    most, given = counter.most_variables, getattr(estimator, "max_indegree", 0)
    widest = len(counter.variables) if given is None else given + 1
    if most is not None and min(widest, len(counter.variables)) > most:
        raise ValueError(
            f"`max_indegree` must be at most {most - 1} (the sites allow tables of {most} "
            f"variables), got {given}"
        )


def _fit_cpts(estimator: Any, counter: Counter, model: DAG | None) -> None:
    """Estimate each CPT from the records of its family."""
    if model is None:
        raise ValueError(f"{type(estimator).__name__} needs a `model`, whose CPTs it estimates")
    structure, variables = Structure.from_networkx(model), counter.variables
    if latents := set(getattr(model, "latents", ())).union(structure.nodes) - set(variables):
        raise ValueError(f"the model has nodes that are no variables: {', '.join(sorted(latents))}")
    names = {name: list(v.states) for name, v in variables.items()} | (estimator.state_names or {})
    tables = _Tables(counter)
    tables.ask(structure.families)
    estimator.parameters_ = [
        _cpd(estimator, family, tables.records(family), names) for family in structure.families
    ]
    estimator.state_names_ = {name: names[name] for name in structure.nodes}


def _cpd(estimator: Any, family: Family, records: DataFrame, names: Mapping[str, Any]) -> Any:
    """Return the CPD of a child, estimated in a model of its family alone."""
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(family.members)
    model.add_edges_from((parent, family.child) for parent in family.parents)
    own = {  # what the estimator was given for this node, and not for its parents
        key: {family.child: value[family.child]} if family.child in value else {}
        for key, value in estimator.get_params().items()
        if isinstance(value, dict)
    }
    alone = estimator.clone().set_params(**own, state_names=names)
    return next(c for c in alone.fit(model, records).parameters_ if c.variable == family.child)
