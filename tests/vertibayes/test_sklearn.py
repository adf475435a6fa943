"""The estimators of `vertibayes.sklearn`: scikit-learn's checks and tools, and equal results."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from tests.e2e.test_examples import load
from tests.randomness import SeededRandomness
from vertibayes.naive_bayes.federated import NotPrivateWarning
from vertibayes.sklearn import CalibratedNB, FederatedNB, GossipNB, LocalNB
from vertibayes_protocols.local_reports import Client

EXAMPLE = load("private_naive_bayes")
DECLARED = {
    "bounds": EXAMPLE.BOUNDS,
    "categories": EXAMPLE.CATEGORIES,
    "classes": EXAMPLE.CLASSES,
}
STEP = 2.0**-20  # of the grid, as a share of the range of a number

SKIPPED = {"check_array_api_input"}  # needs the environment variable SCIPY_ARRAY_API
TWICE = "fits twice and compares: noise comes from the operating system, and never repeats"
NEVER_REPEATED = {
    "check_classifier_data_not_an_array": TWICE,
    "check_fit_idempotent": TWICE,
    "check_supervised_y_2d": TWICE,
}
FEW = "too few people: with 20 people and up to 11 questions, nobody answers one of the questions"
FEW_PEOPLE = {
    "check_estimators_dtypes": FEW,
    "check_n_features_in_after_fitting": FEW,
}


@pytest.fixture(scope="module")
def world():
    """Return records and further records, with numbers, strings, bools and missing values."""
    generator = np.random.default_rng(5)
    return EXAMPLE.people(3000, generator), EXAMPLE.people(1000, generator)


def checked(estimator, expected=None):
    """Run scikit-learn's checks, and return the names of those that did not pass, by status."""
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    statuses = {}
    for result in results:
        statuses.setdefault(result["status"], set()).add(result["check_name"])
    assert len(statuses.pop("passed")) > 40
    return statuses


# ---- scikit-learn's checks -----------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [FederatedNB(None), GossipNB(None), CalibratedNB()])
def test_without_noise_all_checks_of_scikit_learn_pass(estimator):
    assert checked(estimator) == {"skipped": SKIPPED}


@pytest.mark.parametrize(
    "estimator",
    [FederatedNB(1000.0, bounds=(-10, 10)), LocalNB(50.0, bounds=(-10, 10), reports="all")],
)
def test_with_noise_only_checks_fail_that_compare_two_fits(estimator):
    statuses = checked(estimator, NEVER_REPEATED)
    assert statuses.pop("skipped") == SKIPPED | {"check_pipeline_consistency"}
    assert statuses.pop("xfail", set()) <= set(NEVER_REPEATED) and not statuses


def test_local_reports_fail_checks_that_compare_two_fits_or_have_few_people(monkeypatch):
    source = SeededRandomness(b"check_estimator")  # one stream: each fit has other noise
    monkeypatch.setattr(
        "vertibayes_protocols.local_reports.client.SystemRandomness", lambda: source
    )
    expected = NEVER_REPEATED | FEW_PEOPLE
    statuses = checked(LocalNB(50.0, bounds=(-10, 10)), expected)
    assert statuses.pop("skipped") == SKIPPED | {"check_pipeline_consistency"}
    assert statuses.pop("xfail") <= set(expected) and not statuses


# ---- without noise, equal to scikit-learn --------------------------------------------------------


def test_numbers_give_gaussian_nb_up_to_the_grid():
    """A number moves by half a step at most: a mean too, and a variance by 2 sd step / 2 or so."""
    generator = np.random.default_rng(1)
    y = generator.integers(0, 3, 600)
    X = generator.normal(y[:, None] * [1.0, -30.0, 0.0], [1.0, 20.0, 0.01], (600, 3))
    ours, theirs = FederatedNB(None, nodes=7).fit(X, y), GaussianNB(var_smoothing=0).fit(X, y)
    step = np.ptp(X, axis=0) * STEP
    theta = np.array(list(ours.model_.theta_.values())).T
    var = np.array(list(ours.model_.var_.values())).T
    assert (abs(theta - theirs.theta_) <= step / 2 * (1 + 1e-6)).all()
    assert (abs(var - theirs.var_) <= np.sqrt(theirs.var_) * step + step**2).all()
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_categories_give_categorical_nb():
    generator = np.random.default_rng(2)
    y = generator.integers(0, 2, 500)
    X = (generator.integers(0, 3, (500, 4)) + y[:, None]) % 3
    frame = pd.DataFrame(X, columns=list("abcd")).astype("category")
    ours = FederatedNB(None, alpha=0.5).fit(frame, y)
    theirs = CategoricalNB(alpha=0.5).fit(X, y)
    np.testing.assert_allclose(ours.predict_log_proba(frame), theirs.predict_log_proba(X), 1e-12)


def test_calibration_begins_with_scikit_learns_model_and_lowers_its_errors():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    start, ours = (CalibratedNB(iterations=count).fit(X, y) for count in (0, 64))
    theirs = GaussianNB().fit(X, y)
    np.testing.assert_allclose(start.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert start.best_iteration_ == 0 < ours.best_iteration_
    assert len(ours.soft_losses_) == 65 and ours.soft_losses_.min() < start.soft_losses_[0]
    assert ours.score(X, y) > theirs.score(X, y) + 0.02
    wrong = 1 - ours.predict_proba(X)[np.arange(len(y)), y]
    assert wrong.sum() == pytest.approx(ours.soft_losses_.min(), abs=1e-6)


@pytest.mark.parametrize(
    "given", [{"rate": 0.0}, {"rate": "fast"}, {"iterations": -1}, {"iterations": 1.5}]
)
def test_a_calibration_that_cannot_be_is_refused(given):
    with pytest.raises((ValueError, TypeError), match=next(iter(given))):
        CalibratedNB(**given).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


def by_hand(X, y, X_new):
    """Return log P(y | x), each known value a factor: a density, or a smoothed share."""
    joint = np.zeros((len(X_new), 2))
    for place, label in enumerate(sorted(set(y))):
        own = X[y == label]
        joint[:, place] = np.log(len(own) / len(X))
        for name in X:
            known, new = own[name].dropna(), X_new[name]
            if name in EXAMPLE.BOUNDS:
                mean, var = known.mean(), known.var(ddof=0)
                factor = -0.5 * (np.log(2 * np.pi * var) + (new - mean) ** 2 / var)
            else:
                states = X[name].dropna().unique()
                shares = {s: ((known == s).sum() + 1) / (len(known) + len(states)) for s in states}
                factor = np.log(new.map(shares).astype(float))
            joint[:, place] += factor.fillna(0.0)
    return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def test_a_mix_with_missing_values_is_as_computed_by_hand(world):
    """Densities within 1e-3: a step of the grid is 1e-4 of a year, a standard deviation 11 years"""
    (X, y), (X_new, _) = world
    holes = np.random.default_rng(3).random((2, *X_new.shape)) < 0.2
    X, X_new = X.mask(holes[0].repeat(3, axis=0)), X_new.mask(holes[1])
    model = FederatedNB(None, bounds=EXAMPLE.BOUNDS).fit(X, y)
    expected = by_hand(X, y, X_new)
    np.testing.assert_allclose(model.predict_log_proba(X_new), expected, atol=1e-3)


def test_gossip_of_one_node_is_federated_and_of_ten_almost(world):
    (X, y), (X_new, _) = world
    exact = FederatedNB(None).fit(X, y).predict_proba(X_new)
    np.testing.assert_array_equal(GossipNB(None, nodes=1).fit(X, y).predict_proba(X_new), exact)
    gossiped = GossipNB(None, iterations=200, random_state=0).fit(X, y)
    assert len(gossiped.models_) == 10
    ours, printed = (
        GossipNB(None, iterations=9, random_state=0, adds_up_to=most).fit(X, y) for most in (100, 1)
    )
    assert not np.array_equal(ours.model_.sums_, printed.model_.sums_)
    assert abs(gossiped.predict_proba(X_new) - exact).mean() < 0.05


def test_gossip_knows_a_class_of_a_single_record():
    X, y = np.arange(40.0)[:, None], np.array([0] * 39 + [1])
    model = GossipNB(None, nodes=4, iterations=3, random_state=1).fit(X, y)
    weights = [each.class_count_[1] for each in model.models_]
    assert 0 < min(weights) < 1, "the estimate of one node has less than one record"
    assert [each.theta_["x0"][1] for each in model.models_] == pytest.approx([39.0] * 4, abs=1e-3)


# ---- tools of scikit-learn -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FederatedNB, GossipNB, LocalNB])
def test_three_lines_learn_more_than_the_largest_class(world, kind):
    (X, y), (X_new, y_new) = world
    model = kind(epsilon=20.0, **DECLARED, **({"missing": True} if kind is LocalNB else {}))
    assert model.fit(X, y).score(X_new, y_new) > 0.8 > (y_new == "low").mean()
    assert "The model is (20, " in model.promise_.sentence


@pytest.mark.parametrize("kind", [FederatedNB, GossipNB, LocalNB])
def test_a_clone_has_the_parameters_and_a_pickle_the_model(world, kind):
    (X, y), (X_new, _) = world
    model = kind(2.0, **DECLARED, **({"missing": True} if kind is LocalNB else {})).fit(X, y)
    assert clone(model).get_params() == model.get_params() and not hasattr(clone(model), "model_")
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_proba(X_new), model.predict_proba(X_new))
    assert back.promise_ == model.promise_


def test_the_parameters_are_those_of_the_signature():
    shared = {"epsilon", "bounds", "categories", "classes", "alpha"}
    nodes = {"nodes", "noise", "delta", "sensitivity", "floor", "random_state"}
    assert set(FederatedNB().get_params()) == shared | nodes
    own = {"iterations", "neighbours", "node", "adds_up_to"}
    assert set(GossipNB().get_params()) == shared | nodes | own
    own = {"reports", "oracle", "bins", "approach", "missing"}
    assert set(LocalNB().get_params()) == shared | own
    with pytest.raises(TypeError):
        FederatedNB(1.0, 10)  # only epsilon goes without its name


def test_a_grid_search_compares_budgets(world):
    (X, y), _ = world
    search = GridSearchCV(FederatedNB(**DECLARED), {"epsilon": [1e-4, 100.0, None]}, cv=3)
    scores = search.fit(X, y).cv_results_["mean_test_score"]
    assert len(scores) == 3 and scores[1:].min() > 0.8
    assert search.predict(X).shape == y.shape


def test_a_pipeline_can_come_first(world):
    (X, y), _ = world
    bins = KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf")
    columns = make_column_transformer((bins, ["age", "hours"]), remainder="drop")
    model = make_pipeline(columns, FederatedNB(100.0, bounds=(0, 3)))
    assert cross_val_score(model, X, y).min() > 0.7


def test_random_state_repeats_the_deal_and_never_the_noise(world):
    (X, y), _ = world

    def updates(epsilon, state):
        return FederatedNB(epsilon, random_state=state, **DECLARED).fit(X, y).updates_

    assert (updates(None, 7) == updates(None, 7)).all()
    assert (updates(None, 7) != updates(None, 8)).any()
    assert (updates(100.0, 7) != updates(100.0, 7)).any()  # equal with a chance below 2^-100
    peers = [GossipNB(None, random_state=7).fit(X, y).predict_proba(X) for _ in range(2)]
    np.testing.assert_array_equal(*peers)


def test_groups_are_nodes_in_sorted_order(world):
    (X, y), _ = world
    groups = np.where(X["age"] < 40, "b", "a")
    exact = FederatedNB(None, **DECLARED).fit(X, y, groups=groups)
    records = exact.updates_[:, :2].sum(axis=1)  # the counts of the classes come first
    assert records.tolist() == [(groups == "a").sum(), (groups == "b").sum()]
    model = FederatedNB(1.0, **DECLARED).fit(X, y, groups=groups)
    assert model.promise_.members == 2 and model.promise_.uncovered == ("which nodes there are",)


# ---- more records --------------------------------------------------------------------------------


def test_the_update_of_a_new_node_is_added_to_the_others(world):
    (X, y), (X_new, y_new) = world
    exact = FederatedNB(None, nodes=3, **DECLARED).fit(X, y).add_node(X_new, y_new)
    pooled = FederatedNB(None, nodes=1, **DECLARED).fit(pd.concat([X, X_new]), [*y, *y_new])
    assert (exact.updates_.sum(axis=0) == pooled.updates_[0]).all()
    np.testing.assert_array_equal(exact.predict_proba(X), pooled.predict_proba(X))
    model = FederatedNB(1.0, nodes=3, **DECLARED).fit(X, y)
    before = model.updates_
    model.add_node(X_new, y_new)
    assert (model.updates_[:3] == before).all() and len(model.updates_) == 4
    assert (model.promise_.eps, model.promise_.members, model.promise_.releases) == (1.0, 4, 1)


def test_no_node_is_added_where_its_noise_would_be_a_share(world):
    (X, y), _ = world
    model = FederatedNB(1.0, noise="polya", **DECLARED).fit(X, y)
    with pytest.raises(ValueError, match="noise must be laplace or gaussian to add a node"):
        model.add_node(X, y)


@pytest.mark.parametrize(
    ("fitted", "changed"),
    [
        ({"epsilon": None}, {"epsilon": 1.0}),
        ({"epsilon": 50.0}, {"epsilon": 0.1}),
        ({"noise": "polya"}, {"noise": "laplace"}),
        ({"noise": "gaussian", "delta": 0.1}, {"delta": 1e-6}),
    ],
)
def test_no_node_is_added_under_a_promise_that_the_older_updates_do_not_keep(
    world, fitted, changed
):
    (X, y), (X_new, y_new) = world
    model = FederatedNB(**fitted, **DECLARED).fit(X, y)
    promised, (name,) = model.promise_, changed
    with pytest.raises(ValueError, match=f"{name} must be that of fit"):
        model.set_params(**changed).add_node(X_new, y_new)
    assert model.promise_ == promised and len(model.updates_) == (1 if "noise" in changed else 10)


def test_local_reports_stream(world):
    (X, y), (X_new, y_new) = world
    model = LocalNB(20.0, missing=True, **DECLARED)
    model.partial_fit(X, y).partial_fit(X_new, y_new, classes=["low", "high"])
    assert model.aggregator_.people == 4000 and model.score(X_new, y_new) > 0.8
    model.aggregator_.update(Client(model.plan_).perturb({"age": 30, "class": "low"}))
    assert model.aggregator_.people == 4001
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, y, classes=["low", "middle", "high"])


def test_reports_of_too_few_people_are_kept_until_more_come():
    model = LocalNB(5.0, bounds=(0, 1))
    with pytest.raises(ValueError, match=r"nobody has answered .* fit more people or fewer col"):
        model.partial_fit([[0.5]], [1], classes=[0, 1])
    model.partial_fit([[0.1], [0.9]] * 50, [0, 1] * 50)  # nobody answers: a chance of 2^-99
    assert model.aggregator_.people == 101 and model.promise_.uncovered == (
        "how many people report",
    )


# ---- what is promised ----------------------------------------------------------------------------


def test_the_paper_is_not_private(world):
    (X, y), _ = world
    with pytest.warns(NotPrivateWarning, match="not private"):
        model = FederatedNB(100.0, sensitivity="paper", **DECLARED).fit(X, y)
    assert model.promise_ is None
    assert model.model_.theta_["age"] == pytest.approx([46, 35], abs=3), "in the order of classes_"
    assert model.columns_.schema.numerics["age"].low == -90


def test_shares_of_noise_are_kept_as_their_sum(world):
    (X, y), _ = world
    model = FederatedNB(1.0, noise="polya", **DECLARED).fit(X, y)
    assert len(model.updates_) == 1 and model.promise_.members == 10
    assert model.promise_.copies == pytest.approx(1.0)


def test_without_noise_nothing_is_promised(world):
    (X, y), _ = world
    assert FederatedNB(None).fit(X, y).promise_ is None
    assert GossipNB(None).fit(X, y).promise_ is None
