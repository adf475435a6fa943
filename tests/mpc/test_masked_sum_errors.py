"""Tampered, replayed and late messages of a sum: refused, and the party at fault named."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from tests.sums import Dropping, World, run_dropping
from tests.tampering import changing, run_changing
from vertibayes_mpc.errors import (
    FaultyPartyError,
    MalformedMessageError,
    PartyGoneError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.masked_sum import Neighbourhood, SumPlan, contribute
from vertibayes_mpc.masked_sum.aggregator import Collection
from vertibayes_mpc.masked_sum.messages import (
    Advertisement,
    Confirmation,
    Confirmations,
    Delivered,
    Keys,
    MaskedVector,
    Revealed,
    Shared,
    Survivors,
)
from vertibayes_mpc.masked_sum.roster import transcript
from vertibayes_mpc.masked_sum.seeds import SeedShares
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scheduler import ByHand, Scheduler, run_all

FROM_PARTIES = [Advertisement, Shared, MaskedVector, Confirmation, Revealed]
FROM_AGGREGATOR = [Keys, Delivered, Survivors, Confirmations]


def flipped(array, at=(0, 0)):
    changed = array.copy()
    changed[at] ^= 1
    return changed


def flip(name, at=(0, 0)):
    """Flip a bit of an array, or of bytes."""

    def change(message):
        value = getattr(message, name)
        is_bytes = isinstance(value, bytes)
        new = bytes([value[0] ^ 1]) + value[1:] if is_bytes else flipped(value, at)
        return replace(message, **{name: new})

    return change


def put(name, values):
    return lambda message: replace(message, **{name: np.array(values, np.uint32)})


def part_of(rows, *names):
    return lambda message: replace(message, **{n: getattr(message, n)[rows] for n in names})


def error_of(change, world=None):
    """Run a sum with changed messages; return the error, which must come."""
    with pytest.raises(ProtocolError) as caught:
        run_changing((world or World(5)).programs(), change)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        (Advertisement, flip("signature"), "or keys that it did not sign"),
        (Advertisement, flip("mask_key"), "or keys that it did not sign"),
        (Advertisement, flip("seal_key"), "or keys that it did not sign"),
        (Advertisement, lambda m: replace(m, signature=b""), "or keys that it did not sign"),
        (Confirmation, flip("signature"), "did not sign the lists that it received"),
        (Revealed, flip("shares", (0, 0)), "a share that p00 did not send it"),
        (Revealed, flip("shares", (4, 32)), "a share that p04 did not send it"),
    ],
)
def test_a_tampered_message_names_the_party_that_sent_it(kind, change, reason):
    error = error_of(changing(kind, change, sender="p02"))
    assert isinstance(error, FaultyPartyError)
    assert error.parties == ("p02",) and reason in error.reason


@pytest.mark.parametrize(
    ("name", "at", "reason"),
    [
        ("sealed", 0, "shares of p02 are not sealed"),
        ("digests", 0, "p02 do not have the digests that came with them"),
        ("digests", 40, "p02 do not have the digests that came with them"),
    ],
)
@pytest.mark.parametrize("liar", ["p02", "aggregator"])
def test_tampered_shares_name_their_sender_and_the_aggregator_as_relay(name, at, reason, liar):
    changes = {
        "p02": changing(Shared, flip(name, (3, at)), sender="p02"),
        "aggregator": changing(Delivered, flip(name, (2, at)), receiver="p03"),
    }
    error = error_of(changes[liar])
    assert isinstance(error, UnknownFaultyPartyError)
    assert error.parties == ("p02", "aggregator") and reason in error.reason


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        (Keys, flip("keys"), "sent keys of p00 that p00 did not sign"),
        (Keys, flip("keys", (4, 63)), "sent keys of p04 that p04 did not sign"),
        (Keys, flip("signatures", (1, 0)), "sent keys of p01 that p01 did not sign"),
        (Delivered, put("sharers", [0, 2, 1, 3, 4]), "not have ascending places"),
        (Delivered, put("sharers", [0, 1, 1, 2, 3]), "not have ascending places"),
        (Delivered, put("sharers", [0, 1, 2, 3, 5]), "were not in the last list"),
        (Delivered, put("sharers", [[0]]), "not have ascending places"),
        (Delivered, put("sharers", [0, 1, 3, 4]), "continues with p02, who is not in its list"),
        (Survivors, put("survivors", [0, 1, 3, 4]), "continues with p02, who is not in its list"),
        (Survivors, put("survivors", [0, 1, 2, 3, 9]), "were not in the last list"),
        (Confirmations, put("signers", [0, 1, 2, 3, 9]), "were not in the last list"),
        (Confirmations, flip("signatures"), "sent lists to p02 that p00 did not sign"),
        (Confirmations, flip("signatures", (4, 9)), "sent lists to p02 that p04 did not sign"),
    ],
)
def test_what_the_aggregator_tells_wrongly_names_the_aggregator(kind, change, reason):
    error = error_of(changing(kind, change, receiver="p02"))
    assert error.party == "aggregator" and reason in error.reason


@pytest.mark.parametrize("kind", [Delivered, Survivors, Confirmations])
def test_an_aggregator_that_says_too_few_are_left_gets_no_more(kind):
    name = {Delivered: "sharers", Survivors: "survivors", Confirmations: "signers"}[kind]
    with pytest.raises(PartyGoneError, match="2 are left, the sum needs 3") as caught:
        run_changing(World(5).programs(), changing(kind, put(name, [1, 2]), receiver="p02"))
    assert caught.value.parties == ("p00", "p03", "p04")


def test_a_roster_without_one_is_refused_by_this_one():
    keep = part_of(np.array([0, 1, 3, 4]), "places", "keys", "signatures")
    error = error_of(changing(Keys, keep, receiver="p02"))
    assert error.party == "aggregator" and "p02, who is not in its list" in error.reason


def test_who_was_told_of_other_sharers_signs_other_lists():
    fewer = part_of(slice(-1), "sharers", "sealed", "digests")

    class GoneAndUntold(Dropping):
        def pack(self, sent):
            changed = changing(Delivered, fewer, receiver="p02")(sent)
            return super().pack(sent._replace(message=changed))

    last = {"p04": 2}
    with pytest.raises(ProtocolError, match="did not sign the lists") as caught:
        run_dropping(World(5).programs(), last, GoneAndUntold(last))
    assert caught.value.party == "p02"


def test_a_transcript_names_all_that_the_aggregator_told():
    lists = np.array([1, 2], np.uint32), np.array([1], np.uint32)
    told = [(b"1", *lists), (b"2", *lists), (b"1", lists[0], lists[0]), (b"1", lists[1], lists[1])]
    made = {transcript(SimpleNamespace(digest=d), *others) for d, *others in told}
    assert len(made) == len(told)


def test_a_quorum_of_all_is_wanted_though_each_neighbourhood_has_enough():
    """9 of 12 advertised, 2 of them far from each other on the circle are gone: the sum needs 8."""
    w = World(12, neighbourhood=Neighbourhood(4, 3))
    aggregator = Collection(w.plan)
    run_dropping(w.programs(aggregator.converse()), dict.fromkeys(["p00", "p01", "p02"], 0))
    roster = aggregator.roster
    left = np.sort(np.delete(roster.circle._order, [0, 4]))
    assert not len(roster.circle.short(roster.places, left))
    with pytest.raises(PartyGoneError, match=r"7 are left, the sum needs 8$"):
        roster.check_left(roster.places, left)


def test_a_roster_below_the_quorum_is_refused():
    two = part_of(slice(1, 3), "places", "keys", "signatures")
    error = error_of(changing(Keys, two, receiver="p02"))
    assert isinstance(error, PartyGoneError) and error.parties == ("p00", "p03", "p04")


@pytest.mark.parametrize("kind", FROM_PARTIES + FROM_AGGREGATOR)
def test_a_message_of_another_sum_names_its_sender(kind):
    sender = "p02" if kind in FROM_PARTIES else "aggregator"
    other = partial(replace, context=bytes(32))
    error = error_of(changing(kind, other, sender=sender))
    assert isinstance(error, UnexpectedMessageError) and error.party == sender
    assert error.reason == f"{kind.__name__} of another sum"


ARRAYS = [
    (kind, field.name)
    for kind in FROM_PARTIES + FROM_AGGREGATOR
    for field in fields(kind)
    if field.name not in ("context", "signature", "mask_key", "seal_key")
]


@pytest.mark.parametrize(("kind", "name"), ARRAYS, ids=lambda value: str(value))
@pytest.mark.parametrize("wrong", ["longer", "wider", "type"])
def test_an_array_of_a_wrong_shape_or_type_names_its_sender(kind, name, wrong):
    sender = "p02" if kind in FROM_PARTIES else "aggregator"

    def change(message):
        array = getattr(message, name)
        changed = {
            "longer": np.concatenate([array, array[-1:]]),
            "wider": array[:, None],
            "type": array.astype(np.int64),
        }
        return replace(message, **{name: changed[wrong]})

    error = error_of(changing(kind, change, sender=sender))
    assert isinstance(error, MalformedMessageError) and error.party == sender


@pytest.mark.parametrize("kind", FROM_PARTIES)
def test_a_message_replayed_in_place_of_the_next_names_its_sender(kind):
    """A party, or whoever holds its link, repeats the message before."""
    last = {}

    def change(sent):
        if sent.sender != "p02":
            return sent.message
        now = last.get("p02") if type(sent.message) is kind else sent.message
        last["p02"] = sent.message
        return now or Confirmation(sent.message.context, bytes(64))

    error = error_of(change)
    assert isinstance(error, UnexpectedMessageError) and error.party == "p02"


def test_a_party_that_is_told_its_key_of_another_run_refuses():
    """An aggregator that replays a sum of the same plan to a party that forgot it."""
    w = World(5)
    _, sent = run_all(w.programs())
    for member in w.members.values():
        member.names.clear()
    (old,) = {id(s.message): s.message for s in sent if type(s.message) is Keys}.values()
    error = error_of(changing(Keys, partial(replace, keys=old.keys, signatures=old.signatures)), w)
    assert isinstance(error, ReplayedMessageError) and error.party == "aggregator"


def test_messages_of_a_sum_before_are_refused():
    """Shares and a vector of another sum, in a run of its own with the same long-term keys."""
    w = World(5)
    old = {(s.sender, type(s.message)): s.message for s in run_all(w.programs())[1]}
    w.plan = SumPlan(b"next", w.plan.signing_keys, 3, 100, w.plan.neighbourhood)
    for member in w.members.values():
        member.names.clear()

    def replayed(message):
        return replace(old["p02", type(message)], context=message.context)

    wanted = {
        Advertisement: "or keys that it did not sign",
        Shared: "not sealed for this sum",
        Confirmation: "did not sign the lists",
        Revealed: "did not send it",
    }
    for kind, reason in wanted.items():
        error = error_of(changing(kind, replayed, sender="p02"), w)
        assert error.parties[0] == "p02" and reason in error.reason
        for member in w.members.values():
            member.names.clear()


def test_a_late_message_is_refused_by_the_next_sum():
    """A party that was taken for gone had sent its vector: the next sum finds it first."""
    w = World(5)
    scheduler = Scheduler(ByHand())

    def aggregator_that_gives_up():
        yield Round({}, {})

    def late():
        yield Round({"aggregator": MaskedVector(w.plan.label, np.zeros(3, np.uint16))}, {})

    scheduler.start("p02", late())
    scheduler.drop("p02")
    scheduler.run("aggregator", aggregator_that_gives_up())
    for party, program in w.programs().items():
        scheduler.start(party, program)
    with pytest.raises(UnexpectedMessageError) as caught:
        scheduler.finish("aggregator")
    assert caught.value.party == "p02"


def test_a_vector_that_is_no_vector_is_noticed_and_all_are_named():
    """Uniform elements in place of a masked vector: the sum is beyond what all could give."""
    junk = np.random.default_rng(1).integers(0, 2**16, 200, np.uint16)
    w = World(5, length=200)
    error = error_of(changing(MaskedVector, partial(replace, values=junk), sender="p02"), w)
    assert isinstance(error, UnknownFaultyPartyError)
    assert error.parties == w.plan.parties and "beyond the bound" in error.reason


def test_no_share_in_a_repr():
    assert repr(SeedShares(b"secret", b"seed")) == "SeedShares()"


def test_an_aggregator_that_is_gone_is_named():
    w = World(3)
    scheduler = Scheduler(ByHand())
    program = contribute(w.members["p00"], w.plan, w.vectors["p00"], "aggregator", w.randomness)
    scheduler.drop("aggregator")
    with pytest.raises(PartyGoneError, match="aggregator: gone; p00 needs 1 of 1"):
        scheduler.run("p00", program)


def test_a_circle_needs_signatures_too():
    """In a circle, where signatures are checked by choice, all of them false are noticed."""
    w = World(12, neighbourhood=Neighbourhood(4, 3))
    change = changing(Confirmations, lambda m: replace(m, signatures=m.signatures[::-1].copy()))
    assert error_of(change, w).party == "aggregator"
