"""Predictions and score tables over hidden people, and over spread rows, are those of the join."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.hidden import random_lists
from tests.spreads import random_spread
from tests.vertibayes.test_prediction_over_sites import some
from vertibayes.dag import Structure
from vertibayes.inference.odds_tables import odds_tables
from vertibayes.inference.prediction import predict_proba
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.prediction_over_sites import evidence_of, predict_over_sites
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import ScoreTable
from vertibayes_protocols.release import Rule


def network_of(world):
    """Return a network of the pooled records in which all variables tell of the first."""
    first, *others = world.pooled.variables
    parents = {first: (), **{n: (first, *others[:at][-1:]) for at, n in enumerate(others)}}
    return fit_cpts(world.plain, Structure(parents), pseudo_count=0.5)


def expected(world, network, target):
    """Return the local prediction of the pooled records."""
    evidence = some(world.pooled, [name for name in world.pooled.variables if name != target])
    return predict_proba(network, evidence, target)


def in_order(rows):
    """Return rows in an order that does not depend on the order of the people."""
    return rows[np.lexsort(rows.round(7).T)]


def check_score_table(world, network, study):
    """Compare the score tables of each target of two states: the class is shared as well."""
    for target, variable in network.variables.items():
        if len(variable.states) == 2:
            known = evidence_of(study, network, target, None)
            odds = odds_tables(network, target, known).odds()
            scores = np.zeros(world.pooled.records, np.int64)
            for names, numbers in odds.tables:
                scores += numbers[tuple(world.pooled.codes[name] for name in names)][:, 0]
            thresholds = np.array([*np.unique(scores)[1::7]] or [0])
            more = {"thresholds": thresholds, "rule": Rule("exact")}
            table = study.ask(lambda joined, o=odds, m=more: ScoreTable.of(joined, o, **m))
            bins, classes = thresholds.searchsorted(scores, "right"), world.pooled.codes[target]
            local = np.zeros((len(thresholds) + 1, study.study.variables[target].codes), int)
            np.add.at(local, (bins, classes), 1)
            assert table.tolist() == local.tolist()


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6))
def test_people_whom_no_site_knows_are_predicted(seed):
    lists = random_lists(seed, variables=4)
    network = network_of(lists)
    with lists.federate(policy=ALLOW_ALL) as federation:
        study = lists.open(federation)
        for target in network.variables:
            ours = predict_over_sites(study, network, target)
            local = expected(lists, network, target)
            assert in_order(ours) == pytest.approx(in_order(local), abs=1e-6)
        check_score_table(lists, network, study)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6))
def test_records_whose_columns_lie_at_several_sites_are_predicted(seed):
    spread = random_spread(seed, records=60, variables=4)
    network = network_of(spread)
    with spread.federate(policy=ALLOW_ALL) as federation:
        study = spread.open(federation)
        for target in network.variables:
            ours = predict_over_sites(study, network, target)
            assert ours == pytest.approx(expected(spread, network, target), abs=1e-9)
        check_score_table(spread, network, study)
