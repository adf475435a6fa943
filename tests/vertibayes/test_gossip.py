"""Gossip naive Bayes in one process: the merge, topologies, delays, drop-outs, scores."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_scorer import Scorer
from tests.vertibayes.test_federated import SCHEMA, dealt, records
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.federated import aggregate, exact_updates
from vertibayes.naive_bayes.gossip import along, complete, gossip, models_of
from vertibayes_protocols.gossip import Estimate, GossipNodes, merge


def run(updates, iterations, seed=0, **options):
    return list(gossip(np.asarray(updates), iterations, np.random.default_rng(seed), **options))


def estimate(weight, value):
    return Estimate(np.array([weight]), np.array([[float(value)]]))


def test_equation_26_by_hand():
    found = merge(estimate(2, 10.0), estimate(5, 4.0), np.array([[20.0]]))
    assert found.weights.tolist() == [8], "equation 27"
    assert found.values.tolist() == [[(2 * 10 + 5 * 4 + 20) / 8]]
    printed = merge(estimate(2, 10.0), estimate(5, 4.0), np.array([[20.0]]), adds_up_to=1)
    assert printed.weights.tolist() == [6], "Algorithm 4"
    assert printed.values.tolist() == found.values.tolist()
    first = merge(estimate(0, 0.0), estimate(0, 0.0), np.array([[20.0]]))
    assert first.weights.tolist() == [1] and first.values.tolist() == [[20.0]]


def test_the_counter_adds_up_to_100_and_then_grows_by_one():
    update, highest, weights = np.zeros((1, 1)), estimate(0, 0.0), []
    for _ in range(9):
        highest = merge(highest, highest, update)
        weights += highest.weights.tolist()
    assert weights == [1, 3, 7, 15, 31, 63, 100, 101, 102]
    assert merge(estimate(90, 0.0), estimate(20, 0.0), update).weights.tolist() == [100]
    assert merge(estimate(90, 0.0), estimate(120, 0.0), update).weights.tolist() == [121]


def test_of_several_messages_the_last_two_are_kept():
    nodes = GossipNodes(np.zeros((2, 1)))
    nodes.receive(np.array([1, 1, 1]), Estimate(np.array([1, 2, 3]), np.array([[1.0], [2], [3]])))
    assert (nodes.previous.weights.tolist(), nodes.received.weights.tolist()) == ([0, 2], [0, 3])
    nodes.receive(np.array([1]), Estimate(np.array([9]), np.array([[9.0]])))
    assert (nodes.previous.values[1], nodes.received.values[1]) == (3.0, 9.0)


OPTIONS = st.fixed_dictionaries(
    {"slots": st.integers(1, 4), "latest": st.integers(0, 3), "asleep": st.floats(0, 0.9)}
)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 15), st.integers(0, 2**32), OPTIONS)
def test_an_estimate_is_a_weighted_mean_of_updates(nodes, iterations, seed, options):
    generator = np.random.default_rng(seed)
    leaves = np.append(generator.integers(0, 20, nodes - 1), 20)
    for state in run(np.eye(nodes), iterations, seed, leaves=leaves, **options):
        weights = state.estimates.values
        assert (weights >= 0).all()
        assert weights.sum(axis=1) == pytest.approx(np.ones(nodes), abs=1e-12)
        assert (np.diag(weights) > 0).all()
        assert state.estimates.weights.min() >= 1


# 1 is the federated model; a node's own update is an estimate of weight 300.
@pytest.mark.parametrize(("adds_up_to", "at_30"), [(100, (1.0, 1.25)), (1, (1.4, 1.8))])
def test_the_weights_become_equal(adds_up_to, at_30):
    nodes = 300
    states = run(np.eye(nodes), 100, adds_up_to=adds_up_to)
    spread = [nodes * (s.estimates.values**2).sum(axis=1) for s in states]
    assert np.median(spread[0]) > 50 and np.median(spread[99]) < 1.2
    assert at_30[0] < np.median(spread[29]) < at_30[1], "Algorithm 4 as printed is slower"
    assert all(each.min() >= 1 - 1e-9 for each in spread)


@pytest.mark.parametrize(
    "options", [{}, {"slots": 8}, {"slots": 4, "latest": 6, "asleep": 0.3}], ids=str
)
def test_all_models_become_as_accurate_as_the_federated_one(options):
    data, test = records(2000), records(2000, seed=9)
    updates = exact_updates(SCHEMA, dealt(data, 200))
    wanted = aggregate(SCHEMA, updates).score(test)
    scorer = Scorer(SCHEMA, test)
    first, *_, last = run(updates, 60, **options)
    reached = scorer.accuracies(models_of(SCHEMA, last.estimates))
    assert (np.abs(reached - wanted) <= 0.01).mean() > 0.95
    assert (
        np.abs(scorer.accuracies(models_of(SCHEMA, first.estimates)) - wanted) <= 0.01
    ).mean() < 0.6


@pytest.mark.parametrize("graph", [nx.cycle_graph(12), nx.random_regular_graph(3, 12, seed=1)])
def test_messages_run_along_the_edges(graph):
    states = run(np.eye(12), 4, neighbours=graph)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for iteration, state in enumerate(states, 1):
        for node, weights in enumerate(state.estimates.values):
            assert all(lengths[node][other] <= iteration for other in np.flatnonzero(weights))
    lists = [list(graph[node]) for node in range(12)]
    same = run(np.eye(12), 4, neighbours=lists)
    assert np.array_equal(same[-1].estimates.values, states[-1].estimates.values)


def test_a_connected_topology_converges():
    updates = np.random.default_rng(5).normal(size=(64, 3))
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8, periodic=True))
    last = run(updates, 600, neighbours=grid)[-1].estimates.values
    assert np.abs(last - last.mean(axis=0)).max() < 0.1
    assert np.abs(last.mean(axis=0) - updates.mean(axis=0)).max() < 0.15


def test_a_node_of_many_neighbours_has_more_weight():
    star = nx.star_graph(20)
    weights = run(np.eye(21), 200, neighbours=star)[-1].estimates.values.mean(axis=0)
    assert weights[0] > 5 * weights[1:].mean()


def test_a_message_that_is_late_arrives_later():
    ring = [[1], [0]]
    early = run(np.eye(2), 1, neighbours=ring)[0].estimates
    assert early.weights.tolist() == [2, 2], "an estimate of 1, its own update, and none before"
    late = [run(np.eye(2), 1, seed, neighbours=ring, latest=1)[0] for seed in range(40)]
    weights = np.array([state.estimates.weights for state in late])
    assert {1, 2} == set(weights.ravel().tolist())


def test_a_node_that_left_sends_nothing_and_changes_no_more():
    leaves = np.array([3, 99, 99, 99, 0])
    states = run(np.eye(5), 30, leaves=leaves)
    assert [s.present.sum() for s in states] == [4] * 3 + [3] * 27
    assert all(not state.estimates.values[:4, 4].any() for state in states)  # it never sent
    assert all(np.array_equal(s.estimates.values[0], states[2].estimates.values[0])
               for s in states[3:])  # fmt: skip
    assert states[-1].estimates.values[1, 1:4].min() > 0.05  # the others go on


def test_half_of_the_nodes_drop_out_and_the_others_reach_the_federated_accuracy():
    updates = exact_updates(SCHEMA, dealt(records(2000), 100))
    test = records(2000, seed=9)
    leaves = np.where(np.arange(100) < 50, np.arange(100) // 5, 99)
    last = run(updates, 60, leaves=leaves)[-1]
    found = Scorer(SCHEMA, test).accuracies(models_of(SCHEMA, last.estimates))[last.present]
    assert np.abs(np.median(found) - aggregate(SCHEMA, updates).score(test)) <= 0.01


def test_a_node_alone_has_its_own_model():
    update = exact_updates(SCHEMA, [records(50)])
    (state,) = run(update, 1)
    (model,) = models_of(SCHEMA, state.estimates)
    assert np.array_equal(model.sums_, update[0])


def test_scores_of_many_models_are_those_of_each():
    data = records(500)
    data.codes["y"][:5] = 3  # classes that are not known
    data.codes["colour"][5:40] = 3
    data.numbers["size"][20:60] = np.nan
    generator = np.random.default_rng(6)
    noisy = exact_updates(SCHEMA, dealt(records(900), 70)) + generator.integers(-5, 6, (70, 24))
    models = [NaiveBayes(SCHEMA, floor=1e-6).fit_sums(sums) for sums in noisy]
    wanted = [model.score(data) for model in models]
    assert Scorer(SCHEMA, data).accuracies(models) == pytest.approx(wanted, abs=1e-12)
    impossible = NaiveBayes(SCHEMA, alpha=0).fit(records(500).rows(np.arange(2)))
    with pytest.raises(ValueError, match="probabilities of 0: fit it with alpha or floor"):
        Scorer(SCHEMA, data).accuracies([impossible])
    with pytest.raises(ValueError, match="no record has a known class"):
        Scorer(SCHEMA, data.rows(np.arange(5)))


def test_peers_are_uniform_over_the_others():
    senders = np.repeat(np.arange(4), 3000)
    drawn = complete(4)(senders, np.random.default_rng(7))
    counts = np.bincount(senders * 4 + drawn, minlength=16).reshape(4, 4)
    assert not np.diag(counts).any()
    assert np.abs(counts[~np.eye(4, dtype=bool)] - 1000).max() < 5 * np.sqrt(3000 * 2 / 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaves": [0, 2, 1]}, "all 3 nodes drop out before iteration 2"),
        ({"leaves": [1, 2]}, "leaves must be one number for each of 3 nodes"),
        ({"asleep": 1.0}, "asleep must be at least 0 and below 1, got 1.0"),
        ({"slots": 0}, "slots must be at least 1, got 0"),
        ({"latest": -1}, "latest must be at least 0, got -1"),
        ({"adds_up_to": 0}, "adds_up_to must be at least 1, got 0"),
        ({"neighbours": [[1], [0], []]}, "node 2 has no neighbour"),
        ({"neighbours": [[1], [0], [3]]}, "node 2 has a neighbour that is not one of the 3"),
        ({"neighbours": nx.path_graph(4)}, "neighbours must be of the nodes 0 to 2, got 4"),
    ],
)
def test_mistakes_are_named_before_the_first_iteration(options, message):
    with pytest.raises(ValueError, match=message):
        gossip(np.eye(3), 5, np.random.default_rng(0), **options)


def test_updates_must_be_finite():
    for updates in (np.full((2, 2), np.nan), np.zeros((0, 3))):
        with pytest.raises(ValueError, match="updates must be finite"):
            gossip(updates, 3, np.random.default_rng(0))


def test_neighbours_are_drawn_evenly():
    drawn = along([[1, 2], [0], [0]], 3)(np.zeros(1000, np.int64), np.random.default_rng(8))
    assert set(drawn.tolist()) == {1, 2} and abs((drawn == 1).sum() - 500) < 70
