"""Sums over neighbourhoods: their order, and the fixed-point numbers that they add up."""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration_worlds import chain, ring
from vertibayes.calibration.topologies import network_of
from vertibayes_mpc.errors import ProtocolError
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.nodes import Attendance
from vertibayes_protocols.queries.calibration.neighbourhood_sums import Grid, schedule, summing

NETWORKS = [chain(9), ring(9), ring(8)] + [
    network_of(kind, [f"n{i}" for i in range(20)], np.random.default_rng(i))
    for i, kind in enumerate(("tree", "complete", "erdos-renyi", "small-world"))
]


@pytest.mark.parametrize("network", NETWORKS)
def test_each_node_with_two_neighbours_sums_once_and_is_in_one_sum_at_a_time(network):
    hoods = summing(Attendance(network))
    assert set(hoods) == {n for n, peers in network.neighbours.items() if len(peers) > 1}
    groups = schedule(tuple(hoods.items()))
    assert sorted(node for group in groups for node in group) == sorted(hoods)
    for group in groups:
        busy = [party for node in group for party in (node, *hoods[node])]
        assert len(busy) == len(set(busy))
    degree = max(len(peers) for peers in network.neighbours.values())
    assert len(groups) <= degree**2 + 1


def test_all_parties_have_the_same_order_and_a_chain_has_three_groups():
    hoods = list(summing(Attendance(chain(9))).items())
    assert schedule(tuple(hoods)) == schedule(tuple(reversed(hoods)))
    assert len(schedule(tuple(hoods))) == 3


def test_who_is_absent_or_back_is_in_no_sum_of_the_others():
    network = Graph.of("abcd", [(x, y) for x in "abcd" for y in "abcd" if x < y])
    there = Attendance(network, frozenset("a"), frozenset("b"))
    assert summing(there) == {"b": ("c", "d")}, "c and d have one sender each"


@pytest.mark.parametrize("parties", [2, 3, 64, 4096])
def test_sums_of_numbers_do_not_wrap_and_are_exact_to_the_grid(parties):
    grid = Grid(parties)
    assert 2 * parties * grid.bound < 2**64
    numbers = np.array([2.0**16, -(2.0**16), 1 / 3, 0.0])
    values = grid.encode("s0", numbers)
    assert np.abs(grid.decode(values * parties) / parties - numbers).max() <= 2.0**-grid.bits
    assert np.abs(values).max() == grid.bound


@pytest.mark.parametrize("number", [2.0**16 + 1, np.nan, -np.inf])
def test_a_number_that_does_not_fit_names_the_party(number):
    with pytest.raises(ProtocolError, match=r"s0: its statistics are above 2\*\*16 times"):
        Grid(2).encode("s0", np.array([0.0, number]))
