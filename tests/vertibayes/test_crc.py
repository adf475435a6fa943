"""CRC over networks: Theorem 1, averages and relays, and absent nodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vertibayes.rc_worlds import chain, complete, world
from vertibayes.calibration.crc import collaborative_rc
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import statistics_of, update

SEEDS = st.integers(0, 2**32)
SIZES = st.lists(st.integers(1, 30), min_size=2, max_size=6)
TREE = Graph.of("abcdefg", ["ab", "ac", "bd", "be", "cf", "fg"])


def theta(w, statistics):
    return w.classifier.weights(statistics).values


def distance_from_theorem_1(w, sizes, rate=0.05, **options):
    """How far the parameters of the nodes' means are from RC's of the round before, at most."""
    nodes, records = w.nodes(sizes), sum(sizes)
    trace = []
    for done in range(4):
        start = w.classifier.uniform(records)
        trace.append(risk_based_calibration(w.classifier, w.examples, done, rate=rate, start=start))
    rounds = list(collaborative_rc(w.classifier, nodes, complete(nodes), 4, rate=rate, **options))
    apart = 0.0
    for number in range(2, 5):
        mean = rounds[number - 2].statistics.mean(axis=0)
        ours, theirs = theta(w, mean), theta(w, trace[number - 1].last)
        apart = max(apart, np.abs(ours - theirs).max() / np.abs(theirs).max())
        soft = rounds[number - 1].soft.sum() - trace[number - 1].soft[-1]
        apart = max(apart, abs(soft) / records)  # 1 - P is rounded in units of 1, and may be 0
    return apart


@settings(max_examples=25, deadline=None)
@given(SEEDS, SIZES, st.floats(0.01, 1.0))
def test_theorem_1_in_a_complete_network_crc_is_rc_of_the_round_before(seed, sizes, rate):
    assert distance_from_theorem_1(world(sum(sizes), seed), sizes, rate) < 1e-9


@pytest.mark.parametrize("options", [{"size": 100.0}, {"iterations": 2}, {"start": "data"}])
def test_theorem_1_fails_under_other_conditions(options):
    sizes = [3, 20, 9]
    assert distance_from_theorem_1(world(32, 1), sizes, **options) > 1e-5


def test_metropolis_weights_of_a_complete_network_are_the_plain_mean():
    assert distance_from_theorem_1(world(32, 1), [3, 20, 9], mixing="metropolis") < 1e-9


@pytest.mark.parametrize("size", [None, 7.0])
def test_a_start_from_data_is_nine_parts_of_the_own_records_and_one_uniform(size):
    w = world(30, 5)
    nodes = w.nodes([10, 20])
    first, _ = collaborative_rc(
        w.classifier, nodes, complete("ab"), 2, start="data", size=size, rate=0.1
    )
    size = size or 30 / (0.1 * 2)
    even = w.classifier.uniform(size)
    starts = [0.9 / 0.1 * statistics_of(w.classifier, part) + 0.1 * even for part in nodes.values()]
    mean = (starts[0] + starts[1]) / 2
    for part, ours in zip(nodes.values(), first.statistics, strict=True):
        expected = mean + update(w.classifier, mean, part).difference
        assert ours == pytest.approx(expected, abs=1e-9)


def rc_of_relays(w, rounds, start):
    """RC of all records, from the start of a relay."""
    even = w.classifier.uniform(1.0)
    sums = statistics_of(w.classifier, w.examples) / len(w.examples.classes)
    first = even if start == "uniform" else 0.9 * sums + 0.1 * even
    records = len(w.examples.classes)
    return risk_based_calibration(w.classifier, w.examples, rounds, start=records * first)


@pytest.mark.parametrize("start", ["uniform", "data"])
def test_a_relay_between_two_nodes_is_rc_of_the_round_before(start):
    w = world(50, 3)
    rounds = list(
        collaborative_rc(
            w.classifier, w.nodes([20, 30]), complete("ab"), 6, mixing="relay", start=start
        )
    )
    reference = rc_of_relays(w, 5, start)
    assert [r.soft.sum() for r in rounds] == pytest.approx(reference.soft.tolist(), abs=1e-9)
    assert [r.errors.sum() for r in rounds] == reference.errors.tolist()


def test_a_relay_knows_nodes_at_a_distance_as_many_rounds_later():
    w = world(90, 3)
    nodes = w.nodes([10, 1, 20, 30, 4, 16, 9])
    other = dict(nodes, g=nodes["f"])  # other records at g, which is 5 edges from d and from e
    options = {"mixing": "relay", "start": "data"}
    runs = [collaborative_rc(w.classifier, some, TREE, 6, **options) for some in (nodes, other)]
    for number, (one, two) in enumerate(zip(*runs, strict=True), 1):
        differ = (one.statistics != two.statistics).any(axis=(1, 2))
        distance = dict(zip("abcdefg", (3, 4, 2, 5, 5, 1, 0), strict=True))
        assert differ.tolist() == [distance[node] <= number for node in "abcdefg"]


def test_a_relay_makes_up_for_what_an_absent_node_did_not_send():
    """The sums of all records reach all nodes, though two rounds of messages are lost."""
    w = world(60, 5)
    rounds = collaborative_rc(
        w.classifier,
        w.nodes([20, 10, 30]),
        chain("abc"),
        6,
        mixing="relay",
        start="data",
        rate=1e-15,  # the models are those of the sums of records
        absent=lambda number: "b" if number in (2, 3) else (),
    )
    sums = 0.9 * statistics_of(w.classifier, w.examples) / 60 + 0.1 * w.classifier.uniform(1.0)
    exact = [np.isclose(r.statistics, sums, atol=1e-9).all(axis=(1, 2)).tolist() for r in rounds]
    # The messages of round 2, of c's sums to a and a's to c, are repeated by b in round 5.
    assert exact[:3] == [[False, True, False]] * 3
    assert exact[3:] == [[False, True, False], [True] * 3, [True] * 3]
