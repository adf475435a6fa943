"""An approved calibration runs once. An analyst asks its parts again and again, of other sites.

Each answer has the losses and errors of the sites that are there: two that differ in one site give
the numbers of this site. The owners have approved the losses of one run over all sites.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.calibration_worlds import agree, federation_of, network_of, parties, ring
from tests.protocols.small import packets
from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.approval import Approved, Use
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import PeerGoneError, QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Begin, Consensus
from vertibayes_protocols.queries.calibration import consensus
from vertibayes_protocols.queries.declared_run import declare

HELD, ROUNDS, FAILED = parties(5), 4, 3
AGREED = agree(ring(5), HELD, shown=False)
ALL_PAIRS = agree(network_of("complete", list(HELD), np.random.default_rng()), HELD, shown=False)
USED = f"{FAILED} runs of the study began and released nothing"
STRICT = replace(ALLOW_ALL, free_tables=False, most_failed_runs=FAILED)


@pytest.fixture
def world():
    """Start sites whose owners have approved one calibration; return them and its contract."""
    return world_of(AGREED)


def world_of(agreed):
    federation = federation_of(HELD, STRICT)
    keys = federation.analyst.public_keys
    keys[DEALER] = KeyPair.generate(SeededRandomness(b"dealer")).public
    contract = Contract(
        sites=tuple((site, keys[site]) for site in HELD),
        dealer=(DEALER, keys[DEALER]),
        analyst=(ANALYST, federation.analyst.keys.public),
        variables=("y",),
        learner="calibration",
        options={},
        rule=None,
        queries=(declare(Consensus.of(federation.analyst, agreed, 1, last=ROUNDS)),),
    )
    approve(federation, contract)
    return federation, contract


def approve(federation, contract):
    approved = {contract.digest: Approved(contract, "A. Owner", "2026-01-31", None)}
    for role in federation.roles.values():
        role.approvals = approved.get


def part(world, first, rounds=1, *, reveal=False, agreed=AGREED, **options):
    """Ask some rounds in a session of their own."""
    federation, contract = world
    absent = options.get("absent", ())
    with federation.session(absent) as session:
        session.ask(Begin.of(contract, absent))
        options = {"first": first, "last": ROUNDS, "reveal": reveal, **options}
        query = Consensus.of(federation.analyst, agreed, rounds, **options)
        return query.calibration, session.ask(query)


def again(world, repeat):
    """Ask parts until a site refuses, or too often; return how many answers there were, and why."""
    calibration, _ = part(world, 1)
    for answers in range(3 * FAILED):
        try:
            repeat(calibration, answers)
        except QueryRefusedError as error:
            return answers, str(error)
    return 3 * FAILED, "no site refused"


def test_a_part_that_is_asked_again_counts_as_a_run(world):
    sums = []

    def without(calibration, number):
        absent = (f"s{number}",) if number else ()
        sums.append(part(world, 2, calibration=calibration, absent=absent)[1])

    answers, why = again(world, without)
    assert answers <= FAILED and USED in why
    sizes = [int(answer.records[0]) for answer in sums]
    assert sizes[0] - sizes[1] == HELD["s1"].records  # which is what repeated parts tell


def test_sites_that_are_said_to_have_lost_their_statistics_count_a_run(world):
    def restart(calibration, number):
        del number
        part(world, 2, calibration=calibration, back=("s0", "s1", "s2", "s3"))

    answers, why = again(world, restart)
    assert answers < FAILED and USED in why


def sums_of_broken_parts(monkeypatch):
    """Have s0 keep the sums of its neighbourhood, and the analyst break each part before its end.

    Return how many parts there were, why a site refused, the sums by who was absent, and the
    statistics of each site.
    """
    world, sums = world_of(ALL_PAIRS), {}
    sum_neighbours = consensus.sum_neighbours

    def kept(site, there, vectors, length, name):
        total, heard = yield from sum_neighbours(site, there, vectors, length, name)
        if site.party == "s0":
            sums[there.absent] = total, heard
        return total, heard

    def broken(sent, packet):
        if sent.message.kind == consensus.Finished.kind and sent.sender == "s0":
            raise PeerGoneError("s0", "cannot be reached")
        return packet

    calibration, _ = part(world, 1, agreed=ALL_PAIRS)
    roles = world[0].roles.items()
    truth = {site: role.checkpoints.nodes[1].model.reshape(-1) for site, role in roles}
    monkeypatch.setattr(consensus, "sum_neighbours", kept)
    with packets(monkeypatch, broken):
        for number in range(3 * FAILED):
            absent = (f"s{number % 5}",) if number % 5 else ()
            try:
                part(world, 2, 2, agreed=ALL_PAIRS, calibration=calibration, absent=absent)
            except PeerGoneError:
                continue
            except QueryRefusedError as error:
                return number, str(error), sums, truth
    return 3 * FAILED, "no site refused", sums, truth


def test_parts_that_a_site_and_the_analyst_break_count_a_run_each(monkeypatch):
    """No site has finished a round, so that none knew that it had been asked before."""
    answers, why, *_ = sums_of_broken_parts(monkeypatch)
    assert answers <= FAILED and USED in why


def test_broken_parts_that_do_not_count_show_the_statistics_of_every_site(monkeypatch):
    """The control: the sites as they were, which counted the parts that they had finished."""

    def counts_finished(query, party, checkpoints):
        return Use(query.first <= max(1, 0, *checkpoints.nodes), query.reveal)

    monkeypatch.setattr(Consensus, "uses_run", counts_finished)
    answers, _, sums, truth = sums_of_broken_parts(monkeypatch)
    assert answers == 3 * FAILED
    everybody, heard = sums[frozenset()]
    assert len(heard) == 4
    for site in heard:
        fewer, left = sums[frozenset({site})]
        shown = everybody * 5 - fewer * 4  # weights are 1/5, and 1/4 without one site
        assert len(left) == 3
        np.testing.assert_allclose(shown, truth[site], atol=1e-6)


def test_parts_one_after_the_other_are_one_run(world):
    """The control: what an honest analyst asks."""
    federation, contract = world
    calibration, _ = part(world, 1)
    for first in range(2, ROUNDS):
        part(world, first, calibration=calibration)
    assert part(world, ROUNDS, calibration=calibration, reveal=True)[1].statistics is not None
    memories = [role.memory for role in federation.roles.values()]
    assert all(memory.runs.count(contract.digest) == (1, 1) for memory in memories)
    with pytest.raises(QueryRefusedError, match="its one run is used up"):
        part(world, ROUNDS, calibration=calibration, reveal=True)


def test_a_contract_that_leaves_a_field_open_answers_no_query(world):
    """An approval of another release may declare fewer fields: none of them is free."""
    federation, contract = world
    (query,) = contract.queries
    agreed = {name: value for name, value in query["fields"]["agreed"].items() if name != "rate"}
    for fields, name in (
        ({**query["fields"], "agreed": agreed}, "rate"),
        ({"agreed": query["fields"]["agreed"]}, "last"),
        ({**query["fields"], "last": None}, "last"),
    ):
        open_one = replace(contract, queries=({"kind": query["kind"], "fields": fields},))
        approve(federation, open_one)
        with pytest.raises(QueryRefusedError, match=f"{name} of 'consensus' is not that of the co"):
            part((federation, open_one), 1)


@pytest.mark.parametrize("last", [None, ROUNDS])
def test_no_round_and_no_reveal_is_beyond_the_last_round_of_the_contract(world, last):
    federation, contract = world
    (query,) = contract.queries
    fields = {**query["fields"], "last": last}
    changed = replace(contract, queries=({"kind": query["kind"], "fields": fields},))
    approve(federation, changed)
    for first, rounds, reveal in ((1, ROUNDS + 1, False), (ROUNDS + 1, 1, True), (1, 1, True)):
        reason = f"rounds {first} to {first + rounds - 1}: the contract has {last or 0}"
        with pytest.raises(QueryRefusedError, match=reason):
            part((federation, changed), first, rounds, reveal=reveal, last=last)
