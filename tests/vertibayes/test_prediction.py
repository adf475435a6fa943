import numpy as np
import pytest

from protocols.variables import Variable
from tests.vertibayes.test_em_tables import with_gaps
from vertibayes.inference.prediction import posterior, predict, predict_proba
from vertibayes.network import Network, Structure
from vertibayes.parameters.synthetic import sample

BITS = ("0", "1")
SURE = Network(
    Structure({"a": (), "b": ("a",)}),
    {"a": Variable("a", BITS), "b": Variable("b", BITS)},
    {"a": np.array([0.75, 0.25]), "b": np.array([[1.0, 0.5], [0.0, 0.5]])},
)


def test_by_hand():
    codes = {"b": np.array([0, 1, 2])}
    found = predict_proba(SURE, codes, "a")
    assert found == pytest.approx(np.array([[6 / 7, 1 / 7], [0, 1], [0.75, 0.25]]))
    assert predict(SURE, codes, "a").tolist() == ["0", "1", "0"]


def test_the_targets_own_codes_are_not_looked_at():
    with_target = {"b": np.array([0, 1]), "a": np.array([1, 0])}
    assert np.array_equal(
        posterior(SURE, with_target, "a"), posterior(SURE, {"b": np.array([0, 1])}, "a")
    )


def test_without_evidence_the_prior():
    assert posterior(SURE, {}, "b") == pytest.approx(np.array([[0.875, 0.125]]))


def test_contradictory_evidence_is_named_and_no_nan():
    network = Network(
        Structure({"a": (), "b": ("a",), "c": ("a",)}),
        {n: Variable(n, BITS) for n in "abc"},
        {"a": np.array([0.5, 0.5]), "b": np.eye(2), "c": np.eye(2)},
    )
    codes = {"b": np.array([0, 0]), "c": np.array([0, 1])}
    assert posterior(network, codes, "a").tolist() == [[1, 0], [0, 0]]
    with pytest.raises(ValueError, match=r"record 2: .* probability zero .* pseudo-count"):
        predict(network, codes, "a")


@pytest.mark.parametrize(("codes", "target"), [({}, "x"), ({"x": np.array([0])}, "a")])
def test_what_the_network_does_not_know(codes, target):
    with pytest.raises(ValueError, match="no variable 'x'"):
        predict(SURE, codes, target)


def test_codes_beyond_a_variables():
    with pytest.raises(ValueError, match="b: a code that it does not have"):
        predict(SURE, {"b": np.array([3])}, "a")


def test_the_posterior_is_calibrated(alarm_network):
    """Of records given a probability, that share has the state."""
    data = sample(alarm_network, 20_000, seed=8)
    gaps = with_gaps(data, 0.3)
    found = posterior(alarm_network, gaps.codes, "HYPOVOLEMIA")[:, 0]
    truth = data.codes["HYPOVOLEMIA"] == 0
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (found >= low) & (found < low + 0.2)
        if inside.sum() > 100:
            error = 4 * np.sqrt(0.25 / inside.sum())
            assert truth[inside].mean() == pytest.approx(found[inside].mean(), abs=error)
