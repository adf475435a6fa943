"""Local updates and gossip over parties: what is shown, refused, charged, and who may be gone."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.gossip_replay import replay
from tests.vertibayes.hdpnb_worlds import SCHEMA, drop_after, federation_of, parties, watch
from vertibayes_mpc.errors import MalformedMessageError, PartyGoneError
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.queries import Updates
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.queries.sums.updates import Delivered, Step
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

NOISY = Privacy(eps=30.0, noise="laplace")


def query_of(federation, privacy=NOISY, iterations=1, **given):
    terms = Terms(given.pop("schema", SCHEMA), 20, given.pop("most_records", 9), privacy, **given)
    return Updates.of(federation.analyst, terms, federation.roles, iterations)


def ask(federation, query, absent=()):
    query = replace(query, parties=tuple(p for p in query.parties if p not in absent))
    with federation.session(absent) as session:
        return session.ask(query)


def exact(federation, schema=SCHEMA):
    return {p: schema.measure(role.batches[0]) for p, role in federation.roles.items()}


def test_one_iteration_collects_each_sites_statistics_with_whole_copies_of_noise():
    federation = federation_of(parties(20, 9))
    gossip = ask(federation, query_of(federation, Privacy(eps=3.0, noise="laplace")))
    noise = np.array([gossip.updates[p] - counts for p, counts in exact(federation).items()])
    rate = 1.0  # eps = 3 over three tables, sensitivity 1
    sd = 1 / (math.sqrt(2) * math.sinh(rate / 2))
    assert gossip.promise.sd == pytest.approx(sd)
    assert noise.std() == pytest.approx(sd, rel=0.25), "420 draws: five standard errors"
    assert gossip.estimates == {p: pytest.approx(u) for p, u in gossip.updates.items()}


def test_exact_updates_and_shares_of_noise_are_refused_as_they_show_single_sites():
    federation = federation_of(parties(3))
    for privacy in (None, Privacy(eps=30.0), Privacy(eps=30.0, noise="diluted")):
        with pytest.raises(ValueError, match="the noise must be laplace or gaussian"):
            query_of(federation, privacy)
    query = query_of(federation)
    with pytest.raises(ValueError, match="the noise must be laplace or gaussian"):
        replace(query, terms=replace(query.terms, privacy=replace(NOISY, noise="polya")))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iterations": 0}, "iterations must be from 1 to 10000, got 0"),
        ({"iterations": 10_001}, "iterations must be from 1 to 10000"),
        ({"members": ("p00", "p01")}, "the parties must be members"),
        ({"members": ("p00", "p00", "p01", "p02")}, "members, each once"),
        ({"analyst": b""}, "must have the public key of its analyst"),
        ({"number": -1}, "sum number -1"),
        ({"parties": ()}, "at least one must answer"),
    ],
)
def test_a_query_that_cannot_be_run_is_not_constructed(changes, reason):
    with pytest.raises(ValueError, match=reason):
        replace(query_of(federation_of(parties(3))), **changes)


def test_a_share_that_is_no_number_is_no_noise():
    with pytest.raises(ValueError, match="eps = nan"):
        replace(NOISY, eps=math.nan)


def test_gossip_over_parties_equals_its_replay_and_nears_the_mean():
    federation = federation_of(parties(8))
    gossip = ask(federation, query_of(federation, iterations=40))
    assert len(gossip.sent) == 40 and all(len(sent) == 8 for sent in gossip.sent)
    replayed = replay(gossip.updates, gossip.sent)
    assert all(np.array_equal(replayed[p], gossip.estimates[p]) for p in federation.roles)
    mean = np.mean(list(gossip.updates.values()), axis=0)
    away = np.abs(np.array(list(gossip.estimates.values())) - mean).max()
    first = np.abs(np.array(list(gossip.updates.values())) - mean).max()
    assert away < first / 2, "updates are mixed"
    assert all(sender != to for sent in gossip.sent for sender, to in sent.items())


def test_two_of_eight_nodes_are_gone_in_the_middle_and_the_others_go_on():
    federation = federation_of(parties(8))
    drop_after(federation, {"p03": 4, "p06": 9})  # answer, then three and eight steps
    gossip = ask(federation, query_of(federation, iterations=12, dropouts=0.25))
    assert [len(sent) for sent in gossip.sent] == [8] * 3 + [7] * 5 + [6] * 4
    assert sorted(gossip.updates) == [f"p{i:02}" for i in range(8)], "their updates stay in it"
    replayed = replay(gossip.updates, gossip.sent)
    assert set(replayed) == set(gossip.estimates) == set(federation.roles) - {"p03", "p06"}
    assert all(np.array_equal(replayed[p], gossip.estimates[p]) for p in replayed)


def test_a_replay_without_the_drop_outs_is_another():
    federation = federation_of(parties(8))
    drop_after(federation, {"p03": 4})
    gossip = ask(federation, query_of(federation, iterations=12, dropouts=0.25))
    ignored = [{"p03": "p00", **sent} for sent in gossip.sent]
    replayed = replay(gossip.updates, ignored)
    assert not all(np.array_equal(replayed[p], gossip.estimates[p]) for p in gossip.estimates)


def test_more_gone_than_agreed_and_all_gone_are_errors_that_name_them():
    federation = federation_of(parties(4))
    drop_after(federation, {"p00": 2, "p01": 2})
    with pytest.raises(PartyGoneError, match="p00, p01"):
        ask(federation, query_of(federation, iterations=5, dropouts=0.25))
    federation = federation_of(parties(2))
    drop_after(federation, {"p00": 2, "p01": 2})
    with pytest.raises(PartyGoneError):
        ask(federation, query_of(federation, iterations=5, dropouts=0.9))


@pytest.mark.parametrize(
    ("kind", "change", "blamed"),
    [
        (Step, {"values": np.zeros(3)}, "p01"),
        (Step, {"values": np.full(21, np.nan)}, "p01"),
        (Step, {"values": np.full(21, 1e300)}, "p01"),
        (Step, {"weight": 0}, "p01"),
        (Step, {"weight": 16}, "p01"),  # four iterations: 1, 3, 7, 15
        (Step, {"weight": 2**62}, "p01"),
        (Step, {"to": "p01"}, "p01"),
        (Step, {"to": "stranger"}, "p01"),
        (Delivered, {"weights": np.array([16]), "values": np.zeros((1, 21))}, "analyst"),
        (Delivered, {"weights": np.zeros(9, np.int64)}, "analyst"),
        (Delivered, {"values": np.full((1, 21), np.inf), "weights": np.array([1])}, "analyst"),
    ],
)
def test_estimates_that_no_site_can_have_computed_blame_their_sender(kind, change, blamed):
    federation = federation_of(parties(3))

    def note(transport, sent):
        if isinstance(sent.message, kind) and sent.sender == blamed:
            return replace(sent.message, **change)
        return None

    watch(federation, note)
    with pytest.raises(MalformedMessageError, match=blamed):
        ask(federation, query_of(federation, iterations=4))


def test_an_absent_site_is_not_asked_and_one_site_alone_is_enough_for_one_iteration():
    federation = federation_of(parties(2))
    gossip = ask(federation, query_of(federation, dropouts=0.5), absent=["p01"])
    assert list(gossip.updates) == ["p00"]
    with pytest.raises(ValueError, match="gossip needs two members or more"):
        Updates.of(federation.analyst, Terms(SCHEMA, 2, 9, NOISY), ["p00"], 2)
    with pytest.raises(ValueError, match="at least one must answer"):
        Updates.of(federation.analyst, Terms(SCHEMA, 2, 9, NOISY), ["p00"], 1, ["p00"])


def test_numbers_have_noise_of_their_bounds():
    y, z = Variable("y", ("s0", "s1")), Numeric("z", -1.0, 1.0)
    schema = Schema(y, {"z": z}, centred=True)
    held = {
        f"p{i}": LocalData({"y": y}, {"y": np.arange(8) % 2}, {"z": z},
                           {"z": np.linspace(-2, 2, 8)})
        for i in range(4)
    }  # fmt: skip
    federation = federation_of(held)
    privacy = Privacy(eps=40.0, noise="gaussian")
    gossip = ask(federation, query_of(federation, privacy, schema=schema))
    expected = exact(federation, schema)["p0"]
    scale = 2**22 / math.sqrt(2 * gossip.promise.cost.rho / 3)
    for update in gossip.updates.values():
        assert np.abs(update - expected)[:4].max() < 6 * scale / 2**11
        assert np.abs(update - expected)[4:].max() < 6 * scale
    with pytest.raises(ValueError, match="z: noise needs centred moments"):
        query_of(federation, privacy, schema=Schema(y, {"z": z}))
