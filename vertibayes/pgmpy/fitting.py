"""Fit an estimator of pgmpy to the counts of a counter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar

import numpy as np
from pandas import Categorical, DataFrame
from pgmpy.base import DAG
from pgmpy.ci_tests import get_ci_test
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteBayesianEstimator, DiscreteMLE
from pgmpy.structure_score import get_scoring_method

from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.pgmpy.counted import CountedScore, CountedTest
from vertibayes.pgmpy.tables import Tables, no_records
from vertibayes_protocols.variables import Family

Estimator = TypeVar("Estimator")

HILL_CLIMBING = "_legal_operations_dag"
STEPS = HILL_CLIMBING, "_test_all"  # of HillClimbSearch, and of ExpertInLoop
FEWEST_ROWS = 2  # that pgmpy's searches accept
COUNTED: Mapping[str, tuple[type[CountedScore | CountedTest], Callable[..., Any]]] = {
    "scoring_method": (CountedScore, get_scoring_method),
    "ci_test": (CountedTest, get_ci_test),
}


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
        If the estimator needs more of the records than scores, tests and CPTs do, or `counter`
        is not a counter.
    ValueError
        If a parameter does not fit: of `HillClimbSearch`, `DiscreteMLE` and
        `DiscreteBayesianEstimator` before a table is asked for, while pgmpy checks some of the
        others' during or after a search. Also if pgmpy asks for a table that is too large.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy.causal_discovery import HillClimbSearch
    >>> from vertibayes import PlainCounter, SiteData, Variable
    >>> codes = {"x": np.array([0, 1] * 20, np.uint8), "y": np.array([1, 0] * 20, np.uint8)}
    >>> data = SiteData({name: Variable(name, ("no", "yes")) for name in codes}, codes)
    >>> search = fit(HillClimbSearch("bic-d", show_progress=False), PlainCounter(data))
    >>> sorted(search.causal_graph_.nodes)
    ['x', 'y']
    """
    if not callable(getattr(counter, "tables", None)):
        raise TypeError(
            f"a Counter expected, as SecureCounter.of(federation), got {type(counter).__name__}"
        )
    if isinstance(estimator, DiscreteMLE | DiscreteBayesianEstimator):
        _fit_cpts(estimator, counter, model)
        return estimator
    own = {name: getattr(estimator, name) for name in COUNTED if hasattr(estimator, name)}
    if not own:
        raise TypeError(
            f"{type(estimator).__name__} cannot learn from counts: expected a search of pgmpy with "
            "`scoring_method` or `ci_test`, DiscreteMLE or DiscreteBayesianEstimator"
        )
    if model is not None:
        raise ValueError(f"{type(estimator).__name__} learns the structure: give it no `model`")
    counted = {name: _counted(counter, name, value) for name, value in own.items()}
    _check_max_indegree(estimator, counter)
    if missing := [name for name, variable in counter.variables.items() if variable.missing]:
        raise ValueError(
            f"pgmpy's searches take no missing values, which {', '.join(missing)} have: leave "
            "these out, or use `vertibayes.learn_structure`"
        )
    steps = {name: getattr(estimator, name) for name in STEPS if hasattr(estimator, name)}
    tables = [each.tables for each in counted.values()]
    _try_without_steps(estimator, counter, counted)
    try:
        vars(estimator).update(counted, **{n: _in_one_call(s, tables) for n, s in steps.items()})
        estimator.fit(_unreadable(counter))  # type: ignore[attr-defined]
    finally:
        vars(estimator).update(own)
        for name in steps:
            del vars(estimator)[name]
    return estimator


def _try_without_steps(estimator: Any, counter: Counter, counted: Mapping[str, Any]) -> None:
    """Run a search that finds no step with a score: pgmpy checks some parameters at its end."""
    if hasattr(estimator, HILL_CLIMBING):
        trial, nothing = copy(estimator), [(("", ()), -math.inf)]
        vars(trial).update(counted, **{HILL_CLIMBING: lambda **_: nothing, "show_progress": False})
        trial.fit(_unreadable(counter))


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


def _in_one_call(step: Callable[..., Any], tables: Sequence[Tables]) -> Callable[..., Any]:
    """Return a step of a search that first asks in one call for all tables of the step."""

    def asking(*args: Any, **kwargs: Any) -> Any:
        for each in tables:
            with each.together():
                list(step(*args, **kwargs))
        return step(*args, **kwargs)

    return asking


def _counted(counter: Counter, name: str, value: Any) -> CountedScore | CountedTest:
    """Return the score or test of an estimator over a counter."""
    kind, named = COUNTED[name]
    if isinstance(value, kind):
        return value
    maker = value
    if value is None or isinstance(value, str):
        maker = type(named(value, no_records(counter)))
    if not callable(maker) or hasattr(maker, "data"):  # one that has records already
        raise ValueError(
            f"`{name}` must be a name, a class or a function that makes one of its data, got "
            f"{type(value).__name__}"
        )
    return kind(counter, maker)


def _check_max_indegree(estimator: Any, counter: Counter) -> None:
    """Refuse a search that may ask for wider tables than the sites allow."""
    most, indegree = counter.most_variables, getattr(estimator, "max_indegree", 0)
    widest = len(counter.variables) if indegree is None else indegree + 1
    if most is not None and min(widest, len(counter.variables)) > most:
        raise ValueError(
            f"`max_indegree` must be at most {most - 1} (the sites allow tables of {most} "
            f"variables), got {indegree}"
        )


def _fit_cpts(estimator: Any, counter: Counter, model: DAG | None) -> None:
    """Estimate each CPT from the records of its family."""
    if model is None:
        raise ValueError(f"{type(estimator).__name__} needs a `model`, whose CPTs it estimates")
    structure, variables = Structure.from_networkx(model), counter.variables
    if hidden := {*structure.nodes} - {*variables} | {*getattr(model, "latents", ())}:
        raise ValueError(f"the model has nodes that nobody observes: {', '.join(sorted(hidden))}")
    names = {name: list(v.states) for name, v in variables.items()} | (estimator.state_names or {})
    states = _each_state(counter)
    with np.errstate(invalid="ignore"):  # the records lack combinations of states
        for family in structure.families:  # pgmpy checks the parameters
            _cpd(estimator, family, states[[*family.members]], names)
    tables = Tables(counter)
    tables.ask(structure.families)
    estimator.parameters_ = [
        _cpd(estimator, family, tables.records(family), names) for family in structure.families
    ]
    estimator.state_names_ = {name: names[name] for name in structure.nodes}


def _each_state(counter: Counter) -> DataFrame:
    """Return made-up records that have each state of each variable."""
    records = max(len(variable.states) for variable in counter.variables.values())
    columns = {name: sorted(v.states) for name, v in counter.variables.items()}
    return DataFrame(
        {
            name: Categorical([states[i % len(states)] for i in range(records)], categories=states)
            for name, states in columns.items()
        }
    )


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
    alone = estimator.clone().set_params(**own | {"state_names": names})
    return next(c for c in alone.fit(model, records).parameters_ if c.variable == family.child)
