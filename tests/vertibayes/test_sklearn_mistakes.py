"""The estimators of `vertibayes.sklearn`: what they show beside the noise; messy data frames."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vertibayes.sklearn.nodes
from vertibayes.naive_bayes.federated import exact_updates
from vertibayes.sklearn import FederatedNB, GossipNB, LocalNB
from vertibayes.sklearn.columns import Columns
from vertibayes_protocols.accounting import Accounting, Privacy

AGES = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0] * 5})
JOBS = pd.DataFrame({"job": ["clerk", "miller"] * 10})
Y = np.array([0, 0, 1, 1] * 5)
BOUNDS = {"age": (0, 100)}


def federated(**parameters):
    return FederatedNB(**({"epsilon": 1.0, "bounds": (0, 100)} | parameters))


# ---- what fit shows beside the noise -------------------------------------------------------------

FRAME = pd.concat([AGES, JOBS], axis=1)
NEW = pd.DataFrame({"age": [77.0], "job": ["clerk"]})
DECLARED = {
    "bounds": BOUNDS,
    "categories": {"job": ["clerk", "miller"]},
    "classes": [0, 1, 2],
}
NOISY = {"model_", "models_", "updates_"}
SHOWN = {"classes_", "columns_", "feature_names_in_", "n_features_in_", "promise_"}


def neighbours(estimator, label=2, **groups):
    """Return the estimator fitted to records, and to one record more."""
    more, labels = pd.concat([FRAME, NEW], ignore_index=True), [*Y, label]
    fitted = []
    for X, y in ((FRAME, Y), (more, labels)):
        given = {name: values[: len(X)] for name, values in groups.items()}
        fitted.append(type(estimator)(**estimator.get_params()).fit(X, y, **given))
    return fitted


def shown(model, left_out):
    return {name: repr(value) for name, value in vars(model).items() if name not in left_out}


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "polya"])
@pytest.mark.parametrize("kind", [FederatedNB, GossipNB])
def test_one_record_more_changes_nothing_but_noisy_attributes(kind, noise):
    if kind is GossipNB and noise == "polya":
        pytest.skip("gossip needs whole copies of noise")
    estimator = kind(1.0, noise=noise, random_state=1, **DECLARED)
    fewer, more = neighbours(estimator)
    assert {name for name in vars(fewer) if name.endswith("_")} - NOISY == SHOWN
    assert shown(fewer, NOISY) == shown(more, NOISY)
    assert fewer.updates_.shape == more.updates_.shape
    assert fewer.promise_.uncovered == ()


def test_one_record_more_changes_the_number_of_reports_which_the_promise_names():
    estimator = LocalNB(5.0, reports="all", **DECLARED)
    fewer, more = neighbours(estimator)
    noisy = {"model_", "aggregator_"}
    assert {name for name in vars(fewer) if name.endswith("_")} - noisy == SHOWN | {"plan_"}
    assert shown(fewer, noisy) == shown(more, noisy)
    assert (fewer.aggregator_.people, more.aggregator_.people) == (20, 21)
    assert fewer.promise_.uncovered == ("how many people report",)


@pytest.mark.parametrize("kind", [FederatedNB, GossipNB])
def test_what_one_record_more_does_change_is_named(kind):
    fewer, more = neighbours(kind(1.0, **DECLARED | {"classes": None}))
    assert len(fewer.classes_) < len(more.classes_)
    assert fewer.promise_.uncovered == ("which classes there are",)
    fewer, more = neighbours(kind(1.0, **DECLARED), groups=["a"] * 20 + ["b"])
    assert len(fewer.updates_) < len(more.updates_)
    assert fewer.promise_.uncovered == ("which nodes there are",)


def test_values_that_only_a_dtype_declares_are_named():
    model = federated(classes=[0, 1]).fit(JOBS.astype("category"), Y)
    assert model.promise_.uncovered == ("which values the dtypes of job list",)
    assert federated(classes=[0, 1]).fit(AGES > 30, Y).promise_.uncovered == ()


def without_noise(schema, held, privacy, *, sensitivity):
    return exact_updates(schema, held)


def test_one_record_more_changes_the_update_of_one_node_by_the_sensitivity(monkeypatch):
    monkeypatch.setattr(vertibayes.sklearn.nodes, "local_updates", without_noise)
    fewer, more = neighbours(FederatedNB(1.0, random_state=1, nodes=4, **DECLARED))
    changed = (fewer.updates_ != more.updates_).any(axis=1)
    assert changed.sum() == 1
    change = abs(more.updates_ - fewer.updates_)[changed][0]
    parts = Accounting(fewer.columns_.schema, Privacy(eps=1.0)).parts
    ends = np.cumsum([part.cells for part in parts])[:-1]
    for part, values in zip(parts, np.split(change, ends), strict=True):
        assert np.count_nonzero(values) <= 1 and values.max() <= part.Delta


# ---- mistakes ------------------------------------------------------------------------------------

MISTAKES = {
    "epsilon == 0, must be > 0": lambda: federated(epsilon=0).fit(AGES, Y),
    "epsilon == -1, must be > 0": lambda: federated(epsilon=-1).fit(AGES, Y),
    "epsilon == 1000000000.0, must be <= 1000000": lambda: federated(epsilon=1e9).fit(AGES, Y),
    "eps = nan: it must be": lambda: federated(epsilon=np.nan).fit(AGES, Y),
    "got None: use FederatedNB(None)": lambda: LocalNB(None, bounds=BOUNDS).fit(AGES, Y),
    "age: declare the bounds of its numbers": lambda: federated(bounds=None).fit(AGES, Y),
    "age: bounds must be finite and ascend, got 9.0 to": lambda: federated(bounds=(9, 1)).fit(
        AGES, Y
    ),
    "ascend, got 0.0 to inf": lambda: federated(bounds=(0, np.inf)).fit(AGES, Y),
    "age: bounds must be a pair of numbers, got 9": lambda: federated(bounds={"age": 9}).fit(
        AGES, Y
    ),
    "X has no column 'agee'; its columns are 'age'": lambda: federated(bounds={"agee": (0, 1)}).fit(
        AGES, Y
    ),
    "job: declare bounds or categories, not both": lambda: federated(
        bounds={"job": (0, 1)}, categories={"job": ["a"]}
    ).fit(JOBS, Y),
    "job: declare the values of the column": lambda: federated().fit(JOBS, Y),
    "the value 'miller' was never declared; the declared values are 'clerk'; declare": lambda: (
        federated(categories={"job": ["clerk"]}).fit(JOBS, Y)
    ),
    "job: two values are equal": lambda: federated(categories={"job": [1, "1"]}).fit(JOBS, Y),
    "job: a missing value must not be declared": lambda: federated(
        categories={"job": ["clerk", None]}
    ).fit(JOBS, Y),
    "job: a categorical column needs at least one value": lambda: federated(epsilon=None).fit(
        JOBS.mask(JOBS == JOBS), Y
    ),
    "got the classes [0]": lambda: federated().fit(AGES, 0 * Y),
    "got the classes [1]": lambda: federated().fit(AGES[:1], [1]),
    "got the classes []": lambda: federated(classes=[]).fit(AGES, Y),
    "y contains NaN": lambda: federated().fit(AGES, np.where(Y, 1.0, np.nan)),
    "y contains NaN: each": lambda: federated().fit(AGES, [None, "a", "b", "b"] * 5),
    "class: the value 1 was never declared": lambda: federated(classes=[0, 2]).fit(AGES, Y),
    "inconsistent numbers of samples": lambda: federated().fit(AGES, Y[1:]),
    "X must have one record or more": lambda: federated(classes=[0, 1]).fit(AGES[:0], Y[:0]),
    "X must have at least one column": lambda: federated().fit(AGES[[]], Y),
    "nodes == 0, must be >= 1": lambda: federated(nodes=0).fit(AGES, Y),
    "for each of the 20 records, got 19": lambda: federated().fit(AGES, Y, groups=Y[1:]),
    "got 20 with missing values": lambda: federated().fit(AGES, Y, groups=[np.nan, 1] * 10),
    "age: numbers must be finite, got infinity": lambda: federated().fit(AGES * np.inf, Y),
    "age: a value is not a number": lambda: federated(bounds=BOUNDS).fit(
        AGES.astype(object).replace(20.0, "twenty"), Y
    ),
    "columns of dtype datetime64": lambda: federated(epsilon=None).fit(
        AGES.assign(day=pd.Timestamp("2020-01-01")), Y
    ),
    "day: columns of dtype": lambda: federated(bounds={"day": (0, 1)}).fit(
        pd.DataFrame({"day": pd.date_range("2020", periods=20, tz="UTC")}), Y
    ),
    "age: columns of dtype complex": lambda: federated().fit(AGES * 1j, Y),
    "lists: a value is not a category": lambda: federated(epsilon=None).fit(
        pd.DataFrame({"lists": [[1], [2]] * 10}), Y
    ),
    "could not convert string to float": lambda: federated().fit(JOBS.to_numpy(object), Y),
    "Delta / sqrt(2 rho) must be from": lambda: federated(epsilon=200, noise="gaussian").fit(
        AGES, Y
    ),
    "noise must be laplace or gaussian (each": lambda: GossipNB(noise="polya").fit(AGES, Y),
    "iterations == 0, must be >= 1": lambda: GossipNB(iterations=0, bounds=BOUNDS).fit(AGES, Y),
    "adds_up_to == 0, must be >= 1": lambda: GossipNB(adds_up_to=0, bounds=BOUNDS).fit(AGES, Y),
    "node == 10, must be <= 9": lambda: GossipNB(node=10, bounds=BOUNDS).fit(AGES, Y),
    "X contains NaN: age has missing values; set missing=True": lambda: LocalNB(bounds=BOUNDS).fit(
        AGES.mask(AGES > 30), Y
    ),
    "1 people answered one of 2 questions each": lambda: LocalNB(bounds=BOUNDS, classes=[0, 1]).fit(
        AGES[:1], Y[:1]
    ),
}


def test_an_epsilon_that_is_not_a_number_is_named():
    with pytest.raises(TypeError, match="epsilon must be an instance of"):
        federated(epsilon="1").fit(AGES, Y)


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_one_clear_error(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MISTAKES[message]()


def test_columns_of_equal_names_are_refused():
    both = pd.concat([AGES, AGES], axis=1)
    with pytest.raises(ValueError, match=r"unique column names|two columns are named 'age'"):
        federated().fit(both, Y)
    with pytest.raises(ValueError, match="two columns are named '1': rename one"):
        Columns.of(
            both.set_axis([1, "1"], axis=1), [0, 1], bounds=None, categories=None, private=False
        )


def test_sparse_input_is_refused():
    with pytest.raises(TypeError, match="dense data is required"):
        federated().fit(scipy.sparse.csr_array(AGES.to_numpy()), Y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (FRAME[["job", "age"]], "must be in the same order"),
        (FRAME[["age"]], "yet now missing"),
        (FRAME.assign(sex="f"), "unseen at fit time"),
        (FRAME.replace("clerk", "farmer"), "job: the value 'farmer' was never declared"),
    ],
)
def test_other_columns_and_unseen_categories_are_not_predicted(X, message):
    with pytest.raises(ValueError, match=message):
        FederatedNB(1.0, **DECLARED).fit(FRAME, Y).predict(X)


def test_columns_named_by_numbers_are_looked_up_by_name():
    X = AGES.assign(b=1.0).set_axis([7, 3], axis=1)
    model = federated(epsilon=None).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X[[3, 7]]), model.predict_proba(X))
    with pytest.raises(ValueError, match="X has no column 3, which the model was fitted with"):
        model.predict(X.set_axis([7, 4], axis=1))


@pytest.mark.parametrize(
    "X",
    [
        AGES * np.nan,
        AGES.astype("Int64").mask(AGES > 30),
        AGES.astype(pd.SparseDtype(float)),
        pd.DataFrame({"mixed": pd.Series([1, "one", 2.5, None] * 5, dtype=object)}),
        pd.DataFrame({"age": pd.cut(AGES["age"], 3)}),
        AGES > 30,
        AGES.set_axis(["class"], axis=1),
    ],
    ids=["all missing", "Int64", "sparse", "mixed", "intervals", "bools", "named class"],
)
@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_messy_columns_have_a_sensible_model(X, epsilon):
    categories = {"mixed": [1, "one", 2.5]} if "mixed" in X else None
    model = federated(epsilon=epsilon, categories=categories).fit(X, Y)
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert np.allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("nodes", [1, 1000])
def test_one_node_and_more_nodes_than_records(nodes):
    model = federated(nodes=nodes, epsilon=None).fit(AGES, Y)
    assert len(model.updates_) == nodes and model.updates_[:, :2].sum() == 20
    assert model.score(AGES, Y) == 1.0
    assert federated(nodes=nodes).fit(AGES, Y).promise_.members == nodes


def test_numbers_far_beyond_the_bounds_have_the_prior():
    model = federated().fit(AGES, Y)
    expected = np.exp(model.model_.class_log_prior_)
    np.testing.assert_allclose(
        model.predict_proba(pd.DataFrame({"age": [1e300, -1e200]})), [expected] * 2
    )


# ---- any small frame -----------------------------------------------------------------------------

NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6))
WORDS = st.sampled_from(["a", "b", None])


@st.composite
def frames(draw):
    count = draw(st.integers(1, 8))
    columns = {
        "number": st.lists(NUMBERS, min_size=count, max_size=count),
        "word": st.lists(WORDS, min_size=count, max_size=count),
        "flag": st.lists(st.booleans(), min_size=count, max_size=count),
    }
    names = draw(st.lists(st.sampled_from([*columns]), min_size=1, unique=True))
    frame = pd.DataFrame({name: draw(columns[name]) for name in names})
    types = {"number": float, "word": object, "flag": bool}
    labels = draw(st.lists(st.sampled_from("xyz"), min_size=count, max_size=count))
    return frame.astype({name: types[name] for name in names}), labels


@st.composite
def estimators(draw, names):
    declared = {
        "epsilon": draw(st.sampled_from([0.001, 0.03, 1.0, 30.0, 100.0])),
        "bounds": draw(st.sampled_from([(-1, 1), (5, 1e5), (-1e100, 1e90)])),
        "categories": {"word": ["b", "a"]} if "word" in names else None,
        "classes": ["x", "y", "z"],
        "alpha": draw(st.sampled_from([0.0, 1.0])),
    }
    kind = draw(st.sampled_from([FederatedNB, GossipNB, LocalNB]))
    if kind is LocalNB:
        bins, approach = draw(st.sampled_from([None, 4])), draw(st.sampled_from([1, 2, 3]))
        return LocalNB(**declared, missing=True, reports="all", bins=bins, approach=approach)
    noises = ["laplace", "gaussian"] + (["polya"] if kind is FederatedNB else [])
    noise = draw(st.sampled_from(noises))
    if noise == "gaussian":  # of larger eps the noise is refused as too small
        declared["epsilon"] = min(declared["epsilon"], 30.0)
    return kind(**declared, nodes=draw(st.integers(1, 4)), noise=noise)


@given(st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_probabilities_are_probabilities_whatever_the_noise(data):
    X, y = data.draw(frames())
    model = data.draw(estimators(list(X))).fit(X, y)
    for probabilities in (model.predict_proba(X), model.predict_proba(X.iloc[::-1])):
        assert np.isfinite(probabilities).all() and (probabilities >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert set(model.predict(X)) <= {"x", "y", "z"}
