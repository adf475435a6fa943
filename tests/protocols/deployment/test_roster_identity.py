"""What a party says of packets that are sealed with a key that its roster has retired."""

import pytest

from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.deployment.roster.changes import (
    enrolment_line,
    first_roster,
    next_roster,
    rotation_line,
)
from vertibayes_protocols.deployment.roster.identity import RosterIdentity
from vertibayes_protocols.public_keys import public_text
from vertibayes_protocols.seal import HELLO, SESSION_BYTES, UNKNOWN, Identity

SESSION = bytes(SESSION_BYTES)
RANDOMNESS = SeededRandomness(b"salts")


def keys(name):
    return KeyPair.generate(SeededRandomness(name.encode()))


def identity(party, own, roster, **peers):
    return RosterIdentity(party, own, {p: k.public for p, k in peers.items()}, roster=roster)


@pytest.fixture
def first():
    lines = [enrolment_line("site", name, keys(name)) for name in ("north", "south")]
    return first_roster("lungs", lines, public_text(keys("coordinator")))


@pytest.fixture
def second(first):
    return next_roster(first, [rotation_line("lungs", "north", keys("north"), keys("north 2"))])


def refusal(receiver, sender, kind=HELLO):
    packet = sender.seal_statically(receiver.party, kind, SESSION, b"text", RANDOMNESS)
    with pytest.raises(MalformedMessageError) as caught:
        receiver.open_statically(sender.party, packet)
    assert caught.value.party == sender.party
    return caught.value.reason


@pytest.mark.parametrize("kind", [HELLO, UNKNOWN])
def test_the_old_key_of_a_party_is_refused_by_name_and_epoch(first, second, kind):
    south = identity("south", keys("south"), second, north=keys("north 2"))
    north = identity("north", keys("north"), first, south=keys("south"))
    reason = refusal(south, north, kind)
    assert "uses a key that was rotated at epoch 2" in reason
    assert "south has pinned epoch 2 of the roster of lungs: fetch the newest bundle" in reason


def test_a_party_with_an_older_roster_names_its_own_epoch(first, second):
    south = identity("south", keys("south"), first, north=keys("north"))
    north = identity("north", keys("north 2"), second, south=keys("south"))
    reason = refusal(south, north)
    assert "does not open" in reason
    assert "south has pinned epoch 1 of the roster of lungs: compare the epochs" in reason


def test_a_strangers_key_is_not_taken_for_a_retired_one(second):
    south = identity("south", keys("south"), second, north=keys("north 2"))
    stranger = Identity("north", keys("stranger"), {"south": keys("south").public})
    assert "rotated" not in refusal(south, stranger)


def test_the_current_key_opens_and_without_a_roster_nothing_is_added(second):
    north = identity("north", keys("north 2"), second, south=keys("south"))
    packet = north.seal_statically("south", HELLO, SESSION, b"text", RANDOMNESS)
    south = identity("south", keys("south"), second, north=keys("north 2"))
    assert south.open_statically("north", packet) == b"text"
    alone = identity("south", keys("south"), None, north=keys("north 3"))
    assert "epoch" not in refusal(alone, north)
