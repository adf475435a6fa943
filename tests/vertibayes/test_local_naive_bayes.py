"""Naive Bayes from reports, and projections before them. False-alarm rates are below 1e-4."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tests.randomness import SeededRandomness
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.local import learn_reports
from vertibayes_protocols.local_reports import Aggregator, Client, Projection, ReportPlan
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

CLASS = Variable("class", ("a", "b"))
NUMBERS = {name: Numeric(name, -4, 4) for name in ("u", "v", "w")}
GAUSSIAN = Schema(CLASS, NUMBERS, centred=True)
DISCRETE = Schema(CLASS, {"x": Variable("x", ("p", "q", "r")), "y": Variable("y", ("s", "t"))})


def gaussian(n, seed=0, apart=0.6, one_class=False):
    """Draw numbers: u has the largest variance, w separates the classes."""
    rng = np.random.default_rng(seed)
    codes = np.zeros(n, int) if one_class else rng.integers(0, 2, n)
    u, v, w = rng.normal(0, 1.3, n), rng.normal(0, 0.6, n), rng.normal(apart * (2 * codes - 1), 0.3)
    return LocalData({"class": CLASS}, {"class": codes}, NUMBERS, {"u": u, "v": v, "w": w})


def discrete(n, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    x = (rng.random(n) < 0.2 + 0.5 * codes) + (rng.random(n) < 0.4)
    y = (rng.random(n) < 0.8 - 0.5 * codes).astype(int)
    return LocalData(DISCRETE.variables, {"class": codes, "x": x, "y": y})


def simulate_reports(plan, data):
    """Have each record's person report, and return the aggregator of these reports."""
    aggregator = Aggregator(plan)
    aggregator.update(Client(plan).perturb_all(data))
    return aggregator


def test_a_large_eps_gives_the_exact_model_of_codes():
    plan = ReportPlan(schema=DISCRETE, eps=64.0, reports="all_at_full_eps")
    model, exact = learn_reports(simulate_reports(plan, discrete(500))), NaiveBayes(DISCRETE)
    exact.fit(discrete(500))
    test = discrete(200, seed=1)
    assert np.allclose(model.predict_proba(test), exact.predict_proba(test), atol=1e-9)


@pytest.mark.parametrize("approach", [1, 3])
def test_a_large_eps_gives_the_exact_model_of_numbers(approach):
    plan = ReportPlan(
        schema=GAUSSIAN, eps=2.0**21, reports="all_at_full_eps", approach=approach
    )  # fmt: skip
    model = learn_reports(simulate_reports(plan, gaussian(500)))
    exact = NaiveBayes(GAUSSIAN).fit(gaussian(500))
    for name in NUMBERS:
        assert np.allclose(model.theta_[name], exact.theta_[name], atol=1e-4)
        assert np.allclose(model.var_[name], exact.var_[name], atol=1e-4)


@pytest.mark.parametrize("settings", [{"bins": 4}, {"approach": 2}])
def test_many_people_give_nearly_the_accuracy_without_privacy(settings):
    plan = ReportPlan(schema=GAUSSIAN, eps=3.0, **settings)
    test, train = gaussian(2000, seed=1), gaussian(150_000)
    exact = NaiveBayes(plan.model_schema).fit(plan.prepare(train)).score(plan.prepare(test))
    private = learn_reports(simulate_reports(plan, train)).score(plan.prepare(test))
    assert exact > 0.85 and private > exact - 0.1, "the sd of one bit's accuracy is .009"


@pytest.mark.parametrize("negative", ["zero", "one", "keep"])
@pytest.mark.parametrize(
    "settings", [{"bins": 3}, {"approach": 1}, {"approach": 2}, {"approach": 3}]
)
def test_noise_alone_never_gives_a_nan_or_a_negative_probability(settings, negative):
    plan = ReportPlan(schema=GAUSSIAN, eps=0.02, reports="all", oracle="de", **settings)
    test = plan.prepare(gaussian(30, seed=9))
    for seed in range(6):
        aggregator = simulate_reports(plan, gaussian(3, seed=seed))
        for raised in (True, False):
            model = learn_reports(aggregator, negative=negative, raised=raised)
            proba = model.predict_proba(test)
            assert np.isfinite(proba).all() and (proba >= 0).all()
            assert np.allclose(proba.sum(axis=1), 1)
            assert all((variance > 0).all() for variance in model.var_.values())


def test_people_of_one_class_give_a_model_that_predicts_it():
    plan = ReportPlan(schema=GAUSSIAN, eps=6.0, approach=2)
    model = learn_reports(simulate_reports(plan, gaussian(4000, one_class=True)))
    test = gaussian(300, seed=3, one_class=True)
    assert model.score(test) > 0.9 and np.isfinite(model.predict_proba(test)).all()


def test_no_reports_are_no_model():
    plan = ReportPlan(schema=DISCRETE, eps=1.0)
    with pytest.raises(ValueError, match="nobody has answered the question 'class'"):
        learn_reports(simulate_reports(plan, discrete(0)))


def test_a_variance_below_its_standard_error_is_raised_to_it_and_no_other():
    plan = ReportPlan(schema=GAUSSIAN, eps=1.0, reports="all", approach=2)
    cuts = 0
    for _ in range(20):
        noisy = simulate_reports(plan, gaussian(300))
        plain, raised = (learn_reports(noisy, raised=r, floor=1e-3) for r in (False, True))
        for name in NUMBERS:
            cut = plain.var_[name] < 0.02
            cuts += cut.sum()
            assert (raised.var_[name][cut] > 1.0).all()  # an even spread has 16 / 3
            assert (raised.var_[name] >= plain.var_[name] - 1e-6).all()
    assert cuts > 0, "noise carries about half of the variances to the floor"
    much = simulate_reports(replace(plan, eps=1e4, approach=3), gaussian(2000))
    plain, raised = (learn_reports(much, raised=r) for r in (False, True))
    assert np.allclose(plain.sums_, raised.sums_)


# Projections


def scaled(data):
    return np.array([data.numbers[name] / 4 for name in NUMBERS]).T.clip(-1, 1)


def test_pca_is_that_of_scikit_learn():
    data = gaussian(500)
    own = np.array(Projection.pca(data, 2, fitted_on="public").matrix)
    theirs = PCA(2).fit(scaled(data)).components_
    assert np.allclose(np.abs(own @ theirs.T), np.eye(2), atol=1e-9)


def test_dca_is_the_linear_discriminant_and_separates_where_pca_does_not():
    data, test = gaussian(800), gaussian(800, seed=1)
    tiny = Projection.dca(data, "class", fitted_on="public", ridge=1e-12)
    theirs = LinearDiscriminantAnalysis().fit(scaled(data), data.codes["class"]).coef_[0]
    assert np.allclose(np.abs(np.array(tiny.matrix) @ theirs), np.linalg.norm(theirs))
    scores = {}
    for name, projection in {
        "dca": Projection.dca(data, "class", fitted_on="public"),
        "pca": Projection.pca(data, 1, fitted_on="public"),
    }.items():
        schema = projection.schema(GAUSSIAN)
        model = NaiveBayes(schema).fit(projection.apply(data))
        scores[name] = model.score(projection.apply(test))
    assert scores["dca"] > 0.95 and scores["pca"] < 0.65


def test_bounds_of_components_follow_from_declared_bounds_or_from_the_records():
    data = gaussian(400)
    declared = Projection.pca(data, 2, fitted_on="public")
    weights = np.abs(np.array(declared.matrix)).sum(axis=1)
    assert np.allclose([c.high for c in declared.components], weights)
    assert [c.low for c in declared.components] == [-c.high for c in declared.components]
    corners = replace(data.rows(np.arange(2)), numbers=dict.fromkeys("uvw", np.array([-9.0, 9.0])))
    extreme = np.abs(list(declared.apply(corners).numbers.values()))
    assert (extreme <= weights[:, None] + 1e-12).all()
    narrow = Projection.pca(data, 2, fitted_on="public", bounds="records")
    for component in narrow.components:
        values = narrow.apply(data).numbers[component.name]
        assert (component.low, component.high) == (values.min(), values.max())


def test_people_apply_a_projection_to_their_own_records_and_missing_stays_missing():
    projection = Projection((NUMBERS["u"], NUMBERS["w"]), ((0.6, 0.8),))
    plan = ReportPlan(schema=GAUSSIAN, eps=1.0, projection=projection, missing=True)
    assert list(plan.model_schema.features) == ["v", "component-1"]
    assert [q.name for q in plan.questions][1:3] == ["v, class", "component-1, class"]
    data = gaussian(3)
    data.numbers["u"][0] = math.nan
    values = plan.prepare(data).numbers["component-1"]
    assert np.isnan(values[0])
    assert np.allclose(values[1:], 0.15 * data.numbers["u"][1:] + 0.2 * data.numbers["w"][1:])
    assert len(Client(plan).perturb_all(data)) == 3


def test_only_a_projection_of_private_records_is_named_as_not_covered():
    for source in ("public", "declared", "private"):
        fitted = Projection.pca(gaussian(50), 1, fitted_on=source)
        promise = ReportPlan(schema=GAUSSIAN, eps=1.0, projection=fitted).promise
        assert ("fitted on private records" in promise.sentence) is (source == "private")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Projection((NUMBERS["u"],), ((1.0, 2.0),)), "rows of 1 weights"),
        (lambda: Projection((NUMBERS["u"],), ((math.nan,),)), "weights must be finite"),
        (lambda: Projection((NUMBERS["u"],), ((0.0,),)), "not all of a row zero"),
        (lambda: Projection((NUMBERS["u"],), ((1.0,),), fitted_on="me"), "fitted_on must be"),
        (lambda: Projection.pca(gaussian(9), 4, fitted_on="public"), "from 1 to 3"),
        (lambda: Projection.pca(gaussian(1), 1, fitted_on="public"), "two complete records"),
        (lambda: Projection.pca(discrete(9), 1, fitted_on="public"), "no column of numbers"),
        (
            lambda: Projection.dca(gaussian(9), "class", 2, fitted_on="public"),
            "number of classes minus one",
        ),
        (
            lambda: Projection.pca(gaussian(9), 1, fitted_on="public", bounds="some"),
            "bounds must be one of",
        ),
        (
            lambda: Projection((Numeric("z", 0, 1),), ((1.0,),)).schema(GAUSSIAN),
            "z: the schema has no such number",
        ),
    ],
)
def test_projections_that_cannot_be_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# Tallies that the benchmark draws at once


def benchmark():
    path = Path(__file__).parents[2] / "benchmarks" / "tallies_of_reports.py"
    spec = importlib.util.spec_from_file_location("tallies_of_reports", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draws(plan, data, runs, drawn):
    """Return the sums of so many aggregators: by clients, or as the benchmark draws them."""
    module, generator = benchmark(), np.random.default_rng(5)
    people = module.People(plan, data)
    result = []
    for _ in range(runs):
        if drawn:
            who = module.choose(len(plan.questions), people, generator)
            chosen = who if plan.reports == "one" else None
            aggregator = module.collect(plan, people, generator, chosen)
        else:
            aggregator = simulate_reports(plan, data)
        result.append(aggregator.sums("keep"))
    return np.array(result)


@pytest.mark.laws
@pytest.mark.parametrize("reports", ["one", "all"])
@pytest.mark.parametrize("oracle", ["de", "sue", "oue", "the", "she", "ss"])
def test_tallies_drawn_at_once_have_the_law_of_clients_reports(oracle, reports):
    plan = ReportPlan(schema=DISCRETE, eps=1.5, oracle=oracle, reports=reports)
    own, drawn = (draws(plan, discrete(60), 160, drawn=d) for d in (False, True))
    for cell in (0, 3, 9):
        assert ks_2samp(own[:, cell], drawn[:, cell]).pvalue > 1e-6
    other = draws(replace(plan, eps=0.3), discrete(60), 160, drawn=True)
    assert ks_2samp(own[:, 3], other[:, 3]).pvalue < 1e-4  # control


@pytest.mark.parametrize("approach", [1, 2, 3])
def test_numbers_drawn_by_the_benchmark_have_the_law_of_clients_reports(approach):
    plan = ReportPlan(
        schema=replace(GAUSSIAN, features={"w": NUMBERS["w"]}), eps=2.0, approach=approach
    )
    own, drawn = (draws(plan, gaussian(40), 160, drawn=d) for d in (False, True))
    for cell in (2, 3, 4):
        assert ks_2samp(own[:, cell], drawn[:, cell]).pvalue > 1e-6
    other = draws(replace(plan, eps=0.4), gaussian(40), 160, drawn=True)
    assert ks_2samp(own[:, 3], other[:, 3]).pvalue < 1e-4  # control


def test_simulated_reports_are_those_of_clients():
    plan = ReportPlan(schema=DISCRETE, eps=1.0, reports="all")
    reports = Client(plan, SeededRandomness()).perturb_all(discrete(40))
    assert {len(rows) for rows in reports.answers.values()} == {40}
    assert simulate_reports(plan, discrete(40)).people == 40
