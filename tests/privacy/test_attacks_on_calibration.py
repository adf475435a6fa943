"""Attacks on calibration: what exact statistics of many rounds show, and what masks hide.

The difference of a node in a round is linear in how many records it has of each kind, with
coefficients that follow from the statistics that it has received: whoever knows these solves the
differences of some rounds for the records.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.calibration_worlds import NETWORK, A, B, Y, agree, chain, federation_of, parties, ring
from tests.randomness import SeededRandomness
from tests.vertibayes.hdpnb_worlds import watch
from vertibayes_mpc.errors import UnexpectedMessageError
from vertibayes_mpc.masked_sum.messages import MaskedVector
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import update
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Consensus
from vertibayes_protocols.queries.calibration.consensus import Statistics
from vertibayes_protocols.queries.calibration.neighbourhood_sums import Grid
from vertibayes_protocols.site.statistics import LocalData

KINDS = np.array(list(product(range(2), range(3), range(2))))  # y, a, b
ALL_KINDS = LocalData({v.name: v for v in (Y, A, B)}, dict(zip("yab", KINDS.T, strict=True)))
HELD = parties(4, numbers=False)
TRIANGLE = ring(3)


def counts_of(*held):
    """Return how many records of each kind some sites have together."""
    codes = np.concatenate([np.array([d.codes[n] for n in "yab"]).T for d in held])
    return np.array([(codes == kind).all(axis=1).sum() for kind in KINDS])


def solved(agreed, received, differences):
    """Return how many records there are of each kind, from what was received and its differences.

    The counts that fit best; several fit as well if there are too few rounds.
    """
    examples = agreed.classifier.examples(ALL_KINDS)
    rows = []
    for statistics in received:
        of_kinds = [
            update(agreed.classifier, statistics, type(examples)(*(part[[k]] for part in examples)))
            for k in range(len(KINDS))
        ]
        rows.append(np.array([kind.difference.reshape(-1) for kind in of_kinds]).T)
    right = np.concatenate([difference.reshape(-1) for difference in differences])
    return np.linalg.lstsq(np.concatenate(rows), right, rcond=None)[0]


def run(agreed, rounds, held=HELD, change=lambda sent: None, policy=None):
    """Calibrate; return all messages, and what was released."""
    federation = federation_of(held, **({} if policy is None else {"policy": policy}))
    sent = []

    def note(_, one):
        sent.append(one)
        return change(one)

    watch(federation, note)
    query = Consensus.of(federation.analyst, agreed, rounds)
    with federation.session() as session:
        return sent, session.ask(query)


def shown(sent, sender, receiver):
    return [
        s.message.values.reshape(2, -1)
        for s in sent
        if isinstance(s.message, Statistics) and (s.sender, s.receiver) == (sender, receiver)
    ]


def of_a_leaf(rounds):
    """Return what s1 solves its messages from and to the leaf s0 for."""
    agreed = agree(chain(4), HELD, NETWORK)
    sent, _ = run(agreed, rounds)
    own, theirs = shown(sent, "s1", "s0"), shown(sent, "s0", "s1")
    received = [(a + b) / 2 for a, b in zip(own, theirs, strict=True)][:-1]
    differences = [after - mean for after, mean in zip(theirs[1:], received, strict=True)]
    return solved(agreed, received, differences)


def test_a_neighbour_solves_the_shown_statistics_of_a_leaf_for_its_records():
    assert np.abs(of_a_leaf(8) - counts_of(HELD["s0"])).max() < 0.1
    assert np.abs(of_a_leaf(2) - counts_of(HELD["s0"])).max() > 0.3, "one difference is not enough"


def test_the_default_policy_shows_statistics_to_no_neighbour():
    agreed = agree(chain(4), HELD, NETWORK)
    with pytest.raises(QueryRefusedError, match="its policy does not set exact_neighbours"):
        run(agreed, 1, policy=Policy(exact_sums=True, free_tables=True))
    with pytest.raises(QueryRefusedError, match="statistics of fewer than 20 records"):
        run(
            agreed,
            1,
            policy=Policy(
                exact_sums=True, exact_neighbours=True, fewest_records=20, free_tables=True
            ),
        )


def summed_in_a_triangle(rounds, known=()):
    """Return what s0 solves its sums for; it knows the statistics of the neighbours `known`.

    In a triangle, all nodes have the same mean in each round.
    """
    held = {name: HELD[name] for name in TRIANGLE.nodes}
    agreed = agree(TRIANGLE, held, NETWORK, shown=False)
    nodes = {n: agreed.node(n, agreed.classifier.examples(d)) for n, d in held.items()}
    means, hidden = [], [n for n in held if n not in ("s0", *known)]
    sums = [sum(nodes[n].statistics for n in hidden)]
    for _ in range(rounds):
        mean = sum(node.statistics for node in nodes.values()) / 3
        for name, node in nodes.items():
            node.statistics = (
                mean
                + update(agreed.classifier, mean, agreed.classifier.examples(held[name])).difference
            )
        means.append(mean)
        sums.append(sum(nodes[n].statistics for n in hidden))
    differences = [after - len(hidden) * mean for after, mean in zip(sums[1:], means, strict=True)]
    return solved(agreed, means, differences)


def test_sums_over_two_neighbours_are_solved_for_the_records_of_both_together():
    both = counts_of(HELD["s1"], HELD["s2"])
    counts = summed_in_a_triangle(8)
    assert np.abs(counts - both).max() < 0.1
    assert np.abs(counts - counts_of(HELD["s1"])).max() > 1, "of neither alone"


def test_two_neighbours_that_work_together_solve_them_for_the_third_alone():
    assert np.abs(summed_in_a_triangle(8, ["s1"]) - counts_of(HELD["s2"])).max() < 0.1


def test_a_sum_over_a_single_neighbour_would_be_its_statistics_and_is_refused():
    with pytest.raises(ValueError, match=r"would show the statistics of s1 to s0\. Add an edge"):
        agree(chain(4), HELD, NETWORK, shown=False)
    agreed = agree(ring(4), HELD, NETWORK, shown=False)
    federation = federation_of(HELD)
    kinds = set()
    watch(federation, lambda _, sent: kinds.add((type(sent.message), sent.receiver)))
    query = Consensus.of(federation.analyst, agreed, 1, absent=["s2"])
    with federation.session(["s2"]) as session:
        session.ask(query)
    assert (MaskedVector, "s1") not in kinds and (MaskedVector, "s3") not in kinds
    assert (MaskedVector, "s0") in kinds, "whose neighbours are both there"


def masked_vectors(held, query, seed):
    """Return the masked vectors of s0, of one query that is asked of several federations."""
    federation = federation_of(held)
    for party, role in federation.roles.items():
        role.randomness = SeededRandomness(seed + party.encode())
    vectors = []

    def note(_, sent):
        if isinstance(sent.message, MaskedVector) and sent.sender == "s0":
            vectors.append(sent.message.values)

    watch(federation, note)
    with federation.session() as session:
        session.ask(query)
    return vectors


def test_masks_hide_a_changed_record_unless_they_are_used_twice():
    agreed = agree(ring(4), HELD, NETWORK, shown=False, most_records=100)
    query = Consensus.of(federation_of(HELD).analyst, agreed, 1)
    other = {**HELD, "s0": HELD["s0"].rows(np.arange(1, 12))}
    starts = [
        agreed.node("s0", agreed.classifier.examples(held["s0"])).model.reshape(-1) / 3
        for held in (HELD, other)
    ]
    one, two = (Grid(2).encode("s0", start) for start in starts)
    first = masked_vectors(HELD, query, b"one")[0]
    repeated = masked_vectors(other, query, b"one")[0]
    assert np.array_equal((first - repeated).view(np.int64), one - two), "the control"
    fresh = masked_vectors(other, query, b"two")[0]
    assert (np.abs((first - fresh).view(np.int64)) > np.abs(one).max()).all()


def test_all_masks_of_a_calibration_differ():
    agreed = agree(ring(4), HELD, NETWORK, shown=False)
    sent, _ = run(agreed, 3)
    labels = {s.message.context for s in sent if isinstance(s.message, MaskedVector)}
    assert len(labels) == 3 * 4 + 1, "each node opens a sum in each round, and the analyst one"


@pytest.mark.parametrize("is_shown", [True, False])
def test_an_analyst_that_sends_sites_different_queries_gets_no_statistics(is_shown):
    agreed = agree(ring(4), HELD, NETWORK, shown=is_shown)
    other = replace(agreed, rate=agreed.rate / 2, size=agreed.size / 2)

    def another(sent):
        if isinstance(sent.message, Consensus) and sent.receiver == "s1":
            return replace(sent.message, agreed=other)
        return None

    with pytest.raises(UnexpectedMessageError, match=r"another (query|sum)"):
        run(agreed, 1, change=another)


def test_two_calibrations_that_differ_in_one_site_show_its_losses_and_records():
    complete = Graph.of(HELD, [(a, b) for a in HELD for b in HELD if a < b])
    agreed = agree(complete, HELD, NETWORK, start="uniform", shown=False)
    federation = federation_of(HELD)
    released = []
    for absent in ((), ("s3",)):
        with federation.session(absent) as session:
            query = Consensus.of(federation.analyst, agreed, 1, absent=absent, reveal=False)
            released.append(session.ask(query))
    first = agreed.classifier.uniform(1.0)
    own = update(agreed.classifier, first, agreed.classifier.examples(HELD["s3"]))
    soft, records = (getattr(released[0], n) - getattr(released[1], n) for n in ("soft", "records"))
    assert records[0] == HELD["s3"].records and abs(soft[0] - own.soft) < 1e-5
