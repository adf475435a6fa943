import numpy as np
import pytest

from tests.vertibayes.test_em_tables import with_gaps
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import batches
from vertibayes.parameters.em import expectation
from vertibayes.sampling import sample


def test_small_batches_give_the_same(alarm_network):
    codes = with_gaps(sample(alarm_network, 500, seed=1), 0.2).codes
    states = alarm_network.cardinalities
    tree = JunctionTree.of(alarm_network.structure, states)
    (whole,) = batches(tree, states, codes)
    parts = batches(tree, states, codes, most_numbers=whole.numbers // 4)
    assert len(parts) > 4 and sum(part.records for part in parts) == 500
    assert all(part.numbers <= whole.numbers // 4 for part in parts)
    wanted, got = expectation([whole], alarm_network), expectation(parts, alarm_network)
    assert got[0] == pytest.approx(wanted[0])
    for a, b in zip(got[1], wanted[1], strict=True):
        assert a == pytest.approx(b, abs=1e-9)
    rows = [part.propagate(alarm_network).marginal(("CVP",)) for part in parts]
    assert np.concatenate(rows) == pytest.approx(
        whole.propagate(alarm_network).marginal(("CVP",)), abs=1e-12
    )


def test_a_record_is_not_divided(alarm_network):
    codes = {"CVP": np.array([0, 3, 1])}
    states = alarm_network.cardinalities
    tree = JunctionTree.of(alarm_network.structure, states)
    assert [part.records for part in batches(tree, states, codes, most_numbers=1)] == [1, 1, 1]
