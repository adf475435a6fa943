import numpy as np
import pytest

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.parameters.cpt import fit_cpts, scores
from vertibayes.table_scores import k2_scores
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

DATA = SiteData(
    {"a": Variable("a", ("x", "y")), "b": Variable("b", ("0", "1", "2"), missing=True)},
    {
        "a": np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], np.uint8),
        "b": np.array([0, 0, 1, 1, 1, 1, 2, 3, 3, 3], np.uint8),
    },
)
STRUCTURE = Structure.of(["a", "b"], [("a", "b")])


def test_by_hand():
    network = fit_cpts(PlainCounter(DATA), STRUCTURE, pseudo_count=0)
    assert network.cpts["a"].tolist() == [1.0, 0.0]
    assert network.cpts["b"][:, 0] == pytest.approx([2 / 7, 4 / 7, 1 / 7])
    assert network.cpts["b"][:, 1] == pytest.approx([1 / 3] * 3)  # no record has y: uniform
    assert network.unseen == {"a": 0, "b": 1}


def test_half_a_record_is_added_to_each_cell_by_default():
    network = fit_cpts(PlainCounter(DATA), STRUCTURE)
    assert network.cpts["a"] == pytest.approx([10.5 / 11, 0.5 / 11])
    assert network.cpts["b"][:, 0] == pytest.approx([2.5 / 8.5, 4.5 / 8.5, 1.5 / 8.5])
    assert network.cpts["b"][:, 1] == pytest.approx([1 / 3] * 3)
    assert network.unseen == {"a": 0, "b": 1}


def test_pseudo_counts():
    network = fit_cpts(PlainCounter(DATA), STRUCTURE, pseudo_count=1)
    assert network.cpts["a"] == pytest.approx([11 / 12, 1 / 12])
    assert network.cpts["b"][:, 0] == pytest.approx([3 / 10, 5 / 10, 2 / 10])


def test_missing_as_a_state():
    network = fit_cpts(PlainCounter(DATA), STRUCTURE, missing=True, pseudo_count=0)
    assert network.variables["b"].states == ("0", "1", "2", "missing")
    assert network.cpts["b"][:, 0] == pytest.approx([0.2, 0.4, 0.1, 0.3])


def test_a_state_that_is_named_missing_already():
    data = SiteData(
        {"b": Variable("b", ("0", "missing"), True)}, {"b": np.array([0, 1, 2], np.uint8)}
    )
    network = fit_cpts(PlainCounter(data), Structure({"b": ()}), missing=True)
    assert network.variables["b"].states == ("0", "missing", "missing_")


def test_scores_from_the_same_tables():
    found = scores(PlainCounter(DATA), STRUCTURE)
    likelihood = 2 * np.log(2 / 7) + 4 * np.log(4 / 7) + np.log(1 / 7)
    assert found.log_likelihood == pytest.approx(likelihood)
    assert found.free_parameters == 1 + 2 * 2
    assert found.aic == pytest.approx(likelihood - 5)
    assert found.bic == pytest.approx(likelihood - 5 * np.log(10) / 2)
    assert found.k2 == pytest.approx(sum(k2_scores(PlainCounter(DATA).tables(STRUCTURE.families))))


@pytest.mark.parametrize("pseudo_count", [-1, float("nan"), float("inf")])
def test_impossible_pseudo_counts(pseudo_count):
    with pytest.raises(ValueError, match="pseudo-count"):
        fit_cpts(PlainCounter(DATA), STRUCTURE, pseudo_count=pseudo_count)
