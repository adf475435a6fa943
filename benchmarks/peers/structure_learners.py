"""Structure learners of pyAgrum and pgmpy, on pooled records."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from vertibayes.dag import Structure
from vertibayes_protocols.site.data import SiteData


def frame_of(data: SiteData) -> pd.DataFrame:
    """Return encoded records as a data frame of states."""
    states = {
        n: np.array([f"s{code}" for code in range(v.codes)]) for n, v in data.variables.items()
    }
    return pd.DataFrame({n: states[n][data.codes[n]] for n in data.variables})


def _pyagrum(choose: Callable[[object], object]) -> Callable[[SiteData], Structure]:
    """Return a learner of pyAgrum, on one thread."""

    def learn(data: SiteData) -> Structure:
        import pyagrum

        learner = pyagrum.BNLearner(frame_of(data))
        learner.setNumberOfThreads(1)
        choose(learner)
        graph = learner.learnDAG()
        names = {learner.idFromName(name): name for name in data.variables}
        return Structure.of(list(data.variables), [(names[a], names[b]) for a, b in graph.arcs()])

    return learn


def _greedy(learner: object) -> None:
    learner.useScoreBIC()
    learner.useGreedyHillClimbing()


def _tabu(learner: object) -> None:
    learner.useScoreBIC()
    learner.useLocalSearchWithTabuList(100, 10)


def _pgmpy_hill_climbing(data: SiteData) -> Structure:
    from pgmpy.causal_discovery import HillClimbSearch

    return _of_pgmpy(
        data,
        HillClimbSearch(
            scoring_method="bic-d", max_indegree=4, return_type="dag", show_progress=False
        ),
    )


def _pgmpy_pc(data: SiteData) -> Structure:
    from pgmpy.causal_discovery import PC

    return _of_pgmpy(
        data, PC(variant="stable", ci_test="g_sq", max_cond_vars=2, significance_level=0.01,
                 return_type="dag", show_progress=False)
    )  # fmt: skip


def _of_pgmpy(data: SiteData, learner: object) -> Structure:
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        learner.fit(frame_of(data))
    return Structure.of(list(data.variables), list(learner.causal_graph_.edges()))


PEERS: Mapping[str, Callable[[SiteData], Structure]] = {
    "pyAgrum greedy, BIC": _pyagrum(_greedy),
    "pyAgrum tabu, BIC": _pyagrum(_tabu),
    "pyAgrum MIIC": _pyagrum(lambda learner: learner.useMIIC()),
    "pgmpy hill climbing, BIC": _pgmpy_hill_climbing,
    "pgmpy PC (.01, 2)": _pgmpy_pc,
}
