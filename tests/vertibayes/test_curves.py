from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

from vertibayes.report.curves import draw_curves
from vertibayes.validation.measures import (
    Auc,
    Roc,
    auc,
    band_of,
    calibration,
    curves,
    interval_of,
    roc,
)
from vertibayes.validation.methods import Validation


@pytest.fixture(scope="module")
def predictions():
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet([1, 1, 1], 300).round(1)
    return generator.integers(0, 4, 300), probabilities / probabilities.sum(axis=1, keepdims=True)


def validated(classes, probabilities, states):
    found = curves(classes, probabilities, states)
    return Validation("t", auc(classes, probabilities, states), found)


@given(arrays(np.bool_, 20), arrays(np.int8, 20, elements=st.integers(0, 5)))
def test_the_area_under_the_curve_is_the_auc(inside, scores):
    if 0 < inside.sum() < len(inside):
        curve = roc(inside, scores / 5)
        area = np.trapezoid(curve.true_positive_rate, curve.false_positive_rate)
        assert area == pytest.approx(roc_auc_score(inside, scores))


def test_corners_are_some_of_scikit_learns_points():
    generator = np.random.default_rng(1)
    inside, scores = generator.random(500) < 0.3, generator.random(500).round(2)
    points = roc_curve(inside, scores, drop_intermediate=False)[:2]
    all_points = {(x, y) for x, y in np.transpose(points).round(12).tolist()}
    corners = {(x, y) for x, y in np.transpose(roc(inside, scores)).round(12).tolist()}
    assert {(0, 0), (1, 1)} <= corners < all_points


def test_calibration_by_hand():
    scores = np.array([0.02, 0.06, 0.55, 0.58, 1.0])
    found = calibration(np.array([False, True, True, False, True]), scores)
    assert found.predicted == pytest.approx([0.04, 0.565, 1.0])
    assert found.observed == pytest.approx([0.5, 0.5, 1.0])
    assert list(found.records) == [2, 2, 1]


def test_confusion_is_scikit_learns_over_known_classes(predictions):
    classes, probabilities = predictions
    found = curves(classes, probabilities, "abc")
    known = classes < 3
    wanted = confusion_matrix(classes[known], probabilities[known].argmax(axis=1))
    assert np.array_equal(found.confusion, wanted)
    assert set(found.roc) == set(found.calibration) == set("abc")
    area = auc(classes, probabilities, "abc").by_class["b"]
    curve = found.roc["b"]
    assert np.trapezoid(curve.true_positive_rate, curve.false_positive_rate) == pytest.approx(area)


def test_two_classes_have_one_curve_that_of_the_last():
    generator = np.random.default_rng(2)
    classes, scores = generator.integers(0, 2, 100), generator.random(100)
    found = curves(classes, np.column_stack([1 - scores, scores]), "ab")
    assert set(found.roc) == {"b"}
    assert np.array_equal(found.roc["b"], roc(classes == 1, scores))


def test_a_band_is_the_mean_of_folds_and_students_interval():
    """Two folds at a height of .4 and .6: .5, and 12.7 standard errors of .1, cut at 0 and 1."""
    folds = [
        Roc(np.array([0, 0, 1, 1.0]), np.array([0, height, height, 1])) for height in (0.4, 0.6)
    ]
    found = band_of(folds)
    assert found.true_positive_rate[[0, 1, 51]] == pytest.approx([0, 0.5, 0.5])
    assert (found.low[51], found.high[51]) == (0, 1)
    found = band_of([*folds] * 3)
    half = 2.5706 * np.std([0.4, 0.6] * 3, ddof=1) / np.sqrt(6)  # t of 5 degrees of freedom
    assert found.low[51] == pytest.approx(0.5 - half, abs=1e-4)
    assert found.high[51] == pytest.approx(0.5 + half, abs=1e-4)


def test_the_interval_of_the_area_over_folds():
    folds = [Auc(area, {}, 10, 0) for area in (0.7, 0.8, 0.9)]
    low, high = interval_of([*folds, Auc(None, {}, 5, 0)])
    half = 4.3027 * 0.1 / np.sqrt(3)  # t of 2 degrees of freedom
    assert (low, high) == pytest.approx((0.8 - half, min(0.8 + half, 1)), abs=1e-4)
    assert interval_of(folds[:1]) is None and interval_of([]) is None


@pytest.mark.parametrize("classes", [[], [2, 2], [0, 0]])
def test_one_class_or_none_has_no_curve_and_no_nan(classes):
    found = curves(np.array(classes, int), np.full((len(classes), 2), 0.5), "ab")
    assert not found.roc and found.confusion.sum() == sum(c < 2 for c in classes)
    assert not any(np.isnan(values).any() for c in found.calibration.values() for values in c)
    validation = validated(np.array(classes, int), np.full((len(classes), 2), 0.5), "ab")
    ElementTree.fromstring(draw_curves(validation, "one class"))
    with pytest.raises(ValueError, match="records of the class and records of other classes"):
        roc(np.ones(3, bool), np.ones(3))


def test_a_picture_has_all_and_is_repeatable(predictions):
    found = validated(*predictions, ("<$a$>", "_b", "c" * 30 + "tail\x0b" + "d" * 6))
    picture = draw_curves(found, "Validation: 5 < 6 & $x$")
    assert picture == draw_curves(found, "Validation: 5 < 6 & $x$")
    texts = "".join(ElementTree.fromstring(picture).itertext())
    for wanted in (
        "<$a$>",
        "_b",
        "3: cccccccccccc…l\ufffddddddd",
        "5 < 6 & $x$",
        "ROC",
        "Calibration",
        "Confusion",
    ):
        assert wanted in texts
    assert str(found.curves.confusion[0, 0]) in texts
    assert "synthetic" not in texts and "interval" not in texts
    folds = replace(found, synthetic=True, bands={"_b": band_of([found.curves.roc["_b"]] * 3)})
    texts = "".join(ElementTree.fromstring(draw_curves(folds, "folds")).itertext())
    assert "Confusion, synthetic records" in texts and "95 % interval" in texts


def test_the_picture_of_two_classes_has_one_of_them():
    found = validated(np.array([0, 1, 1, 0]), np.array([[0.8, 0.2], [0.3, 0.7]] * 2), ["no", "yes"])
    texts = list(ElementTree.fromstring(draw_curves(found, "two")).itertext())
    assert "t = yes: AUC 0.500" in texts and not any(text.startswith("t = no") for text in texts)
