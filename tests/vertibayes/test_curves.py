from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

from vertibayes.report.curves import draw_curves
from vertibayes.validation.auc import auc
from vertibayes.validation.curves import calibration, curves, roc


@pytest.fixture(scope="module")
def predictions():
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet([1, 1, 1], 300).round(1)
    return generator.integers(0, 4, 300), probabilities / probabilities.sum(axis=1, keepdims=True)


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


def test_impossible_records_are_confused_with_no_class():
    found = curves(np.array([0, 1]), np.array([[0.0, 0.0], [0.2, 0.8]]), "ab")
    assert found.confusion.tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("classes", [[], [2, 2], [0, 0]])
def test_one_class_or_none_has_no_curve_and_no_nan(classes):
    found = curves(np.array(classes, int), np.full((len(classes), 2), 0.5), "ab")
    assert not found.roc and found.confusion.sum() == sum(c < 2 for c in classes)
    assert not any(np.isnan(values).any() for c in found.calibration.values() for values in c)
    ElementTree.fromstring(draw_curves(found, "one class"))
    with pytest.raises(ValueError, match="records of the class and others"):
        roc(np.ones(3, bool), np.ones(3))


def test_a_picture_has_all_and_is_repeatable(predictions):
    found = curves(*predictions, ("<$a$>", "_b", "c" * 30 + "tail\x0b" + "d" * 6))
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
    assert str(found.confusion[0, 0]) in texts
