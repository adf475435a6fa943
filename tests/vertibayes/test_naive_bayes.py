"""Naive Bayes from sums: scikit-learn's, whoever adds them up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from vertibayes.bif import write_bif
from vertibayes.counting import PlainCounter
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import read_bif
from vertibayes.sampling import sample
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import (
    Counts,
    LocalData,
    Moments,
    Numeric,
    Part,
    apart,
    measure,
    parts,
)
from vertibayes_protocols.variables import Family, Variable

BITS = ("0", "1")


def states(count):
    return tuple(f"s{i}" for i in range(count))


@st.composite
def tables(draw, missing=False):
    """A schema of categorical features, and records."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(2, 5), min_size=1, max_size=4))
    target = Variable("y", states(draw(st.integers(2, 4))))
    features = {f"x{i}": Variable(f"x{i}", states(size)) for i, size in enumerate(sizes)}
    n = draw(st.integers(len(target.states), 60))
    codes = {f"x{i}": generator.integers(0, size + missing, n) for i, size in enumerate(sizes)}
    codes["y"] = np.append(
        np.arange(len(target.states)),
        generator.integers(0, len(target.states), n - len(target.states)),
    )
    schema = Schema(target, features)
    return schema, LocalData(schema.variables, codes)


@settings(max_examples=60, deadline=None)
@given(tables(), st.floats(0.1, 3))
def test_equals_scikit_learns_categorical(found, alpha):
    schema, data = found
    x = np.array([data.codes[n] for n in schema.categorical]).T
    least = [len(f.states) for f in schema.features.values()]
    theirs = CategoricalNB(alpha=alpha, min_categories=least).fit(x, data.codes["y"])
    ours = NaiveBayes(schema, alpha=alpha).fit(data)
    assert ours.class_log_prior_ == pytest.approx(theirs.class_log_prior_, abs=1e-12)
    for name, wanted in zip(schema.categorical, theirs.feature_log_prob_, strict=True):
        assert ours.feature_log_prob_[name] == pytest.approx(wanted, abs=1e-12)
    logs = theirs.predict_log_proba(x)
    assert ours.predict_log_proba(data) == pytest.approx(logs, abs=1e-9)
    predicted = [schema.target.states.index(state) for state in ours.predict(data)]
    chosen = np.take_along_axis(logs, np.array(predicted)[:, None], axis=1)[:, 0]
    assert chosen == pytest.approx(logs.max(axis=1), abs=1e-9)  # of equal classes, either


def test_numbers_equal_scikit_learns_gaussian_up_to_the_grid():
    generator = np.random.default_rng(1)
    y = generator.integers(0, 3, 500)
    x = generator.normal(y[:, None] * [1.0, -2.0], [1.0, 0.5])
    schema = Schema(
        Variable("y", states(3)), {"a": Numeric("a", -8, 12), "b": Numeric("b", -10, 8)}
    )
    data = LocalData(
        schema.variables, {"y": y}, {n: schema.features[n] for n in "ab"},
        {"a": x[:, 0], "b": x[:, 1]},
    )  # fmt: skip
    ours, theirs = NaiveBayes(schema).fit(data), GaussianNB().fit(x, y)
    for place, name in enumerate("ab"):
        assert ours.theta_[name] == pytest.approx(theirs.theta_[:, place], abs=1e-4)
        assert ours.var_[name] == pytest.approx(theirs.var_[:, place], rel=1e-4)
    assert ours.predict_proba(data) == pytest.approx(theirs.predict_proba(x), abs=1e-3)


@settings(max_examples=30, deadline=None)
@given(tables(missing=True), st.integers(1, 10))
def test_batches_give_the_model_of_all_at_once(found, batches):
    schema, data = found
    whole, parts = NaiveBayes(schema).fit(data), NaiveBayes(schema)
    for rows in np.array_split(np.arange(data.records), batches):
        parts.add_sums(schema.measure(data.rows(rows)))
    assert np.array_equal(whole.sums_, parts.sums_)
    assert np.array_equal(whole.predict_proba(data), parts.predict_proba(data))


def test_by_a_counter(alarm_network):
    data = sample(alarm_network, 500, seed=3)
    names = ["HYPOVOLEMIA", "CVP", "PCWP"]
    schema = Schema(data.variables[names[0]], {n: data.variables[n] for n in names[1:]})
    local = LocalData(schema.variables, {n: data.codes[n] for n in names})
    by_tables = NaiveBayes(schema).fit_counter(PlainCounter(data))
    assert np.array_equal(by_tables.sums_, NaiveBayes(schema).fit(local).sums_)


def test_noise_gives_no_nan_and_no_negative_probability():
    schema = Schema(Variable("y", states(2)), {"x": Variable("x", states(3))})
    data = LocalData(schema.variables, {"y": np.array([0, 1, 2]), "x": np.array([0, 3, 1])})
    for sums in ([3, -2, -1, 4, -5, -1, -2, -3], [0, 5, 0, 0, 0, 0, 0, 0]):
        model = NaiveBayes(schema, alpha=0).fit_sums(np.array(sums))
        found = model.predict_proba(data)
        assert (found >= 0).all() and found.sum(axis=1) == pytest.approx(1)
    with pytest.raises(ValueError, match="no class has a record"):
        NaiveBayes(schema).fit_sums(np.array([-1, 0, 1, 1, 1, 1, 1, 1]))


def test_as_a_network(alarm_network):
    schema = Schema(Variable("y", states(2)), {"x": Variable("x", states(3))})
    data = LocalData(schema.variables, {"y": np.array([0, 1, 1]), "x": np.array([0, 2, 1])})
    model = NaiveBayes(schema).fit(data)
    network = read_bif(write_bif(model.to_network()))
    assert network.structure.parents == {"y": (), "x": ("y",)}
    assert pytest.approx(np.exp(model.feature_log_prob_["x"])) == network.cpts["x"].T
    numbers = Schema(Variable("y", states(2)), {"z": Numeric("z", 0, 1)})
    with pytest.raises(ValueError, match="z is a number"):
        NaiveBayes(numbers).to_network()


def test_statistics_by_hand():
    y, z = Variable("y", states(2)), Numeric("z", 0, 1 << 20)
    data = LocalData({"y": y}, {"y": np.array([0, 1, 1, 2])}, {"z": z},
                     {"z": np.array([3.0, np.nan, 2e9, 5.0])})  # fmt: skip
    wanted = (Counts((Family("y"),)), Moments(("z",), "y"))
    values = measure(wanted, data)
    counts, (moments,) = apart(wanted, data.variables, values)
    assert counts[0].tolist() == [1, 2]
    assert moments.tolist() == [[1, 1], [3, 1 << 20], [9, 1 << 40]]
    with pytest.raises(ValueError, match="the values must have the shape"):
        apart(wanted, data.variables, values[:-1])


def test_centred_statistics_by_hand():
    y, z = Variable("y", states(2)), Numeric("z", -1, 3)
    data = LocalData({"y": y}, {"y": np.array([0, 1, 1, 0, 2])}, {"z": z},
                     {"z": np.array([3.0, np.nan, 2.0, -9.0, 1.0])})  # fmt: skip
    statistic = Moments(("z",), "y", centred=True)
    assert measure((statistic,), data).reshape(2, 2).tolist() == [[0, 1 << 10], [1 << 23, 1 << 20]]
    assert parts(statistic, data.variables) == [Part(2, 1 << 11), Part(2, 1 << 22)]
    assert parts(Counts((Family("y"),)), data.variables) == [Part(2, 1)]
    with pytest.raises(ValueError, match="z: noise needs centred moments"):
        parts(Moments(("z",), "y"), data.variables)


def test_a_model_of_centred_sums_is_that_of_the_moments_but_for_the_grid():
    generator = np.random.default_rng(3)
    y, z = Variable("y", states(2)), Numeric("z", -8, 12)
    codes = generator.integers(0, 2, 4000)
    data = LocalData({"y": y}, {"y": codes}, {"z": z},
                     {"z": generator.normal(codes * 3.0, 1.0)})  # fmt: skip
    exact, centred = (NaiveBayes(Schema(y, {"z": z}, c)).fit(data) for c in (False, True))
    assert centred.theta_["z"] == pytest.approx(exact.theta_["z"], abs=2e-4)
    assert centred.var_["z"] == pytest.approx(exact.var_["z"], rel=1e-3)


def test_noise_in_sums_never_leaves_the_bounds_or_a_count_below_the_floor():
    y, features = Variable("y", states(2)), {"z": Numeric("z", 0, 10)}
    schema = Schema(y, {"x": Variable("x", states(2)), **features}, centred=True)
    sums = np.array([-5.0, 3.5, -9, 2, 4, -1, 1e9, -1e9, -1e9, 1e9])
    model = NaiveBayes(schema, alpha=0, floor=1e-6).fit_sums(sums)
    assert model.class_count_.tolist() == [1e-6, 3.5]
    assert model.theta_["z"].tolist() == [5, 0], "the middle without records, the bound beyond it"
    assert (model.var_["z"] >= 1e-6 * 25).all() and (model.var_["z"] <= 25).all()
    assert all(np.isfinite(table).all() for table in model.feature_log_prob_.values())
    with pytest.raises(ValueError, match="must be finite numbers"):
        model.fit_sums(np.full(10, np.nan))


def test_the_least_variance_of_a_number_is_a_share_of_its_own_bounds():
    y, codes = Variable("y", BITS), np.array([0, 0, 0, 1, 1, 1])
    values = {"small": np.array([1.0, 2, 3, 4, 4, 4]), "large": np.array([9e8, 0, 0, 0, 0, 9e8])}
    numerics = {"small": Numeric("small", 0, 20), "large": Numeric("large", 0, 1e9)}
    data = LocalData({"y": y}, {"y": codes}, numerics, values)
    for centred in (False, True):
        model = NaiveBayes(Schema(y, numerics, centred)).fit(data)
        assert model.var_["small"] == pytest.approx([2 / 3, 1e-6 * 10**2], rel=1e-2)


@pytest.mark.parametrize(
    ("mean", "variance", "errors", "expected"),
    [
        (0.0, 0.01, (0.0, 0.1), 0.1),  # below its standard error: raised to it
        (0.0, 0.2, (0.0, 0.1), 0.2),  # above it: kept
        (0.5, 0.01, (0.03, 0.04), 0.05),  # of squares .04, of the squared mean 2 * .5 * .03
        (0.0, -0.3, (0.0, 0.1), 0.1),
        (0.0, 0.01, (0.0, 9.0), 1 / 3),  # never above that of numbers that are spread evenly
        (0.0, 0.6, (0.0, 9.0), 0.6),
        (0.0, 0.01, (0.0, 0.0), 0.01),
        (0.5, 0.01, None, 0.01),
        (0.0, -0.3, None, 1e-6),  # the least variance
    ],
)
def test_a_variance_below_its_standard_error_is_raised_to_it(mean, variance, errors, expected):
    schema = Schema(Variable("y", BITS), {"z": Numeric("z", 0, 10)}, centred=True)
    of_total, of_squares = errors or (0.0, 0.0)
    # Four and eight records; half the range is 5 units and 2^11 steps of the grid.
    count, total, squares = np.array([4.0, 8.0]), 2.0**11, 2.0**22
    sums = [count, mean * count * total, (variance + mean**2) * count * squares]
    own = [0 * count, of_total * count * total, of_squares * count * squares]
    own = None if errors is None else np.concatenate(own)
    model = NaiveBayes(schema).fit_sums(np.concatenate(sums), own)
    assert model.var_["z"] / 5**2 == pytest.approx(np.full(2, expected), rel=2e-3)
    assert model.theta_["z"] == pytest.approx(np.full(2, 5 + 5 * mean))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Schema(Variable("y", ("a",)), {}), "fewer than two classes"),
        (lambda: Schema(Variable("y", BITS), {"y": Variable("y", BITS)}), "a feature too"),
        (lambda: NaiveBayes(Schema(Variable("y", BITS), {}), alpha=-1), "alpha = -1"),
        (
            lambda: LocalData({"y": Variable("y", BITS)}, {"y": np.array([3])}),
            "codes must be between 0 and 2",
        ),
        (lambda: LocalData({"y": Variable("y", BITS)}, {}), "one column per variable"),
        (lambda: numbers(Numeric("z", 1, 1)), "bounds must be finite and ascend, got 1 to 1"),
        (lambda: numbers(Numeric("z", 0, 1), [np.inf]), "numbers must be finite"),
    ],
)
def test_what_cannot_be(make, reason):
    with pytest.raises((ValueError, DataError), match=reason):
        make()


def numbers(numeric, values=(0.5,)):
    return LocalData({}, {}, {"z": numeric}, {"z": np.array(values)})


def test_a_feature_in_other_states_is_refused():
    schema = Schema(Variable("y", BITS), {"x": Variable("x", BITS)})
    data = LocalData(schema.variables, {"y": np.array([0, 1]), "x": np.array([0, 1])})
    other = LocalData({"x": Variable("x", ("1", "0"))}, {"x": np.array([0])})
    model = NaiveBayes(schema).fit(data)
    with pytest.raises(ValueError, match="no feature 'x' in the model's states"):
        model.predict(other)


def test_a_number_whose_variance_is_below_its_standard_error_is_named():
    schema = Schema(Variable("y", BITS), {"z": Numeric("z", -1, 1)}, centred=True)
    sums = np.array([100, 100, 0, 0, 2**22, 50 * 2**22])  # variances .01 and .5
    errors = np.repeat([0.0, 0.0, 2.0 * 2**22], 2)  # a standard error of .02
    assert NaiveBayes(schema).fit_sums(sums, errors).swamped_ == ("z",)
    assert NaiveBayes(schema).fit_sums(sums, errors / 4).swamped_ == ()
    assert NaiveBayes(schema).fit_sums(sums).swamped_ == ()
