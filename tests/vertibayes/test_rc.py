"""RC of pooled records: its start is scikit-learn's naive Bayes, and its iterates fit better."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from tests.vertibayes.rc_worlds import world
from vertibayes.calibration import rc
from vertibayes.calibration.models import (
    error_rates,
    predict_proba,
    scales_of,
    to_naive_bayes,
)
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes.naive_bayes.model_file import read_naive_bayes, write_naive_bayes
from vertibayes_protocols.calibration.classifier import Examples, Scale, scales_within
from vertibayes_protocols.calibration.local import statistics_of, update

SEEDS = st.integers(0, 2**32)
COVARIANCES = "diagonal", "full"


def start_of(w):
    return risk_based_calibration(w.classifier, w.examples, 0).statistics


def categories(w):
    return np.array([w.data.codes[name] for name in w.schema.categorical]).T


def numbers(w):
    return np.array([w.data.numbers[name] for name in w.schema.numeric]).T


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.floats(0.1, 3))
def test_the_start_equals_scikit_learns_categorical(seed, alpha):
    w = world(60, seed, numbers=0, alpha=alpha)
    x, y = categories(w), w.data.codes["y"]
    theirs = CategoricalNB(alpha=alpha, min_categories=[2, 4]).fit(x, y).predict_proba(x)
    assert predict_proba(w.classifier, start_of(w), w.data) == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_the_start_equals_scikit_learns_gaussian(seed):
    share = 1e-2
    x = numbers(world(60, seed, states=()))
    w = world(60, seed, states=(), smoothing=share * x.var(axis=0).max() / 9)  # a spread of 3
    y = w.data.codes["y"]
    theirs = GaussianNB(var_smoothing=share).fit(x, y).predict_proba(x)
    assert predict_proba(w.classifier, start_of(w), w.data) == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_the_start_of_mixed_features_equals_both_of_scikit_learn_less_one_prior(seed):
    share = 1e-2
    z = numbers(world(60, seed))
    w = world(60, seed, alpha=1.0, smoothing=share * z.var(axis=0).max() / 9)
    x, y = categories(w), w.data.codes["y"]
    of_states = CategoricalNB(alpha=1.0, min_categories=[2, 4]).fit(x, y)
    of_numbers = GaussianNB(var_smoothing=share).fit(z, y)
    joint = of_states.predict_joint_log_proba(x) + of_numbers.predict_joint_log_proba(z)
    joint -= np.log(of_numbers.class_prior_)
    theirs = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    assert predict_proba(w.classifier, start_of(w), w.data) == pytest.approx(theirs, abs=1e-9)


def test_an_iteration_adds_what_the_records_say_less_what_the_model_says():
    w = world(4, classes=2, states=(2,), numbers=0)
    start = w.classifier.uniform(4.0)  # P(y | x) = 1/2 for each record
    after = risk_based_calibration(w.classifier, w.examples, 1, rate=0.5, start=start).last
    by_hand = start.copy()
    for columns, y in zip(*w.examples, strict=True):
        by_hand[y] += 0.5 * 0.5 * columns
        by_hand[1 - y] -= 0.5 * 0.5 * columns
    assert after == pytest.approx(by_hand, abs=1e-12)


def test_the_iterate_of_lowest_soft_loss_is_returned_with_its_trace():
    w = world(120, 3, numbers=1)
    made = risk_based_calibration(w.classifier, w.examples, 30, rate=2.0)
    assert made.soft.shape == made.errors.shape == made.repairs.shape == (31,)
    assert made.best == made.soft.argmin() and made.soft[made.best] < made.soft[0]
    again = update(w.classifier, made.statistics, w.examples)
    assert again.soft == pytest.approx(made.soft[made.best])
    assert again.errors == made.errors[made.best]
    assert update(w.classifier, made.last, w.examples).soft == pytest.approx(made.soft[-1])


def test_a_best_iterate_may_be_one_before_the_last():
    w = world(40, 1)
    made = risk_based_calibration(w.classifier, w.examples, 60, rate=30.0)
    assert made.best < 60 and made.soft[-1] > made.soft[made.best]
    assert not np.array_equal(made.statistics, made.last)


def test_calibration_from_a_uniform_start_lowers_the_errors():
    w = world(300, 5, states=(3,), numbers=1)
    made = risk_based_calibration(w.classifier, w.examples, 200, start=w.classifier.uniform(300))
    assert made.errors[-1] < made.errors[0]


def test_records_in_blocks_give_the_same_calibration(monkeypatch):
    w = world(70, 2)
    whole = risk_based_calibration(w.classifier, w.examples, 5)
    monkeypatch.setattr(rc, "BLOCK", 16)
    parts = risk_based_calibration(w.classifier, w.examples, 5)
    assert parts.last == pytest.approx(whole.last, abs=1e-9)
    assert parts.soft == pytest.approx(whole.soft) and (parts.errors == whole.errors).all()


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.floats(0.01, 10), st.integers(0, 8), st.sampled_from(COVARIANCES))
def test_naive_bayes_of_calibrated_statistics_predicts_as_the_classifier(
    seed, rate, iterations, covariance
):
    w = world(50, seed, missing=0.2, covariance=covariance)
    made = risk_based_calibration(w.classifier, w.examples, iterations, rate=rate)
    model = to_naive_bayes(w.classifier, w.schema, made.last)
    ours = predict_proba(w.classifier, made.last, w.data)
    assert model.predict_proba(w.data) == pytest.approx(ours, abs=1e-6)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_naive_bayes_of_calibrated_statistics_is_the_same_from_a_file(tmp_path, covariance):
    w = world(50, 1, covariance=covariance)
    made = risk_based_calibration(w.classifier, w.examples, 5)
    model = to_naive_bayes(w.classifier, w.schema, made.last)
    path = tmp_path / "naive_bayes.json"
    path.write_text(write_naive_bayes(model))
    ours = predict_proba(w.classifier, made.last, w.data)
    assert read_naive_bayes(path).predict_proba(w.data) == pytest.approx(ours, abs=1e-9)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_number_beyond_all_reach_leaves_the_prior(covariance):
    w = world(50, 1, covariance=covariance)
    model = to_naive_bayes(w.classifier, w.schema, start_of(w))
    w.data.numbers["z0"][:] = 1e200
    with np.errstate(over="ignore"):
        found = model.predict_proba(w.data)
    assert found == pytest.approx(np.tile(np.exp(model.class_log_prior_), (50, 1)))


def test_naive_bayes_of_another_schema_is_refused():
    w, other = world(50, 1), world(50, 1, numbers=1)
    with pytest.raises(ValueError, match="must be naive Bayes with the schema's class"):
        to_naive_bayes(w.classifier, other.schema, start_of(w))


def test_error_rates_of_several_models_are_those_of_each(monkeypatch):
    w = world(90, 4)
    models = np.stack([w.classifier.uniform(1.0) + i * start_of(w) for i in range(4)])
    each = [update(w.classifier, model, w.examples).errors / 90 for model in models]
    assert error_rates(w.classifier, models, w.examples) == pytest.approx(each)
    monkeypatch.setattr("vertibayes.calibration.models.BLOCK", 100)
    assert error_rates(w.classifier, models, w.examples) == pytest.approx(each)
    assert len(set(each)) > 1


def test_error_rates_need_a_record():
    w = world(20)
    nothing = Examples(w.examples.columns[:0], w.examples.classes[:0])
    with pytest.raises(ValueError, match="at least one record of a known class, got 0"):
        error_rates(w.classifier, start_of(w)[None], nothing)


def test_scales_measure_numbers_by_mean_and_standard_deviation():
    w = world(200, 1, missing=0.3)
    scale = scales_of(w.data)["z0"]
    known = w.data.numbers["z0"][~np.isnan(w.data.numbers["z0"])]
    assert scale == pytest.approx((known.mean(), known.std()))
    assert scales_within(w.schema.numerics)["z0"] == Scale(5.0, pytest.approx(25 / 3**0.5))


def test_statistics_of_no_records_are_zeros():
    w = world(20)
    nothing = Examples(w.examples.columns[:0], w.examples.classes[:0])
    assert not statistics_of(w.classifier, nothing).any()
