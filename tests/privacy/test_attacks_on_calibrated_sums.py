"""Attacks on calibration in which neighbours and analyst see sums: what separates a sum again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import least_squares

from tests.calibration_worlds import NETWORK, agree, chain, federation_of, parties, ring
from tests.privacy.test_attacks_on_calibration import ALL_KINDS, counts_of, run, solved
from tests.vertibayes.hdpnb_worlds import watch
from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.masked_sum import Neighbourhood, compromise_probability
from vertibayes_mpc.masked_sum.messages import Keys, MaskedVector, Shared, Survivors
from vertibayes_mpc.rounds import Round, send
from vertibayes_protocols.calibration import nodes, starts
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import posterior, statistics_of, update
from vertibayes_protocols.calibration.nodes import Attendance, AveragingNode
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import ALLOW_ALL, Policy
from vertibayes_protocols.queries import Consensus
from vertibayes_protocols.queries.calibration import neighbourhood_sums
from vertibayes_protocols.queries.calibration.neighbourhood_sums import GivenUp, collect
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

HELD = parties(4, numbers=False)
THREE = {name: HELD[name] for name in ("s0", "s1", "s2")}
COMPLETE = Graph.of(HELD, [(a, b) for a in HELD for b in HELD if a < b])
summed = partial(agree, spec=NETWORK, shown=False, most_records=100)


@pytest.fixture
def seen(monkeypatch):
    """Return a list to which s0 adds what it sees: its sums, and the means that follow."""
    sums, add = [], AveragingNode.add

    def noting(node, there, total, heard):
        if node.party == "s0":
            sums.append((total.reshape(node.statistics.shape), node.statistics))
        return add(node, there, total, heard)

    monkeypatch.setattr(AveragingNode, "add", noting)
    return sums


# ---- the neighbour -------------------------------------------------------------------------------


@pytest.fixture
def divided(monkeypatch):
    """Have nodes divide a start from data by their own numbers of records: the unsafe variant."""

    def start_of(classifier, sums, scale, size, start):
        records = sums[:, 0].sum()
        return starts.start_of(classifier, sums, size / records, size, start)

    monkeypatch.setattr(nodes, "start_of", start_of)


@pytest.mark.usefixtures("divided")
def test_a_sum_of_starts_that_sites_divide_by_their_records_is_separated_into_their_counts(seen):
    agreed = summed(ring(3), THREE)
    run(agreed, 1, THREE)
    even = agreed.classifier.uniform(agreed.size)
    shares = (3 * seen[0][0] - 0.2 * even) / (0.9 * agreed.size)  # n1 / 13 + n2 / 14
    whole = np.rint(13 * 14 * shares).astype(int)  # 14 n1 + 13 n2
    for name, own, other in (("s1", 13, 14), ("s2", 14, 13)):
        counts = whole * pow(other, -1, own) % own
        examples = agreed.classifier.examples(THREE[name])
        expected = statistics_of(agreed.classifier, examples).astype(int)
        assert THREE[name].records == own and np.array_equal(counts, expected)


def moved(held, count):
    """Return the records of sites, of which the first few of s1 are at s2."""
    one, two = held["s1"], held["s2"]
    codes = {n: np.concatenate([two.codes[n], one.codes[n][:count]]) for n in two.codes}
    rest = one.rows(np.arange(count, one.records))
    return {**held, "s1": rest, "s2": LocalData(two.variables, codes)}


def hides_who_has_a_record(seen, start):
    """Whether s0 sees the same sums if records of s1 are at s2."""
    for held in (THREE, moved(THREE, 5)):
        run(summed(ring(3), held, start=start), 3, held)
    one, two = (np.array([total for total, _ in part]) for part in (seen[:3], seen[3:]))
    return np.abs(one - two).max() < 1e-8


@pytest.mark.parametrize("start", ["uniform", "data"])
def test_equal_weights_hide_which_of_two_neighbours_has_a_record(seen, start):
    assert hides_who_has_a_record(seen, start)


@pytest.mark.usefixtures("divided")
def test_a_start_that_sites_divide_by_their_records_shows_who_has_a_record(seen):
    assert not hides_who_has_a_record(seen, "data")


UNEQUAL = Graph.of(
    [f"s{i}" for i in range(6)],
    [(f"s{a}", f"s{b}") for a, b in ("01", "02", "13", "14", "23", "24", "25", "35")],
)


def test_a_sum_with_unequal_weights_is_separated_into_remainders_of_the_counts_of_each(seen):
    held = parties(6, numbers=False)
    agreed = summed(UNEQUAL, held, start="uniform", mixing="metropolis")
    run(agreed, 2, held)
    even = agreed.classifier.uniform(agreed.size)
    whole = np.rint(2 * 20 * (seen[1][0] - even * (1 / 4 + 1 / 5))).astype(int)  # 5 x1 + 4 x2
    for name, own, other in (("s1", 4, 5), ("s2", 5, 4)):
        examples = agreed.classifier.examples(held[name])
        twice = 2 * update(agreed.classifier, even, examples).difference
        assert np.array_equal(whole * pow(other, -1, own) % own, np.rint(twice).astype(int) % own)


def test_a_node_solves_its_sums_for_the_records_of_the_only_site_behind_its_neighbours(seen):
    """Its neighbours s1 and s3 have s2 as neighbour: s2 is in their means, with known sums."""
    agreed = summed(ring(4), HELD, start="uniform")
    run(agreed, 7)
    sums, own = [3 * total for total, _ in seen], [statistics for _, statistics in seen]
    kinds = agreed.classifier.examples(ALL_KINDS)
    start, signs = agreed.classifier.uniform(agreed.size), np.eye(2)[kinds.classes]

    def difference(mean, counts):
        wrong = signs - posterior(kinds.columns, agreed.classifier.weights(mean).values)
        return (wrong * counts[:, None]).T @ kinds.columns

    def misfit(counts):
        behind, rests = start, []
        for both, mine, after in zip(sums, own, sums[1:], strict=False):
            mean = (both / 2 + mine + behind) / 3  # of each neighbour, nearly
            rests.append((2 * mean + difference(mean, counts[12:]) - after).reshape(-1))
            behind = (behind + both) / 3
            behind = behind + difference(behind, counts[:12])
        return np.concatenate(rests)

    counts = np.rint(least_squares(misfit, np.ones(24), max_nfev=9).x[:12])
    assert (counts == counts_of(HELD["s2"])).sum() >= 10, "of 12 kinds"


def test_a_site_whose_summand_can_be_separated_needs_a_policy_that_shows_it():
    policy = Policy(exact_sums=True, free_tables=True)
    for network, mixing in ((UNEQUAL, "metropolis"), (ring(4), "mean")):
        held = parties(len(network.nodes), numbers=False)
        with pytest.raises(QueryRefusedError, match="does not set exact_neighbours; sums with "):
            run(summed(network, held, mixing=mixing), 1, held, policy=policy)
    for mixing, start in product(("mean", "metropolis"), ("uniform", "data")):
        run(summed(ring(3), THREE, start=start, mixing=mixing), 1, THREE, policy=policy)


def test_what_a_policy_refuses_says_nothing_of_the_records():
    agreed = agree(ring(4), HELD, NETWORK)
    federation = federation_of(HELD, policy=Policy(exact_sums=True, free_tables=True))
    states = {"y": ("yes", "other"), "a": ("u",), "b": ("k",)}
    variables = {name: Variable(name, own) for name, own in states.items()}
    other = replace(agreed, spec=agreed.spec._replace(variables=variables))
    query = Consensus.of(federation.analyst, other, 1)
    with federation.session() as session, pytest.raises(QueryRefusedError, match="exact_neigh"):
        session.ask(query)


def leaving_out(monkeypatch, rounds):
    """Let s0 leave s3 out of its sum in some rounds: it tells s3 that it has given up."""
    opened = []

    def lying(plan):
        mine = "s0" not in plan.parties
        opened.extend([plan] * mine)
        program = collect(plan)
        step = next(program)
        while True:
            inbox = dict((yield Round(step.outbox, step.expect, need=0)))
            if mine and len(opened) in rounds and isinstance(inbox.get("s3"), MaskedVector):
                del inbox["s3"]
                yield from send({"s3": GivenUp(plan.label)})
            try:
                step = program.send(inbox)
            except StopIteration as stop:
                return stop.value

    monkeypatch.setattr(neighbourhood_sums, "_open", lying)


def test_a_neighbour_that_lies_about_who_is_there_approaches_the_statistics_of_one(
    seen, monkeypatch
):
    leaving_out(monkeypatch, {6})
    agreed = summed(COMPLETE, HELD, start="uniform")
    run(agreed, 6)
    (before, own_before), (full, own), (without, _) = seen[-3:]
    step = (full + own / 4) - (before + own_before / 4)  # of the mean, from round to round
    estimate = 4 * (full - without) + 2 * step
    nodes = {n: agreed.node(n, agreed.classifier.examples(d)) for n, d in HELD.items()}
    for _ in range(4):
        last = sum(node.statistics for node in nodes.values()) / 4
        for name, node in nodes.items():
            examples = agreed.classifier.examples(HELD[name])
            node.statistics = last + update(agreed.classifier, last, examples).difference
    change = nodes["s3"].statistics - last
    error = np.abs(estimate - nodes["s3"].statistics).max()
    assert error < 0.1 * np.abs(change).max(), "of what the records of s3 have changed"


@pytest.mark.parametrize("kind", [Keys, Survivors])
def test_a_message_of_another_kind_in_a_sum_blames_its_sender(kind):
    empty = np.zeros(0, np.uint32)

    def forged(sent):
        if isinstance(sent.message, kind) and sent.sender == "s0":
            other = Survivors if kind is Keys else Shared
            rest = (empty,) if other is Survivors else (np.zeros((0, 1), np.uint8),) * 2
            return other(sent.message.context, *rest)
        return None

    with pytest.raises(UnexpectedMessageError, match="s0: sent sum-"):
        run(summed(ring(4), HELD), 1, change=forged)


# ---- the analyst ---------------------------------------------------------------------------------


def diverges(size):
    """Whether the site s0 alone diverges in its first round, for an m0 that the analyst chooses."""
    agreed = summed(ring(3), THREE, start="uniform", size=size)
    node = agreed.node("s0", agreed.classifier.examples(THREE["s0"]))
    try:
        node.add(Attendance(agreed.network), np.zeros(node.length), ())
    except ValueError:
        return True
    return False


def test_whether_a_named_site_diverges_would_be_searched_for_one_of_its_numbers():
    low, high = 1e-6, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if diverges(middle) else (low, middle)
    agreed = summed(ring(3), THREE)
    examples = agreed.classifier.examples(THREE["s0"])
    difference = update(agreed.classifier, agreed.classifier.uniform(1.0), examples).difference
    assert abs(1000 * low - np.abs(difference).max()) < low


def test_all_sites_finish_when_one_diverges_and_the_sum_does_not_say_which():
    # s1 has a largest number of 2.0 and the others of 2.5: m0 is such that these two diverge
    agreed = summed(ring(3), THREE, start="uniform", size=2.25e-3)
    sent = []
    with pytest.raises(ProtocolError) as caught:
        run(agreed, 2, THREE, change=sent.append)
    assert caught.value.parties == tuple(THREE)
    assert "statistics of 2 of these 3 sites diverge in round 1" in caught.value.reason
    to_analyst = [(s.sender, type(s.message)) for s in sent if s.receiver == "analyst"]
    kinds = [[kind for sender, kind in to_analyst if sender == name] for name in THREE]
    assert kinds[0] == kinds[1] == kinds[2]


def test_whether_a_start_from_data_fits_a_small_m0_names_no_site_either():
    with pytest.raises(ProtocolError, match="of 3 of these 3 sites diverge in round 1") as caught:
        run(summed(ring(3), THREE, size=1e-4), 1, THREE)
    assert caught.value.parties == tuple(THREE)


def test_an_analyst_that_says_a_site_is_gone_has_its_trace_and_statistics():
    agreed = agree(COMPLETE, HELD, NETWORK, start="uniform")
    _, whole = run(agreed, 3)
    federation = federation_of(HELD)

    def gone(transport, sent):
        if isinstance(sent.message, Shared) and (sent.sender, sent.receiver) == ("s3", "analyst"):
            transport.drop("s3")

    watch(federation, gone)
    with federation.session() as session:
        rest = session.ask(Consensus.of(federation.analyst, agreed, 3))
    assert rest.parties == ("s0", "s1", "s2")
    of_one = 4 * whole.statistics - 3 * rest.statistics
    mean, examples = agreed.classifier.uniform(agreed.size), agreed.classifier.examples(HELD["s3"])
    for place in range(3):
        first = update(agreed.classifier, mean, examples)
        assert abs(whole.soft[place] - rest.soft[place] - first.soft) < 1e-5
        assert whole.errors[place] - rest.errors[place] == first.errors
        every = [
            update(agreed.classifier, mean, agreed.classifier.examples(d)) for d in HELD.values()
        ]
        own, mean = mean + first.difference, mean + sum(u.difference for u in every) / 4
    assert np.abs(of_one - own / agreed.size).max() < 1e-9


@pytest.mark.usefixtures("divided")
def test_the_analyst_alone_separates_a_start_that_sites_divide_into_the_counts_of_each_site():
    """With a large m0, the first update is smaller than the distance of the fractions."""
    held = {**THREE, "s0": THREE["s0"].rows(np.arange(11))}  # 11, 13 and 14 records
    agreed = summed(ring(3), held, size=1e9)
    _, released = run(agreed, 1, held)
    shares = (3 * released.statistics - 0.3 * agreed.classifier.uniform(1.0)) / 0.9
    whole = np.rint(11 * 13 * 14 * shares).astype(int)
    for data in held.values():
        rest = 11 * 13 * 14 // data.records
        counts = whole * pow(rest, -1, data.records) % data.records
        examples = agreed.classifier.examples(data)
        assert np.array_equal(counts, statistics_of(agreed.classifier, examples).astype(int))


def test_the_analyst_alone_separates_the_middle_site_of_a_chain_where_nodes_differ_in_influence():
    """On a chain of three, the middle weighs 4/3 in the means of all, and the ends 5/6 each."""
    first = agree(chain(3), THREE, NETWORK, start="data", size=1e9)
    _, weighted = run(first, 1, THREE)
    _, plain = run(agree(chain(3), THREE, NETWORK, start="uniform", size=1e9), 1, THREE)
    ours, even = (3e9 * released.statistics for released in (weighted, plain))
    of_starts = 0.05 / 0.9 * ((ours - even)[0] - (ours - even)[1])  # classes differ by this
    middle = 2 * (of_starts - 5 / 6 * (even[0] - even[1]))
    sums = statistics_of(first.classifier, first.classifier.examples(THREE["s1"]))
    assert np.array_equal(np.rint(middle), sums[0] - sums[1])


def solved_by_the_analyst(absent=()):
    """Return how many records of each kind there are, from parts of one round each."""
    agreed = agree(COMPLETE, HELD, NETWORK, start="uniform")  # what neighbours see is the same here
    federation = federation_of(HELD)
    means, calibration = [agreed.classifier.uniform(agreed.size)], None
    for number in range(1, 8):
        with federation.session(absent) as session:
            query = Consensus.of(
                federation.analyst, agreed, 1, first=number, calibration=calibration, absent=absent
            )
            means.append(session.ask(query).statistics * agreed.size)
        calibration = query.calibration
    steps = [(4 - len(absent)) * (b - a) for a, b in pairwise(means)]
    return solved(agreed, means[:-1], steps)


def test_the_analyst_alone_solves_revealed_statistics_for_tables_of_all_variables_of_one_site():
    counts = solved_by_the_analyst()
    assert np.abs(counts - counts_of(*HELD.values())).max() < 0.2
    counts -= solved_by_the_analyst(("s3",))
    assert np.array_equal(np.rint(counts), counts_of(HELD["s3"]))


def test_a_policy_that_expects_dishonest_sites_refuses_a_sum_that_two_lists_would_open():
    five = parties(5, numbers=False)
    network = Graph.of(five, [(a, b) for a in five for b in five if a < b])
    agreed = summed(network, five, start="uniform")
    federation = federation_of(five, policy=replace(ALLOW_ALL, dishonest=0.2))
    assert compromise_probability(5, Neighbourhood(4, 3), 1) == 1, "as tests of masked sums show"
    with federation.session() as session:
        with pytest.raises(QueryRefusedError, match="1 of 5 members could open the vector"):
            session.ask(Consensus.of(federation.analyst, agreed, 1))
        session.ask(Consensus.of(federation.analyst, agreed, 1, most_gone=1))
