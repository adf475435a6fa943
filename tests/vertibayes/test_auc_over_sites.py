"""The AUC of private records is that of pooled records, within a thousandth."""

from __future__ import annotations

import numpy as np
import pytest

from tests.vertibayes.test_prediction_over_sites import any_network, opened, some, with_missing
from vertibayes.inference.prediction import predict_proba
from vertibayes.prediction_over_sites import auc_of_table, auc_over_sites
from vertibayes.sampling import sample
from vertibayes.validation.auc import auc
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.release import Rule
from vertibayes_protocols.site.data import SiteData

assert not FREE.most_scores  # a table of scores needs no budget of records


def pooled(network, data, target, evidence=None):
    names = evidence or [name for name in data.variables if name != target]
    probabilities = np.round(predict_proba(network, some(data, names), target), 12)
    return auc(data.codes[target], probabilities, network.variables[target].states)


@pytest.mark.parametrize("target", ["HYPOVOLEMIA", "LVFAILURE"])
def test_alarm_is_validated_as_if_pooled(alarm_network, alarm_data, target):
    data = with_missing(alarm_data.rows(np.arange(600)), [target], share=0.1)
    federation, study = opened(data, 3)
    with federation:
        ours = auc_over_sites(study, alarm_network, target)
    expected = pooled(alarm_network, data, target)
    assert ours.auc == pytest.approx(expected.auc, abs=1e-3)
    assert (ours.scored, ours.left_out) == (expected.scored, expected.left_out)


def two_classes(features, seed):
    """A naive Bayes with two classes, whose records have log odds that hardly two share."""
    names = [f"f{place}" for place in range(features)]
    network = any_network({"c": (), **dict.fromkeys(names, ("c",))}, seed, states=2)
    return network, names


@pytest.mark.parametrize("rule", [Rule("exact"), Rule("laplace", epsilon=200.0)])
def test_scores_of_many_values_lose_less_than_a_thousandth(rule):
    network, names = two_classes(24, 5)
    data = sample(network, 1000, seed=9)
    evidence = names[:9]  # a harder task
    federation, study = opened(data, 2)
    with federation:
        ours = auc_over_sites(study, network, "c", evidence, rule=rule)
    assert ours.auc == pytest.approx(pooled(network, data, "c", evidence).auc, abs=1e-3)


def test_records_that_differ_from_the_network_are_validated_too():
    """Thresholds follow from the network: records of another one fill the bins unevenly."""
    network, _ = two_classes(24, 5)
    other, _ = two_classes(24, 6)
    data = sample(other, 800, seed=9)
    federation, study = opened(data, 3)
    with federation:
        assert auc_over_sites(study, network, "c").auc == pytest.approx(
            pooled(network, data, "c").auc, abs=1e-3
        )


def test_few_bins_lose_more():
    network, names = two_classes(12, 5)
    data = sample(network, 1000, seed=9)
    federation, study = opened(data, 2)
    with federation:
        areas = [auc_over_sites(study, network, "c", names[:6], bins=b).auc for b in (2, 8, 64)]
    losses = np.abs(np.array(areas) - pooled(network, data, "c", names[:6]).auc)
    assert losses[0] > losses[1] > losses[2]


def test_mistakes_are_named():
    network, names = two_classes(3, 1)
    data = sample(network, 40, seed=1)
    held = SiteData(
        {n: data.variables[n] for n in names[:2]}, {n: data.codes[n] for n in names[:2]}
    )
    federation, study = opened(held, 2)
    with federation, pytest.raises(ValueError, match="no site of the study holds the target 'c'"):
        auc_over_sites(study, network, "c")
    federation, study = opened(data, 2)
    with federation:
        with pytest.raises(ValueError, match="bins must be from 2 to 256, got 1"):
            auc_over_sites(study, network, "c", bins=1)
        with pytest.raises(ValueError, match="does not matter for 'c'"):
            auc_over_sites(study, network, "c", [])


def test_a_class_without_records_has_no_area():
    assert auc_of_table(np.array([[3, 0], [4, 0]]), ("no", "yes")).auc is None


def test_log_odds_of_records_with_missing_values_have_bins_as_well():
    network, names = two_classes(4, 3)
    data = with_missing(sample(network, 60, seed=9), names, share=0.3)
    federation, study = opened(data, 2)
    with federation:
        ours = auc_over_sites(study, network, "c")
    assert ours.auc == pytest.approx(pooled(network, data, "c").auc, abs=1e-12)
