"""`BayesianNetworkClassifier`: scikit-learn's checks and tools, and the same network everywhere."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, dok_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from vertibayes import (
    Constraints,
    PlainCounter,
    Rule,
    SecureCounter,
    SiteData,
    federate,
    open_study,
)
from vertibayes.dag import Structure
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes.sklearn import BayesianNetworkClassifier
from vertibayes_protocols.errors import DataError

ALGORITHMS = ["hybrid", "hill_climbing", "tabu", "pc", "chow_liu", "tan", "exact"]


def people(records, seed, *, missing=0.0):
    """Return invented people: numbers, strings, bools, a categorical dtype, and who is ill."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, records)
    smoker = generator.random(records) < 0.4
    weight = generator.normal(75, 12, records).round(1)
    cough = generator.random(records) < np.where(smoker, 0.6, 0.2)
    ill = generator.random(records) < 1 / (1 + np.exp((65 - age) / 8 - 2.0 * smoker + 0.5))
    X = pd.DataFrame(
        {
            "age": age.astype(float),
            "smoker": smoker,
            "cough": np.where(cough, "often", "never"),
            "weight": weight,
            "ward": pd.Categorical(generator.choice(["a", "b"], records), ["b", "a", "c"]),
        }
    )
    holes = generator.random(X.shape) < missing
    X = X.astype({"smoker": object}).mask(holes) if missing else X
    return X, pd.Series(np.where(ill, "yes", "no"), name="ill")


@pytest.fixture(scope="module")
def world():
    """Return records and further records."""
    return people(1500, 1), people(500, 2)


def at_sites(X, y):
    """Return the columns of records at three sites, in the order of the columns."""
    return {
        "gp": X[["age", "smoker"]],
        "lung": X[["cough", "weight"]],
        "ward": X[["ward"]].assign(**{y.name: y}),
    }


def same(one, other):
    """Whether two networks are equal, bit for bit."""
    return (
        one.structure == other.structure
        and {n: v.states for n, v in one.variables.items()}
        == {n: v.states for n, v in other.variables.items()}
        and all(np.array_equal(one.cpts[n], other.cpts[n]) for n in one.cpts)
    )


# ---- scikit-learn's checks -----------------------------------------------------------------------


@parametrize_with_checks(
    [
        BayesianNetworkClassifier(),
        BayesianNetworkClassifier("tan", binning="mdlp"),
        BayesianNetworkClassifier("chow_liu", missing="state"),
    ]
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


# ---- the same network, wherever the columns lie --------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"algorithm": "tan", "binning": "mdlp"},
        {"missing": "state", "algorithm": "chow_liu"},
        {"missing": "available", "max_parents": 1},
    ],
)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_a_federation_learns_the_network_of_pooled_records(given, missing):
    (X, y), (X_new, _) = people(400, 3, missing=missing), people(100, 4, missing=missing)
    pooled = BayesianNetworkClassifier(**given).fit(X, y)
    apart = BayesianNetworkClassifier(**given).fit(at_sites(X, y), "ill")
    assert same(apart.network_, pooled.network_) and pooled.network_.structure.edges
    np.testing.assert_array_equal(apart.predict_proba(X_new), pooled.predict_proba(X_new))
    assert apart.classes_.tolist() == pooled.classes_.tolist() == ["no", "yes"]
    assert pooled.ledger_ is None and apart.ledger_.cells > 100
    assert list(apart.feature_names_in_) == list(X) and apart.n_features_in_ == 5


def test_the_cuts_of_mdlp_are_revealed_first(world):
    (X, y), _ = world
    model = BayesianNetworkClassifier("tan", binning="mdlp").fit(at_sites(X, y), "ill")
    first = model.ledger_.tables[0]
    assert set(first.variables) == {"ill", "age"} and first.cells > 2 * 40
    bins = {n: len(model.network_.variables[n].states) for n in ("age", "weight")}
    assert bins["age"] in range(2, 8) and bins["weight"] == 10, "MDLP does not cut the weight"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_is_the_one_of_learn(world, algorithm):
    (X, y), (X_new, _) = world
    most = 2 if algorithm != "chow_liu" else 1
    model = BayesianNetworkClassifier(algorithm, max_parents=most, temperature=1).fit(X, y)
    counter = PlainCounter(SiteData.from_frame(X.assign(ill=y)))
    of_class = {"class_variable": "ill"} if algorithm == "tan" else {}
    options = Options(algorithm, max_parents=model.max_parents, **of_class)
    assert same(model.network_, learn(counter, options).network)
    expected = model.network_.predict_proba(X_new, "ill")
    np.testing.assert_array_equal(model.predict_proba(X_new), expected.to_numpy())
    assert model.predict(X_new).tolist() == model.network_.predict(X_new, "ill").tolist()


def test_k2_takes_an_ordering_and_a_structure_needs_no_search(world):
    (X, y), _ = world
    order = ["ill", *X.columns]
    k2 = BayesianNetworkClassifier("k2", ordering=order).fit(X, y)
    places = {name: place for place, name in enumerate(order)}
    assert all(places[parent] < places[child] for parent, child in k2.network_.structure.edges)
    naive = Structure({"ill": (), **dict.fromkeys(X.columns, ("ill",))})
    model = BayesianNetworkClassifier(structure=naive).fit(X, y)
    assert model.network_.structure == naive and model.learned_.algorithm is None


def test_constraints_hold(world):
    (X, y), _ = world
    rules = Constraints(required=(("weight", "ill"),), forbidden=(("smoker", "ill"),))
    edges = BayesianNetworkClassifier(constraints=rules).fit(X, y).network_.structure.edges
    assert ("weight", "ill") in edges and ("smoker", "ill") not in edges


def test_a_federation_a_study_and_a_counter_can_be_fitted_to(world):
    (X, y), (X_new, _) = world
    pooled = BayesianNetworkClassifier(temperature=1).fit(X, y)
    data = SiteData.from_frame(X.assign(ill=y))
    sites = {"a": data.take(["age", "smoker", "cough"]), "b": data.take(["weight", "ward", "ill"])}
    with federate(sites) as federation:
        by_federation = BayesianNetworkClassifier().fit(federation, "ill")
    with federate(sites) as federation:
        study = open_study(federation.session, federation.sites, federation.dealer)
        by_study = BayesianNetworkClassifier().fit(study, "ill")
    with federate(sites) as federation:
        by_counter = BayesianNetworkClassifier().fit(SecureCounter.of(federation), "ill")
    for model in (
        by_federation,
        by_study,
        by_counter,
        BayesianNetworkClassifier().fit(PlainCounter(data), "ill"),
    ):
        assert same(model.network_, pooled.network_)
        np.testing.assert_array_equal(model.predict_proba(X_new), pooled.predict_proba(X_new))
    assert by_study.ledger_ is study.ledger


def test_a_rule_releases_the_learned_tables_alone(world):
    (X, y), (X_new, y_new) = world
    model = BayesianNetworkClassifier(release=Rule("cut", fewest=5)).fit(at_sites(X, y), "ill")
    families = {frozenset(family.members) for family in model.network_.structure.families}
    assert {frozenset(table.variables) for table in model.ledger_.tables} <= families
    assert {table.rule for table in model.ledger_.tables} == {"counts below 5 as 0"}
    assert model.score(X_new, y_new) > 0.7
    with pytest.raises(ValueError, match="release='cut' needs sites"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="binning='mdlp' reveals exact tables"):
        model.set_params(binning="mdlp").fit(at_sites(X, y), "ill")


# ---- tools of scikit-learn -----------------------------------------------------------------------


def test_pipelines_searches_and_cross_validation_take_it(world):
    (X, y), _ = world
    numbers = make_column_transformer(
        (StandardScaler(), ["age", "weight"]), remainder="passthrough"
    )
    numbers.set_output(transform="pandas")
    pipeline = make_pipeline(numbers, BayesianNetworkClassifier())
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.7 > (y == "no").mean()
    grid = {"algorithm": ["tan", "chow_liu"], "pseudo_count": [0.5, 5.0], "bins": [0.2]}
    search = GridSearchCV(BayesianNetworkClassifier(), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.7 and len(search.cv_results_["params"]) == 4


def test_a_clone_has_the_parameters_and_a_pickle_the_network(world):
    (X, y), (X_new, _) = world
    model = BayesianNetworkClassifier("tan", constraints=Constraints(roots=("ill",))).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "network_")
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_proba(X_new), model.predict_proba(X_new))


@pytest.mark.parametrize("labels", [[0, 1], [True, False], ["well", "ill"], [2.0, 5.0]])
def test_classes_come_back_as_they_were_given(world, labels):
    (X, y), (X_new, _) = world
    given = np.where(y == "yes", *labels)
    model = BayesianNetworkClassifier("chow_liu").fit(X.to_numpy(object), given)
    predicted = model.predict(X_new.to_numpy(object))
    assert predicted.dtype == given.dtype and set(predicted) == set(labels)
    assert model.target_ == "class" and not hasattr(model, "feature_names_in_")


def test_a_class_that_a_fold_does_not_have_can_be_declared(world):
    (X, y), _ = world
    rare = y.where(y.index != 0, "perhaps")
    classes = sorted(set(rare))
    model = BayesianNetworkClassifier("chow_liu", classes=classes)
    fitted = model.fit(X[1:], rare[1:])
    assert fitted.predict_proba(X).shape == (len(X), 3)
    with pytest.raises(ValueError, match="y has the class 'perhaps', which is not one of the"):
        BayesianNetworkClassifier(classes=["no", "yes"]).fit(X, rare)


# ---- records that differ from those of fit -------------------------------------------------------


def test_an_unseen_value_is_missing_and_warned_of(world):
    (X, y), (X_new, _) = world
    naive = Structure({"ill": (), **dict.fromkeys(X.columns, ("ill",))})
    model = BayesianNetworkClassifier(structure=naive).fit(X, y)
    strange = X_new.assign(cough=X_new["cough"].where(X_new.index > 2, "hourly"))
    absent = X_new.assign(cough=X_new["cough"].where(X_new.index > 2, None))
    with pytest.warns(UserWarning, match=r"taken as missing: cough: 'hourly' \(3 records\)"):
        probabilities = model.predict_proba(strange)
    np.testing.assert_array_equal(probabilities, model.predict_proba(absent))
    assert (probabilities != model.predict_proba(X_new))[:3].any()


@pytest.mark.parametrize("whole", [False, True])
def test_numbers_meet_the_bins_of_frequent_numbers(whole):
    generator = np.random.default_rng(8)
    numbers = np.where(generator.random(400) < 0.4, 0, generator.integers(-60, 60, 400) * 7)
    X, y = pd.DataFrame({"x": numbers}), generator.integers(2, size=400)
    model = BayesianNetworkClassifier("chow_liu", bins=0.2, temperature=1)
    model.fit(X if whole else X / 4, y)
    assert "eq_0" in model.network_.variables["x"].states
    new = pd.DataFrame({"x": np.arange(-500, 500)})
    new = new if whole else pd.concat([new / 4, pd.DataFrame({"x": [-0.0, np.nan]})])
    np.testing.assert_array_equal(
        model.predict_proba(new), model.network_.predict_proba(new, "class").to_numpy()
    )


@pytest.mark.parametrize("scale", [1.0, 1e-9, 0.1, 1e17])
def test_numbers_meet_the_bins_of_their_texts(scale):
    generator = np.random.default_rng(7)
    numbers = generator.normal(size=400).round(3) * scale
    X, y = pd.DataFrame({"x": numbers}), np.where(generator.random(400) < 0.5, "a", "b")
    model = BayesianNetworkClassifier("chow_liu", temperature=1).fit(X, y)
    new = pd.DataFrame({"x": np.concatenate([numbers, numbers.repeat(2) * 1.001, [np.nan]])})
    new["x"] = new["x"].mask(new.index % 7 == 0, new["x"] / 3)
    np.testing.assert_array_equal(
        model.predict_proba(new), model.network_.predict_proba(new, "class").to_numpy()
    )


def test_columns_that_cannot_be_variables_are_left_out_with_a_reason(world):
    (X, y), (X_new, _) = world
    model = BayesianNetworkClassifier()
    more = X.assign(constant=1, number=np.arange(len(X)))
    with pytest.warns(UserWarning, match=r"left out of the network: constant: one value"):
        model.fit(more, y)
    assert set(model.left_out_) == {"constant", "number"} and model.n_features_in_ == 7
    assert 'use "number" as the index' in model.left_out_["number"]
    new = X_new.assign(constant=2, number=0)
    np.testing.assert_array_equal(
        model.predict_proba(new), BayesianNetworkClassifier().fit(X, y).predict_proba(X_new)
    )


def test_only_useless_columns_leave_the_shares_of_the_classes():
    X, y = pd.DataFrame({"same": [1] * 30}), [0] * 20 + [1] * 10
    with pytest.warns(UserWarning, match="left out"):
        model = BayesianNetworkClassifier(pseudo_count=0).fit(X, y)
    assert model.predict_proba(X)[0] == pytest.approx([2 / 3, 1 / 3])


@pytest.mark.parametrize("sparse", [csr_matrix, dok_matrix])
def test_sparse_records_are_refused(sparse):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        BayesianNetworkClassifier().fit(sparse(np.eye(40)), [0, 1] * 20)


def frames():
    X, y = people(60, 5)
    return at_sites(X, y)


def counter_of(sites):
    return PlainCounter(SiteData.from_frame(sites["ward"]))


@pytest.mark.parametrize(
    ("given", "y", "error", "message"),
    [
        (
            lambda f: f | {"ward": f["ward"][::-1]},
            "ill",
            ValueError,
            "gp and ward have different ind",
        ),
        (
            lambda f: f | {"ward": f["ward"].assign(age=1)},
            "ill",
            ValueError,
            "two sites have a column na",
        ),
        (
            lambda f: f | {"ward": [1, 2]},
            "ill",
            TypeError,
            "a data frame for each site, got 'ward': list",
        ),
        (lambda f: {}, "ill", TypeError, "a data frame for each site, got no site"),
        (
            lambda f: f,
            "sick",
            ValueError,
            "y must be the name of the column of the class, got 'sick'",
        ),
        (
            lambda f: f,
            np.array(["yes"] * 60),
            ValueError,
            "class, got a value of type ndarray; the columns are",
        ),
        (
            counter_of,
            "sick",
            ValueError,
            "y must be the name of a variable, got 'sick'; there are ward",
        ),
        (lambda f: f["gp"], ["yes"] * 60, ValueError, "y of one class cannot be learned"),
        (lambda f: f["gp"], [1, 2], ValueError, "inconsistent numbers of samples"),
        (
            lambda f: f["gp"],
            ["", "b"] * 30,
            ValueError,
            "the classes must be different texts, got '', 'b'",
        ),
    ],
)
def test_what_cannot_be_fitted_to_is_refused(given, y, error, message):
    with pytest.raises(error, match=message):
        BayesianNetworkClassifier().fit(given(frames()), y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algorithm": "magic"}, "algorithm"),
        (
            {"binning": "magic"},
            "binning must be one of equal-frequency, equal-width, intervals, mdlp, ",
        ),
        ({"bins": 0.9}, "bins must be a share of the records, above 0 and at most 0.5"),
        ({"pseudo_count": -1}, "pseudo_count"),
        ({"missing": "magic"}, "missing"),
        ({"ordering": ["age"]}, "`ordering` needs `algorithm` k2"),
        ({"structure": Structure({"ill": ()})}, "the structure lacks variables: age"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(world, parameters, message):
    (X, y), _ = world
    with pytest.raises(ValueError, match=message):
        BayesianNetworkClassifier(**parameters).fit(X, y)


def test_columns_that_cannot_be_read_are_refused(world):
    (X, y), _ = world
    with pytest.raises(DataError, match="the column 'z' has complex numbers"):
        BayesianNetworkClassifier().fit(X.assign(z=1j), y)
    model = BayesianNetworkClassifier().fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[["age", "smoker"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
