"""VDPNB: what callers may do wrong; what peers may is in tests/protocols."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.schemes import SMALL
from tests.vertibayes.test_vdpnb import counted, scores, short, states, together, world
from vertibayes.naive_bayes.base import log_proba
from vertibayes_mpc import additive_scheme
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.scoring import Logarithms, Products
from vertibayes_protocols.queries.columns.split import Split, count_tables
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable


@pytest.fixture
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Logarithms, "scheme", staticmethod(short))


def test_tables_and_classes_that_do_not_fit():
    split, pooled = world(n=9)
    wrong = Split.of(split.schema, split.holders, (1, 1, 7))
    with pytest.raises(ValueError, match="site-0: its records have other counts of classes"):
        counted(wrong, LocalData(pooled.variables, {**pooled.codes, "y": np.arange(9) % 3}))
    with pytest.raises(ValueError, match="no 'y' in the declared states"):
        count_tables(split, "site-0", LocalData({"x0": pooled.variables["x0"]},
                                                {"x0": pooled.codes["x0"]}))  # fmt: skip


Y, A, B = (Variable(name, ("0", "1")) for name in "yab")
AB = Schema(Y, {"a": A, "b": B})
HELD = {"s": ("a",), "t": ("b",)}
split = Split.of
MODULUS = additive_scheme.scheme.RSA_2048


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: split(AB, {"s": ("a", "b")}, (1, 1)), "1 sites: there must be at least two"),
        (lambda: split(AB, {**HELD, "u": ()}, (1, 1)), "the site u holds no feature"),
        (lambda: split(AB, {"s": ("a",), "t": ("a", "b")}, (1, 1)), "feature a is at two sites"),
        (lambda: split(AB, {"s": ("a",), "t": ("c",)}, (1, 1)), "c is not a feature"),
        (lambda: split(AB, {"s": ("a",), "t": ("y",)}, (1, 1)), "y is not a feature"),
        (lambda: split(Schema(Y, {"a": A, "b": B, "c": Variable("c", ("0", "1"))}), HELD, (1, 1)),
         "at no site: c"),
        (lambda: split(Schema(Y, {"z": Numeric("z", 0, 1)}), HELD, (1, 1)), "z is a number"),
        (lambda: split(AB, HELD, (1, 1), 0.0), "alpha = 0.0: it must be a finite number above 0"),
        (lambda: split(AB, HELD, (1, 1), math.nan), "alpha = nan"),
        (lambda: split(AB, HELD, (1,)), "a count of each class of y"),
        (lambda: split(AB, HELD, (1, -1)), "a count of each class of y"),
        (lambda: split(AB, HELD, (5, 0)), "y has records of one class"),
        (lambda: RecordNoise(0.0), "eps must be .* got 0.0"),
        (lambda: RecordNoise(-1.0), "eps must be .* got -1.0"),
        (lambda: RecordNoise(math.nan), "eps must be .* got nan"),
        (lambda: RecordNoise(1.0, "site"), "accounting site: it must be whole or count"),
        (lambda: Logarithms(split(AB, HELD, (1, 1)), b"", SMALL), "at least 2048 bits, got 246"),
        (lambda: Logarithms(split(AB, HELD, (1, 1)), b"", MODULUS, 0), "0 fractional bits"),
        (lambda: Logarithms(wide(40_000), b"", MODULUS, 40), r"must stay below 2\*\*62"),
        (lambda: Products(split(AB, HELD, (1, 1), 0.5), b"", {}), "products are of whole numbers"),
        (lambda: Products(split(AB, HELD, (1, 1)), b"", {"a": (3, 3)}), "totals of each feature"),
        (lambda: Products(split(AB, HELD, (1, 1)), b"", {"a": (3, 3), "b": (3, 9)}),
         "b: no totals of its table"),
        (lambda: too_large(), r"must be at most \(p - 1\) / 2 of 2048 bits"),
    ],
)  # fmt: skip
def test_what_cannot_be(make, reason):
    with pytest.raises(ValueError, match=reason):
        make()


def wide(features):
    """So many binary features that a sum of logarithms leaves its slot."""
    named = {f"x{i}": Variable(f"x{i}", ("0", "1")) for i in range(features)}
    names = list(named)
    return Split.of(Schema(Y, named), {"s": names[::2], "t": names[1::2]}, (10**9, 10**9), 1e-300)


def too_large():
    names = [f"x{i}" for i in range(100)]
    schema = Schema(Y, {n: Variable(n, ("0", "1")) for n in names})
    split = Split.of(schema, {n: (n,) for n in names}, (10**6, 10**6))
    return Products(split, b"", dict.fromkeys(names, (10**6 + 2, 10**6 + 2)))


@pytest.mark.usefixtures("_short_modulus")
def test_a_class_without_records_is_never_chosen():
    schema = Schema(Variable("y", states(3)), {"a": A, "b": B})
    codes = {"y": np.array([0, 1, 1]), "a": np.array([0, 1, 1]), "b": np.array([2, 1, 0])}
    pooled = LocalData(schema.variables, codes)
    split = Split.of(schema, HELD, (1, 2, 0))
    found = log_proba(scores(split, together(counted(split, pooled)), pooled))
    assert np.isneginf(found[:, 2]).all() and not np.isnan(found).any()
    assert np.exp(found).sum(axis=1) == pytest.approx(1)


def test_the_additive_scheme_is_the_real_one_by_default():
    assert Logarithms.scheme is additive_scheme.Parameters
