"""VDPNB: what callers and peers may do wrong, and tables as they are published."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mpc import additive_scheme
from mpc.aggregation import NEVER
from mpc.errors import DealReusedError, MalformedMessageError, UnexpectedMessageError
from mpc.rounds import Round
from mpc.scheduler import run_all
from protocols.site.statistics import LocalData, Numeric
from protocols.transports.local import LocalTransport
from protocols.variables import Variable
from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from tests.vertibayes.test_vdpnb import Small, apart, counted, states, together, world
from vertibayes.naive_bayes.base import Schema
from vertibayes.naive_bayes.publication import PublishedTables, collect_tables, publish_tables
from vertibayes.naive_bayes.scores import Logarithms, Products, Split
from vertibayes.naive_bayes.vertical import (
    AGGREGATOR,
    Aggregator,
    RecordNoise,
    Site,
    Study,
    count_tables,
)


def test_a_time_is_used_once():
    split, pooled = world(n=9)
    variant = Small(split, b"test", SMALL)
    keys = variant.deal(SeededRandomness())
    tables, data = counted(split, pooled), apart(split, pooled)
    sites = {s: Site(variant, s, tables[s], k, last_time=4) for s, k in keys.parties.items()}
    with pytest.raises(DealReusedError, match="time 4 comes after 4"):
        next(sites["site-0"].answer(data["site-0"], 4))
    programs = {site: held.answer(data[site], 5) for site, held in sites.items()}
    outputs, _ = run_all(
        programs | {AGGREGATOR: Aggregator(variant, keys.aggregator).classify(9, 5)}
    )
    assert sites["site-0"].last_time == 5 and outputs[AGGREGATOR].shape == (9, 3)
    assert repr(sites["site-0"]) == "Site('site-0', last_time=5)"


def messages(variant, split, pooled, time=1, records=None):
    keys = variant.deal(SeededRandomness())
    tables, data = counted(split, pooled), apart(split, records or pooled)
    sites = {s: Site(variant, s, tables[s], k, last_time=NEVER) for s, k in keys.parties.items()}
    programs = {site: held.answer(data[site], time) for site, held in sites.items()}
    return programs, keys.aggregator


def test_sites_that_agreed_on_something_else_are_named():
    split, pooled = world(n=9)
    other = Small(Split(split.schema, split.holders, split.class_counts, 2.0), b"test", SMALL)
    ours, key = messages(Small(split, b"test", SMALL), split, pooled)
    theirs, _ = messages(other, split, pooled)
    mixed = ours | {"site-1": theirs["site-1"]}
    with pytest.raises(UnexpectedMessageError, match=r"site-1.*other parameters"):
        run_all(mixed | {AGGREGATOR: Aggregator(Small(split, b"test", SMALL), key).classify(9, 1)})


def test_a_wrong_number_of_records_names_the_site():
    split, pooled = world(n=30)
    variant = Small(split, b"test", SMALL)
    few, _ = messages(variant, split, pooled, records=pooled.rows(np.arange(3)))
    all_of_them, key = messages(variant, split, pooled)
    mixed = all_of_them | {"site-0": few["site-0"]}
    with pytest.raises(MalformedMessageError, match=r"site-0.*counts; expected"):
        run_all(mixed | {AGGREGATOR: Aggregator(variant, key).classify(30, 1)})


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
        (lambda: RecordNoise(0.0), "eps must be .* got 0.0"),
        (lambda: RecordNoise(-1.0), "eps must be .* got -1.0"),
        (lambda: RecordNoise(math.nan), "eps must be .* got nan"),
        (lambda: RecordNoise(1.0, "site"), "accounting site: one of whole, count"),
        (lambda: Logarithms(Split(AB, HELD, (1, 1)), b"", SMALL), "at least 2048 bits, got 246"),
        (lambda: Small(Split(AB, HELD, (1, 1)), b"", SMALL, 0), "0 fractional bits: 1 to 40"),
        (lambda: Small(wide(40_000), b"", SMALL, 40), r"must stay below 2\*\*62"),
        (lambda: Products(Split(AB, HELD, (1, 1), 0.5), b"", {}), "products are of whole numbers"),
        (lambda: Products(Split(AB, HELD, (1, 1)), b"", {"a": (3, 3)}), "totals of each feature"),
        (lambda: Products(Split(AB, HELD, (1, 1)), b"", {"a": (3, 3), "b": (3, 9)}),
         "b: no totals of its table"),
        (lambda: too_large(), r"must be from 1 to \(p - 1\) / 2"),
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
    programs = {
        site: publish_tables(split, site, held, AGGREGATOR) for site, held in tables.items()
    }
    if forged is not None:
        programs["site-0"] = iter([Round({AGGREGATOR: PublishedTables(forged)}, {})])
    transport = LocalTransport(AGGREGATOR, {s: _as_program(p) for s, p in programs.items()})
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
