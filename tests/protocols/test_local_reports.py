"""Reports under local privacy: clients, aggregators, plans. False-alarm rates are below 1e-4."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from tests.privacy.audit import audited_eps
from tests.randomness import SeededRandomness
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.local_reports import Aggregator, Client, ReportPlan, Reports
from vertibayes_protocols.local_reports.bins import binned_data, binned_schema
from vertibayes_protocols.local_reports.questions import LaplaceQuestion, OneBitQuestion
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

TARGET = Variable("ill", ("no", "a", "b"))
SCHEMA = Schema(
    TARGET,
    {
        "fever": Variable("fever", ("no", "yes")),
        "age": Numeric("age", 0, 100),
        "height": Numeric("height", 1, 2),
    },
    centred=True,
)
CODES = Schema(TARGET, {"fever": SCHEMA.features["fever"]})
TWO = Variable("ill", ("no", "yes"))
Z = 5.2  # two-sided 2e-7 per estimate; a test has below 100 of them


def people(n, schema=SCHEMA, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    ill = rng.integers(0, 3, n)
    numbers = {"age": rng.normal(30 + 15 * ill, 10), "height": rng.uniform(0.9, 2.1, n)}
    codes = {"ill": ill, "fever": (rng.random(n) < 0.2 + 0.3 * ill).astype(int)}
    codes = {name: codes[name] for name in schema.variables}
    for name, column in codes.items():
        if schema.variables[name].missing:
            column[rng.random(n) < missing] = len(schema.variables[name].states)
    kept = {name: numbers[name] for name in schema.numerics}
    return LocalData(schema.variables, codes, schema.numerics, kept)


def aggregated(plan, data, seed=b"reports"):
    aggregator = Aggregator(plan)
    aggregator.update(Client(plan, SeededRandomness(seed)).perturb_all(data))
    return aggregator


def z_scores(aggregator, truth):
    return (aggregator.sums("keep") - truth) / aggregator.errors()


@pytest.mark.parametrize("reports", ["one", "all", "all_at_full_eps"])
@pytest.mark.parametrize("approach", [1, 2, 3])
def test_estimates_are_unbiased_whatever_the_approach_and_who_answers_what(approach, reports):
    data = people(2000)
    aggregator = aggregated(
        ReportPlan(schema=SCHEMA, eps=3.0, reports=reports, approach=approach), data
    )
    scores = z_scores(aggregator, SCHEMA.measure(data))
    assert aggregator.people == 2000 and np.abs(scores).max() < Z
    assert np.abs(z_scores(aggregator, 2 * SCHEMA.measure(data))).max() > Z  # control


@pytest.mark.parametrize("oracle", ["de", "sue", "oue", "she", "the", "ss", "auto"])
def test_tables_are_unbiased_under_each_oracle(oracle):
    data = people(24_000 if oracle == "she" else 8000, CODES)  # its noise hides more
    aggregator = aggregated(ReportPlan(schema=CODES, eps=1.0, oracle=oracle), data)
    assert np.abs(z_scores(aggregator, CODES.measure(data))).max() < Z
    assert np.abs(z_scores(aggregator, CODES.measure(data)[::-1])).max() > Z  # control


@pytest.mark.laws
@pytest.mark.parametrize("approach", [2, 3])
def test_intervals_contain_the_truth_as_often_as_they_say(approach):
    schema = Schema(TARGET, {"age": SCHEMA.features["age"]}, centred=True)
    data, runs = people(300, schema), 150
    truth = schema.measure(data)[3:6]  # the sums of ages by class
    plan = ReportPlan(schema=schema, eps=2.0, approach=approach)
    inside = 0
    for run in range(runs):
        low, high = aggregated(plan, data, b"%d" % run).estimates()["age, ill"].interval(0.9)
        inside += int(((low[0] <= truth) & (truth <= high[0]))[run % 3])
    # the law of estimates from 100 people is not quite normal: .87 to .93 is accepted
    assert binom.cdf(inside, runs, 0.87) > 1e-5 and binom.sf(inside - 1, runs, 0.93) > 1e-5


def test_errors_shrink_to_those_of_the_choice_of_people_where_the_noise_does():
    data = people(3000, CODES)
    everybody = aggregated(ReportPlan(schema=CODES, eps=99.0, reports="all_at_full_eps"), data)
    some = aggregated(ReportPlan(schema=CODES, eps=99.0), data)
    assert everybody.errors().max() < 1e-3 < 10 < some.errors().min()
    assert np.allclose(everybody.sums(), CODES.measure(data))


def test_each_person_answers_one_question_of_all_with_equal_chance():
    plan = ReportPlan(schema=SCHEMA, eps=1.0, approach=2)
    reports = Client(plan).perturb_all(people(6000))
    assert [q.name for q in plan.questions] == [
        "ill", "fever, ill", "age, ill", "height, ill", "square of age, ill",
        "square of height, ill",
    ]  # fmt: skip
    assert len(reports) == 6000
    for question in plan.questions:
        assert 1e-6 < binom.cdf(len(reports.answers[question.name]), 6000, 1 / 6) < 1 - 1e-6


def test_a_promise_has_the_eps_of_all_that_a_person_reports():
    given = {"schema": SCHEMA, "eps": 0.7}
    one, split = ReportPlan(**given), ReportPlan(**given, reports="all")
    full = ReportPlan(**given, reports="all_at_full_eps")
    assert one.promise.eps == 0.7 == one.questions[0].eps
    assert sum(Fraction(q.eps) for q in split.questions) <= Fraction(0.7)
    assert math.isclose(split.promise.eps, 0.7)
    assert math.isclose(full.promise.eps, 6 * 0.7) and len(full.questions) == 6
    assert {p.promise.delta for p in (one, split, full)} == {0.0}
    assert "all that one person reports" in one.promise.sentence


@pytest.mark.parametrize("questions", [3, 7, 22, 43])
def test_the_parts_of_a_divided_eps_never_exceed_it(questions):
    features = {f"x{i}": Variable(f"x{i}", ("a", "b")) for i in range(questions - 1)}
    for eps in (0.1, 0.3, 1.0, 2.2, 5.0):
        plan = ReportPlan(schema=Schema(TARGET, features), eps=eps, reports="all", oracle="de")
        assert sum(Fraction(q.eps) for q in plan.questions) <= Fraction(eps) <= plan.promise.eps


@pytest.mark.parametrize("reports", ["one", "all"])
def test_streams_and_merged_aggregators_equal_all_reports_at_once(reports):
    plan = ReportPlan(schema=SCHEMA, eps=2.0, reports=reports, approach=2)
    client = Client(plan)
    batches = [client.perturb_all(people(200, seed=seed)) for seed in range(3)]
    together = Reports(
        {q.name: np.concatenate([b.answers[q.name] for b in batches]) for q in plan.questions}
    )
    streamed, once, other = Aggregator(plan), Aggregator(plan), Aggregator(plan)
    streamed.update(batches[0])
    other.update(batches[1])
    other.update(batches[2])
    streamed.merge(other)
    once.update(together)
    assert streamed.people == once.people == 600 and other.people == 400
    assert np.array_equal(streamed.sums(), once.sums())
    assert np.array_equal(streamed.errors(), once.errors())


def test_reports_can_be_stored_without_pickling():
    plan = ReportPlan(schema=SCHEMA, eps=2.0)
    reports, file = Client(plan).perturb_all(people(60)), io.BytesIO()
    np.savez(file, **reports.answers)
    file.seek(0)
    read = np.load(file, allow_pickle=False)
    one, other = Aggregator(plan), Aggregator(plan)
    one.update(reports)
    other.update(Reports(dict(read)))
    assert np.array_equal(one.sums(), other.sums())


def test_a_record_is_perturbed_as_a_column_of_one():
    plan = ReportPlan(schema=SCHEMA, eps=2.0**21, reports="all_at_full_eps")
    client, aggregator = Client(plan), Aggregator(plan)
    for age in (40, 1000):  # beyond the bound counts as the bound
        aggregator.update(client.perturb({"ill": "b", "fever": "yes", "age": age, "height": "1.5"}))
    estimates = aggregator.estimates()
    assert estimates["ill"].values.round().tolist() == [0, 0, 2]
    assert estimates["fever, ill"].values.round().tolist() == [[0, 0, 0], [0, 0, 2]]
    assert np.allclose(estimates["age, ill"].values / 2**11, [[0, 0, 0.8]], atol=1e-3)


def test_incomplete_records_are_left_out_of_what_they_are_incomplete_in():
    schema = Schema(
        replace(TARGET, missing=True),
        {
            "fever": Variable("fever", ("no", "yes"), missing=True),
            "age": SCHEMA.features["age"],
        },
        centred=True,
    )
    data = people(6000, schema, missing=0.3)
    aggregator = aggregated(ReportPlan(schema=schema, eps=3.0, approach=2), data)
    assert np.abs(z_scores(aggregator, schema.measure(data))).max() < Z
    assert schema.measure(data)[:3].sum() < 4500  # control: many are incomplete


def test_missing_values_that_the_plan_does_not_permit_are_refused():
    client = Client(ReportPlan(schema=SCHEMA, eps=1.0))
    record = {"ill": "no", "fever": "no", "age": 3, "height": 1.2}
    client.perturb(record)
    for name in record:
        for gap in (None, math.nan):
            with pytest.raises(DataError, match=f"{name}: .*missing"):
                client.perturb(record | {name: gap})
    allowed = Client(ReportPlan(schema=SCHEMA, eps=1.0, missing=True, bins=3))
    allowed.perturb(record | {"age": None, "height": math.nan})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fever": "perhaps"}, "fever: the value is not a declared state"),
        ({"ill": "c"}, "ill: the value is not a declared state"),
        ({"age": "old"}, "age: the value is not a number"),
        ({"age": math.inf}, "age: the value is infinite"),
    ],
)
def test_values_that_were_not_declared_are_refused_without_showing_them(change, message):
    record = {"ill": "no", "fever": "no", "age": 3, "height": 1.2}
    with pytest.raises(DataError, match=message) as caught:
        Client(ReportPlan(schema=SCHEMA, eps=1.0)).perturb(record | change)
    assert "perhaps" not in str(caught.value) and "old'" not in str(caught.value)


def test_data_of_another_schema_are_refused():
    client = Client(ReportPlan(schema=SCHEMA, eps=1.0))
    with pytest.raises(
        DataError, match="the client does not have 'age' between the declared bounds"
    ):
        client.perturb_all(people(5, CODES))
    other = replace(SCHEMA, features={**SCHEMA.features, "age": Numeric("age", 0, 99)})
    with pytest.raises(DataError, match=r"does not have 'age' between the declared bounds"):
        client.perturb_all(people(5, other))
    other = Schema(TARGET, {"fever": Variable("fever", ("yes", "no"))})
    with pytest.raises(DataError, match=r"does not have 'fever' in the declared states"):
        Client(ReportPlan(schema=CODES, eps=1.0)).perturb_all(people(5, other))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eps": 0.0}, "eps must be a finite number above 0, got 0.0"),
        ({"eps": -1.0}, "eps must be"),
        ({"eps": math.nan}, "eps must be"),
        ({"eps": math.inf}, "eps must be"),
        ({"reports": "two"}, "reports must be one of"),
        ({"oracle": "rappor"}, "oracle must be one of"),
        ({"approach": 4}, "approach must be one of"),
        ({"theta": 0.25}, "theta is a parameter of the oracle 'the'"),
        ({"theta": 2.0, "oracle": "the"}, "theta must be from 0 to 1"),
        ({"bins": 1}, "bins must be from 2 to 65000"),
        ({"eps": 1e-13, "approach": 2, "oracle": "de"}, "too small for one bit"),
        ({"eps": 1e-12, "approach": 3, "oracle": "de"}, "Delta / eps must be"),
    ],
)
def test_a_plan_refuses_parameters_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        ReportPlan(**{"schema": SCHEMA, "eps": 1.0} | given)


@pytest.mark.parametrize("bounds", [(0, math.inf), (1, 1), (2, 1), (math.nan, 1)])
def test_a_plan_refuses_numbers_without_bounds(bounds):
    schema = Schema(TARGET, {"age": Numeric("age", *bounds)})
    with pytest.raises(ValueError, match="age: bounds must be finite and ascend"):
        ReportPlan(schema=schema, eps=1.0)


def test_columns_whose_questions_would_have_one_name_are_refused():
    names = ("age", "square of age")
    schema = Schema(TARGET, {name: Numeric(name, 0, 1) for name in names})
    with pytest.raises(ValueError, match="two questions are named 'square of age, ill'"):
        ReportPlan(schema=schema, eps=1.0)


BAD = {
    "ill": np.array([3], np.uint32),
    "fever, ill": np.array([0.5]),
    "age, ill": np.array([[0, 0, 2**62]]),
    "height, ill": np.array([[0, 0]]),
    "square of age, ill": np.array([[0.0, math.nan, 0.0]]),
    "nobody asks this": np.array([0]),
}


@pytest.mark.parametrize("name", BAD)
def test_malformed_reports_of_strangers_are_refused_whole(name):
    plan = ReportPlan(schema=SCHEMA, eps=1.0, oracle="de")
    aggregator = aggregated(plan, people(50))
    good = Client(plan).perturb_all(people(50)).answers
    with pytest.raises(ValueError, match=r"must|not reports|no question"):
        aggregator.update(Reports({**good, name: BAD[name]}))
    assert aggregator.people == 50


@pytest.mark.parametrize("bad", [np.array([6], np.uint32), np.array([[1]], np.uint32),
                                 np.array([1]), np.array([-1])])  # fmt: skip
def test_malformed_bits_are_refused(bad):
    aggregator = Aggregator(ReportPlan(schema=SCHEMA, eps=1.0, approach=2))
    with pytest.raises(ValueError, match="answers must be uint32"):
        aggregator.update(Reports({"age, ill": bad}))


def test_people_who_must_answer_all_questions_cannot_leave_one_out():
    plan = ReportPlan(schema=CODES, eps=1.0, reports="all", oracle="de")
    answers = dict(Client(plan).perturb_all(people(9, CODES)).answers)
    answers["ill"] = answers["ill"][:-1]
    with pytest.raises(ValueError, match="each person answers all questions"):
        Aggregator(plan).update(Reports(answers))


def test_questions_that_nobody_answered_and_other_plans_are_named():
    plan = ReportPlan(schema=CODES, eps=1.0)
    empty = Aggregator(plan)
    with pytest.raises(ValueError, match="nobody has answered the question 'ill'"):
        empty.sums()
    with pytest.raises(ValueError, match="different plans"):
        empty.merge(Aggregator(replace(plan, eps=2.0)))
    with pytest.raises(ValueError, match="negative must be one of"):
        empty.sums("half")
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        aggregated(plan, people(99, CODES)).estimates()["ill"].interval(95)


def test_negative_counts_become_zero_or_one_person_of_those_asked():
    plan = ReportPlan(schema=CODES, eps=0.1, oracle="de")
    aggregator = aggregated(plan, people(200, CODES))
    kept, zero, one = (aggregator.sums(n) for n in ("keep", "zero", "one"))
    below, classes = kept < 0, np.arange(9) < 3
    assert below.any() and np.array_equal(zero, np.maximum(kept, 0))
    asked = {c: aggregator.tallies["ill" if c else "fever, ill"].n for c in (True, False)}
    weight = np.where(classes, 200 / asked[True], 200 / asked[False])
    assert np.allclose(one, np.where(below, weight, kept))


def test_bins_have_equal_width_over_the_bounds_and_names_that_say_so():
    schema = binned_schema(SCHEMA, 4, missing=True)
    age = schema.variables["age"]
    assert age.states == ("le_25", "from_25_to_50", "from_50_to_75", "gt_75") and age.missing
    assert len(bins_of(schema.variables["height"].states)) == 4
    values = np.array([-5, 0, 25, 25.01, 50, 75.5, 100, 999, np.nan])
    zeros = np.zeros(9, int)
    data = LocalData(
        SCHEMA.variables, {"ill": zeros, "fever": zeros}, SCHEMA.numerics,
        {"age": values, "height": np.full(9, 1.5)},
    )  # fmt: skip
    assert binned_data(schema, data).codes["age"].tolist() == [0, 0, 0, 1, 1, 3, 3, 3, 4]
    with pytest.raises(ValueError, match="too close for 4 bins"):
        binned_schema(Schema(TARGET, {"x": Numeric("x", 1.0, math.nextafter(1.0, 2))}), 4)


# Audits. Neighbours have other classes and the farthest numbers.

EPS = 1.0
COLUMNS = Numeric("x", -1, 1), Numeric("y", -1, 1)


def persons(neighbour, runs, value=1.0):
    numbers = np.full(runs, (value, -value)[neighbour])
    own = {column.name: column for column in COLUMNS}
    return LocalData(
        {"ill": TWO}, {"ill": np.full(runs, neighbour)}, own, dict.fromkeys(own, numbers)
    )


def audit(question, runs=100_000):
    return audited_eps(
        lambda neighbour, n: question.perturb(persons(neighbour, n), SeededRandomness()).astype(
            float
        ),
        runs,
    )


@pytest.mark.laws
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(
    ("kind", "columns"),
    [(LaplaceQuestion, COLUMNS), (OneBitQuestion, COLUMNS[:1]), (LaplaceQuestion, COLUMNS[:1])],
    ids=["approach 1", "approach 2", "approach 3"],
)
def test_an_audit_measures_no_more_than_eps_and_more_with_a_third_of_the_noise(
    kind, columns, power
):
    runs = 100_000 if power == 1 else 10_000
    assert audit(kind("honest", columns, power, TWO, EPS), runs) <= EPS
    third = kind("a third of the noise", columns, power, TWO, 3.3 * EPS)
    assert audit(third, 10_000) > EPS


def test_an_audit_finds_a_class_label_that_is_not_hidden():
    question = LaplaceQuestion("shows the class", COLUMNS[:1], 1, TWO, EPS)

    def mechanism(neighbour, runs):
        data = persons(neighbour, runs)
        noisy = question.perturb(data, SeededRandomness())
        return np.where(np.arange(2) == neighbour, noisy, 0).astype(float)  # no noise elsewhere

    assert audited_eps(mechanism, 10_000) > EPS


@pytest.mark.laws
@pytest.mark.parametrize(
    ("reports", "exceeds"), [("one", False), ("all", False), ("all_at_full_eps", True)]
)
def test_an_audit_of_whole_reports_shows_which_readings_keep_eps(reports, exceeds):
    schema = Schema(TWO, {column.name: column for column in COLUMNS}, centred=True)
    plan = ReportPlan(schema=schema, eps=EPS, reports=reports, approach=2, oracle="de")

    def mechanism(neighbour, runs):
        answers = Client(plan, SeededRandomness()).perturb_all(persons(neighbour, runs)).answers
        if reports != "one":
            return np.array([answers[q.name] for q in plan.questions], float).T
        numbered = enumerate(plan.questions)  # rows of persons in any order: which, and what
        return np.concatenate([4.0 * i + answers[q.name] for i, q in numbered])

    assert (audited_eps(mechanism, 100_000) > EPS) is exceeds
