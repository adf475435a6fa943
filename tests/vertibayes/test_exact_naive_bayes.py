"""`NaiveBayes`: the same model, whoever holds the records or the columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.vertibayes.test_network_classifier import people
from vertibayes.sklearn import BayesianNetworkClassifier, FederatedNB, NaiveBayes


@pytest.fixture(scope="module")
def world():
    return people(600, 1, missing=0.1), people(200, 2, missing=0.1)


@parametrize_with_checks([NaiveBayes()])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_parties_that_hold_records_add_up_to_the_pooled_model(world):
    (X, y), (X_new, _) = world
    pooled, without_noise = NaiveBayes(alpha=0.5).fit(X, y), FederatedNB(None, alpha=0.5).fit(X, y)
    records = X.assign(ill=y)
    parties = {"a": records[:50], "b": records[50:55], "c": records[55:]}
    model = NaiveBayes(alpha=0.5).fit(parties, "ill")
    assert (model.model_.sums_ == pooled.model_.sums_).all()
    assert (without_noise.model_.sums_ == pooled.model_.sums_).all()
    np.testing.assert_array_equal(model.predict_proba(X_new), pooled.predict_proba(X_new))
    about = {fact.about for fact in model.ledger_.facts}
    assert about == {"all parties together"}, "no sum of one party is revealed"
    assert pooled.ledger_ is None


def test_one_party_is_pooled(world):
    (X, y), _ = world
    alone = NaiveBayes().fit({"a": X.assign(ill=y)}, "ill")
    assert (alone.model_.sums_ == NaiveBayes().fit(X, y).model_.sums_).all()
    assert alone.ledger_ is None


@pytest.mark.parametrize("kind", [NaiveBayes, BayesianNetworkClassifier])
def test_a_prediction_takes_no_mapping_of_sites(world, kind):
    (X, y), (X_new, _) = world
    model = kind().fit({"a": X[["smoker"]], "b": X[["cough"]].assign(ill=y)}, "ill")
    with pytest.raises(TypeError, match="X must be one data frame with all columns, got a mapping"):
        model.predict({"a": X_new[["smoker"]], "b": X_new[["cough"]]})


def test_sites_that_hold_columns_reveal_tables(world):
    (X, y), (X_new, _) = world
    X, X_new = (part[["smoker", "cough", "ward"]] for part in (X, X_new))
    pooled = NaiveBayes().fit(X, y)
    sites = {"a": X[["smoker"]], "b": X[["cough", "ward"]].assign(ill=y)}
    model = NaiveBayes().fit(sites, "ill")
    assert (model.model_.sums_ == pooled.model_.sums_).all()
    np.testing.assert_array_equal(model.predict_proba(X_new), pooled.predict_proba(X_new))
    assert {frozenset(table.variables) for table in model.ledger_.tables} == {
        frozenset({"class", name}) for name in X
    } | {frozenset({"class"})}
    coded = X.apply(lambda column: column.astype("category").cat.codes)
    known = (coded >= 0).all(axis=1)
    theirs = CategoricalNB(min_categories=[2, 2, 3]).fit(coded[known], y[known])
    ours = NaiveBayes(categories={"smoker": [False, True]}, temperature=1).fit(X[known], y[known])
    np.testing.assert_allclose(ours.predict_proba(X[known]), theirs.predict_proba(coded[known]))


def test_sites_that_all_know_the_class_can_hold_numbers(world):
    (X, y), (X_new, _) = world
    model = NaiveBayes().fit({"a": X[["age", "smoker", "cough"]], "b": X[["weight", "ward"]]}, y)
    pooled = NaiveBayes().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X_new), pooled.predict_proba(X_new))
    about = [fact.about for fact in model.ledger_.facts]
    assert about == ["the records", "a", "b", "all parties together"]


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({}, "the number of records; which classes there are; the smallest and the largest number "
         "of age, weight; which values cough, smoker, ward have"),
        ({"bounds": {"age": (0, 120)}}, "largest number of weight; which"),
        ({"bounds": [0, 300]}, "there are; which values cough, smoker, ward have"),
        ({"categories": {"ward": ["a", "b", "c"]}}, "which values cough, smoker have"),
        ({"classes": ["no", "yes"]}, "of records; the smallest"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("all_know", [False, True])
def test_the_ledger_has_what_fit_reads_off_the_records_beside_sums(
    world, declared, found, all_know
):
    """The bounds of an undeclared number are two persons' values, and are in `columns_`."""
    (X, y), _ = world
    records = X.assign(ill=y)
    parties = {"a": records[:100], "b": records[100:]}
    sites = {"a": X[["age", "smoker", "cough"]], "b": X[["weight", "ward"]]}
    model = NaiveBayes(**declared)
    model.fit(*((sites, y) if all_know else (parties, "ill")))
    assert found in model.ledger_.facts[-1].what


@pytest.mark.parametrize(
    ("sites", "y", "error", "message"),
    [
        (
            lambda X: {"a": X[["age"]], "b": X[["ill", "cough"]]},
            "ill",
            ValueError,
            "age is a number, and ill is at one",
        ),
        (
            lambda X: {"a": X[["cough"]].assign(same="x"), "b": X[["ill"]]},
            "ill",
            ValueError,
            "same has one value in all records",
        ),
        (lambda X: {"a": X, "b": X}, "sick", ValueError, "y must be the name of the column"),
        (
            lambda X: {"a": X[["cough"]], "b": X[["ill"]][::-1]},
            "ill",
            ValueError,
            "different indices",
        ),
        (
            lambda X: {"a": X.to_numpy()},
            "ill",
            TypeError,
            "a data frame for each site, got 'a': ndarray",
        ),
    ],
)
def test_what_cannot_be_fitted_to_is_refused(world, sites, y, error, message):
    (X, classes), _ = world
    with pytest.raises(error, match=message):
        NaiveBayes().fit(sites(X.assign(ill=classes)), y)
