"""Naive Bayes over sites that are processes of their own, on loopback."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.e2e.processes import Processes
from tests.gossip_replay import replay
from tests.vertibayes.hdpnb_worlds import pooled
from vertibayes.naive_bayes.releases import learn_sums
from vertibayes.naive_bayes.vertical import model_of, predict_joint_log_proba
from vertibayes_mpc.errors import PartyGoneError
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.queries import Describe, Meet, Publish, Updates
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.scoring import Logarithms
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

pytestmark = pytest.mark.machines

PATIENCE = {"gone": 2.0, "probe": 0.5, "hello": 20.0}
SCHEMA = Schema(
    Variable("y", ("no", "yes")),
    {"a": Variable("a", ("u", "v", "w")), "b": Variable("b", ("k", "l"))},
)


def site_data(seed, records=30):
    draw = np.random.default_rng(seed)
    codes = {n: draw.integers(0, len(v.states), records) for n, v in SCHEMA.variables.items()}
    return SiteData(SCHEMA.variables, {n: c.astype(np.uint8) for n, c in codes.items()})


def sums_of(data, sites, terms):
    return pooled(terms, [LocalData(data[s].variables, data[s].codes) for s in sites]).sums_


def killing(processes, party):
    """Kill a party once it says that it is about to send its message."""

    def kill():
        processes.running[party].wait_for("here")
        processes.running[party].kill()

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def test_twenty_parties_of_which_three_leave_two_join_and_two_are_killed(tmp_path):
    data = {f"s{i:02}": site_data(i) for i in range(22)}
    sites = list(data)
    terms = Terms(SCHEMA, 22, 30, dropouts=0.2)
    with Processes(tmp_path, data, patience=PATIENCE, policy={"exact_sums": True}) as processes:
        members = Members(terms, sites[:20])
        session, absent = processes.star(members.parties)
        with session:
            release = learn_sums(session, terms, members)
        assert not absent and release.parties == tuple(sites[:20])
        assert np.array_equal(release.sums, sums_of(data, sites[:20], terms))

        for party in sites[:3]:
            members.leave(party)
        for party in sites[20:]:
            members.join(party)
        processes.running["s05"].kill()
        processes.stop_at("s06", "sum-masked")
        session, absent = processes.star(members.parties, most_absent=3)
        killed = killing(processes, "s06")
        with session:
            release = learn_sums(session, terms, members, absent)
        killed.join(10)
        left = [site for site in members.parties if site not in ("s05", "s06")]
        assert absent == {"s05"} and release.parties == tuple(left)
        assert np.array_equal(release.sums, sums_of(data, left, terms))


def test_eight_nodes_gossip_two_are_killed_and_all_is_as_in_one_process(tmp_path):
    data = {f"s{i}": site_data(i) for i in range(8)}
    terms = Terms(SCHEMA, 8, 30, Privacy(eps=1.0, noise="laplace"), dropouts=0.25)
    policy = {"most_epsilon": 1.5}
    with Processes(tmp_path, data, patience=PATIENCE, policy=policy, memory=True) as processes:
        processes.stop_at("s2", "gossip step", 3)
        processes.stop_at("s6", "gossip step", 7)
        session, absent = processes.star(tuple(data), most_absent=2)
        killed = [killing(processes, party) for party in ("s2", "s6")]
        with session:
            gossip = session.ask(Updates.of(session.role, terms, data, 30))
            left = Updates.of(session.role, terms, data, 1, ["s2", "s6"])
            with pytest.raises(QueryRefusedError, match=r"costs epsilon 1: 0.5 is left"):
                session.ask(left)
        for thread in killed:
            thread.join(10)
    assert not absent and sorted(gossip.updates) == sorted(data)
    assert [len(sent) for sent in gossip.sent] == [8] * 3 + [7] * 4 + [6] * 23
    replayed = replay(gossip.updates, gossip.sent)
    assert set(replayed) == set(gossip.estimates) == set(data) - {"s2", "s6"}
    assert all(np.array_equal(replayed[site], gossip.estimates[site]) for site in replayed)
    noise = [gossip.updates[s] - sums_of(data, [s], terms) for s in data]
    assert 0 < np.std(noise) < 3 * gossip.promise.sd, "each has noise of the promised size"


def test_eight_sites_show_updates_one_is_killed_and_the_others_are_the_model(tmp_path):
    data = {f"s{i}": site_data(i) for i in range(8)}
    terms = Terms(SCHEMA, 8, 30, Privacy(eps=1.0, noise="gaussian"), dropouts=0.25)
    with Processes(tmp_path, data, patience=PATIENCE, policy={"most_delta": 1e-4}) as processes:
        processes.running["s1"].kill()
        processes.stop_at("s5", "gossip step")
        session, absent = processes.star(tuple(data), most_absent=2)
        killed = killing(processes, "s5")
        with session:
            gossip = session.ask(Updates.of(session.role, terms, data, 1, absent))
        killed.join(10)
    left = sorted(set(data) - {"s1", "s5"})
    assert absent == {"s1"} and sorted(gossip.updates) == left
    noise = sum(gossip.updates.values()) - sums_of(data, left, terms)
    assert 0 < np.std(noise) < 3 * gossip.promise.sd * np.sqrt(6)
    assert gossip.promise.composition == "zCDP" and "zCDP" in gossip.promise.sentence


def test_a_killed_site_is_named_resumes_and_its_budget_is_spent_once_it_has_sent(tmp_path):
    data = {f"s{i}": site_data(i) for i in range(4)}
    terms = Terms(SCHEMA, 4, 30, Privacy(eps=0.5))
    policy = {"most_epsilon": 1.2}
    with Processes(tmp_path, data, patience=PATIENCE, policy=policy, memory=True) as processes:
        members = Members(terms, data, "additive")
        processes.stop_at("s2", "ciphertexts")
        session, _ = processes.star(members.parties)
        killing(processes, "s2")
        with session, pytest.raises(PartyGoneError, match="s2"):
            learn_sums(session, terms, members)
        processes.start("s2")
        processes.running["s2"].wait_for("ready")
        session, _ = processes.star(members.parties)
        with session:
            release = learn_sums(session, terms, members)
            assert release.parties == tuple(data) and release.promise.eps == pytest.approx(0.5)
            with pytest.raises(QueryRefusedError, match=r"epsilon 0.5: 0.2 is left") as refused:
                learn_sums(session, terms, members)
        assert refused.value.site in data


def test_columns_at_three_sites_are_learned_and_predicted_as_in_one_process(tmp_path):
    whole = site_data(7, 40)
    held = {"one": ("a",), "two": ("b",)}
    data = {site: whole.take([*names, "y"]) for site, names in held.items()}
    counts = np.bincount(whole.codes["y"], minlength=2).tolist()
    split = Split.of(SCHEMA, held, counts)
    policy = {"most_epsilon": 3.0, "most_scores": 60}
    with Processes(tmp_path, data, patience=PATIENCE, policy=policy, memory=True) as processes:
        with processes.session() as session:
            session.ask(Meet.of(session.role, processes.sites, DEALER))
            tables = session.ask(Publish.of(split, RecordNoise(2.0)))
        wanted = model_of(split, tables).predict_joint_log_proba(
            LocalData(whole.variables, whole.codes)
        )
        processes.stop_at("one", "ciphertexts")
        killing(processes, "one")
        with processes.session() as session, pytest.raises(PartyGoneError, match="one"):
            predict_joint_log_proba(session, DEALER, split, tables, (0, 20))
        processes.start("one")
        processes.running["one"].wait_for("ready")
        with processes.session() as session:
            joint = predict_joint_log_proba(session, DEALER, split, tables, (0, 40))
            with pytest.raises(QueryRefusedError, match="0 are left of most_scores = 60"):
                predict_joint_log_proba(session, DEALER, split, tables, (0, 1))
        error = Logarithms(split, b"", session.role.modulus).error
        assert np.abs(joint - wanted).max() <= error + 1e-12


def test_a_site_describes_itself_in_a_star(tmp_path):
    data = {"s0": site_data(0), "s1": site_data(1)}
    with Processes(tmp_path, data, patience=PATIENCE) as processes:
        session, _ = processes.star(("s0", "s1"))
        with session:
            described = session.ask(Describe(("s0", "s1")))
    assert described["s1"].named()["a"].states == ("u", "v", "w")
