"""Federated naive Bayes under local noise: statistics of nodes, noise, sums, online updates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from tests.splits import deal_records
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.federated import (
    NotPrivateWarning,
    about_zero,
    aggregate,
    exact_updates,
    local_updates,
    paper_changes,
    precise_updates,
    promised,
    relative_error,
)
from vertibayes.splitting import log_uniform, node_sizes
from vertibayes_protocols.accounting import Accounting, Privacy
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

SCHEMA = Schema(
    Variable("y", ("a", "b", "c")),
    {
        "colour": Variable("colour", ("red", "green", "blue")),
        "size": Numeric("size", -4.0, 12.0),
        "weight": Numeric("weight", 0.0, 10.0),
    },
    centred=True,
)
LAPLACE = Privacy(eps=1.0, noise="laplace")
COUNTS = 3 + 9  # of classes and colours


def records(count, seed=0, schema=SCHEMA):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, count)
    colour = (y + generator.integers(0, 2, count)) % 3
    size = np.clip(generator.normal(y * 2.0, 1.0), -4, 12)
    weight = np.clip(generator.normal(5 - y, 0.8), 0, 10)
    return LocalData(
        schema.variables, {"y": y, "colour": colour}, schema.numerics,
        {"size": size, "weight": weight},
    )  # fmt: skip


def dealt(data, nodes, seed=1):
    generator = np.random.default_rng(seed)
    return deal_records(data, node_sizes("uniform", nodes, data.records, generator), generator)


def numbers(data):
    return np.array([data.numbers["size"], data.numbers["weight"]]).T


# ---- the model -----------------------------------------------------------------------------------


def test_without_noise_mixed_data_give_scikit_learns_models_up_to_the_grid():
    data = records(3000)
    model = aggregate(SCHEMA, exact_updates(SCHEMA, dealt(data, 7)), floor=0.0)
    y = data.codes["y"]
    categorical = CategoricalNB(alpha=1.0).fit(data.codes["colour"][:, None], y)
    gaussian = GaussianNB(var_smoothing=0).fit(numbers(data), y)
    wanted = categorical.feature_log_prob_[0]
    assert model.feature_log_prob_["colour"] == pytest.approx(wanted, abs=1e-12)
    # A number is off by half a step at most: 8 / 2^12 of "size".
    for place, (name, half) in enumerate({"size": 8.0, "weight": 5.0}.items()):
        error = half / 2**12
        assert np.abs(model.theta_[name] - gaussian.theta_[:, place]).max() <= error
        assert np.abs(model.var_[name] - gaussian.var_[:, place]).max() <= 4 * half * error
    theirs = categorical.predict_joint_log_proba(data.codes["colour"][:, None])
    theirs = theirs + gaussian.predict_joint_log_proba(numbers(data)) - model.class_log_prior_
    assert (model.predict_joint_log_proba(data).argmax(1) == theirs.argmax(1)).mean() > 0.999


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 20), st.integers(0, 2**32))
def test_nodes_without_noise_give_the_pooled_model(nodes, seed):
    data = records(200, seed)
    federated = aggregate(SCHEMA, exact_updates(SCHEMA, dealt(data, nodes, seed)), floor=0.0)
    pooled = NaiveBayes(SCHEMA).fit(data)
    assert np.array_equal(federated.sums_, pooled.sums_)
    assert np.array_equal(federated.predict_proba(data), pooled.predict_proba(data))


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 10), st.sampled_from([0.0, 1.0]), st.integers(0, 3))
def test_noise_gives_probabilities_whatever_it_is(eps, alpha, count):
    nodes = [records(count, seed) for seed in range(3)]  # a class is absent, or all are
    updates = local_updates(SCHEMA, nodes, Privacy(eps=eps, noise="laplace"))
    found = aggregate(SCHEMA, updates, alpha=alpha).predict_proba(records(50))
    assert (found >= 0).all() and found.sum(axis=1) == pytest.approx(1)


def gains():
    """Return a schema, and records whose gains have a standard deviation of 1% of the range."""
    generator = np.random.default_rng(11)
    variables = {name: Variable(name, ("no", "yes")) for name in ("rich", "degree")}
    gain = Numeric("gain", 0.0, 99_999.0)
    schema = Schema(variables["rich"], {"degree": variables["degree"], "gain": gain}, centred=True)
    rich = generator.integers(0, 2, 4000)
    degree = np.where(generator.random(4000) < 0.85, rich, 1 - rich)
    some = generator.random(4000) < 0.1
    numbers = np.where(some, np.abs(generator.normal(2000.0, 3000.0, 4000)), 0.0)
    codes = {"rich": rich, "degree": degree}
    return schema, LocalData(variables, codes, {"gain": gain}, {"gain": numbers})


def gained(copies, nodes=100, runs=120):
    """Return the gain in accuracy over the floor alone, in its standard errors."""
    schema, data = gains()
    accounting = Accounting(schema, Privacy(eps=1.0, noise="laplace"))
    exact, generator, gained = schema.measure(data), np.random.default_rng(12), []
    rates = [float(accounting.copy(part.Delta).rate) for part in accounting.parts]
    success = -np.expm1(-np.repeat(rates, [part.cells for part in accounting.parts]))
    for _ in range(runs):
        first, second = (generator.negative_binomial(nodes, success) for _ in range(2))
        updates = (exact + first - second)[None]
        raised = aggregate(schema, updates, errors=accounting.errors(copies))
        gained.append(raised.score(data) - aggregate(schema, updates).score(data))
    return np.mean(gained) / (np.std(gained, ddof=1) / math.sqrt(runs) + 1e-9)


def test_raising_variances_to_their_errors_saves_numbers_of_little_spread_from_noise():
    assert gained(copies=100) > 6


def test_without_errors_there_is_nothing_to_raise_variances_to():
    assert abs(gained(copies=0)) < 6  # the negative control of the test before


# ---- noise ---------------------------------------------------------------------------------------


@pytest.mark.laws
def test_each_node_adds_a_copy_of_laplace_noise_and_polya_shares_add_one_in_all():
    nodes, repeats = 20, 150
    data = dealt(records(400), nodes)
    exact = exact_updates(SCHEMA, data).sum(axis=0)
    scale = np.repeat([1, 1, 2**11, 2**22, 2**11, 2**22], [3, 9, 3, 3, 3, 3])
    wanted = 2 * 6.0**2  # the variance of discrete Laplace noise of eps / 6, nearly
    for noise, copies in (("laplace", nodes), ("polya", 1)):
        privacy = Privacy(eps=1.0, noise=noise)
        sums = [local_updates(SCHEMA, data, privacy).sum(axis=0) for _ in range(repeats)]
        drawn = (np.array(sums) - exact) / scale
        # 24 * 150 draws of kurtosis at most 6: the mean square is within 4 sd = 0.15 of its mean.
        assert (drawn**2).mean() / (wanted * copies) == pytest.approx(1, abs=0.15)
        other = nodes if copies == 1 else 1
        assert (drawn**2).mean() / (wanted * other) != pytest.approx(1, abs=0.15)


def test_nodes_may_have_different_budgets():
    budgets = [Privacy(eps=eps, noise="laplace") for eps in (0.05, 5.0)]
    data = [records(30)] * 2
    drawn = np.array([local_updates(SCHEMA, data, budgets) for _ in range(100)])
    spread = (drawn - exact_updates(SCHEMA, data))[:, :, :COUNTS].std(axis=(0, 2))
    assert spread[0] / spread[1] == pytest.approx(100, rel=0.3)
    shares = [Privacy(eps=eps) for eps in (0.05, 5.0)]
    with pytest.raises(ValueError, match="different budgets need noise='laplace'"):
        local_updates(SCHEMA, data, shares)
    with pytest.raises(ValueError, match="one for each of the 2 nodes, got 1"):
        local_updates(SCHEMA, data, budgets[:1])


def test_the_promise_is_of_a_record_at_its_node():
    promise = promised(SCHEMA, LAPLACE, nodes=10)
    assert promise.eps == pytest.approx(1.0) and promise.tables == 1 + 1 + 2 * 2
    assert "the aggregator and all other members together" in promise.sentence
    assert promised(SCHEMA, Privacy(eps=1.0), nodes=10).copies == pytest.approx(1.0)
    assert promised(SCHEMA, LAPLACE, nodes=10, sensitivity="paper") is None


def alarms(sensitivity, data, schema, threshold, runs):
    """Count the updates in which the noise of an empty class exceeds a threshold."""
    updates = local_updates(
        schema, [data] * runs, Privacy(eps=1.0, noise="laplace"), sensitivity=sensitivity
    )
    return int((np.abs(updates[:, COUNTS] - schema.measure(data)[COUNTS]) > threshold).sum())


def proved_eps(sensitivity, runs=300, error=1e-4):
    """Return the eps that an attacker proves who sees whether one record of 8 kg was there."""
    near = LocalData(
        SCHEMA.variables, {"y": np.zeros(20, int), "colour": np.zeros(20, int)}, SCHEMA.numerics,
        {"size": np.full(20, 0.01), "weight": np.full(20, 0.01)},
    )  # fmt: skip
    numbers = {"size": np.append(near.numbers["size"], 8.0), "weight": np.full(21, 0.01)}
    far = LocalData(SCHEMA.variables, {n: np.zeros(21, int) for n in near.codes}, SCHEMA.numerics,
                    numbers)  # fmt: skip
    schema, (near, far) = about_zero(SCHEMA, [near, far])
    threshold = 1000
    often = alarms(sensitivity, far, schema, threshold, runs)
    seldom = alarms(sensitivity, near, schema, threshold, runs)
    least = beta.ppf(error, often, runs - often + 1) if often else 0.0
    most = beta.ppf(1 - error, seldom + 1, runs - seldom)
    return math.log(least / most) if least else 0.0


@pytest.mark.filterwarnings("ignore:sensitivity='paper'")
def test_noise_of_the_papers_sensitivity_shows_the_largest_value_at_a_node():
    assert proved_eps("paper") > 2.0  # eps is 1; a false alarm has a chance of 2e-4


def test_noise_of_the_declared_bounds_does_not():
    assert proved_eps("declared") < 1.0


def test_the_papers_sensitivity_says_that_it_is_not_private():
    schema, nodes = about_zero(SCHEMA, [records(20)])
    with pytest.warns(NotPrivateWarning, match="is not private"):
        local_updates(schema, nodes, LAPLACE, sensitivity="paper")
    size = schema.numerics["size"]
    assert (size.low, size.high) == (-12.0, 12.0)
    places = np.abs(size.centred(nodes[0].numbers["size"]))
    classes = nodes[0].codes["y"]
    changes = paper_changes(schema, nodes[0])
    largest = [places[classes == c].max() for c in range(3)]
    assert changes[COUNTS : COUNTS + 3].tolist() == largest
    assert changes[COUNTS + 3 : COUNTS + 6].tolist() == [top**2 for top in largest]
    assert (changes[:COUNTS] == 1).all()
    with (
        pytest.warns(NotPrivateWarning),
        pytest.raises(ValueError, match="size: sensitivity='paper' needs bounds about 0"),
    ):
        local_updates(SCHEMA, [records(20)], LAPLACE, sensitivity="paper")
    with pytest.raises(ValueError, match="needs noise='laplace'"):
        local_updates(schema, nodes, Privacy(eps=1.0), sensitivity="paper")


# ---- online updates, thresholding ----------------------------------------------------------------


def parameters(model):
    return np.concatenate(
        [np.exp(model.class_log_prior_), np.exp(model.feature_log_prob_["colour"]).ravel(),
         *model.theta_.values(), *model.var_.values()]
    )  # fmt: skip


@pytest.mark.parametrize("noisy", [False, True])
def test_an_online_update_equals_aggregating_again(noisy):
    nodes = dealt(records(600), 12)
    updates = local_updates(SCHEMA, nodes, LAPLACE) if noisy else exact_updates(SCHEMA, nodes)
    kept = aggregate(SCHEMA, updates[:2])
    for update in updates[2:]:
        kept.add_sums(update)
    assert np.array_equal(parameters(kept), parameters(aggregate(SCHEMA, updates)))


def test_a_class_that_comes_later_is_added_online():
    first, second = records(50), records(50, seed=1)
    first = first.rows(np.flatnonzero(first.codes["y"] != 2))
    updates = exact_updates(SCHEMA, [first, second])
    kept = aggregate(SCHEMA, updates[:1]).add_sums(updates[1])
    assert np.array_equal(parameters(kept), parameters(aggregate(SCHEMA, updates)))


def test_relative_error_by_hand():
    schema = Schema(
        Variable("y", ("no", "yes")), {"x": Numeric("x", -1.0, 1.0)}, centred=True
    )  # n (2), S (2), Q (2)
    exact = np.array([4, 0, -2048, 0, 2**22, 0])
    noisy = np.array([5, -3, -1024, 512, 2**21, 2**20])
    # 1/4 + 3/1, 1024/2048 + 512/2048, 2^21/2^22 + 2^20/2^22: a zero counts as one record
    assert relative_error(schema, noisy, exact) == pytest.approx(0.25 + 3 + 0.5 + 0.25 + 0.5 + 0.25)
    both = relative_error(schema, np.array([noisy, exact]), np.array([exact, exact]))
    assert both == pytest.approx([4.75, 0.0])
    assert precise_updates(np.array([noisy, exact]), both, 1.0).tolist() == [exact.tolist()]
    with pytest.raises(ValueError, match=r"threshold must be at least 0 .*, got -1"):
        precise_updates(np.array([noisy, exact]), both, -1.0)


# ---- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", ["equal", "uniform", "exponential", "log-uniform"])
def test_node_sizes_add_up(distribution):
    sizes = node_sizes(distribution, 50, 10_000, np.random.default_rng(2))
    assert sizes.shape == (50,) and sizes.sum() == 10_000 and (sizes >= 0).all()
    ratio = {"equal": (1, 1.01), "uniform": (4, 11), "exponential": (20, np.inf),
             "log-uniform": (100, np.inf)}[distribution]  # fmt: skip
    assert ratio[0] <= sizes.max() / max(sizes.min(), 1) <= ratio[1]


def test_budgets_of_any_order_of_magnitude():
    drawn = log_uniform(0.01, 10, 3000, np.random.default_rng(4))
    assert drawn.min() >= 0.01 and drawn.max() <= 10
    counts = np.histogram(np.log10(drawn), bins=3, range=(-2, 1))[0]
    assert np.abs(counts - 1000).max() < 4 * math.sqrt(3000 * 2 / 9)
    with pytest.raises(ValueError, match="low must be above 0"):
        log_uniform(0, 1, 3, np.random.default_rng(4))


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.0, -1.0, math.nan, math.inf])
def test_an_eps_that_is_not_above_zero_is_refused(eps):
    with pytest.raises(ValueError, match=r"eps = .*: it must be a finite number above 0"):
        Privacy(eps=eps, noise="laplace")


def test_numbers_that_are_not_summed_about_the_middle_take_no_noise():
    schema = Schema(SCHEMA.target, SCHEMA.features)
    with pytest.raises(ValueError, match="noise needs centred moments"):
        local_updates(schema, [records(20)], LAPLACE)


@pytest.mark.parametrize("bounds", [(math.nan, 1.0), (0.0, math.inf), (1.0, 1.0)])
def test_missing_bounds_are_refused(bounds):
    with pytest.raises(DataError, match="size: bounds must be finite and ascend"):
        LocalData(SCHEMA.variables, records(3).codes, {"size": Numeric("size", *bounds)},
                  {"size": np.zeros(3)})  # fmt: skip


def test_a_node_that_declares_other_states_or_bounds_is_named():
    data = records(5)
    variables = SCHEMA.variables | {"colour": Variable("colour", ("red", "green", "pink"))}
    others = LocalData(variables, data.codes, data.numerics, data.numbers)
    with pytest.raises(DataError, match="node 1 does not have 'colour' in the declared states"):
        exact_updates(SCHEMA, [data, others])
    numerics = SCHEMA.numerics | {"size": Numeric("size", 0.0, 1.0)}
    wider = LocalData(data.variables, data.codes, numerics, data.numbers)
    with pytest.raises(DataError, match="node 1 does not have 'size' between the declared bounds"):
        exact_updates(SCHEMA, [data, wider])
    with pytest.raises(DataError, match="codes must be between 0 and 3"):
        LocalData(SCHEMA.variables, data.codes | {"colour": np.full(5, 4)}, data.numerics,
                  data.numbers)  # fmt: skip


def test_a_missing_number_counts_as_the_middle_and_infinity_is_refused():
    data = records(5)
    gone = {"size": np.full(5, np.nan), "weight": data.numbers["weight"]}
    update = exact_updates(SCHEMA, [LocalData(data.variables, data.codes, data.numerics, gone)])
    assert not update[0, COUNTS : COUNTS + 6].any()
    assert np.isfinite(aggregate(SCHEMA, update).predict_proba(data)).all()
    with pytest.raises(DataError, match="size: numbers must be finite"):
        LocalData(data.variables, data.codes, data.numerics, gone | {"size": np.full(5, np.inf)})


def test_updates_that_cannot_be_are_refused():
    update = exact_updates(SCHEMA, [records(20)])
    assert aggregate(SCHEMA, update).score(records(100)) > 0.7  # one node suffices
    with pytest.raises(ValueError, match="nodes must have at least one node"):
        local_updates(SCHEMA, [], LAPLACE)
    with pytest.raises(ValueError, match="updates must be one row for each node"):
        aggregate(SCHEMA, update[:0])
    with pytest.raises(ValueError, match="updates must be one row for each node"):
        aggregate(SCHEMA, update[0])
    with pytest.raises(ValueError, match="the sums must be finite"):
        aggregate(SCHEMA, np.where(np.arange(24) == 3, np.nan, update))
    with pytest.raises(ValueError, match="sensitivity must be 'declared' or 'paper', got 'local'"):
        local_updates(SCHEMA, [records(5)], LAPLACE, sensitivity="local")
    with pytest.raises(ValueError, match=r"distribution must be one of equal, .*, got 'normal'"):
        node_sizes("normal", 3, 100, np.random.default_rng(0))
    with pytest.raises(ValueError, match="nodes must be at least 1 and records at least 10, got 0"):
        node_sizes("equal", 0, 100, np.random.default_rng(0))
