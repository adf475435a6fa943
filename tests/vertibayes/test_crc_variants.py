"""CRC where networks change, and nodes are away or asleep."""

from itertools import pairwise

import numpy as np
import pytest

from tests.vertibayes.rc_worlds import chain, complete, world
from vertibayes.calibration.crc import collaborative_rc
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import update

TREE = Graph.of("abcdefg", ["ab", "ac", "bd", "be", "cf", "fg"])
SIZES = [10, 1, 20, 30, 4, 16, 9]


def test_the_model_of_an_absent_node_does_not_change():
    w = world(60, 5)
    for mixing in ("mean", "relay"):
        first, second, third = collaborative_rc(
            w.classifier,
            w.nodes([20, 10, 30]),
            chain("abc"),
            3,
            mixing=mixing,
            absent=lambda number: "c" if number == 2 else (),
        )
        assert (second.statistics[2] == first.statistics[2]).all()
        assert (third.statistics[2] != second.statistics[2]).any()


def test_a_network_may_change_by_round():
    w = world(60, 5)
    nodes = w.nodes([20, 10, 30])
    networks = [chain("abc"), complete("abc"), Graph.of("abc", ["ab"])]
    rounds = list(collaborative_rc(w.classifier, nodes, lambda number: networks[number - 1], 3))
    for network, before, after in zip(networks[1:], rounds, rounds[1:], strict=False):
        places = {name: place for place, name in enumerate("abc")}
        for node, hood in network.mean_weights.items():
            mean = sum(weight * before.statistics[places[peer]] for peer, weight in hood.items())
            step = mean + update(w.classifier, mean, nodes[node]).difference
            assert after.statistics[places[node]] == pytest.approx(step, abs=1e-9)


def asleep(w, seed, share, rounds=40):
    return list(
        collaborative_rc(
            w.classifier,
            w.nodes(SIZES),
            TREE,
            rounds,
            asleep=share,
            generator=np.random.default_rng(seed),
        )
    )


def test_sleeping_nodes_keep_their_statistics_and_calibrate_all_the_same():
    w = world(90, 7)
    rounds = asleep(w, 1, 0.5)
    for before, after in pairwise(rounds):
        kept = (before.statistics == after.statistics).all(axis=(1, 2))
        assert kept.tolist() == (~after.present).tolist()
    assert 0.4 < np.mean([r.present for r in rounds]) < 0.6
    assert sum(r.errors.sum() for r in rounds[-5:]) < sum(r.errors.sum() for r in rounds[:5])


@pytest.mark.parametrize("mixing", ["mean", "metropolis"])
def test_nodes_that_are_awake_update_one_after_another(mixing):
    w, drawn = world(90, 7), np.random.default_rng(5)
    nodes, names = w.nodes(SIZES), "abcdefg"
    weights = TREE.mean_weights if mixing == "mean" else TREE.metropolis_weights
    states = dict.fromkeys(nodes, w.classifier.uniform(90 / (0.05 * 7)))
    options = {"mixing": mixing, "asleep": 0.2, "generator": np.random.default_rng(5)}
    for made in collaborative_rc(w.classifier, nodes, TREE, 6, **options):
        awake = np.flatnonzero(drawn.random(7) >= 0.2)
        for node in [names[place] for place in drawn.permutation(awake)]:
            mean = sum(weight * states[peer] for peer, weight in weights[node].items())
            states[node] = mean + update(w.classifier, mean, nodes[node]).difference
        expected = np.array([states[node] for node in nodes])
        assert made.statistics == pytest.approx(expected, abs=1e-9)


def test_a_sleeping_node_that_is_back_starts_from_its_neighbours_when_it_wakes():
    w = world(60, 5)
    nodes = w.nodes([20, 10, 30])
    rounds = list(
        collaborative_rc(
            w.classifier,
            nodes,
            complete("abc"),
            12,
            asleep=0.6,
            generator=np.random.default_rng(3),
            absent=lambda number: "c" if number < 4 else (),
        )
    )
    first = next(r.number for r in rounds if r.present[2])
    assert first > 4  # c sleeps when it is back
    before, after = rounds[first - 2].statistics, rounds[first - 1]
    assert not after.present[:2].any()
    mean = before[:2].mean(axis=0)
    step = mean + update(w.classifier, mean, nodes["c"]).difference
    assert after.statistics[2] == pytest.approx(step, abs=1e-9)


def test_sleep_is_the_same_for_the_same_generator():
    w = world(90, 7)
    one, two, other = (asleep(w, seed, 0.5, 5)[-1].statistics for seed in (1, 1, 2))
    assert (one == two).all() and (one != other).any()
