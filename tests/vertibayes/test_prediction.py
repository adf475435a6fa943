import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.likelihoods import log_likelihoods
from tests.vertibayes.test_em_tables import with_gaps
from vertibayes.dag import Structure
from vertibayes.inference import prediction
from vertibayes.inference.prediction import (
    posterior,
    predict,
    predict_proba,
    predicted,
)
from vertibayes.network import Network
from vertibayes.sampling import sample
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

BITS = ("0", "1")
SURE = Network(
    Structure({"a": (), "b": ("a",)}),
    {"a": Variable("a", BITS), "b": Variable("b", BITS)},
    {"a": np.array([0.75, 0.25]), "b": np.array([[1.0, 0.5], [0.0, 0.5]])},
)


CHAIN = Network(
    Structure({"a": (), "b": ("a",), "c": ("b",), "d": ("b",)}),
    {name: Variable(name, BITS) for name in "abcd"},
    {
        "a": np.array([0.6, 0.4]),
        "b": np.array([[0.8, 0.3], [0.2, 0.7]]),
        "c": np.array([[1.0, 1.0], [0.0, 0.0]]),
        "d": np.array([[0.1, 0.6], [0.9, 0.4]]),
    },
)


def any_records(seed, count):
    """Return a random network, codes of five records of some of its variables, a target."""
    generator = np.random.default_rng(seed)
    names = [f"v{i}" for i in generator.permutation(count)]
    states = {n: int(generator.integers(1, 4)) for n in names}
    parents = {n: tuple(p for p in names[:i] if generator.random() < 0.4)[:3]
               for i, n in enumerate(names)}  # fmt: skip
    cpts = {}
    for node in names:
        drawn = generator.exponential(size=[states[n] for n in (node, *parents[node])])
        cpts[node] = drawn / drawn.sum(axis=0)
    shuffled = [str(n) for n in generator.permutation(names)]
    variables = {n: Variable(n, tuple(map(str, range(states[n])))) for n in shuffled}
    network = Network(Structure({n: parents[n] for n in shuffled}), variables, cpts)
    held = [n for n in names if generator.random() < 0.8]
    codes = {n: generator.integers(0, states[n] + 1, 5) for n in held}
    return network, codes, str(generator.choice(names))


def joint_of(network):
    """Return the joint distribution, its axes in the order of the nodes."""
    nodes = network.structure.nodes
    joint = np.ones([network.cardinalities[n] for n in nodes])
    for index in np.ndindex(joint.shape):
        at = dict(zip(nodes, index, strict=True))
        for family in network.structure.families:
            joint[index] *= network.cpts[family.child][tuple(at[n] for n in family.members)]
    return joint


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


def test_contradictory_evidence_is_marked_and_no_nan():
    network = Network(
        Structure({"a": (), "b": ("a",), "c": ("a",)}),
        {n: Variable(n, BITS) for n in "abc"},
        {"a": np.array([0.5, 0.5]), "b": np.eye(2), "c": np.eye(2)},
    )
    data = records(b=[0, 0], c=[0, 1])
    assert posterior(network, data.codes, "a").tolist() == [[1, 0], [0, 0]]
    found = predicted(network, data, "a")
    assert found.impossible.tolist() == [False, True]
    assert found.probabilities[1] == pytest.approx([0.5, 0.5])


def test_a_target_whose_parents_are_known_is_predicted_by_them_if_its_child_is_impossible():
    """No record has c = 1; c = 1 then says nothing of its parent b, and a says what it says."""
    data = records(a=[0, 1, 1], c=[1, 1, 0])
    found = predicted(CHAIN, data, "b")
    assert found.impossible.tolist() == [True, True, False]
    assert found.probabilities == pytest.approx(np.array([[0.8, 0.2], [0.3, 0.7], [0.3, 0.7]]))
    assert predict(CHAIN, data, "b").tolist() == ["0", "1", "1"]


def test_what_is_impossible_elsewhere_does_not_matter():
    """Given its known parent, d's impossible value is separated from the target."""
    codes = {"a": np.array([1]), "b": np.array([0]), "c": np.array([1])}
    assert posterior(CHAIN, codes, "d")[0] == pytest.approx([0.1, 0.9])
    assert log_likelihoods(CHAIN, records(a=[1], b=[0], c=[1])).tolist() == [-np.inf]


def test_the_fewest_impossible_values_decide():
    """a = 0 needs two impossible values, a = 1 three: 99 to 1 counts for less than one of them."""
    structure = Structure({"a": (), "b": ("a",), "c": ("a",), "d": ("a",)})
    never = np.array([[1.0, 1.0], [0.0, 0.0]])
    network = Network(
        structure,
        {n: Variable(n, BITS) for n in "abcd"},
        {"a": np.array([0.01, 0.99]), "b": never, "c": never, "d": np.eye(2)},
    )
    found = predicted(network, records(b=[1], c=[1], d=[0]), "a")
    assert found.impossible.all()
    assert found.probabilities[0] == pytest.approx([1, 99 * 0.5e-9], rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_part_that_matters_gives_what_the_whole_network_gives(seed, count):
    """Any network, any pattern of missing cells: the posterior by enumeration of the joint."""
    network, codes, target = any_records(seed, count)
    joint = joint_of(network)
    found = posterior(network, codes, target)
    for row in range(len(found)):
        known = {n: c[row] for n, c in codes.items() if n != target}
        at = tuple(
            known[n] if n in known and known[n] < network.cardinalities[n] else slice(None)
            for n in network.structure.nodes
        )
        left = [n for n, i in zip(network.structure.nodes, at, strict=True) if i == slice(None)]
        axes = tuple(axis for axis, n in enumerate(left) if n != target)
        wanted = joint[at].sum(axis=axes)
        assert found[row] == pytest.approx(wanted / wanted.sum(), abs=1e-9)


def test_many_patterns_of_missing_cells_are_propagated_together(alarm_network, monkeypatch):
    """The junction tree and elimination agree, whichever computes a record."""
    data = with_gaps(sample(alarm_network, 600, seed=5), 0.4)
    together = posterior(alarm_network, data.codes, "CATECHOL")
    monkeypatch.setattr(prediction, "MANY_PARTS", 10_000)
    one_by_one = posterior(alarm_network, data.codes, "CATECHOL")
    assert np.allclose(together, one_by_one, atol=1e-6)  # columns of its file sum to 1 within 1e-7
    assert not np.array_equal(together, one_by_one), "they were computed in two ways"


def test_a_target_with_known_parents_does_not_need_small_cliques():
    """Twelve variables of 20 states, each the parent of all later ones except the last."""
    names = [f"v{i}" for i in range(12)]
    structure = Structure({n: tuple(names[max(0, i - 3) : i]) for i, n in enumerate(names)})
    generator = np.random.default_rng(0)
    cpts = {}
    for node, parents in structure.parents.items():
        drawn = generator.random((20,) * (1 + len(parents)))
        cpts[node] = drawn / drawn.sum(axis=0)
    states = tuple(map(str, range(20)))
    network = Network(structure, {n: Variable(n, states) for n in names}, cpts)
    codes = {n: generator.integers(0, 20, 5) for n in names[:-1]}
    wanted = cpts["v11"][:, codes["v8"], codes["v9"], codes["v10"]].T
    assert posterior(network, codes, "v11") == pytest.approx(wanted)


def test_sums_that_are_too_large_name_the_variables():
    names = ["v0", "v1", "v2"]
    states = {**dict.fromkeys(names, 300), "t": 2, "u": 2}
    network = Network(
        Structure({**dict.fromkeys(names, ()), "t": tuple(names), "u": ("t",)}),
        {n: Variable(n, tuple(map(str, range(count)))) for n, count in states.items()},
        {
            **dict.fromkeys(names, np.full(300, 1 / 300)),
            "t": np.full((2, 300, 300, 300), 0.5),
            "u": np.eye(2),
        },
    )
    reason = r"54,000,000 joint states of t, v0, v1, v2, which some records do not have"
    with pytest.raises(ValueError, match=reason):
        posterior(network, {"u": np.array([0])}, "t")
    known = {n: np.array([7]) for n in names}
    assert posterior(network, known, "t")[0] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(("codes", "target"), [({}, "x"), ({"x": np.array([0])}, "a")])
def test_what_the_network_does_not_know(codes, target):
    with pytest.raises(ValueError, match="no variable 'x'"):
        posterior(SURE, codes, target)


def test_codes_that_are_none():
    with pytest.raises(ValueError, match="b: codes must be between 0 and"):
        posterior(SURE, {"b": np.array([3])}, "a")
    with pytest.raises(TypeError, match="b: codes must be integers, got the type float64"):
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
