"""Calibration as a conversation: the simulated model, who may leave, what is refused and noted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.calibration_worlds import (
    MIXED,
    NETWORK,
    A,
    Y,
    agree,
    chain,
    federation_of,
    opening,
    parties,
    ring,
    simulated,
)
from tests.protocols.small import refusal_at
from tests.vertibayes.hdpnb_worlds import drop_after, watch
from vertibayes.calibration.between_machines import calibrate_sites
from vertibayes_mpc.errors import (
    MalformedMessageError,
    PartyGoneError,
    ProtocolError,
    UnexpectedMessageError,
)
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.engine import consider
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Consensus
from vertibayes_protocols.queries.calibration.consensus import Finished, Statistics
from vertibayes_protocols.queries.calibration.consensus_query import LOST
from vertibayes_protocols.site.statistics import Numeric
from vertibayes_protocols.variables import Family, Variable

HELD = parties(5)
TOGETHER = ring(5)


def mean_of(step, there=slice(None)):
    return step.statistics[there].mean(axis=0)


def ask(federation, query):
    with federation.session(query.absent) as session:
        return session.ask(query)


@pytest.mark.parametrize(
    ("spec", "network", "mixing", "start", "shown"),
    [
        (MIXED, chain(5), "relay", "data", True),
        (MIXED, chain(5), "mean", "uniform", True),
        (MIXED, TOGETHER, "metropolis", "data", False),
        (MIXED, TOGETHER, "mean", "data", False),
        (NETWORK, chain(5), "relay", "uniform", True),
    ],
)
def test_sites_reach_the_model_and_the_losses_of_the_simulation(
    spec, network, mixing, start, shown
):
    agreed = agree(network, HELD, spec, mixing, start, shown=shown, iterations=2)
    federation = federation_of(HELD)
    released = ask(federation, Consensus.of(federation.analyst, agreed, 3))
    expected = simulated(agreed, HELD, 3)
    assert np.abs(released.statistics - mean_of(expected[-1])).max() < 1e-9
    assert np.abs(released.soft - [step.soft.sum() for step in expected]).max() < 1e-5
    assert released.errors.tolist() == [step.errors.sum() for step in expected]
    assert released.records.tolist() == [sum(d.records for d in HELD.values())] * 3
    assert released.parties == tuple(HELD)


def test_each_site_keeps_its_own_classifier_when_a_calibration_has_ended():
    agreed, federation, kept = agree(chain(5), HELD), federation_of(HELD), {}
    for name, role in federation.roles.items():
        role.calibrated = lambda *of, name=name: kept.setdefault(name, of)
    calibrate_sites(opening(federation, [(), ()]), agreed, 4, rounds_per_part=2)
    last = simulated(agreed, HELD, 4)[-1].statistics
    for name, expected in zip(HELD, last, strict=True):
        _, spec, statistics = kept[name]
        assert spec == agreed.spec and np.abs(statistics - expected).max() < 1e-9


@pytest.mark.parametrize("mixing", ["mean", "metropolis", "relay"])
def test_parts_with_absent_sites_that_return_equal_the_simulation(mixing):
    agreed = agree(chain(5), HELD, mixing=mixing)
    federation = federation_of(HELD)
    spans = [(), ("s1",), ("s3",), ()]
    reached = calibrate_sites(opening(federation, spans), agreed, 8, rounds_per_part=2)
    expected = simulated(agreed, HELD, 8, lambda number: spans[(number - 1) // 2])
    assert np.abs(reached.statistics - mean_of(expected[-1])).max() < 1e-9
    assert reached.errors.tolist() == [step.errors.sum() for step in expected]
    assert [part.back for part in reached.parts] == [(), (), ("s1",), ("s3",)]
    assert [part.first for part in reached.parts] == [1, 3, 5, 7]


def test_a_site_that_was_started_between_two_parts_is_back():
    agreed = agree(chain(5), HELD)
    federation = federation_of(HELD)

    def lose(part):
        federation.roles["s2"].checkpoints.nodes.clear()

    reached = calibrate_sites(opening(federation), agreed, 3, rounds_per_part=2, finished=lose)
    assert reached.parts[1].back == ("s2",)
    assert len(reached.soft) == 3


@pytest.mark.parametrize(("network", "shown"), [(chain(5), True), (TOGETHER, False)])
@pytest.mark.parametrize("messages", [1, 2, 3, 7])
def test_the_others_go_on_when_a_site_is_gone_in_the_middle(network, shown, messages):
    agreed = agree(network, HELD, shown=shown)
    federation = federation_of(HELD)
    drop_after(federation, {"s2": messages})
    released = ask(federation, Consensus.of(federation.analyst, agreed, 3))
    assert released.parties == ("s0", "s1", "s3", "s4")
    assert np.isfinite(released.statistics).all()
    assert released.records[0] == sum(d.records for n, d in HELD.items() if n != "s2")


def test_a_sum_over_a_large_neighbourhood_does_without_a_site_that_is_gone():
    complete = Graph.of(HELD, [(a, b) for a in HELD for b in HELD if a < b])
    agreed = agree(complete, HELD, shown=False)
    federation = federation_of(HELD)
    drop_after(federation, {"s4": 1})
    released = ask(federation, Consensus.of(federation.analyst, agreed, 1))
    expected = simulated(agreed, HELD, 1, lambda _: {"s4"})[-1]
    assert np.abs(released.statistics - mean_of(expected, expected.present)).max() < 1e-9


def test_too_few_at_the_end_are_an_error_and_the_part_can_be_asked_again():
    agreed = agree(chain(5), HELD)
    federation = federation_of(HELD)
    query = Consensus.of(federation.analyst, agreed, 2)
    ask(federation, query)
    again = {"first": 3, "calibration": query.calibration}
    with federation.session() as session:
        for party in ("s0", "s1", "s2"):
            session.transport.drop(party)
        with pytest.raises(PartyGoneError, match="s0"):
            session.ask(Consensus.of(federation.analyst, agreed, 2, **again))
    released = ask(federation, Consensus.of(federation.analyst, agreed, 2, **again))
    assert np.abs(released.statistics - mean_of(simulated(agreed, HELD, 4)[-1])).max() < 1e-9


def test_the_analyst_sees_no_message_of_a_site_but_masked_sums_and_round_numbers():
    agreed = agree(TOGETHER, HELD, shown=False)
    federation = federation_of(HELD)
    kinds = {}
    watch(
        federation,
        lambda _, sent: kinds.setdefault(sent.receiver, set()).add(type(sent.message).kind),
    )
    ask(federation, Consensus.of(federation.analyst, agreed, 2, reveal=False))
    assert kinds["analyst"] == {
        "answer", Finished.kind, "sum-advertisement", "sum-shared", "sum-masked",
        "sum-confirmation", "sum-revealed",
    }  # fmt: skip
    assert Statistics.kind not in set().union(*kinds.values())


def test_statistics_are_revealed_to_the_analyst_at_the_end_alone():
    agreed = agree(chain(5), HELD)
    federation = federation_of(HELD)
    hidden = ask(federation, Consensus.of(federation.analyst, agreed, 1, reveal=False))
    assert hidden.statistics is None and hidden.records.tolist() == [70]


def changed(query, **changes):
    """Return a query of which the classifier, what is agreed or another field is changed."""
    agreed, spec = query.agreed, query.agreed.spec
    spec = spec._replace(**{name: changes.pop(name) for name in spec._fields if name in changes})
    fields = {name: changes.pop(name) for name in vars(agreed) if name in changes}
    return replace(query, agreed=replace(agreed, **{"spec": spec, **fields}), **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rate": 1.5}, "the learning rate must be above 0 and at most 1"),
        ({"rate": np.nan}, "the learning rate must be above 0"),
        ({"size": np.inf}, r"m0 must be above 0 and at most 1e\+09, got inf"),
        ({"iterations": 101}, "iterations must be from 1 to 100, got 101"),
        ({"rounds": 10_001}, "rounds must be from 1 to 10000"),
        ({"rounds": 0}, "rounds must be from 1 to 10000"),
        ({"first": 0}, "rounds must be from 1 to 10000, got 0"),
        ({"mixing": "median"}, "mixing must be one of mean, metropolis, relay, got 'median'"),
        ({"start": "theta"}, "start must be one of uniform, data, got 'theta'"),
        ({"mixing": "relay", "shown": False}, "a relay shows statistics to neighbours"),
        ({"back": ("x",)}, "must be nodes, and not both"),
        ({"absent": ("s1",), "back": ("s1",)}, "must be nodes, and not both"),
        ({"absent": ("s0", "s1", "s2", "s3")}, "1 of 5 nodes are there"),
        ({"most_gone": 3}, "most_gone = 3 of 5 parties"),
        ({"most_gone": -1}, "most_gone = -1 of 5 parties"),
        ({"number": -1}, "sum number -1"),
        ({"calibration": -1}, "sum number -1"),
        ({"analyst": b""}, "must have the public key of its analyst"),
        ({"target": "z"}, "the class 'z' must be declared with two states or more"),
        ({"variables": {"y": Y, "a": Variable("q", ("u",))}}, "the column 'a' is named 'q'"),
        ({"numerics": {"z": Numeric("z", 2.0, -2.0)}}, "z: bounds must be finite and ascend"),
        ({"families": (Family("y"),)}, "a network must have variables with states only"),
    ],
)
def test_a_query_that_cannot_be_run_is_not_constructed(changes, reason):
    query = Consensus.of(federation_of(HELD).analyst, agree(TOGETHER, HELD), 2)
    with pytest.raises(ValueError, match=reason):
        changed(query, **changes)


def test_networks_that_are_none_are_not_constructed():
    with pytest.raises(ValueError, match="the network is not connected"):
        agree(Graph.of(["s0", "s1", "s2"], [("s0", "s1")]), HELD)
    with pytest.raises(ValueError, match="the node s0 appears twice"):
        Graph.of(["s0", "s0"], [])
    with pytest.raises(ValueError, match="s0 has the neighbour s1 twice"):
        Graph({"s0": ("s1", "s1"), "s1": ("s0",)})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"first": 2}, LOST),
        ({"most_records": 3}, "more records than the 3 agreed"),
        ({"absent": ("s1",), "most_gone": 1}, "the parties must be the nodes that are not absent"),
        ({"parties": ("s1",)}, "the parties must be the nodes that are not absent"),
        ({"parties": ("s4", "s3", "s2", "s1", "s0")}, "the query asks other parties"),
        (
            {"absent": ("s0",), "parties": ("s1", "s2", "s3", "s4"), "most_gone": 1},
            "it is not among the nodes that are asked",
        ),
        ({"number": 5}, "sum number 5 does not come after"),
        ({"variables": {"y": replace(Y, states=("yes", "maybe")), "a": A}}, "the state 'no'"),
    ],
)
def test_a_query_that_does_not_fit_is_refused(changes, reason):
    federation = federation_of(HELD)
    query = Consensus.of(federation.analyst, agree(TOGETHER, HELD), 2)
    assert reason in refusal_at(federation.roles["s0"], changed(query, **changes))


@pytest.mark.parametrize(
    ("families", "reason"),
    [
        ((Family("y"), Family("a", ("y",))), "each variable must be the child of one family"),
        ((Family("y"), Family("a", ("q",)), Family("b")), "'q' is in a family and not declared"),
        ((Family("y"), Family("a", ("y", "y")), Family("b")), "of 'a' has a variable twice"),
    ],
)
def test_families_that_are_no_network_are_refused(families, reason):
    with pytest.raises(ValueError, match=reason):
        agree(TOGETHER, HELD, NETWORK._replace(families=families))


def test_a_policy_decides_about_sums_neighbours_columns_and_accomplices():
    federation = federation_of(HELD)
    site = federation.roles["s0"]
    shown = Consensus.of(federation.analyst, agree(TOGETHER, HELD), 2)
    agreed = agree(TOGETHER, HELD, start="uniform", shown=False)
    summed = Consensus.of(federation.analyst, agreed, 2)
    for query, policy, reason in (
        (shown, {"exact_sums": False}, "its policy does not set exact_sums"),
        (shown, {"exact_neighbours": False}, "its policy does not set exact_neighbours"),
        (shown, {"fewest_records": 13}, "statistics of fewer than 13 records"),
        (shown, {"variables": ["y", "a"]}, "it does not show z"),
        (shown, {"most_variables": 1}, "a table of 2 variables"),
        (shown, {"most_cells": 10}, "tables of 14 cells"),
        (shown, {"most_memory": 1247}, "needs 1248 bytes for its records, at most 1247 are"),
        (summed, {"dishonest": 0.5}, "fewer than two honest members could be in a sum over 5"),
        (replace(summed, most_gone=0), {"dishonest": 0.5}, "in a sum over 2 sites"),
    ):
        site.policy = replace(ALLOW_ALL, **policy)
        assert reason in refusal_at(site, query)
    site.policy = replace(ALLOW_ALL, exact_neighbours=False, fewest_records=13)
    consider(site, summed)


def test_a_node_with_one_neighbour_is_named_where_sums_are_to_protect():
    with pytest.raises(ValueError, match="the node s0 has one neighbour, s1: the sum over"):
        agree(chain(3), parties(3), shown=False)


def test_a_node_whose_key_is_not_pinned_is_refused():
    federation = federation_of(HELD)
    query = Consensus.of(federation.analyst, agree(TOGETHER, HELD), 2)
    site = federation.roles["s0"]
    site.signing_keys = {p: k for p, k in site.signing_keys.items() if p != "s3"}
    assert "no signing key of s3 is pinned here" in refusal_at(site, query)


def test_ledgers_say_which_neighbour_sees_what_in_how_many_rounds():
    federation = federation_of(HELD)
    ask(federation, Consensus.of(federation.analyst, agree(chain(5), HELD), 3))
    to = {fact.to: fact.what for fact in federation.roles["s1"].ledger.facts}
    assert set(to) == {("s0",), ("s2",), ("analyst",)}
    assert "14 numbers of this site's statistics in each of rounds 1 to 3" in to["s0",]
    federation = federation_of(HELD)
    ask(federation, Consensus.of(federation.analyst, agree(TOGETHER, HELD, shown=False), 3))
    facts = {fact.to: fact for fact in federation.roles["s1"].ledger.facts}
    expected = "14 numbers, sums over 2 or more neighbours, in each of rounds 1 to 3"
    assert expected in facts["s0",].what and facts["s0",].about == "the neighbours together"
    sums = facts["analyst",].what
    assert "naive Bayes of y from a, z (mixing mean, start data)" in sums
    assert "sums over 3 or more of 5 sites" in sums
    (fact,) = federation.analyst.ledger.facts
    assert fact.about == "all sites together" and "of the statistics after the last" in fact.what


def test_the_ledger_of_a_relay_says_of_which_sites_a_message_is_the_sum():
    federation = federation_of(HELD)
    agreed = agree(chain(5), HELD, NETWORK, "relay")
    records = []

    def keep(_, sent):
        if (sent.sender, sent.receiver) == ("s1", "s0"):
            records.append(round(sent.message.values[-1]))

    watch(federation, keep)
    ask(federation, Consensus.of(federation.analyst, agreed, 2))
    to = {
        (name, *fact.to): fact
        for name in ("s0", "s1")
        for fact in federation.roles[name].ledger.facts
    }
    assert "sums over this side of the tree (this site alone)" in to["s0", "s1"].what
    assert (
        "sums over this side of the tree (this site alone at first, then with s0"
        in to["s1", "s2"].what
    )
    assert "then with s2, s3, s4 as they arrive)" in to["s1", "s0"].what
    assert to["s1", "s0"].about == to["s1", "s2"].about == "s1"
    assert records == [13, 27]  # of s1 alone, then of s1 and s2
    assert "a Bayesian network of y from a, b (mixing relay" in to["s1", "analyst"].what


def test_the_ledger_of_the_analyst_says_over_which_sites_the_sums_were_in_the_end():
    federation = federation_of(HELD)
    drop_after(federation, {"s2": 2})
    ask(federation, Consensus.of(federation.analyst, agree(chain(5), HELD), 3))
    (fact,) = federation.analyst.ledger.facts
    assert "sums over 4 of 5 sites (s0, s1, s3, s4; without s2)" in fact.what
    assert fact.about == "these sites together"


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        (
            {"values": np.full(14, np.nan)},
            MalformedMessageError,
            "s2: sent no 14 numbers",
        ),
        ({"values": np.zeros(13)}, MalformedMessageError, "s2: sent no 14 numbers"),
        ({"round": 2}, UnexpectedMessageError, "s2: sent statistics of round 2 in round 1"),
        ({"query": b"other"}, UnexpectedMessageError, "s2: was sent another query"),
        ({"values": np.full(14, 1e15)}, MalformedMessageError, "s2: sent no 14 numbers"),
        (
            {"values": np.repeat([1e9, -1e9], 7)},
            ProtocolError,
            "the statistics of 2 of these 5 sites diverge in round 1: specify a lower",
        ),
    ],
)
def test_statistics_that_no_node_sends_blame_their_sender(change, error, reason):
    federation = federation_of(HELD)

    def forge(_, sent):
        if isinstance(sent.message, Statistics) and sent.sender == "s2":
            return replace(sent.message, **change)
        return None

    watch(federation, forge)
    with pytest.raises(error, match=reason):
        ask(federation, Consensus.of(federation.analyst, agree(chain(5), HELD), 2))


def test_a_part_is_asked_again_when_too_few_are_left_and_at_most_three_times():
    agreed, federation, begun = agree(chain(5), HELD), federation_of(HELD), []
    begin = opening(federation)

    def failing(times):
        def open_session():
            begun.append(1)
            if len(begun) <= times:
                raise PartyGoneError("s0", "gone")
            return begin()

        return open_session

    reached = calibrate_sites(failing(2), agreed, 1)
    assert len(begun) == 3 and len(reached.soft) == 1
    begun.clear()
    with pytest.raises(PartyGoneError):
        calibrate_sites(failing(3), agreed, 1)
    with pytest.raises(ValueError, match="must be at least 1, got 0 and 16"):
        calibrate_sites(begin, agreed, 0)
