import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vertibayes.test_junction_tree import joint_of, networks
from vertibayes.dag import Structure
from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network
from vertibayes_protocols.variables import Variable


@settings(max_examples=150, deadline=None)
@given(networks(), st.data())
def test_equals_enumeration(found, data):
    network, _ = found
    names, joint = joint_of(network, {})
    members = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    wanted = joint[0].sum(axis=tuple(i for i, n in enumerate(names) if n not in members))
    kept = [name for name in names if name in members]
    wanted = wanted.transpose([kept.index(name) for name in members])
    assert Marginals.of(network).joint(members) == pytest.approx(wanted, abs=1e-12)


def test_variables_far_apart(alarm_network):
    """Equal to what pgmpy's elimination finds, across many cliques."""
    from pgmpy.inference import VariableElimination

    members = ["HISTORY", "PRESS", "BP", "EXPCO2"]
    factor = VariableElimination(alarm_network.to_pgmpy()).query(members, show_progress=False)
    order = [factor.variables.index(name) for name in members]
    found = Marginals.of(alarm_network).joint(members)
    assert found == pytest.approx(factor.values.transpose(order), abs=1e-8)  # its CPTs are rounded
    assert found.sum() == pytest.approx(1)


def test_a_long_chain():
    """2,000 nodes: no recursion, no minutes; the ends of a chain of copies are equal."""
    names = [f"x{i}" for i in range(2000)]
    structure = Structure({n: names[i - 1 : i] and (names[i - 1],) for i, n in enumerate(names)})
    cpts = {n: np.eye(2) if i else np.array([0.3, 0.7]) for i, n in enumerate(names)}
    network = Network(structure, {n: Variable(n, ("0", "1")) for n in names}, cpts)
    marginals = Marginals.of(network)
    assert marginals.joint([names[-1], names[0]]) == pytest.approx(np.diag([0.3, 0.7]))
    assert marginals.joint(names[-2:]) == pytest.approx(np.diag([0.3, 0.7]))


def test_an_unknown_variable_is_named(alarm_network):
    with pytest.raises(ValueError, match="no variable 'x'"):
        Marginals.of(alarm_network).joint(["CVP", "x"])
