import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.dag import Structure
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import Batch
from vertibayes.network import Network
from vertibayes_protocols.variables import Variable


@st.composite
def networks(draw):
    """Small networks, some CPTs with zeros, and some records with missing cells."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(1, 6))
    names = [f"v{i}" for i in range(count)]
    variables = {n: Variable(n, tuple(map(str, range(generator.integers(2, 4))))) for n in names}
    parents = {}
    for i, name in enumerate(names):
        size = draw(st.integers(0, min(i, 3)))
        parents[name] = tuple(generator.permutation(names[:i])[:size].tolist())
    cpts = {}
    for name in names:
        shape = [len(variables[m].states) for m in (name, *parents[name])]
        cpt = generator.random(shape) * (generator.random(shape) < 0.8) + 1e-3 * (
            np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1)) == 0
        )
        cpts[name] = cpt / cpt.sum(axis=0)
    order = draw(st.permutations(names))
    network = Network(Structure({n: parents[n] for n in order}), variables, cpts)
    known = {}
    for name in names:
        if draw(st.booleans()):
            known[name] = generator.integers(0, len(variables[name].states) + 1, 8)
    return network, known


def joint_of(network, known):
    """The joint distribution of all variables and what is known, by enumeration."""
    names = list(network.structure.nodes)
    letters = {name: chr(ord("a") + i) for i, name in enumerate(names)}
    records = max((len(k) for k in known.values()), default=1)
    terms, arrays = ["Z"], [np.ones(records)]
    for name in names:
        terms.append("".join(letters[m] for m in (name, *network.structure.parents[name])))
        arrays.append(network.cpts[name])
    for name, codes in known.items():
        length = len(network.variables[name].states)
        terms.append("Z" + letters[name])
        arrays.append(np.vstack([np.eye(length), np.ones(length)])[codes])
    return names, np.einsum(f"{','.join(terms)}->Z{''.join(letters.values())}", *arrays)


@settings(max_examples=150, deadline=None)
@given(networks())
def test_equals_enumeration(found):
    network, known = found
    states = {name: len(v.states) for name, v in network.variables.items()}
    batch = Batch(JunctionTree.of(network.structure, states), states, known)
    beliefs = batch.propagate(network)
    names, joint = joint_of(network, known)
    likelihood = joint.reshape(len(joint), -1).sum(axis=1)
    with np.errstate(divide="ignore"):
        expected = np.log(likelihood)
    assert beliefs.log_likelihoods == pytest.approx(expected, abs=1e-10)
    assert beliefs.log_likelihood == pytest.approx(expected.sum(), abs=1e-9)
    for family in network.structure.families:
        others = tuple(1 + i for i, n in enumerate(names) if n not in family.members)
        kept = [n for n in names if n in family.members]
        wanted = joint.sum(axis=others).transpose(0, *(1 + kept.index(n) for n in family.members))
        total = likelihood.reshape(-1, *(1,) * len(family.members))
        wanted = np.divide(wanted, total, out=np.zeros_like(wanted), where=total > 0)
        assert beliefs.marginal(family.members) == pytest.approx(wanted, abs=1e-10)
        if likelihood.all():
            counts = beliefs.expected_counts(family.members)
            assert counts == pytest.approx(wanted.sum(axis=0), abs=1e-9)


def test_alarm_equals_pgmpy(alarm_network, alarm_data):
    from pgmpy.inference import VariableElimination

    elimination = VariableElimination(alarm_network.to_pgmpy())
    states = {name: len(v.states) for name, v in alarm_network.variables.items()}
    tree = JunctionTree.of(alarm_network.structure, states)
    shown = ["HRBP", "PRESS", "EXPCO2", "MINVOL", "CVP"]
    records = 12
    known = {n: alarm_data.codes[n][:records] for n in shown}
    beliefs = Batch(tree, states, known).propagate(alarm_network)
    for record in range(records):
        evidence = {
            n: alarm_network.variables[n].states[alarm_data.codes[n][record]] for n in shown
        }
        for target in ("HYPOVOLEMIA", "INTUBATION"):
            wanted = elimination.query([target], evidence=evidence, show_progress=False)
            order = [
                wanted.state_names[target].index(s) for s in alarm_network.variables[target].states
            ]
            assert beliefs.marginal((target,))[record] == pytest.approx(
                wanted.values[order], abs=1e-10
            )


def test_what_cannot_be_has_likelihood_zero_and_no_nan():
    cpts = {"a": np.array([1.0, 0.0]), "b": np.array([[0.5, 0.2], [0.5, 0.8]])}
    variables = {n: Variable(n, ("0", "1")) for n in "ab"}
    network = Network(Structure({"a": (), "b": ("a",)}), variables, cpts)
    tree = JunctionTree.of(network.structure, {"a": 2, "b": 2})
    beliefs = Batch(tree, {"a": 2, "b": 2}, {"a": np.array([1, 2])}).propagate(network)
    assert beliefs.log_likelihoods.tolist() == [-np.inf, 0.0]
    assert not np.isnan(beliefs.joints[0]).any()


def test_a_clique_too_large_is_named():
    names = [f"v{i}" for i in range(9)]
    structure = Structure({n: tuple(names[:i]) for i, n in enumerate(names)})
    with pytest.raises(ValueError, match=r"the largest is v0, .* with 1,000,000,000; learn"):
        JunctionTree.of(structure, dict.fromkeys(names, 10))


def test_variables_of_no_one_clique():
    structure = Structure({"a": (), "b": ()})
    network = Network(
        structure,
        {n: Variable(n, ("0", "1")) for n in "ab"},
        {n: np.array([0.5, 0.5]) for n in "ab"},
    )
    states = {"a": 2, "b": 2}
    beliefs = Batch(JunctionTree.of(structure, states), states, {}).propagate(network)
    with pytest.raises(ValueError, match="no clique holds all of a, b"):
        beliefs.marginal(("a", "b"))
