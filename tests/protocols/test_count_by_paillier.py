"""Paillier under the session: no dealer, keys, costs, what sites note, and attacks on messages."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.paillier_worlds import integers, small_key, small_keys
from tests.party_memory import measured
from tests.protocols.small import change_first, count, data_of, plain, replay, study_of
from tests.structure_worlds import example, with_gaps
from vertibayes.counting.secure import SecureCounter
from vertibayes.forecast import forecast
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_mpc.errors import (
    ImpossibleTablesError,
    MalformedMessageError,
    ReplayedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.paillier import PrivateKey
from vertibayes_mpc.paillier.interchange import from_phe_private
from vertibayes_mpc.paillier.messages import Answer, EncryptedColumns, MaskedCounts, Masks
from vertibayes_mpc.paillier.plan import slot_bits
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import FREE, Policy
from vertibayes_protocols.queries import Commit, Meet
from vertibayes_protocols.queries.opening import joining_by_keys
from vertibayes_protocols.queries.opening.joining_by_keys import CommittedKey, JoiningByKey
from vertibayes_protocols.queries.tables.counting import Group
from vertibayes_protocols.queries.tables.encrypted import (
    ANYBODY_PS,
    TOGETHER,
    OwnCounts,
    PaillierPlan,
    load_of,
)
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.queries.tables.ways import costs_of
from vertibayes_protocols.query import At
from vertibayes_protocols.transports.local import EnvelopedPackets
from vertibayes_protocols.variables import Family, Rows

GENERATE = PrivateKey.generate  # keys of full size
WAY = {"count_by": "paillier"}
THREE = {"a": "xy", "b": "z", "c": "w"}
TABLES = [("x", "z"), ("z", "x"), ("y",), ("w", "y", "z"), ("z", "w", "x", "y")]


@pytest.fixture(autouse=True)
def _small():
    with small_keys():
        yield


@pytest.fixture
def sent(monkeypatch):
    """What is sent, as (sender, receiver, message)."""
    found, pack = [], EnvelopedPackets.pack

    def noted(packets, sent):
        found.append((sent.sender, sent.receiver, sent.message))
        return pack(packets, sent)

    monkeypatch.setattr(EnvelopedPackets, "pack", noted)
    return found


def opened(federation, **options):
    return open_study(federation.session, federation.sites, DEALER, **WAY, **options)


# ---- no dealer -----------------------------------------------------------------------------------


def test_nothing_is_sent_to_a_dealer_and_nothing_comes_from_one(sent):
    data = data_of(**THREE)
    with federate(data) as federation:
        study = opened(federation).study
        for names, table in zip(TABLES, count(federation, study, *TABLES), strict=True):
            assert (table == plain(data, *names)).all()
    assert study.dealer == "" and study.parties == ("a", "b", "c")
    assert {*map(type, (m for *_, m in sent))} >= {EncryptedColumns, OwnCounts, Answer, Masks}
    assert not any(DEALER in link for *link, _ in sent)


def test_a_dealer_is_missing_from_no_other_study_and_takes_no_part_as_a_site():
    data = data_of(**THREE)
    with pytest.raises(ValueError, match="has a dealer unless it counts by paillier"):
        replace(study_of(data), dealer="")
    with pytest.raises(ValueError, match="has a dealer unless it counts by paillier"):
        replace(study_of(data), **WAY)
    with federate(data) as federation:
        role = federation.session.role
        for names in ((*"abc", DEALER), (DEALER, *"abc")):
            with pytest.raises(QueryRefusedError, match="'dealer', cannot be a site of"):
                federation.session.ask(Meet.of(role, names, ""))
        federation.session.ask(Meet.of(role, federation.sites, ""))
        holders = {"x": ("a",), "y": (DEALER,), "z": ("b",), "w": ("c",)}
        with pytest.raises(QueryRefusedError, match="not pinned here"):
            federation.session.ask(
                Commit.of(replace(study_of(data), holders=holders, dealer="", **WAY))
            )


# ---- keys ----------------------------------------------------------------------------------------


def test_each_study_has_new_keys_unless_an_owner_gives_one(monkeypatch):
    drawn = iter([small_key(128), small_key(256, 1), small_key(128)])
    monkeypatch.setattr(PrivateKey, "generate", lambda: next(drawn))
    data = data_of(a="x", b="z")
    with federate(data) as federation:
        federation.roles["b"].paillier = small_key(256)
        keys = [opened(federation).joined.keys for _ in range(2)]
        assert [k["a"].bits for k in keys] == [128, 256] and keys[0]["b"] == keys[1]["b"]
        study = opened(federation).study
        (table,) = count(federation, study, ("x", "z"))
    assert (table == plain(data, "x", "z")).all()


def test_a_key_of_phe_counts():
    phe = pytest.importorskip("phe")
    data = data_of(a="x", b="z")
    with federate(data) as federation:
        for role in federation.roles.values():
            role.paillier = from_phe_private(phe.generate_paillier_keypair(n_length=2048)[1])
        (table,) = count(federation, opened(federation).study, ("x", "z"))
    assert (table == plain(data, "x", "z")).all()


@pytest.mark.parametrize(
    ("modulus", "reason"), [(2**255, "is even or a prime"), (0, "is even"), (2**256 - 189, "prime")]
)
def test_a_modulus_that_is_easy_to_factor_is_refused_by_whoever_receives_it(
    monkeypatch, modulus, reason
):
    for kind in (JoiningByKey, CommittedKey):
        bad = modulus.to_bytes(33, "little")
        with monkeypatch.context() as patched, federate(data_of(a="x", b="z")) as federation:
            change_first(patched, kind, "b", lambda m, bad=bad: replace(m, modulus=bad))
            with pytest.raises(MalformedMessageError, match=reason) as caught:
                opened(federation)
        assert caught.value.party == "b"


def test_a_site_that_claims_anothers_modulus_lets_it_read_a_third_sites_records(monkeypatch, sent):
    """The owner of a table sends the last site's modulus as its own: no secret is passed on."""
    data, same = data_of(a="x", b="y", c="z"), {"a": 1, "b": 2, "c": 1}

    def counted():
        with federate(data) as federation:
            for party, number in same.items():
                federation.roles[party].paillier = small_key(256, number)
            count(federation, opened(federation).study, ("x", "y", "z"))

    with pytest.raises(UnknownFaultyPartyError, match="have a common factor") as caught:
        counted()
    assert caught.value.parties == ("a", "c")
    monkeypatch.setattr(joining_by_keys, "_check_coprime", lambda _: None)
    counted()
    (passed,) = (m for a, b, m in sent if (a, b) == ("b", "c") and type(m) is EncryptedColumns)
    plaintexts = small_key(256, 1).decrypt(integers(passed.values))  # at c, with its own key
    slots = [(p.bit_length() - 1) // slot_bits(len(plaintexts)) for p in plaintexts]
    x, y = data["a"].codes["x"], data["b"].codes["y"]
    assert slots == (x + len(data["a"].variables["x"].states) * y).tolist()


def test_a_site_that_sends_two_moduli_is_found_out_before_a_column_is_encrypted(monkeypatch, sent):
    other = replace_modulus(small_key(128))
    with federate(data_of(**THREE)) as federation:
        change_first(monkeypatch, JoiningByKey, "a", other, receiver="b")
        with pytest.raises(UnknownFaultyPartyError, match="keys or parts of the common seed"):
            opened(federation)


@pytest.mark.parametrize("columns", [{"a": "x", "b": "z"}, {"a": "x", "b": "y", "c": "z"}])
def test_a_site_that_sends_the_analyst_another_modulus_is_named_before_a_table(
    monkeypatch, columns
):
    """It says that all have received this modulus: another site would be blamed at a table."""
    other = replace_modulus(small_key(128))

    def lie(message):
        digest = joining_by_keys._digests({"a": other(message).modulus})
        return replace(other(message), digests=(*digest, *message.digests[1:]))

    with monkeypatch.context() as patched, federate(data_of(**columns)) as federation:
        change_first(patched, CommittedKey, "a", lie)
        with pytest.raises(UnknownFaultyPartyError, match="that a sent to the analyst") as caught:
            opened(federation)
    assert caught.value.parties == ("a", "b")
    with monkeypatch.context() as patched, federate(data_of(**columns)) as federation:
        change_first(patched, CommittedKey, "a", other)
        with pytest.raises(MalformedMessageError, match="that a sent to the analyst") as caught:
            opened(federation)
    assert caught.value.party == "a"


@pytest.mark.parametrize("digests", [(), (b"",) * 2, (bytes(32),) * 3])
def test_odd_digests_of_moduli_are_refused(monkeypatch, digests):
    with federate(data_of(a="x", b="z")) as federation:
        change_first(monkeypatch, CommittedKey, "b", lambda m: replace(m, digests=digests))
        with pytest.raises((MalformedMessageError, UnknownFaultyPartyError)) as caught:
            opened(federation)
    assert "b" in (getattr(caught.value, "party", ""), *getattr(caught.value, "parties", ()))


def replace_modulus(key):
    modulus = key.public.modulus.to_bytes(key.public.plaintext_bytes, "little")
    return lambda message: replace(message, modulus=modulus)


# ---- costs ---------------------------------------------------------------------------------------


class Noting(SecureCounter):
    """A counter that keeps which families it asked for, call by call."""

    def _ask(self, families, missing, rows):
        self.asked = [*getattr(self, "asked", ()), list(families)]
        super()._ask(families, missing, rows)


@pytest.mark.parametrize("sites", [2, 3])
def test_bytes_and_rounds_are_as_predicted(sites):
    """At keys of full size, which the prediction has."""
    _, data = example("asia", 60)
    with federate(split_columns(data, sites)) as federation:
        for role in federation.roles.values():
            role.paillier = GENERATE()
        counter = Noting.of(federation, order=list(data.variables), **WAY)
        before = federation.traffic.rounds
        k2(counter, max_parents=1)
        sent, rounds = federation.traffic.bytes, federation.traffic.rounds - before
    predicted, opening = forecast(counter.study, counter.asked), forecast(counter.study, [])
    assert sent / 1.25 < predicted.bytes < sent * 1.25
    assert rounds <= predicted.rounds - opening.rounds <= 1.5 * rounds


def test_no_party_takes_more_memory_than_planned():
    data = data_of(100, a="xy", b="zv", c="w")
    with federate(data) as federation:
        for role in federation.roles.values():
            role.paillier = GENERATE()
        joined = opened(federation).joined
        families = [Family("x", (last,)) for last in "zvw"] + [Family("w", ("x", "z"))]
        query, _ = ask_tables(joined, families, False, Rows())
        with measured(federation) as taken:
            federation.session.ask(query)
        planned = query.plan(At.of(federation.roles["a"])).planned
    assert max(party.most for party in taken.values()) <= planned.memory


def test_a_hopeless_request_is_refused_before_it_is_sent_and_says_what_it_takes():
    with federate(data_of(**THREE)) as federation:
        counter = SecureCounter(opened(federation))
        federation.session.role.policy = Policy(most_minutes=1e-6)
        sent = federation.traffic.bytes
        with pytest.raises(QueryRefusedError) as refused:
            counter.tables([Family("x", ("z", "w"))])
        assert refused.value.site == "analyst" and federation.traffic.bytes == sent
        says = r"takes about .* s of work.* sends [\d,]+ bytes by paillier; count by masked-tables"
        assert re.search(says, refused.value.reason)
    with federate(data_of(**THREE)) as federation:
        counter = SecureCounter(opened(federation, memory=40_000_000))
        with pytest.raises(ValueError, match=r"the table of x, z takes [\d,]+ bytes of memory"):
            counter.check([Family("x", ("z",))])


def test_time_and_bytes_are_planned_for_the_longest_key_and_values_that_may_be_missing():
    whole = data_of(40, a="x", b="y", c="z")
    work = {}
    for name, data in ("whole", whole), ("gaps", {s: with_gaps(d, 0.1) for s, d in whole.items()}):
        with federate(data) as federation:
            federation.roles["c"].paillier = GENERATE(3072)
            joined = opened(federation).joined
            query, _ = ask_tables(joined, [Family("x", ("y", "z"))], False, Rows())
            plan = query.plan(At.of(federation.roles["a"]))
        short = costs_of(joined.study, 40, False).total(query.groups)
        work[name] = plan.costs.total(query.groups).cost
        assert joined.key_bits == (3072,) and work[name].bytes == 1.5 * short.cost.bytes
        assert 2.0 < work[name].picoseconds / short.cost.picoseconds < 2.9
        assert plan.planned.seconds > work[name].picoseconds / 1e12
    more = work["gaps"].picoseconds - work["whole"].picoseconds
    assert more > 40 * 2.8 * ANYBODY_PS, "a power for each record of the site between"


def test_a_key_of_more_than_3072_bits_is_refused_by_its_own_site_and_by_all_others(monkeypatch):
    key = GENERATE(3200)
    with federate(data_of(a="x", b="z")) as federation:
        federation.roles["b"].paillier = key
        with pytest.raises(QueryRefusedError, match="its key has more than 3072 bits") as refused:
            opened(federation)
        assert refused.value.site == "b"
    with federate(data_of(a="x", b="z")) as federation:
        longer = replace_modulus(key)
        change_first(monkeypatch, JoiningByKey, "b", longer)
        with pytest.raises(MalformedMessageError) as caught:
            opened(federation)
    assert caught.value.party == "b"


def test_few_queries_are_kept_also_of_refused_ones():
    with federate(data_of(**THREE)) as federation:
        study = opened(federation).study
    for records in range(20, 120):
        costs_of(study, records, False).total((Group("x", ("y", "z")),))
    assert load_of.cache_info().currsize <= 16


# ---- what sites note -----------------------------------------------------------------------------


def test_the_ledger_of_a_site_between_two_others_names_who_could_read_it():
    with federate(data_of(a="x", b="y", c="z")) as federation:
        study = opened(federation).study
        count(federation, study, ("x", "y"), ("z", "y"), ("x",))
        facts = {p: [f for f in r.ledger.facts if f.what == TOGETHER] for p, r in roles(federation)}
        assert not any(facts.values()), "two sites: any two may work together"
        count(federation, study, ("x", "y", "z"))
        facts = {p: [f for f in r.ledger.facts if f.what == TOGETHER] for p, r in roles(federation)}
    assert [len(found) for found in facts.values()] == [0, 1, 0]
    (fact,) = facts["b"]
    assert set(fact) >= {"b", ("a", "c")}


def roles(federation):
    return federation.roles.items()


def test_a_number_is_used_once():
    with federate(data_of(a="x", b="z")) as federation:
        joined = opened(federation).joined
        query, _ = ask_tables(joined, [Family("x", ("z",))], False, Rows())
        federation.session.ask(query)
        with pytest.raises(QueryRefusedError, match="must be above 1, got 1"):
            federation.session.ask(query)


# ---- messages that are changed -------------------------------------------------------------------

SENDERS = {EncryptedColumns: "b", Answer: "c", Masks: "c", MaskedCounts: "a", OwnCounts: "a"}


def shorter(message):
    name = "counts" if isinstance(message, OwnCounts) else "values"
    return replace(message, **{name: getattr(message, name)[1:]})


@pytest.mark.parametrize("kind", SENDERS)
@pytest.mark.parametrize("change", [shorter, lambda m: replace(m, label=bytes(32))])
def test_the_sender_of_an_odd_message_is_named(monkeypatch, kind, change):
    with federate(data_of(a="x", b="y", c="z")) as federation:
        study = opened(federation).study
        changed = change_first(monkeypatch, kind, SENDERS[kind], change)
        with pytest.raises((MalformedMessageError, UnexpectedMessageError)) as caught:
            count(federation, study, ("x", "y", "z"), ("x",))
    assert caught.value.party == SENDERS[kind] and changed


def garbled(message):
    name = "counts" if isinstance(message, OwnCounts) else "values"
    values = getattr(message, name).copy()
    values[0] = values[0] + 1 if isinstance(message, OwnCounts) else values[0] ^ 1
    return replace(message, **{name: values})


@pytest.mark.parametrize("kind", [Answer, Masks, MaskedCounts, OwnCounts])
def test_a_lie_gives_one_error_whichever_check_found_it(monkeypatch, kind):
    with federate(data_of(a="x", b="y", c="z")) as federation:
        study = opened(federation).study
        changed = change_first(monkeypatch, kind, SENDERS[kind], garbled)
        with pytest.raises(ImpossibleTablesError) as caught:
            count(federation, study, ("x", "y", "z"), ("x",))
    assert str(caught.value) == "a, b or c: a table that no records have: one of them lies"
    assert changed


def test_a_replayed_column_ends_the_session(monkeypatch):
    with federate(data_of(a="x", b="z")) as federation:
        study = opened(federation).study
        replay(monkeypatch, EncryptedColumns)
        count(federation, study, ("x", "z"))
        with pytest.raises(ReplayedMessageError):
            count(federation, study, ("z", "x"))


def test_chosen_records_are_the_same_at_all_sites():
    """Sites choose the same records by their common seed."""
    data = data_of(60, **THREE)
    policy = replace(FREE, fewest_records=5)
    with federate(data, policy=policy) as federation:
        counter = SecureCounter(opened(federation))
        parts = [
            counter.tables([Family("x", ("z",))], rows=Rows(1, *p))[0] for p in ((0, 30), (30, 60))
        ]
    assert [part.sum() for part in parts] == [30, 30]
    assert (sum(parts) == plain(data, "x", "z")).all()


def test_labels_of_two_queries_and_studies_differ():
    with federate(data_of(a="x", b="z")) as federation:
        labels = set()
        for number, role in enumerate(federation.roles.values(), 1):
            role.paillier = small_key(256, number)
        for _ in range(2):
            joined = opened(federation, study=b"one").joined
            for number, missing in ((1, False), (1, True), (2, False)):
                query, _ = ask_tables(joined, [Family("x", ("z",))], missing, Rows())
                plan = replace(query, number=number).plan(At.of(federation.session.role))
                assert isinstance(plan, PaillierPlan)
                labels.add(plan.encrypted.label)
    assert len(labels) == 3, "the same of a study that is resumed with the same keys"
    assert np.all([len(label) == 32 for label in labels])
