from typing import get_args

import numpy as np
import pytest
from sklearn.decomposition import PCA

from vertibayes.settings import Drift
from vertibayes.splitting import drift_parts, node_sizes
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

SIZES = np.array([120, 0, 30, 250, 200])


def records(count=600, seed=0):
    """Records whose classes, colours and sizes go together, with missing cells."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, count)
    colour = (y + generator.integers(0, 2, count)) % 4
    colour[::50] = 4  # missing
    size = generator.normal(y * 2.0, 1.0)
    size[::40] = np.nan
    weight = 1000 - 300 * size + generator.normal(0, 100, count)
    variables = {"y": Variable("y", ("a", "b", "c")), "colour": Variable("colour", tuple("rgbw"))}
    numerics = {name: Numeric(name, -1e6, 1e6) for name in ("size", "weight")}
    return LocalData(
        variables, {"y": y, "colour": colour}, numerics, {"size": size, "weight": weight}
    )


def of_numbers(**columns):
    """Records of one class with these numbers."""
    count = len(next(iter(columns.values())))
    numerics = {name: Numeric(name, -5e307, 5e307) for name in columns}
    numbers = {name: np.array(values, float) for name, values in columns.items()}
    codes = {"y": np.zeros(count, np.int64)}
    return LocalData({"y": Variable("y", ("a", "b"))}, codes, numerics, numbers)


def parts_of(data, drift, sizes=SIZES, seed=1):
    return drift_parts(data, sizes, drift, np.random.default_rng(seed), target="y")


def component(data):
    """The first principal component, by scikit-learn."""
    one_hot = data.codes["colour"][:, None] == np.arange(4)
    numbers = np.stack([data.numbers["size"], data.numbers["weight"]], axis=1)
    standardized = (numbers - np.nanmean(numbers, axis=0)) / np.nanstd(numbers, axis=0)
    features = np.concatenate([one_hot, np.nan_to_num(standardized)], axis=1)
    return PCA(n_components=1).fit_transform(features)[:, 0]


@pytest.mark.parametrize("drift", get_args(Drift))
def test_each_record_goes_to_one_node_and_nodes_have_their_sizes(drift):
    parts = parts_of(records(), drift)
    assert [len(part) for part in parts] == SIZES.tolist()
    assert sorted(np.concatenate(parts)) == list(range(600))
    again = parts_of(records(), drift)
    assert all(np.array_equal(*pair) for pair in zip(parts, again, strict=True))


def test_without_drift_nodes_have_the_same_shares_of_classes():
    data = records(6000)
    parts = parts_of(data, "none", np.full(5, 1200))
    shares = [np.bincount(data.codes["y"][part], minlength=3) / 1200 for part in parts]
    assert np.abs(np.array(shares) - 1 / 3).max() < 0.06  # 4 standard deviations


def test_drift_in_x_sorts_by_the_first_principal_component_of_the_features():
    data = records()
    scores = component(data)[np.concatenate(parts_of(data, "x"))]
    steps = np.diff(scores) * np.sign(scores[-1] - scores[0])
    assert steps.min() > -1e-8 and np.ptp(scores) > 3


def test_drift_in_y_gives_a_node_the_records_of_one_class_as_far_as_sizes_allow():
    data = records()
    counts = np.bincount(data.codes["y"])
    exact = parts_of(data, "y", counts)
    assert [set(data.codes["y"][part]) for part in exact] == [{0}, {1}, {2}]
    halves = parts_of(data, "y", node_sizes("equal", 20, 600, np.random.default_rng(0)))
    assert sum(len(set(data.codes["y"][part])) > 1 for part in halves) <= 2
    within = data.numbers["weight"][exact[1]]
    rising = (np.diff(within[~np.isnan(within)]) > 0).mean()
    assert 0.4 < rising < 0.6, "within a class, records are in random order"


def test_drift_in_both_sorts_by_class_and_within_a_class_by_the_component():
    data = records()
    order = np.concatenate(parts_of(data, "xy"))
    classes, scores = data.codes["y"][order], component(data)[order]
    assert (np.diff(classes) >= 0).all()
    signs = {np.sign(scores[classes == y][-1] - scores[classes == y][0]) for y in range(3)}
    assert len(signs) == 1
    for y in range(3):
        assert (np.diff(scores[classes == y]) * signs.copy().pop()).min() > -1e-8


def test_records_without_a_class_come_last():
    data = records()
    data.codes["y"][:7] = 3
    assert set(np.concatenate(parts_of(data, "y"))[-7:]) == set(range(7))


def test_the_class_is_not_a_feature():
    data, other = records(), records()
    other.codes["y"][:] = np.random.default_rng(2).permutation(other.codes["y"])
    assert np.array_equal(*(np.concatenate(parts_of(each, "x")) for each in (data, other)))


def test_numbers_count_alike_in_any_unit():
    data = of_numbers(a=[1, 2, 3, 9], b=[5, 1, 7, 8])
    other = of_numbers(a=[1e300, 2e300, 3e300, 9e300], b=[5e-300, 1e-300, 7e-300, 8e-300])
    assert np.array_equal(*(parts_of(each, "x", np.array([4]))[0] for each in (data, other)))


def test_numbers_beyond_a_bound_count_as_the_bound():
    data = of_numbers(a=[4, 1, 2, 3, 4e9], b=[1, 2, 3, 4, 9])
    bounds = data.numerics | {"a": Numeric("a", 0, 5)}
    within = LocalData(data.variables, data.codes, bounds, data.numbers)
    orders = [parts_of(each, "x", np.array([5]))[0].tolist() for each in (data, within)]
    assert orders == [[0, 1, 2, 3, 4], [1, 2, 0, 3, 4]]


def test_columns_that_are_constant_or_unknown_do_not_count():
    numbers = np.random.default_rng(3).permutation(np.arange(50.0))
    data = of_numbers(
        same=np.where(numbers > 9, 0.1, np.nan), none=np.full(50, np.nan), zero=np.zeros(50),
        size=numbers,
    )  # fmt: skip
    ordered = numbers[parts_of(data, "x", np.array([50]))[0]]
    assert ordered.tolist() in (list(range(50)), list(range(49, -1, -1)))


def test_equal_records_are_sorted_at_random():
    extremes = 0
    for count in range(100, 120):
        generator = np.random.default_rng(count)
        kind, kinds = generator.integers(0, 3, count), generator.normal(size=(12, 3))
        alike = of_numbers(**{f"x{place}": column[kind] for place, column in enumerate(kinds)})
        first, second = (parts_of(alike, "x", np.array([count]), seed)[0] for seed in (1, 2))
        assert np.array_equal(kind[first], kind[second])
        assert not np.array_equal(first, second)
        for order in (first, second):  # where rounding would put the last record, always
            group = order[kind[order] == kind[-1]].tolist()
            extremes += count - 1 in (group[0], group[-1])
    assert extremes < 10  # of 40, 2.4 expected


@pytest.mark.parametrize(
    ("drift", "sizes", "target", "message"),
    [
        ("z", SIZES, "y", "drift must be one of none, x, y, xy, got 'z'"),
        ("x", SIZES, "size", "the class 'size' is not a categorical column"),
        ("x", SIZES[1:], "y", "sizes must add up to the 600 records, got 480"),
        ("y", np.array([601, -1]), "y", "sizes must not be negative, got -1"),
    ],
)
def test_mistakes_are_refused(drift, sizes, target, message):
    with pytest.raises(ValueError, match=message):
        drift_parts(records(), sizes, drift, np.random.default_rng(0), target=target)
