"""Naive Bayes in a vertical split: pooled learning's scores, by sums and by products."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB

from mpc import additive_scheme
from mpc.aggregation import NEVER
from mpc.errors import DealReusedError, MalformedMessageError, UnexpectedMessageError
from mpc.rounds import Round
from mpc.scheduler import run_all
from protocols.federation import federate
from protocols.site.data import SiteData
from protocols.site.statistics import LocalData, Numeric
from protocols.transports.local import LocalTransport
from protocols.variables import Variable
from tests.randomness import SeededRandomness
from tests.schemes import SMALL, SumParameters
from vertibayes.counting import PlainCounter, SecureCounter
from vertibayes.naive_bayes.base import NaiveBayes, Schema
from vertibayes.naive_bayes.publication import PublishedTables, collect_tables, publish_tables
from vertibayes.naive_bayes.scores import Logarithms, Products, Split
from vertibayes.naive_bayes.vertical import (
    MINER,
    Miner,
    RecordNoise,
    Site,
    Study,
    count_tables,
    model_of,
    products,
    tables_of,
)


class Small(Logarithms):
    """In a modulus of 246 bits, which nobody may use."""

    scheme: ClassVar = SumParameters


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
    return Split(schema, holders, counts, alpha), pooled


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
    variant = Small(split, b"test", SMALL, bits)
    study = Study(variant, counted(split, pooled), SeededRandomness())
    joint = study.predict_joint_log_proba(apart(split, pooled))
    wanted = model.predict_joint_log_proba(pooled)
    assert np.abs(joint - wanted).max() <= variant.error + 1e-12
    best = np.sort(wanted, axis=1)
    clear = best[:, -1] - best[:, -2] > 2 * variant.error
    same = study.classes_[joint.argmax(axis=1)] == model.predict(pooled)
    assert same[clear].all() and (bits < 20 or clear.any())


def test_the_error_bound_is_not_idle():
    """At six bits scores are wrong by more than half of the bound: a tenth of it would fail."""
    split, pooled = world(3, sizes=(3, 2, 4, 3), n=200)
    variant = Small(split, b"test", SMALL, 6)
    study = Study(variant, counted(split, pooled), SeededRandomness())
    wanted = NaiveBayes(split.schema).fit(pooled).predict_joint_log_proba(pooled)
    off = np.abs(study.predict_joint_log_proba(apart(split, pooled)) - wanted).max()
    assert variant.error == 3 / 2**7 and variant.error / 2 < off <= variant.error


def test_products_are_pooled_scores():
    split, pooled = world(n=12, alpha=2.0)
    tables = counted(split, pooled)
    study = Study(products(split, tables, b"test", 2048), tables, SeededRandomness())
    model = NaiveBayes(split.schema, alpha=2.0).fit(pooled)
    joint = study.predict_joint_log_proba(apart(split, pooled))
    assert joint == pytest.approx(model.predict_joint_log_proba(pooled), abs=1e-12)
    assert study.predict_log_proba(apart(split, pooled)) == pytest.approx(
        model.predict_log_proba(pooled), abs=1e-12
    )
    assert study.time == 1 and study.bytes["site-0"] > 12 * 3 * 256


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
    own = {site: tables_of(model, names) for site, names in split.holders.items()}
    study = Study(Small(split, b"test", SMALL), own, SeededRandomness())
    assert study.predict(apart(split, pooled)).tolist() == [f"s{k}" for k in theirs.predict(x)]


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
    study = Study(Small(split, b"test", SMALL), tables, SeededRandomness())
    wanted = model_of(split, together(tables))
    for _ in range(2):
        found = study.predict_log_proba(apart(split, pooled))
        assert found == pytest.approx(wanted.predict_log_proba(pooled), abs=1e-8)
        assert np.isfinite(found).all()
    assert study.time == 1 and len(drawn) == 2, "scores are of the noise that was drawn"


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
    assert ours.promise(split.schema)["eps_of_a_record"] == pytest.approx(0.6)
    assert theirs.promise(split.schema)["eps_of_a_record"] == pytest.approx(1.8)


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


# ---- what the miner can read off scores ----------------------------------------------------------


def tables_from_scores(split, study):
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
    joint = study.predict_joint_log_proba(apart(split, LocalData(split.schema.variables, codes)))
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
    tables = counted(split, pooled)
    study = Study(Small(split, b"test", SMALL), tables, SeededRandomness())
    found, records = tables_from_scores(split, study)
    assert records == 1 + 2 + 1 + 3
    for name, table in together(tables).items():
        assert np.array_equal(np.rint(found[name]), table)


def test_they_tell_noisy_tables_no_more_than_these():
    """The scores are a function of the noisy tables; what is read off them is not the counts."""
    split, pooled = world(8, sizes=(3, 2, 4), n=500, missing=False)
    noise = RecordNoise(0.3).of_a_table(split.schema)
    study = Study(Small(split, b"test", SMALL), counted(split, pooled, noise), SeededRandomness())
    found, _ = tables_from_scores(split, study)
    exact = together(counted(split, pooled))
    wrong = np.concatenate([(np.rint(found[n]) != exact[n]).ravel() for n in exact])
    assert wrong.mean() > 0.6


def test_a_sum_of_logarithms_tells_the_product():
    """The default hides no more than the published variant, where counts are small."""
    split, pooled = world(9, sizes=(3, 2, 4), n=300, missing=False)
    tables = counted(split, pooled)
    study = Study(Small(split, b"test", SMALL), tables, SeededRandomness())
    joint = study.predict_joint_log_proba(apart(split, pooled))[:, 0]
    n_j = split.class_counts[0]
    prior = math.log(n_j / sum(split.class_counts))
    divisors = math.prod(n_j + len(v.states) for v in split.schema.features.values())
    read = np.exp(joint - prior) * divisors
    codes = pooled.codes
    wanted = np.prod([together(tables)[n][codes[n], 0] + 1 for n in ("x0", "x1", "x2")], axis=0)
    assert np.array_equal(np.rint(read), wanted) and np.abs(read - np.rint(read)).max() < 0.01


# ---- what is refused -----------------------------------------------------------------------------


def test_a_time_is_used_once():
    split, pooled = world(n=9)
    variant = Small(split, b"test", SMALL)
    keys = variant.deal(SeededRandomness())
    tables, data = counted(split, pooled), apart(split, pooled)
    sites = {s: Site(variant, s, tables[s], k, last_time=4) for s, k in keys.parties.items()}
    with pytest.raises(DealReusedError, match="time 4 comes after 4"):
        next(sites["site-0"].answer(data["site-0"], 4))
    programs = {site: held.answer(data[site], 5) for site, held in sites.items()}
    outputs, _ = run_all(programs | {MINER: Miner(variant, keys.miner).classify(9, 5)})
    assert sites["site-0"].last_time == 5 and outputs[MINER].shape == (9, 3)
    assert repr(sites["site-0"]) == "Site('site-0', last_time=5)"


def messages(variant, split, pooled, time=1, records=None):
    keys = variant.deal(SeededRandomness())
    tables, data = counted(split, pooled), apart(split, records or pooled)
    sites = {s: Site(variant, s, tables[s], k, last_time=NEVER) for s, k in keys.parties.items()}
    programs = {site: held.answer(data[site], time) for site, held in sites.items()}
    return programs, keys.miner


def test_sites_that_agreed_on_something_else_are_named():
    split, pooled = world(n=9)
    other = Small(Split(split.schema, split.holders, split.class_counts, 2.0), b"test", SMALL)
    ours, key = messages(Small(split, b"test", SMALL), split, pooled)
    theirs, _ = messages(other, split, pooled)
    mixed = ours | {"site-1": theirs["site-1"]}
    with pytest.raises(UnexpectedMessageError, match=r"site-1.*other parameters"):
        run_all(mixed | {MINER: Miner(Small(split, b"test", SMALL), key).classify(9, 1)})


def test_a_wrong_number_of_records_names_the_site():
    split, pooled = world(n=30)
    variant = Small(split, b"test", SMALL)
    few, _ = messages(variant, split, pooled, records=pooled.rows(np.arange(3)))
    all_of_them, key = messages(variant, split, pooled)
    mixed = all_of_them | {"site-0": few["site-0"]}
    with pytest.raises(MalformedMessageError, match=r"site-0.*counts, wanted"):
        run_all(mixed | {MINER: Miner(variant, key).classify(30, 1)})


def test_records_that_do_not_fit():
    split, pooled = world(n=9)
    study = Study(Small(split, b"test", SMALL), counted(split, pooled), SeededRandomness())
    data = apart(split, pooled)
    with pytest.raises(ValueError, match="records of site-0, site-1 are wanted"):
        study.predict({"site-0": data["site-0"]})
    with pytest.raises(ValueError, match=r"equally many records.*site-0 4, site-1 9"):
        study.predict(data | {"site-0": data["site-0"].rows(np.arange(4))})
    with pytest.raises(ValueError, match="one at least"):
        study.predict({site: held.rows(np.arange(0)) for site, held in data.items()})
    other = LocalData({"x0": Variable("x0", ("a", "b"))}, {"x0": np.zeros(9, int)})
    with pytest.raises(ValueError, match="no 'x0' in the declared states"):
        study.predict(data | {"site-0": other})
    assert study.predict(data).shape == (9,), "and the study goes on"


def test_tables_and_classes_that_do_not_fit():
    split, pooled = world(n=9)
    tables = counted(split, pooled)
    wrong = Split(split.schema, split.holders, (1, 1, 7))
    with pytest.raises(ValueError, match="site-0: its records have other counts of classes"):
        counted(wrong, LocalData(pooled.variables, {**pooled.codes, "y": np.arange(9) % 3}))
    swapped = {"site-0": tables["site-1"], "site-1": tables["site-0"]}
    with pytest.raises(ValueError, match="site-0: tables of x0 are wanted"):
        Study(Small(split, b"test", SMALL), swapped)
    short = tables | {"site-0": {"x0": tables["site-0"]["x0"][:1]}}
    with pytest.raises(ValueError, match="the table of x0 has another shape"):
        Study(Small(split, b"test", SMALL), short)
    with pytest.raises(ValueError, match="no 'y' in the declared states"):
        count_tables(split, "site-0", LocalData({"x0": pooled.variables["x0"]},
                                                {"x0": pooled.codes["x0"]}))  # fmt: skip


Y, A, B = (Variable(name, ("0", "1")) for name in "yab")
AB = Schema(Y, {"a": A, "b": B})
HELD = {"s": ("a",), "t": ("b",)}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Split(AB, {"s": ("a", "b")}, (1, 1)), "1 sites: two at least"),
        (lambda: Split(AB, {**HELD, "u": ()}, (1, 1)), "the site u holds no feature"),
        (lambda: Split(AB, {"s": ("a",), "t": ("a", "b")}, (1, 1)), "feature a is at two sites"),
        (lambda: Split(AB, {"s": ("a",), "t": ("c",)}, (1, 1)), "c is no feature"),
        (lambda: Split(AB, {"s": ("a",), "t": ("y",)}, (1, 1)), "y is no feature"),
        (lambda: Split(Schema(Y, {"a": A, "b": B, "c": Variable("c", ("0", "1"))}), HELD, (1, 1)),
         "at no site: c"),
        (lambda: Split(Schema(Y, {"z": Numeric("z", 0, 1)}), HELD, (1, 1)), "z is a number"),
        (lambda: Split(AB, HELD, (1, 1), 0.0), "alpha = 0.0: a finite number above 0"),
        (lambda: Split(AB, HELD, (1, 1), math.nan), "alpha = nan"),
        (lambda: Split(AB, HELD, (1,)), "a count of each class of y"),
        (lambda: Split(AB, HELD, (1, -1)), "a count of each class of y"),
        (lambda: Split(AB, HELD, (5, 0)), "y has records of one class"),
        (lambda: RecordNoise(0.0), "eps = 0.0"),
        (lambda: RecordNoise(-1.0), "eps = -1.0"),
        (lambda: RecordNoise(math.nan), "eps = nan"),
        (lambda: RecordNoise(1.0, "site"), "accounting site: one of record, count"),
        (lambda: Logarithms(Split(AB, HELD, (1, 1)), b"", SMALL), "246 bits: 2048 at least"),
        (lambda: Small(Split(AB, HELD, (1, 1)), b"", SMALL, 0), "0 fractional bits: 1 to 40"),
        (lambda: Small(wide(40_000), b"", SMALL, 40), r"below 2\*\*62 is wanted"),
        (lambda: Products(Split(AB, HELD, (1, 1), 0.5), b"", {}), "products are of whole numbers"),
        (lambda: Products(Split(AB, HELD, (1, 1)), b"", {"a": (3, 3)}), "totals of each feature"),
        (lambda: Products(Split(AB, HELD, (1, 1)), b"", {"a": (3, 3), "b": (3, 9)}),
         "b: no totals of its table"),
        (lambda: too_large(), r"at most \(p - 1\) / 2 of 2048 bits"),
    ],
)  # fmt: skip
def test_what_cannot_be(make, reason):
    with pytest.raises(ValueError, match=reason):
        make()


def wide(features):
    """So many binary features that a sum of logarithms leaves its slot."""
    named = {f"x{i}": Variable(f"x{i}", ("0", "1")) for i in range(features)}
    names = list(named)
    return Split(Schema(Y, named), {"s": names[::2], "t": names[1::2]}, (10**9, 10**9), 1e-300)


def too_large():
    names = [f"x{i}" for i in range(100)]
    schema = Schema(Y, {n: Variable(n, ("0", "1")) for n in names})
    split = Split(schema, {n: (n,) for n in names}, (10**6, 10**6))
    return Products(split, b"", dict.fromkeys(names, (10**6 + 2, 10**6 + 2)))


def publish(split, tables, forged=None):
    """Run the publication, with one site's message replaced."""
    programs = {site: publish_tables(split, site, held, MINER) for site, held in tables.items()}
    if forged is not None:
        programs["site-0"] = iter([Round({MINER: PublishedTables(forged)}, {})])
    transport = LocalTransport(MINER, {s: _as_program(p) for s, p in programs.items()})
    return transport.run(collect_tables(split))


def _as_program(rounds):
    yield from rounds


def test_tables_are_published_as_they_are():
    split, pooled = world(n=40)
    tables = counted(split, pooled)
    found = publish(split, tables)
    assert set(found) == set(split.schema.features)
    assert all(np.array_equal(found[n], t) for n, t in together(tables).items())


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (np.zeros(8, np.int64), "tables of 9 counts"),
        (np.zeros((3, 3), np.int64), "tables of 9 counts"),
        (np.zeros(9, np.float64), "tables of 9 counts"),
        (np.full(9, -1, np.int64), "a count of x0 beyond"),
        (np.full(9, 1000, np.int64), "a count of x0 beyond"),
        (np.zeros(900, np.int64), ""),
    ],
)
def test_forged_tables_name_their_site(forged, reason):
    split, pooled = world(n=40)
    with pytest.raises(MalformedMessageError, match=f"site-0.*{reason}"):
        publish(split, counted(split, pooled), forged)


def test_a_class_without_records_is_never_chosen():
    schema = Schema(Variable("y", states(3)), {"a": A, "b": B})
    codes = {"y": np.array([0, 1, 1]), "a": np.array([0, 1, 1]), "b": np.array([2, 1, 0])}
    pooled = LocalData(schema.variables, codes)
    split = Split(schema, HELD, (1, 2, 0))
    study = Study(Small(split, b"test", SMALL), counted(split, pooled), SeededRandomness())
    found = study.predict_log_proba(apart(split, pooled))
    assert np.isneginf(found[:, 2]).all() and not np.isnan(found).any()
    assert np.exp(found).sum(axis=1) == pytest.approx(1)


def test_the_additive_scheme_is_the_real_one_by_default():
    assert Logarithms.scheme is additive_scheme.Parameters
