import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vertibayes.test_junction_tree import joint_of, networks
from vertibayes.inference.marginals import Marginals


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


def test_under_another_network_of_the_structure(alarm_network):
    marginals = Marginals.of(alarm_network)
    before = marginals.joint(["CVP", "PCWP"])
    cpts = {name: np.full_like(cpt, 1 / len(cpt)) for name, cpt in alarm_network.cpts.items()}
    even = type(alarm_network)(alarm_network.structure, alarm_network.variables, cpts)
    after = marginals.under(even).joint(["CVP", "PCWP"])
    assert after == pytest.approx(np.full((3, 3), 1 / 9)) and not np.allclose(before, after)


def test_an_unknown_variable_is_named(alarm_network):
    with pytest.raises(ValueError, match="no variable 'x'"):
        Marginals.of(alarm_network).joint(["CVP", "x"])
