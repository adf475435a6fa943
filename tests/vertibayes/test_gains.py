"""The gain of each edge: the BIC of the family with and without it, from known tables."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.parameters.cpt import scores
from vertibayes.structure.gains import edge_gains
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable


def data_of(**columns):
    variables = {name: Variable(name, ("no", "yes"), missing=name == "m") for name in columns}
    return SiteData(variables, {n: np.asarray(c, np.uint8) for n, c in columns.items()})


def test_the_gain_of_a_copy_is_its_information_less_the_penalty():
    half = [0, 1] * 20
    counter = PlainCounter(data_of(a=half, b=half))
    gains = edge_gains(counter, Structure.of(["a", "b"], [("a", "b")]))
    assert gains == {("a", "b"): pytest.approx(40 * log(2) - log(40) / 2)}


def test_on_complete_data_gains_are_differences_of_bic():
    a, b, c = np.random.default_rng(0).integers(0, 2, (3, 200))
    counter = PlainCounter(data_of(a=a, b=b, c=np.where(a == b, a, c)))
    edges = [("a", "c"), ("b", "c"), ("a", "b")]
    whole = Structure.of(["a", "b", "c"], edges)
    for edge, gain in edge_gains(counter, whole).items():
        less = Structure.of(["a", "b", "c"], [other for other in edges if other != edge])
        difference = scores(counter, whole).bic - scores(counter, less).bic
        assert gain == pytest.approx(difference, abs=1e-9)


def test_with_missing_cells_both_families_have_the_same_records():
    a, m = [0, 0, 1, 1] * 10, [0, 0, 1, 2] * 10  # 2: missing
    counter = PlainCounter(data_of(a=a, m=m))
    gains = edge_gains(counter, Structure.of(["a", "m"], [("m", "a")]))
    information = 20 * log(3 / 2) + 10 * log(3)  # of the 30 records that have both
    assert gains["m", "a"] == pytest.approx(information - log(40) / 2)


def test_a_structure_without_edges_has_no_gain():
    assert edge_gains(PlainCounter(data_of(a=[0, 1])), Structure.of(["a"], [])) == {}
