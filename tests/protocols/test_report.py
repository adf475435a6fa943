"""Reports of the people whom sites hold: what is asked, refused, charged and shown."""

from dataclasses import fields, replace

import numpy as np
import pytest

from tests.protocols.small import received, refusal_at
from tests.vertibayes.hdpnb_worlds import SCHEMA, federation_of, join_all, parties, watch
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.local import learn_reports
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_protocols.local_reports import Projection, ReportPlan
from vertibayes_protocols.queries import Report
from vertibayes_protocols.queries.reports.report import Perturbed
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

Z = Numeric("z", -2.0, 2.0)
MIXED = Schema(SCHEMA.target, {"a": SCHEMA.features["a"], "z": Z})
TOO_CLOSE = Schema(SCHEMA.target, {"x": Numeric("x", 1.0, np.nextafter(1.0, 2))})


def forged(value, **changes):
    """Return a copy that its own constructor did not check."""
    made = object.__new__(type(value))
    for item in fields(value):
        changed = changes.get(item.name, getattr(value, item.name))
        object.__setattr__(made, item.name, changed)
    return made


def query_of(federation, most_records=500, schema=SCHEMA, eps=1.0, **given):
    plan = ReportPlan(schema=schema, eps=eps, **given)
    return Report(tuple(sorted(federation.roles)), plan, most_records)


def mixed(count, seed):
    draw = np.random.default_rng(seed)
    codes = {n: draw.integers(0, len(v.states), count) for n, v in MIXED.variables.items()}
    return LocalData(MIXED.variables, codes, {"z": Z}, {"z": draw.normal(codes["y"] - 1, 0.5)})


def ask(federation, query):
    with federation.session() as session:
        return session.ask(query)


@pytest.mark.parametrize("reports", ["one", "all"])
@pytest.mark.parametrize("oracle", ["auto", "de", "sue", "oue", "she", "the", "ss"])
def test_each_person_of_all_sites_is_counted(oracle, reports):
    federation = federation_of(parties(5, 40))
    aggregator = ask(federation, query_of(federation, oracle=oracle, reports=reports))
    assert aggregator.people == 200


def test_with_a_large_eps_the_model_is_that_of_all_records():
    held = parties(4, 2500)
    federation = federation_of(held)
    aggregator = ask(federation, query_of(federation, 2500, eps=20.0))
    model = learn_reports(aggregator)
    exact = NaiveBayes(SCHEMA).fit(join_all(held.values()))
    assert np.exp(model.class_log_prior_) == pytest.approx(np.exp(exact.class_log_prior_), abs=0.03)
    for name, table in model.feature_log_prob_.items():
        assert np.exp(table) == pytest.approx(np.exp(exact.feature_log_prob_[name]), abs=0.08)


@pytest.mark.parametrize("how", [{"bins": 4}, {"approach": 1}, {"approach": 2}, {"approach": 3}])
def test_numbers_are_reported_in_each_way(how):
    held = {f"p{i}": mixed(800, i) for i in range(3)}
    federation = federation_of(held)
    aggregator = ask(federation, query_of(federation, 800, MIXED, eps=8.0, **how))
    model = learn_reports(aggregator)
    tested = aggregator.plan.prepare(mixed(300, 9))
    assert model.score(tested) > 0.45, "chance is a third; the exact model has about .65"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"most_records": 39}, "more records than the 39 agreed"),
        ({"parties": ("p01",)}, "not among the sites that are asked"),
        ({"asked": ReportPlan(schema=TOO_CLOSE, eps=1.0, bins=4)}, "too close for 4 bins"),
    ],
)
def test_a_query_that_cannot_be_run_is_refused(changes, reason):
    federation = federation_of(parties(2, 40))
    query = replace(query_of(federation), **changes)
    assert reason in refusal_at(federation.roles["p00"], query)


ONE_STATE = {"target": Variable("y", ("s0",))}
FORGED = [
    ({"eps": 0.0}, "eps must be a finite number above 0"),
    ({"eps": np.nan}, "eps must be a finite number above 0"),
    ({"oracle": "own"}, "oracle must be one of"),
    ({"reports": "some"}, "reports must be one of"),
    ({"approach": 4}, "approach must be one of"),
    ({"theta": 0.5}, "theta is a parameter of the oracle 'the'"),
    ({"oracle": "the", "theta": 1.5}, "theta must be from 0 to 1"),
    ({"schema": ("y", "a")}, "not of the type Schema"),
    ({"schema": forged(SCHEMA, **ONE_STATE)}, "fewer than two classes"),
    ({"schema": forged(SCHEMA, target=SCHEMA.features["a"])}, "the target a is a feature too"),
    ({"schema": forged(SCHEMA, features={"b": Z})}, "the feature b is named 'z'"),
    ({"schema": forged(SCHEMA, features={"z": ("z", 0.0)})}, "not of the type"),
    ({"schema": forged(SCHEMA, features={"z": Numeric("z", 1.0, 1.0)})}, "finite and ascend"),
]


@pytest.mark.parametrize(("changes", "reason"), FORGED)
def test_a_plan_that_cannot_be_is_not_read(changes, reason):
    query = query_of(federation_of(parties(2, 40)))
    assert received(query) == query
    hostile = forged(query, asked=forged(query.asked, **changes))
    with pytest.raises(MalformedMessageError, match=reason):
        received(hostile)


def test_what_no_site_can_answer_makes_no_query():
    plan = ReportPlan(schema=MIXED, eps=1.0, projection=Projection((Z,), ((1.0,),)))
    with pytest.raises(ValueError, match="use a plan without a projection"):
        Report(("p00",), plan, 9)
    with pytest.raises(ValueError, match="most_records must be at least 1, got 0"):
        Report(("p00",), replace(plan, projection=None), 0)


def test_missing_values_are_reported_where_the_plan_permits_them():
    y, a = SCHEMA.variables["y"], SCHEMA.variables["a"]
    data = LocalData({"y": y, "a": a}, {"y": np.array([0, 1, 2]), "a": np.array([4, 0, 1])})
    federation = federation_of({"p0": data, "p1": data})
    strict = query_of(federation, schema=Schema(y, {"a": a}))
    assert "a: a value is missing" in refusal_at(federation.roles["p0"], strict)
    schema = Schema(y, {"a": Variable("a", a.states, missing=True)})
    assert ask(federation, query_of(federation, schema=schema)).people == 6


@pytest.mark.parametrize(
    "change",
    [
        {"questions": ("y", "y"), "answers": (np.zeros(1, np.uint32),) * 2},
        {"questions": ("y",), "answers": ()},
        {"questions": ("q",), "answers": (np.zeros(1, np.uint32),)},
        {"questions": ("y",), "answers": (np.array([3], np.uint32),)},
        {"questions": ("y",), "answers": (np.zeros((1, 2)),)},
        {"questions": ("y",), "answers": (np.array(0, np.uint32),)},
    ],
)
def test_reports_that_no_client_makes_blame_their_site(change):
    federation = federation_of(parties(2, 40))

    def note(transport, sent):
        if isinstance(sent.message, Perturbed) and sent.sender == "p01":
            return replace(sent.message, **change)
        return None

    watch(federation, note)
    with pytest.raises(MalformedMessageError, match="p01"):
        ask(federation, query_of(federation, oracle="de"))
