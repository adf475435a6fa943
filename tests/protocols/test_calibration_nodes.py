"""Nodes of a calibration: each step by hand, and all of them equal to the simulation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration_worlds import MIXED, NETWORK, agree, chain, parties, ring, simulated
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import statistics_of
from vertibayes_protocols.calibration.nodes import (
    Attendance,
    AveragingNode,
    Checkpoints,
    RelayNode,
    relay_rate,
)


def pairs(text):
    return [(f"s{a}", f"s{b}") for a, b in text.split()]


TREE = Graph.of([f"s{i}" for i in range(7)], pairs("01 02 13 14 25 56"))


def some_absences(seed):
    """Absences of some nodes in most rounds; in round 4 no node is there."""
    generator = np.random.default_rng(seed)
    drawn = [{n for n in TREE.nodes if generator.random() < 0.3} for _ in range(9)]
    return lambda number: set(TREE.nodes) if number == 4 else drawn[number]


def rounds_of(agreed, held, rounds, absent=lambda _: ()):
    """Run all nodes; yield the models of each round, as the simulation has them."""
    examples = {name: agreed.classifier.examples(data) for name, data in held.items()}
    nodes = {name: agreed.node(name, part) for name, part in examples.items()}
    models, before = {name: node.model for name, node in nodes.items()}, frozenset()
    for number in range(1, rounds + 1):
        away = frozenset(absent(number))
        there = Attendance(agreed.links, away, before - away)
        for name in there.back:
            nodes[name] = agreed.node(name, examples[name])
        sent = {n: node.outgoing(there) for n, node in nodes.items() if n not in away}
        for name in sent:
            heard = {peer: out[name] for peer, out in sent.items() if name in out}
            assert set(heard) == set(there.senders(name))
            nodes[name].receive(there, heard)
            models[name] = nodes[name].model
        before = away
        yield np.array([models[name] for name in held])


@pytest.mark.parametrize("absent", [lambda _: (), some_absences(1), some_absences(2)])
@pytest.mark.parametrize("edges", ["", "36"])
@pytest.mark.parametrize("start", ["uniform", "data"])
@pytest.mark.parametrize("mixing", ["mean", "metropolis", "relay"])
def test_nodes_that_leave_and_return_equal_the_simulation(mixing, start, edges, absent):
    held = parties(7)
    network = Graph.of(TREE.nodes, [*TREE.edges, *pairs(edges)])
    iterations = 2 if start == "data" else 1
    agreed = agree(network, held, mixing=mixing, start=start, iterations=iterations)
    expected = simulated(agreed, held, 8, absent)
    for ours, theirs in zip(rounds_of(agreed, held, 8, absent), expected, strict=True):
        assert ours == pytest.approx(theirs.statistics, abs=1e-9)
        assert theirs.present.tolist() == [name not in absent(theirs.number) for name in held]
        assert not theirs.soft[~theirs.present].any()


def test_nodes_of_a_network_classifier_equal_the_simulation():
    held = parties(3, numbers=False)
    agreed = agree(chain(3), held, NETWORK, "relay")
    *_, ours = rounds_of(agreed, held, 4)
    assert np.abs(ours - simulated(agreed, held, 4)[-1].statistics).max() < 1e-9


def test_a_plain_mean_leaves_out_whoever_is_not_heard_and_metropolis_keeps_its_weight():
    held = parties(3)
    agreed = agree(chain(3), held)
    there = Attendance(agreed.network)
    for mixing, expected in (("mean", [1, 1, 0]), ("metropolis", [1, 2, 0])):
        nodes = [
            AveragingNode(n, agreed.classifier, agreed.classifier.examples(d), 5.0 + i,
                          0.05, mixing=mixing)
            for i, (n, d) in enumerate(held.items())
        ]  # fmt: skip
        starts = [node.statistics for node in nodes]
        mixed = sum(w * s for w, s in zip(expected, starts, strict=True)) / sum(expected)
        first = nodes[1].receive(there, {"s0": nodes[0].outgoing(there)["s1"]})
        assert np.allclose(nodes[1].statistics, mixed + first.difference, atol=1e-12)


def test_a_relays_rate_is_lower_on_a_tree_where_sums_are_late():
    line = Graph.of([f"n{i}" for i in range(50)], [(f"n{i}", f"n{i + 1}") for i in range(49)])
    assert line.delay == pytest.approx((50**2 - 1) / (3 * 50))
    assert 0.05 > relay_rate(0.05, 1, line) == pytest.approx(0.5 / line.delay)
    assert relay_rate(0.05, 3, line) == pytest.approx(relay_rate(0.05, 1, line) / 3)
    assert relay_rate(0.05, 1, Graph.of("ab", [("a", "b")])) == 0.05


def test_a_relays_messages_contain_what_was_lost_before():
    held = parties(3)
    agreed = agree(chain(3), held, mixing="relay")
    there = Attendance(agreed.links)
    ends = {n: agreed.node(n, agreed.classifier.examples(d)) for n, d in held.items()}
    ends["s1"].receive(there, {"s0": ends["s0"].outgoing(there)["s1"]})
    ends["s1"].receive(there, {})
    message = ends["s1"].outgoing(there)["s2"]
    classifier = agreed.classifier
    sums = [statistics_of(classifier, classifier.examples(held[n])) for n in ("s0", "s1")]
    assert message[-1] == held["s0"].records + held["s1"].records
    assert np.allclose(message[: sums[0].size], (sums[0] + sums[1]).reshape(-1))


def test_nobody_sends_in_the_first_round_back_and_everybody_else_does():
    there = Attendance(ring(4), frozenset({"s0"}), frozenset({"s1"}))
    assert there.receivers("s1") == there.receivers("s0") == () == there.senders("s0")
    assert there.receivers("s2") == ("s1", "s3") and there.senders("s2") == ("s3",)
    assert there.weights("s1", "metropolis") == {"s2": 1.0}, "its own start has no weight"
    assert there.weights("s2", "mean") == {"s3": 0.5}


def test_a_node_without_records_and_without_neighbours_stays_at_its_start():
    held = parties(2)
    agreed = agree(chain(2), held)
    nobody = agreed.classifier.examples(held["s0"].rows(np.arange(0)))
    alone = Attendance(Graph.of(["s0"], []))
    for node in (
        AveragingNode("s0", agreed.classifier, nobody, 2.0, 0.05, start="data"),
        RelayNode("s0", agreed.classifier, nobody, 0.05, start="data"),
    ):
        first = node.receive(alone, {})
        assert not first.difference.any() and first.soft == 0
        weights = agreed.classifier.weights(np.stack([node.model, agreed.classifier.uniform(1.0)]))
        assert np.allclose(*weights.values)


def test_statistics_that_diverge_are_an_error_that_names_the_node():
    held = parties(2)
    agreed = agree(chain(2), held, size=1e-9, start="uniform")
    node = agreed.node("s0", agreed.classifier.examples(held["s0"]))
    with pytest.raises(ValueError, match="the node s0: the statistics diverge"):
        node.receive(Attendance(agreed.network), {"s1": np.full(node.length, np.nan)})


def test_a_checkpoint_is_of_one_calibration_and_outlasts_one_part_that_is_asked_again():
    held = parties(2)
    agreed = agree(chain(2), held, MIXED)
    node = agreed.node("s0", agreed.classifier.examples(held["s0"]))
    kept, first = Checkpoints(), node.model
    kept.keep(b"one", 0, 8, node)
    again = kept.get(b"one", 8)
    again.receive(Attendance(agreed.network), {})
    assert np.array_equal(kept.get(b"one", 8).model, first), "a copy was updated"
    kept.keep(b"one", 8, 16, again)
    assert kept.get(b"one", 8) is not None and kept.get(b"one", 16) is not None
    kept.keep(b"one", 16, 24, again)
    assert kept.get(b"one", 8) is None and kept.get(b"two", 16) is None
    kept.keep(b"two", 0, 8, again)
    assert kept.get(b"one", 16) is None
