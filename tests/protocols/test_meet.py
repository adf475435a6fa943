import hashlib
import hmac
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import (
    data_of,
    meet,
    memories,
    packets,
    refusal,
    sealed,
    seeded,
    study_of,
)
from tests.randomness import SeededRandomness
from vertibayes_mpc.cpace import Confirmation, Point, same_secret
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_mpc.scheduler import run_all
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError, TransportError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.queries import Commit, Meet
from vertibayes_protocols.queries.opening.heads import KnownHead, NewestHead
from vertibayes_protocols.queries.opening.meet import Met, _secret, list_digest
from vertibayes_protocols.site.text_column import TextColumn

PEOPLE = [f"person {place}" for place in range(40)]
SWAPPED = [PEOPLE[1], PEOPLE[0], *PEOPLE[2:]]
ANOTHER = [*PEOPLE[:-1], "person 99"]
DRAWN = data_of(a="xy", b="z", c="w")


def with_ids(**ids):
    """Give the sites identifiers: the same people in the same order but where others are named."""
    lists = {site: ids.get(site, PEOPLE) for site in DRAWN}
    return {
        site: replace(found, ids=None if lists[site] is None else TextColumn.of(lists[site]))
        for site, found in DRAWN.items()
    }


def query_of(federation, **changes):
    query = Meet.of(federation.session.role, federation.sites, DEALER)
    return replace(query, **changes)


# ---- the same records ----------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [{}, {"a": None, "b": None, "c": None}])
def test_sites_with_the_same_records_meet(ids):
    federation = seeded(with_ids(**ids))
    meet(federation)
    assert {s: sorted(r.met) for s, r in federation.roles.items()} == {
        "a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"],
    }  # fmt: skip
    assert federation.session.ask(Commit.of(study_of(DRAWN)))


@pytest.mark.parametrize("other", [SWAPPED, ANOTHER, PEOPLE[:-1] + PEOPLE[:1], None])
def test_another_order_or_one_other_record_ends_the_run_and_names_the_sites(other):
    federation = seeded(with_ids(b=other))
    with pytest.raises(RecordsDifferError) as caught:
        meet(federation)
    assert str(caught.value) == (
        "the records are not the same at a and b, at b and c; they are the same at a and c. "
        "Identifiers are compared character by character: outer spaces, upper and lower case and "
        "leading zeros make a different person. With [alignment] in study.toml the study is of the "
        "people that all sites hold"
    )
    with pytest.raises(TransportError, match="the session is over"):
        meet(federation)


def test_different_numbers_of_records_are_reported():
    data = with_ids()
    fewer = data_of(records=39, b="z")["b"]
    federation = seeded({**data, "b": replace(fewer, ids=TextColumn.of(PEOPLE[:-1]))})
    with pytest.raises(RecordsDifferError, match="numbers of records: a 40, b 39, c 40"):
        meet(federation)


def test_all_different():
    with pytest.raises(RecordsDifferError, match=r"at a and b, at a and c, at b and c\. Id"):
        meet(seeded(with_ids(b=SWAPPED, c=ANOTHER)))


def test_a_site_commits_nothing_with_sites_it_has_not_met():
    federation = seeded(with_ids())
    study = study_of(DRAWN)
    assert "not compared with those of b, c" in refusal(federation, Commit.of(study))
    federation.session.ask(query_of(federation, parties=("a", "b", DEALER), keys=tuple(
        federation.session.role.public_keys[party] for party in ("a", "b", DEALER)
    )))  # fmt: skip
    assert "not compared with those of c" in refusal(federation, Commit.of(study))
    meet(federation)
    assert federation.session.ask(Commit.of(study))


def test_whom_a_site_has_met_it_forgets_with_the_session():
    federation = seeded(with_ids())
    meet(federation)
    federation.session.close()
    assert not any(role.met for role in federation.roles.values())


def test_a_site_that_lies_about_its_list_is_among_those_named(monkeypatch):
    """It shows that it lied or differs, to those it lied to; not that its records are others."""

    def change(sent, packet):
        lies = sent.sender == "b" and sent.receiver == "c"
        lies = lies and isinstance(sent.message, Confirmation)
        return sealed(packet, Confirmation(bytes(32))) if lies else packet

    with packets(monkeypatch, change):
        federation = seeded(with_ids())
    with pytest.raises(RecordsDifferError, match="at b and c; they are the same at a and b"):
        meet(federation)
    assert "b" not in federation.roles["c"].met


def test_a_site_that_knows_the_list_can_claim_to_hold_the_records():
    """What the comparison does not show: the codes behind the identifiers are not compared."""
    data = with_ids()
    codes = {name: np.zeros_like(column) for name, column in data["b"].codes.items()}
    federation = seeded({**data, "b": replace(data["b"], codes=codes)})
    meet(federation)
    assert federation.session.ask(Commit.of(study_of(DRAWN)))


def test_a_site_that_names_strangers_is_named(monkeypatch):
    def change(sent, packet):
        lies = sent.sender == "b" and isinstance(sent.message, Met)
        return sealed(packet, Met(("zoe",), 40)) if lies else packet

    with packets(monkeypatch, change):
        federation = seeded(with_ids())
    with pytest.raises(MalformedMessageError, match="not another site") as caught:
        meet(federation)
    assert caught.value.party == "b"


def test_what_is_sent_and_to_whom(monkeypatch):
    with packets(monkeypatch) as seen:
        federation = seeded(with_ids())
        meet(federation)
    own = [(s.sender, s.receiver, type(s.message)) for s, _ in seen if s.depth > 3]
    sites = [(a, b) for a in "abc" for b in "abc" if a != b]
    assert sorted(own, key=str) == sorted(
        [(a, b, kind) for a, b in sites for kind in (KnownHead, NewestHead, Point, Confirmation)]
        + [(site, "analyst", Met) for site in "abc"],
        key=str,
    )
    assert max(s.depth for s, _ in seen) == 9
    told = b"".join(packet[1] for _, packet in seen)
    assert not any(person.encode() in told for person in PEOPLE)


def test_the_same_list_is_never_the_same_bytes_in_another_session(monkeypatch):
    with packets(monkeypatch) as seen:
        federation = seeded(with_ids())
        meet(federation)
        meet(federation)
    points = [s.message.value for s, _ in seen if isinstance(s.message, Point)]
    assert len(points) == len(set(points)) == 12


# ---- the parties ---------------------------------------------------------------------------------


def keys_with(federation, **changes):
    known = {**federation.session.role.public_keys, **changes}
    return tuple(known[party] for party in (*federation.sites, DEALER))


def test_another_dealer_is_refused_by_each_site_naming_the_mismatch():
    federation = seeded(with_ids())
    query = query_of(federation, parties=("a", "b", "c", "zoe"), dealer="zoe")
    reasons = set()
    for role in federation.roles.values():
        with pytest.raises(QueryRefusedError) as caught:
            consider(role, query)
        reasons.add(caught.value.reason)
    (reason,) = reasons
    assert reason == "the study names 'zoe' as the dealer, the dealer pinned here is 'dealer'"


def test_another_key_of_the_dealer_or_of_a_site_is_refused_naming_the_mismatch():
    federation = seeded(with_ids())
    pinned = federation.session.role.public_keys
    for party, refusing in (("dealer", "a"), ("b", "a"), ("a", "a")):
        query = query_of(federation, keys=keys_with(federation, **{party: bytes(32)}))
        reason = refusal(federation, query)
        assert f"another public key for {party!r}" in reason and refusing in federation.sites
        assert encode_public(bytes(32)) in reason and encode_public(pinned[party]) in reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parties": (), "keys": ()}, "the study has no sites"),
        ({"parties": (DEALER,), "keys": (b"",)}, "the study has no sites"),
        ({"keys": ()}, "must have one key per party"),
        ({"session": b""}, "must have one key per party, and a session"),
        ({"parties": ("a", "a", "c", DEALER)}, "names a party twice"),
    ],
)
def test_parties_that_no_study_has_make_no_query(changes, reason):
    with pytest.raises(ValueError, match=reason):
        query_of(seeded(with_ids()), **changes)


def test_parties_that_are_not_those_pinned_are_refused():
    federation = seeded(with_ids())
    query = query_of(federation, parties=("a", "b", "zoe", DEALER))
    with pytest.raises(QueryRefusedError, match="no public key of 'zoe' is pinned here"):
        consider(federation.roles["a"], query)


def test_a_site_that_is_not_among_the_parties_refuses():
    federation = seeded(with_ids())
    known = federation.session.role.public_keys
    parties = ("b", "c", DEALER)
    query = query_of(federation, parties=parties, keys=tuple(known[p] for p in parties))
    with pytest.raises(QueryRefusedError, match="the query does not ask this party"):
        consider(federation.roles["a"], query)


# ---- guesses -------------------------------------------------------------------------------------


def going_on(analyst, query):
    """Hear what the sites say, and do not stop: the analyst works with b."""
    yield Round({}, {site: Expect(Met, 1000) for site in query.parties[:-1]})


def guess(federation, monkeypatch, people):
    """Let b claim to hold a list."""
    claimed = list_digest(replace(DRAWN["b"], ids=TextColumn.of(people)))
    held = federation.roles["b"].data
    with monkeypatch.context() as patch:
        lists = lambda data, **_: claimed if data is held else list_digest(data)  # noqa: E731
        patch.setattr("vertibayes_protocols.queries.opening.meet.list_digest", lists)
        patch.setattr(Meet, "run_analyst", lambda query, analyst, _: going_on(analyst, query))
        federation.session.ask(query_of(federation))


def test_a_site_makes_no_more_guesses_than_the_policy_allows(monkeypatch):
    """Without a limit it found the last of 40 people by trying 200, in half a second."""
    most, kept = 3, memories("a", "b")
    parts = {site: with_ids()[site] for site in "ab"}
    options = {"policy": Policy(most_failed_meets=most, free_tables=True), "memories": kept}
    for _ in range(most):  # in sessions of their own, or in one
        federation = seeded(parts, **options)
        guess(federation, monkeypatch, ANOTHER)
        assert not federation.roles["a"].met
    with pytest.raises(QueryRefusedError, match="too many comparisons with b have failed"):
        guess(federation, monkeypatch, PEOPLE)


def test_comparisons_that_end_in_equal_lists_are_not_counted(monkeypatch):
    kept = memories("a", "b")
    parts = {site: with_ids()[site] for site in "ab"}
    federation = seeded(parts, policy=Policy(most_failed_meets=1, free_tables=True), memories=kept)
    for _ in range(3):
        meet(federation)
    assert kept["a"].meets.of("b").total == 0
    guess(federation, monkeypatch, ANOTHER)
    assert kept["a"].meets.of("b").total == 1


@pytest.mark.parametrize("kind", [Point, Confirmation])
def test_who_breaks_off_is_counted_alone_and_once_it_may_know(monkeypatch, kind):
    """A code that is none is one that does not fit: the others' are not spoiled by it."""
    kept, parts = memories("a", "b", "c"), with_ids()

    def cut(sent, packet):
        is_last = isinstance(sent.message, kind) and sent.sender == "b"
        return sealed(packet, kind(bytes(31))) if is_last else packet

    with packets(monkeypatch, cut), pytest.raises((MalformedMessageError, RecordsDifferError)):
        meet(seeded(parts, memories=kept))
    counted = {s: [kept[s].meets.of(p).total for p in "abc"] for s in "abc"}
    learned = int(kind is Confirmation)
    assert counted == {"a": [0, learned, 0], "b": [0, 0, 0], "c": [0, learned, 0]}
    meet(seeded(parts, memories=kept))
    assert not any(kept[s].meets.of(p).total for s in "abc" for p in "abc")


def test_who_leaves_once_it_has_the_code_is_counted():
    """It has learned whether its guess was right, and it sends nothing that could be counted."""
    federation = seeded(with_ids(), memories=(kept := memories("a", "b", "c")))
    program = query_of(federation).run_site(federation.roles["a"], None, None)
    known = next(program).outbox
    newest = program.send({"b": known["c"], "c": known["b"]}).outbox
    points = program.send({"b": newest["c"], "c": newest["b"]}).outbox
    codes = program.send({"b": points["c"], "c": points["b"]}).outbox
    assert {type(message) for message in codes.values()} == {Confirmation}
    program.close()  # the session ends: no peer has sent a code
    assert [kept["a"].meets.of(peer).total for peer in "bc"] == [1, 1]


def compared(one, other):
    """Return whether a and who speaks for b have equal secrets."""
    sides = {"a": ({"b": one}, b"scalar a"), "b": ({"a": other}, b"scalar b")}
    programs = {
        party: same_secret(party, secret, b"session", SeededRandomness(seed))
        for party, (secret, seed) in sides.items()
    }
    return run_all(programs)[0]["a"]["b"]


def test_only_the_two_sites_can_test_a_guess():
    """Who knows the list, and speaks in the name of b, must also have the key of a and b."""
    federation = seeded(with_ids())
    a, b, c = (federation.roles[site] for site in "abc")
    lists = list_digest(a.data)
    assert compared(_secret(a, "b", lists), _secret(b, "a", lists))  # the control: b itself
    public = b"".join(sorted((a.keys.public, b.keys.public)))
    guesses = [lists, hashlib.sha256(lists).digest(), _secret(c, "a", lists)]
    guesses += [_secret(c, "b", lists), hmac.new(public, lists, hashlib.sha256).digest()]
    assert not any(compared(_secret(a, "b", lists), guess) for guess in guesses)
