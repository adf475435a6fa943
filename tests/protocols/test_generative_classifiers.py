"""Classifiers of discrete Bayesian networks: their posterior is that of the whole network."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import EmpiricalCovariance
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from vertibayes.dag import Structure
from vertibayes.network import Network
from vertibayes_protocols.calibration.classifier import Scale, naive_bayes, network_classifier
from vertibayes_protocols.calibration.local import local_rc, posterior, update
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

SHAPES = {
    "a class with parents": ["ay", "by"],
    "children with further parents": ["yc", "ac", "yd", "cd"],
    "parents and children": ["ay", "by", "yc", "ac", "yd", "bd", "cd", "ab"],
    "a class without children": ["ay"],
    "a class alone": ["ab", "bc"],
    "the class last of the parents": ["ad", "bd", "yd"],
}
CARDS = {"y": 3, "a": 2, "b": 3, "c": 2, "d": 4}


def variables():
    return {n: Variable(n, tuple(f"{n}{i}" for i in range(k))) for n, k in CARDS.items()}


def drawn(records, seed=0, missing=0.0):
    """Codes of records; the features depend on the class."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, records)
    codes = {"y": y}
    for name in "abcd":
        free = generator.integers(0, CARDS[name], records)
        depends = generator.random(records) < 0.5
        codes[name] = np.where(depends, y % CARDS[name], free)
        codes[name][generator.random(records) < missing] = CARDS[name]
    return LocalData(variables(), codes)


def network_of(edges, data, alpha):
    """The project's network with smoothed CPTs, from plain counting."""
    structure = Structure.of([*CARDS], edges)
    cpts = {}
    for family in structure.families:
        table = np.full([CARDS[name] for name in family.members], alpha)
        if family == ("y", ()):
            table[:] = 0.0  # a class without parents is not smoothed
        np.add.at(table, tuple(data.codes[name] for name in family.members), 1.0)
        cpts[family.child] = table / table.sum(axis=0)
    return Network(structure, variables(), cpts)


def brute_force(network, data):
    """P(y | x) from the product of all CPTs, for each class."""
    joint = np.ones((data.records, 3))
    for y in range(3):
        codes = {**data.codes, "y": np.full(data.records, y)}
        for family in network.structure.families:
            joint[:, y] *= network.cpts[family.child][tuple(codes[n] for n in family.members)]
    return joint / joint.sum(axis=1, keepdims=True)


def classifier_of(edges, **options):
    families = Structure.of([*CARDS], edges).families
    return network_classifier("y", variables(), families, **options)


def sums(classifier, data):
    examples = classifier.examples(data)
    return np.array([examples.columns[examples.classes == y].sum(axis=0) for y in range(3)])


def predicted(classifier, statistics, data):
    return posterior(classifier.columns(data), classifier.weights(statistics).values)


@pytest.mark.parametrize("edges", SHAPES.values(), ids=SHAPES)
def test_the_posterior_is_that_of_the_whole_network(edges):
    data = drawn(400, 1)
    classifier, network = classifier_of(edges, alpha=0.5), network_of(edges, data, 0.5)
    ours = predicted(classifier, sums(classifier, data), data)
    assert ours == pytest.approx(brute_force(network, data), abs=1e-9)
    theirs = network.predict_proba(_site(data), "y").to_numpy()
    assert ours == pytest.approx(theirs, abs=1e-9)


def _site(data):
    from vertibayes_protocols.site.data import SiteData

    codes = {name: column.astype(np.uint8) for name, column in data.codes.items()}
    return SiteData(data.variables, codes)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_the_posterior_of_random_networks_is_that_of_the_whole_network(seed, draw):
    order = draw.draw(st.permutations([*CARDS]))
    pairs = [(u, v) for i, u in enumerate(order) for v in order[i + 1 :]]
    edges = draw.draw(st.lists(st.sampled_from(pairs), max_size=7, unique=True))
    data = drawn(200, seed)
    classifier, network = classifier_of(edges, alpha=1.0), network_of(edges, data, 1.0)
    ours = predicted(classifier, sums(classifier, data), data)
    assert ours == pytest.approx(brute_force(network, data), abs=1e-9)


def test_families_without_the_class_are_left_out():
    assert classifier_of(["ab", "bc"]).width == 1
    assert classifier_of(["yc", "ab", "ac"]).width == 1 + 2 * 2
    assert classifier_of(["ay", "by"]).width == 2 * 3


def test_a_family_with_a_missing_value_says_nothing_of_the_class():
    edges = ["yc", "ac", "yd"]
    data = drawn(300, 2, missing=0.3)
    classifier = classifier_of(edges, alpha=1.0)
    ours = predicted(classifier, sums(classifier, data), data)
    known = (data.codes["c"] < 2) & (data.codes["a"] < 2)
    examples = classifier.examples(data)
    assert (examples.columns[:, 1:5].sum(axis=1) == known).all()
    assert 0 < known.sum() < 300
    nothing = ~known & (data.codes["d"] == 4)
    prior = np.bincount(data.codes["y"], minlength=3) / 300
    assert nothing.any()
    assert ours[nothing] == pytest.approx(np.tile(prior, (nothing.sum(), 1)), abs=1e-9)


def test_records_without_a_class_are_left_out_of_the_examples():
    data = drawn(60)
    data.codes["y"][:7] = 3
    examples = classifier_of(["yc"]).examples(data)
    assert len(examples.classes) == len(examples.columns) == 53
    assert (examples.classes == data.codes["y"][7:]).all()


@pytest.mark.parametrize("name", ["a", "c"])
def test_states_in_another_order_are_refused(name):
    data = drawn(60)
    states = data.variables[name].states
    swapped = {**data.variables, name: Variable(name, states[::-1])}
    with pytest.raises(DataError, match=f"do not have '{name}' in the declared states"):
        classifier_of(["yc", "ac"]).examples(LocalData(swapped, data.codes))


def test_classes_in_another_order_and_missing_columns_are_refused():
    data, classifier = drawn(60), classifier_of(["yc"])
    swapped = {**data.variables, "y": Variable("y", ("y2", "y1", "y0"))}
    with pytest.raises(DataError, match="do not have 'y' in the declared states"):
        classifier.examples(LocalData(swapped, data.codes))
    others = {name: data.codes[name] for name in "yab"}
    with pytest.raises(DataError, match="do not have 'c' in the declared states"):
        classifier.examples(LocalData({n: data.variables[n] for n in others}, others))


def test_uniform_statistics_prefer_no_class_and_have_their_size():
    edges = SHAPES["parents and children"]
    data, classifier = drawn(60), classifier_of(edges)
    statistics = classifier.uniform(12.0)
    assert predicted(classifier, statistics, data) == pytest.approx(np.full((60, 3), 1 / 3))
    assert [part.sum() for part in classifier.apart(statistics)] == pytest.approx([12.0] * 3)


@pytest.mark.parametrize("edges", SHAPES.values(), ids=SHAPES)
def test_the_map_to_parameters_does_not_depend_on_the_size(edges):
    data, classifier = drawn(60, 4), classifier_of(edges)
    statistics = sums(classifier, data)
    one, other = (classifier.weights(size * statistics).values for size in (1.0, 1e-6))
    assert one == pytest.approx(other, abs=1e-9)


def test_calibration_of_a_network_lowers_its_soft_loss():
    data = drawn(500, 6)
    for edges in SHAPES.values():
        classifier = classifier_of(edges)
        examples, statistics = classifier.examples(data), classifier.uniform(500.0) / 0.05
        change, first = local_rc(partial(update, classifier, examples=examples), statistics, 50)
        assert update(classifier, statistics + change, examples).soft < first.soft


def test_numbers_beyond_a_bound_count_as_the_bound():
    schema = Schema(Variable("y", ("no", "yes")), {"z": Numeric("z", 0.0, 10.0)})
    classifier = naive_bayes(schema, {"z": Scale(5.0, 2.0)})
    values = np.array([-3.0, 0.0, 12.0, 10.0, np.nan])
    data = LocalData(
        schema.variables, {"y": np.array([0, 0, 1, 1, 1])}, schema.numerics, {"z": values}
    )
    columns = classifier.columns(data)
    assert columns[:, 1:].tolist() == [
        [1, -2.5, 6.25],
        [1, -2.5, 6.25],
        [1, 2.5, 6.25],
        [1, 2.5, 6.25],
        [0, 0, 0],
    ]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.floats(-9, 9), st.floats(-9, 6))
def test_statistics_far_from_valid_have_finite_weights(seed, size, times):
    """Updates keep the sums over the classes, and nothing else: all counts may fall below zero."""
    generator = np.random.default_rng(seed)
    schema = Schema(
        Variable("y", ("no", "yes")), {"z": Numeric("z", 0.0, 10.0), "a": variables()["a"]}
    )
    classifier = naive_bayes(schema, {"z": Scale(5.0, 2.0)})
    moved = 10.0 ** (size + times) * generator.normal(size=(2, classifier.width))
    statistics = classifier.uniform(10.0**size) + moved - moved.mean(axis=0)
    unseen = statistics * np.repeat([1.0, 0.0, 1.0, 0.0], [1, 3, 1, 1])  # no number, one state
    for some in (statistics, unseen, 0.0 * statistics):
        weights, repairs = classifier.weights(some)
        assert np.isfinite(weights).all() and repairs >= 0
        chances = posterior(generator.normal(size=(5, classifier.width)), weights)
        assert np.isfinite(chances).all() and chances.sum(axis=1) == pytest.approx(np.ones(5))
    negative = (statistics[:, [0, 1, 4, 5]] < 0).sum()
    assert classifier.weights(statistics).repairs >= negative


def numbers_of(records, seed, count=3):
    """Numbers whose means and covariances depend on the class, between bounds that cut none."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, records)
    mixing = np.eye(count) + generator.normal(scale=0.5, size=(3, count, count))
    values = 5 * y[:, None] + np.einsum(
        "nij,nj->ni", mixing[y], generator.normal(size=(records, count))
    )
    numerics = {f"z{i}": Numeric(f"z{i}", -99.0, 99.0) for i in range(count)}
    schema = Schema(Variable("y", ("a", "b", "c")), numerics)
    columns = dict(zip(numerics, values.T, strict=True))
    return schema, LocalData(schema.variables, {"y": y}, numerics, columns)


def full_classifier(schema):
    scales = {name: Scale(i - 1.0, i + 2.0) for i, name in enumerate(schema.numerics)}
    return naive_bayes(schema, scales, covariance="full")


def test_full_covariances_are_quadratic_discriminant_analysis():
    schema, data = numbers_of(200, 1)
    classifier = full_classifier(schema)
    y, x = data.codes["y"], np.stack([*data.numbers.values()], axis=1)
    # scikit-learn divides by n - 1 unless a covariance estimator is given
    theirs = QuadraticDiscriminantAnalysis(
        solver="eigen", covariance_estimator=EmpiricalCovariance()
    ).fit(x, y)
    weights, repairs = classifier.weights(sums(classifier, data))
    ours = posterior(classifier.columns(data), weights)
    assert ours == pytest.approx(theirs.predict_proba(x), abs=1e-9) and not repairs


def test_the_covariance_of_one_number_is_its_variance():
    """Far from valid statistics too: both repair them by the same rule."""
    schema, data = numbers_of(30, 2, count=1)
    full, plain = full_classifier(schema), naive_bayes(schema, {"z0": Scale(-1.0, 2.0)})
    assert full.columns(data) == pytest.approx(plain.columns(data))
    moved = np.random.default_rng(3).normal(scale=9.0, size=(20, 3, 4))
    statistics = sums(plain, data) + moved - moved.mean(axis=1, keepdims=True)
    one, other = full.weights(statistics), plain.weights(statistics)
    assert one.values == pytest.approx(other.values) and (one.repairs == other.repairs).all()
    assert one.repairs.any() and (one.repairs == 0).any()


def test_a_record_without_a_number_is_left_out_of_the_covariances():
    schema, data = numbers_of(50, 4)
    complete = data.rows(np.arange(1, 50))
    data.numbers["z1"][0] = np.nan
    classifier = full_classifier(schema)
    prior = sums(classifier, data)[:, 1:]  # without the counts of the classes
    assert prior == pytest.approx(sums(classifier, complete)[:, 1:])


def test_uniform_covariances_prefer_no_class_and_repaired_ones_have_finite_weights():
    schema, data = numbers_of(50, 5)
    classifier = full_classifier(schema)
    even = predicted(classifier, classifier.uniform(9.0), data)
    assert even == pytest.approx(np.full((50, 3), 1 / 3))
    moved = np.random.default_rng(6).normal(scale=99.0, size=(9, 3, classifier.width))
    moved -= moved.mean(axis=1, keepdims=True)  # updates keep the sums over the classes
    weights, repairs = classifier.weights(classifier.uniform(9.0) + moved)
    assert np.isfinite(weights).all() and (repairs > 0).all()
