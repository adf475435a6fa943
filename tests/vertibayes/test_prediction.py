import numpy as np
import pytest

from protocols.site.data import SiteData
from protocols.variables import Variable
from tests.vertibayes.test_em_tables import with_gaps
from vertibayes.inference.prediction import log_likelihoods, posterior, predict, predict_proba
from vertibayes.network import Network, Structure
from vertibayes.parameters.synthetic import sample

BITS = ("0", "1")
SURE = Network(
    Structure({"a": (), "b": ("a",)}),
    {"a": Variable("a", BITS), "b": Variable("b", BITS)},
    {"a": np.array([0.75, 0.25]), "b": np.array([[1.0, 0.5], [0.0, 0.5]])},
)


def records(states=BITS, **codes):
    columns = {name: np.array(column, np.uint8) for name, column in codes.items()}
    return SiteData({n: Variable(n, states, missing=True) for n in columns}, columns)


def test_by_hand():
    data = records(b=[0, 1, 2])
    found = predict_proba(SURE, data, "a")
    assert found == pytest.approx(np.array([[6 / 7, 1 / 7], [0, 1], [0.75, 0.25]]))
    assert predict(SURE, data, "a").tolist() == ["0", "1", "0"]
    assert log_likelihoods(SURE, data) == pytest.approx(np.log([0.875, 0.125, 1]))


def test_columns_that_the_network_does_not_know_tell_nothing():
    assert predict_proba(SURE, records(z=[0, 1]), "a").tolist() == [[0.75, 0.25]] * 2


@pytest.mark.parametrize("states", [("1", "0"), ("0", "1", "2"), ("0",)])
def test_records_in_other_states_are_refused(states):
    with pytest.raises(ValueError, match="b has other states in the data than in the network"):
        predict(SURE, records(states, b=[0]), "a")


def test_a_missing_cell_is_the_state_missing_where_there_is_one():
    variables = {"a": Variable("a", BITS), "b": Variable("b", (*BITS, "missing"))}
    cpt = np.array([[0.4, 0.4], [0.5, 0.1], [0.1, 0.5]])
    network = Network(SURE.structure, variables, {"a": np.array([0.5, 0.5]), "b": cpt})
    assert predict_proba(network, records(b=[2]), "a")[0] == pytest.approx([1 / 6, 5 / 6])


def test_ratios_beyond_floating_point():
    """132 zeros and 128 ones of 260 features: the odds are (.999 / .001)^4, whatever the order."""
    names = [f"x{i}" for i in range(260)]
    structure = Structure({"y": (), **dict.fromkeys(names, ("y",))})
    cpt = np.array([[0.999, 0.001], [0.001, 0.999]])
    network = Network(
        structure,
        {n: Variable(n, BITS) for n in structure.nodes},
        {"y": np.array([0.5, 0.5]), **dict.fromkeys(names, cpt)},
    )
    codes = {n: np.array([int(i >= 132)]) for i, n in enumerate(names)}
    odds = 999.0**4
    assert posterior(network, codes, "y")[0] == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])


def test_an_unknown_feature_beside_many_known_ones():
    names = [f"x{i}" for i in range(104)]
    structure = Structure({"y": (), **dict.fromkeys(names, ("y",))})
    cpt = np.array([[0.999, 0.001], [0.001, 0.999]])
    sure = np.array([[1.0, 0.001], [0.0, 0.999]])
    network = Network(
        structure,
        {n: Variable(n, BITS) for n in structure.nodes},
        {"y": np.array([0.5, 0.5]), **dict.fromkeys(names, cpt), "x0": sure},
    )
    codes = {n: np.array([1]) for n in names[1:]}
    assert posterior(network, codes, "x0")[0] == pytest.approx([0.001, 0.999])


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
    data = records(b=[0, 0], c=[0, 1])
    assert posterior(network, data.codes, "a").tolist() == [[1, 0], [0, 0]]
    with pytest.raises(ValueError, match=r"record 2: .* probability zero .* pseudo-count"):
        predict(network, data, "a")


@pytest.mark.parametrize(("codes", "target"), [({}, "x"), ({"x": np.array([0])}, "a")])
def test_what_the_network_does_not_know(codes, target):
    with pytest.raises(ValueError, match="no variable 'x'"):
        posterior(SURE, codes, target)


def test_codes_that_are_none():
    with pytest.raises(ValueError, match="b: a code that it does not have"):
        posterior(SURE, {"b": np.array([3])}, "a")
    with pytest.raises(TypeError, match="b: codes of type float64, integers are wanted"):
        posterior(SURE, {"b": np.array([0.9])}, "a")


def test_the_posterior_is_calibrated(alarm_network):
    """Of records given a probability, that share has the state."""
    data = sample(alarm_network, 20_000, seed=8)
    gaps = with_gaps(data, 0.3)
    found = posterior(alarm_network, gaps.codes, "HYPOVOLEMIA")[:, 0]
    truth = data.codes["HYPOVOLEMIA"] == 0
    compared = 0
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (found >= low) & (found < low + 0.2)
        if inside.sum() > 100:
            error = 4 * np.sqrt(0.25 / inside.sum())
            assert truth[inside].mean() == pytest.approx(found[inside].mean(), abs=error)
            compared += 1
    assert compared >= 3
