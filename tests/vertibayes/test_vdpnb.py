"""Naive Bayes in a vertical split: pooled learning's scores, by sums and by products."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB

from tests.schemes import SMALL, SumParameters
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.naive_bayes.base import NaiveBayes, log_proba
from vertibayes.naive_bayes.vertical import (
    model_of,
    most_probable,
    predict_joint_log_proba,
    tables_of,
)
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.federation import DEALER, federate
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Publish, Scores
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.scoring import Logarithms
from vertibayes_protocols.queries.columns.split import Split, count_tables
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable


def short(modulus, *bounds):
    """Parameters of a modulus of 246 bits, which nobody may use."""
    return SumParameters(SMALL, *bounds)


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Logarithms, "scheme", staticmethod(short))


def states(count):
    return tuple(f"s{i}" for i in range(count))


def world(seed=1, sizes=(3, 2, 4), classes=3, n=60, missing=True, alpha=1.0):
    """Records of features at a site each, the class known to all: a split, and each site's data."""
    generator = np.random.default_rng(seed)
    target = Variable("y", states(classes))
    features = {f"x{i}": Variable(f"x{i}", states(size)) for i, size in enumerate(sizes)}
    schema = Schema(target, features)
    y = np.append(np.arange(classes), generator.integers(0, classes, n - classes))
    codes = {n_: generator.integers(0, len(v.states) + missing, n) for n_, v in features.items()}
    pooled = LocalData(schema.variables, {"y": y, **codes})
    holders = {f"site-{i}": (f"x{i}",) for i in range(len(sizes) - 1)}
    holders[f"site-{len(sizes) - 2}"] += (f"x{len(sizes) - 1}",)
    counts = tuple(np.bincount(y, minlength=classes).tolist())
    return Split.of(schema, holders, counts, alpha), pooled


def apart(split, pooled):
    """Give each site its features, and the class."""
    return {
        site: LocalData(
            {n: pooled.variables[n] for n in (*held, "y")},
            {n: pooled.codes[n] for n in (*held, "y")},
        )
        for site, held in split.holders.items()
    }


def counted(split, pooled, noise=None):
    more = {} if noise is None else {"noise": noise}
    return {s: count_tables(split, s, d, **more) for s, d in apart(split, pooled).items()}


def sites_of(split, pooled, *names):
    """Give each site its features, as a site holds them, and further columns."""
    found = {}
    for site, held in split.holders.items():
        variables = {n: Variable(n, pooled.variables[n].states, True) for n in (*held, *names)}
        codes = {n: np.asarray(pooled.codes[n], np.uint16) for n in variables}
        found[site] = SiteData(variables, codes)
    return found


def scores(split, tables, pooled, via="additive", bits=None):
    """Predict all records over the sites."""
    places = 0, pooled.records
    with federate(sites_of(split, pooled), policy=ALLOW_ALL) as world:
        if bits is None:
            return predict_joint_log_proba(world.session, DEALER, split, tables, places, via)
        query = Scores.of(world.session.role, split, DEALER, tables, places)
        return world.session.ask(replace(query, precision=bits))


def together(tables):
    return {name: table for held in tables.values() for name, table in held.items()}


@st.composite
def worlds(draw):
    sizes = draw(st.lists(st.integers(2, 4), min_size=3, max_size=4))
    return world(
        draw(st.integers(0, 2**32)), sizes, draw(st.integers(2, 4)), draw(st.integers(5, 40)),
        draw(st.booleans()), draw(st.sampled_from([0.3, 1.0, 2.0])),
    )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(worlds(), st.sampled_from([6, 20, 32]))
def test_sums_of_logarithms_are_pooled_scores_to_the_precision(found, bits):
    split, pooled = found
    model = NaiveBayes(split.schema, alpha=split.alpha).fit(pooled)
    error = Logarithms(split, b"test", SMALL, bits).error
    joint = scores(split, together(counted(split, pooled)), pooled, bits=bits)
    wanted = model.predict_joint_log_proba(pooled)
    assert np.abs(joint - wanted).max() <= error + 1e-12
    best = np.sort(wanted, axis=1)
    clear = best[:, -1] - best[:, -2] > 2 * error
    same = most_probable(split, joint) == model.predict(pooled)
    assert same[clear].all() and (bits < 20 or clear.any())


def test_the_error_bound_is_not_idle():
    """At six bits scores are wrong by more than half of the bound: a tenth of it would fail."""
    split, pooled = world(3, sizes=(3, 2, 4, 3), n=200)
    error = Logarithms(split, b"test", SMALL, 6).error
    joint = scores(split, together(counted(split, pooled)), pooled, bits=6)
    wanted = NaiveBayes(split.schema).fit(pooled).predict_joint_log_proba(pooled)
    off = np.abs(joint - wanted).max()
    assert error == 3 / 2**7 and error / 2 < off <= error


def test_products_are_pooled_scores():
    split, pooled = world(n=12, alpha=2.0)
    model = NaiveBayes(split.schema, alpha=2.0).fit(pooled)
    joint = scores(split, together(counted(split, pooled)), pooled, "product")
    assert joint == pytest.approx(model.predict_joint_log_proba(pooled), abs=1e-12)
    assert log_proba(joint) == pytest.approx(model.predict_log_proba(pooled), abs=1e-12)


def test_training_over_sites_is_scikit_learns():
    """The class at one site alone: tables through a federation, pooled, and scikit-learn's."""
    split, pooled = world(5, sizes=(3, 2, 4), n=120, missing=False)
    x = np.array([pooled.codes[n] for n in split.schema.categorical]).T
    least = [len(v.states) for v in split.schema.features.values()]
    theirs = CategoricalNB(min_categories=least).fit(x, pooled.codes["y"])
    data = SiteData(pooled.variables, {n: c.astype(np.uint8) for n, c in pooled.codes.items()})
    held = {"a": ("x0", "x1"), "b": ("x2", "y")}
    with federate({site: data.take(names) for site, names in held.items()}) as federation:
        model = NaiveBayes(split.schema).fit_counter(SecureCounter.of(federation))
    plain = NaiveBayes(split.schema).fit_counter(PlainCounter(data))
    published = model_of(split, together(counted(split, pooled)))
    for ours in (model, plain, published):
        assert ours.class_log_prior_ == pytest.approx(theirs.class_log_prior_, abs=1e-12)
        for name, wanted in zip(split.schema.categorical, theirs.feature_log_prob_, strict=True):
            assert ours.feature_log_prob_[name] == pytest.approx(wanted, abs=1e-12)
    joint = scores(split, tables_of(model, split.schema.categorical), pooled)
    assert most_probable(split, joint).tolist() == [f"s{k}" for k in theirs.predict(x)]


def test_noise_is_drawn_once_and_clipped():
    split, pooled = world(n=40)
    drawn = []

    def noise(count):
        drawn.append(count)
        return np.resize(np.array([-100, 1, 100]), count)

    tables = counted(split, pooled, noise)
    assert drawn == [3 * 3, (2 + 4) * 3]
    exact = together(counted(split, pooled))
    for name, table in together(tables).items():
        assert (table >= 0).all() and (table <= np.array(split.class_counts)).all()
        assert (table[:, 0] == 0).all(), "every first noise is -100"
        assert (table[:, 1] == np.minimum(exact[name][:, 1] + 1, split.class_counts[1])).all()
    wanted = model_of(split, together(tables))
    for _ in range(2):
        found = log_proba(scores(split, together(tables), pooled))
        assert found == pytest.approx(wanted.predict_log_proba(pooled), abs=1e-8)
        assert np.isfinite(found).all()
    assert len(drawn) == 2, "scores are of the noise that was drawn"


def test_sites_publish_noisy_tables_once_and_they_are_a_model():
    split, pooled = world(6, n=300)
    with federate(sites_of(split, pooled, "y"), policy=ALLOW_ALL) as sites:
        tables = sites.session.ask(Publish.of(split, RecordNoise(300.0)))
        again = sites.session.ask(Publish.of(split, RecordNoise(0.3)))
    exact = together(counted(split, pooled))
    assert list(tables) == list(split.schema.features)
    for name, table in tables.items():
        assert np.array_equal(table, exact[name]), "so little noise is none"
        assert not np.array_equal(again[name], exact[name])
    assert model_of(split, tables).score(pooled) == NaiveBayes(split.schema).fit(pooled).score(
        pooled
    )


def test_tables_of_a_noisy_model_are_never_negative():
    split, _ = world(sizes=(3, 2, 4))
    sums = np.resize(np.array([9, -4, 2]), 3 + 9 * 3)
    model = NaiveBayes(split.schema).fit_sums(sums)
    found = tables_of(model, ["x2", "x0"])
    assert list(found) == ["x2", "x0"] and found["x2"].shape == (4, 3)
    assert sorted(set(found["x0"].ravel().tolist())) == [0, 2, 9]


def test_the_promise_adds_up():
    split, _ = world()
    ours, theirs = RecordNoise(0.6), RecordNoise(0.6, "count")
    assert ours.of_a_table(split.schema).eps == pytest.approx(0.2)
    assert theirs.of_a_table(split.schema).eps == 0.6
    assert ours.promise(split.schema).eps == pytest.approx(0.6)
    assert theirs.promise(split.schema).eps == pytest.approx(1.8)
    assert ours.promise(split.schema).cost == Cost.of(ours.promise(split.schema).eps)


def test_one_more_known_value_changes_one_count_by_one():
    split, pooled = world(missing=False)
    before = together(counted(split, pooled))
    lost = pooled.codes["x2"].copy()
    lost[7] = 4
    after = LocalData(pooled.variables, {**pooled.codes, "x2": lost})
    change = {n: t - together(counted(split, after))[n] for n, t in before.items()}
    assert np.abs(change["x2"]).sum() == 1
    assert not change["x0"].any() and not change["x1"].any()


def test_opendps_noise_is_about_as_large_as_promised():
    split, pooled = world(6, n=30_000, missing=False)
    exact = together(counted(split, pooled))
    noise = RecordNoise(0.3).of_a_table(split.schema)
    noisy = [together(counted(split, pooled, noise)) for _ in range(60)]
    off = np.concatenate([(t[n] - exact[n]).ravel() for t in noisy for n in exact])
    assert off.var() == pytest.approx(1 / (2 * math.sinh(0.05) ** 2), rel=0.25)  # eps = .1 each


# ---- what the aggregator can read off scores -----------------------------------------------------


def tables_from_scores(split, tables):
    """The attack: a base record, and all that differ from it in one value."""
    names = split.schema.categorical
    records = [dict.fromkeys(names, 0)]
    records += [
        {**records[0], n: code}
        for n in names
        for code in range(1, len(split.schema.variables[n].states))
    ]
    codes = {n: np.array([record[n] for record in records]) for n in names}
    codes["y"] = np.zeros(len(records), int)
    joint = scores(split, tables, LocalData(split.schema.variables, codes))
    found, at = {}, 1
    for name in names:
        count = len(split.schema.variables[name].states)
        ratios = np.vstack([np.zeros(joint.shape[1]), joint[at : at + count - 1] - joint[0]])
        shares = np.exp(ratios) / np.exp(ratios).sum(axis=0)
        found[name] = shares * (np.array(split.class_counts) + count * split.alpha) - split.alpha
        at += count - 1
    return found, len(records)


def test_chosen_records_tell_all_tables():
    split, pooled = world(8, sizes=(3, 2, 4), n=500, missing=False)
    tables = together(counted(split, pooled))
    found, records = tables_from_scores(split, tables)
    assert records == 1 + 2 + 1 + 3
    for name, table in tables.items():
        assert np.array_equal(np.rint(found[name]), table)


def test_they_tell_noisy_tables_no_more_than_these():
    """The scores are a function of the noisy tables; what is read off them is not the counts."""
    split, pooled = world(8, sizes=(3, 2, 4), n=500, missing=False)
    noise = RecordNoise(0.3).of_a_table(split.schema)
    found, _ = tables_from_scores(split, together(counted(split, pooled, noise)))
    exact = together(counted(split, pooled))
    wrong = np.concatenate([(np.rint(found[n]) != exact[n]).ravel() for n in exact])
    assert wrong.mean() > 0.6


def test_a_sum_of_logarithms_tells_the_product():
    """The default hides no more than the published variant, where counts are small."""
    split, pooled = world(9, sizes=(3, 2, 4), n=300, missing=False)
    tables = together(counted(split, pooled))
    joint = scores(split, tables, pooled)[:, 0]
    n_j = split.class_counts[0]
    prior = math.log(n_j / sum(split.class_counts))
    divisors = math.prod(n_j + len(v.states) for v in split.schema.features.values())
    read = np.exp(joint - prior) * divisors
    codes = pooled.codes
    wanted = np.prod([tables[n][codes[n], 0] + 1 for n in ("x0", "x1", "x2")], axis=0)
    assert np.array_equal(np.rint(read), wanted) and np.abs(read - np.rint(read)).max() < 0.01
