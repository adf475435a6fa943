"""The benchmark of ensembles: votes, and what a vote tells."""

from __future__ import annotations

import numpy as np
import pytest

from tests.documents import ROOT, scripts
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.parameters.cpt import fit_cpts
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable


@pytest.fixture
def ensembles(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # otherwise the script starts this process again
    with scripts(ROOT / "benchmarks", "ensembles") as [module]:
        yield module


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    ill = generator.integers(0, 2, 400)
    codes = {"ill": ill} | {
        name: (generator.random(400) < 0.2 + share * ill).astype(np.uint8)
        for name, share in (("a", 0.3), ("b", 0.5), ("c", 0.1))
    }
    variables = {name: Variable(name, ("no", "yes")) for name in codes}
    return SiteData(variables, {name: column.astype(np.uint8) for name, column in codes.items()})


def naive(data, features):
    structure = Structure({"ill": (), **dict.fromkeys(features, ("ill",))})
    return fit_cpts(PlainCounter(data.take(["ill", *features])), structure)


def test_the_product_of_independent_sites_is_the_posterior_of_one_network(ensembles, data):
    parts = [naive(data, ["a", "c"]), naive(data, ["b"])]
    votes = ensembles.votes(parts, data, data, "ill")
    one = ensembles.posteriors(naive(data, ["a", "b", "c"]), data, "ill")
    assert np.allclose(votes["product"], one, atol=1e-12)
    each = [ensembles.posteriors(network, data, "ill") for network in parts]
    assert np.allclose(votes["mean"], np.mean(each, axis=0))
    assert np.abs(votes["mean"] - one).max() > 0.05  # the mean is another vote
    better = ensembles.area_of(votes["weighted"], data, "ill")
    assert better >= ensembles.area_of(votes["mean"], data, "ill")


def test_a_vote_tells_no_more_than_the_values_have(ensembles, data):
    told, whole = ensembles.told(data, ["ill", "a", "b"], "ill")
    assert 0 < told <= whole
    rows = data.codes["a"] * 2 + data.codes["b"]
    shares = np.bincount(rows) / data.records
    assert whole == pytest.approx(-(shares * np.log2(shares)).sum())
