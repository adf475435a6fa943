"""Rosters: what the coordinator signs, and what follows from one to the next."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.deployment.rosters import write_roster
from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair
from vertibayes_mpc.signing import SigningKey
from vertibayes_protocols.deployment.roster.changes import (
    changes,
    check_follows,
    enrolment_line,
    first_roster,
    next_roster,
    rotation_line,
)
from vertibayes_protocols.deployment.roster.roster import Roster, read_roster
from vertibayes_protocols.public_keys import encode_public, public_text

NEW = Path("roster-2.json")


def keys(name):
    return KeyPair.generate(SeededRandomness(name.encode()))


SIGNER = keys("coordinator")
LINES = [
    "# what the parties have read to the coordinator",
    "",
    enrolment_line("site", "north", keys("north")),
    enrolment_line("site", "south", keys("south")),
    enrolment_line("dealer", "dealer", keys("dealer")),
    enrolment_line("analyst", "ana", keys("ana")),
]


@pytest.fixture
def first():
    return first_roster("lungs", LINES, public_text(SIGNER))


def rotation(first, name="north", old="north", new="north 2"):
    return rotation_line(first.consortium, name, keys(old), keys(new))


def test_a_roster_has_what_the_lines_say(first):
    assert first.epoch == 1 and list(first.by_name) == ["north", "south", "dealer", "ana"]
    assert first.in_role("site") == {n: keys(n).public for n in ("north", "south")}
    north = first.by_name["north"]
    assert north.signing == SigningKey.of(keys("north")).public
    assert [line.split(",")[0] for line in changes(None, first)] == [
        "new:         site north", "new:         site south", "new:         dealer dealer",
        "new:         analyst ana",
    ]  # fmt: skip


def test_what_is_written_is_read(first, tmp_path):
    path = tmp_path / "roster-1.json"
    write_roster(path, first, SIGNER)
    assert read_roster(path) == first and read_roster(path).digest == first.digest
    with pytest.raises(ValueError, match="the key is not that of the coordinator of lungs"):
        write_roster(tmp_path / "x.json", first, keys("another"))


def _places(content, at=()):
    """Yield the place of each value of JSON data."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, dict | list):
            yield from _places(value, (*at, key))
        else:
            yield (*at, key)


def test_a_change_of_any_value_is_refused(first, tmp_path):
    second = next_roster(first, [rotation(first)])
    path = tmp_path / "roster.json"
    write_roster(path, second, SIGNER)
    whole = path.read_text()
    places = list(_places(json.loads(whole)))
    assert len(places) > 15
    for place in places:
        content = json.loads(whole)
        inside = content
        for key in place[:-1]:
            inside = inside[key]
        old = inside[place[-1]]
        inside[place[-1]] = old + 1 if isinstance(old, int) else encode_public(bytes(32))
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"roster\.json: (not a valid roster|its content was)"):
            read_roster(path)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("{", "[", "not a valid roster"),
        ('"format": 1', '"format": 2', "format of the roster is 2, and this release reads 1"),
        ('"role": "site"', '"role": "relay"', "the role must be one of site, dealer, analyst"),
        ('"epoch": 1', '"epoch": 0', "must be at least 1"),
        ('"epoch": 1', '"epoch": true', "'epoch' of a roster must be a whole number"),
        ('"lungs"', '"hearts"', "its content was changed after it was signed"),
        ('"signature"', '"sign"', "of a signed roster is"),
    ],
)
def test_a_file_that_is_not_a_roster_is_refused(first, tmp_path, old, new, reason):
    path = tmp_path / "roster.json"
    write_roster(path, first, SIGNER)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=r"roster\.json") as caught:
        read_roster(path)
    assert reason in str(caught.value)


def test_another_signer_in_the_file_is_another_digest(first, tmp_path):
    """Whoever signs the same list with another key makes another roster: the digest has the key."""
    forged = first_roster("lungs", LINES, public_text(keys("forger")))
    path = tmp_path / "roster.json"
    write_roster(path, forged, keys("forger"))
    assert read_roster(path).members == first.members
    assert read_roster(path).digest != first.digest


def test_a_rotation_keeps_the_place_and_retires_the_old_key(first):
    second = next_roster(first, [rotation(first)])
    assert second.epoch == 2 and list(second.by_name) == list(first.by_name)
    assert second.by_name["north"].key == keys("north 2").public
    (old,) = second.retired
    assert (old.name, old.key, old.epoch, old.why) == (
        "north", keys("north").public, 2, "rotated",
    )  # fmt: skip
    check_follows(first, second, NEW)
    told = "\n".join(changes(first, second))
    assert "key changed: site north" in told and "rotated at epoch 2" in told
    assert "south" not in told
    assert second.former_keys("north") == (old.key,) and second.former_keys("south") == ()


@pytest.mark.parametrize("epoch", [0, 3, 10**9])
def test_a_key_cannot_have_been_retired_in_another_epoch_than_there_was(first, epoch):
    """A number that may have any value is where a forger would search for a digest."""
    second = next_roster(first, [rotation(first)])
    with pytest.raises(ValueError, match="expected an epoch from 1 to that of the roster, 2"):
        replace(second, retired=(second.retired[0]._replace(epoch=epoch),))


def test_a_stolen_key_is_revoked_and_the_party_enrolled_again_in_one_epoch(first):
    lines = ["revoke north", enrolment_line("site", "north", keys("north 2"))]
    second = next_roster(first, lines)
    assert second.by_name["north"].key == keys("north 2").public
    assert second.retired[0].why == "revoked" and second.former_keys("north") == ()
    check_follows(first, second, NEW)


def test_a_party_that_leaves_is_named(first):
    second = next_roster(first, ["revoke south"])
    assert "left:        site south" in changes(first, second)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("enrol site west", "is not a valid line: expected enrol ROLE NAME KEY"),
        ("enrol relay west vb1:x", "the role must be one of site, dealer, analyst, got 'relay'"),
        ("enrol site relay vb1:x", "'relay' is not a valid name"),
        (enrolment_line("site", "north", keys("x")), "north is in the roster: give `rotate`"),
        (enrolment_line("site", "west", keys("north")), "north and west have the same key"),
        (enrolment_line("dealer", "d", keys("x")), "a roster has one dealer, got dealer, d"),
        (f"enrol site west {encode_public(keys('x').public)}", "has no part for signatures"),
        (f"enrol site west {public_text(keys('x'))[:-1]}", "has a typing error"),
        ("revoke west", "'west' is not in the roster; its parties are north, south"),
        (f"rotate west {public_text(keys('x'))} AA==", "'west' is not in the roster"),
        (f"rotate north {public_text(keys('x'))} AA==", "is not signed with its key"),
        (f"rotate north {public_text(keys('x'))} A", "is not signed with its key"),
        ("", "no line changes the roster"),
    ],
)
def test_a_line_that_is_wrong_is_named(first, line, reason):
    with pytest.raises(ValueError, match=r"line 2: |no line changes") as caught:
        next_roster(first, ["", line])
    assert reason in str(caught.value)


def test_the_dealer_cannot_be_the_coordinator():
    lines = [enrolment_line("dealer", "dealer", SIGNER)]
    with pytest.raises(ValueError, match="the dealer cannot be the coordinator"):
        first_roster("lungs", lines, public_text(SIGNER))


def test_a_signature_fits_one_party_one_key_and_one_consortium(first):
    stranger = rotation_line("lungs", "north", keys("stranger"), keys("x"))
    elsewhere = rotation_line("hearts", "north", keys("north"), keys("x"))
    of_south = rotation(first, name="south", old="north")
    _, name, _, signature = rotation(first).split()
    another_key = f"rotate {name} {public_text(keys('thief'))} {signature}"
    for line in (stranger, elsewhere, of_south, another_key):
        with pytest.raises(ValueError, match="is not signed with its key in this roster"):
            next_roster(first, [line])
    assert next_roster(first, [rotation(first)])


def test_a_rotation_that_is_sent_again_later_is_refused(first):
    replayed = rotation(first)
    second = next_roster(first, [replayed])
    third = next_roster(second, [rotation(second, old="north 2", new="north 3")])
    for roster in (second, third):
        with pytest.raises(ValueError, match=r"is not signed with its key|was rotated at"):
            next_roster(roster, [replayed])


@pytest.mark.parametrize("role", ["site", "analyst"])
def test_a_retired_key_is_never_taken_again_by_anybody(first, role):
    for why in ("revoke north", rotation(first)):
        later = next_roster(first, [why])
        for name in ("north", "west"):
            lines = ["revoke north"] if "north" in later.by_name else []
            lines.append(enrolment_line(role, name, keys("north")))
            with pytest.raises(ValueError, match=f"the key of {name} is one of north that was"):
                next_roster(later, lines)


def test_what_does_not_follow_the_pinned_roster_is_refused(first):
    second = next_roster(first, [rotation(first)])
    third = next_roster(second, ["revoke south"])
    other = next_roster(first, ["revoke south"])
    hearts = first_roster("hearts", LINES, public_text(SIGNER))
    forged = first_roster("lungs", LINES, public_text(keys("forger")))
    forgets = Roster("lungs", 3, third.members, third.retired[:1], third.signer)
    reuses = Roster("lungs", 3, first.members, (), third.signer)
    for old, new, reason in (
        (second, first, "its epoch is 1, and epoch 2 is pinned"),
        (second, other, "has signed two rosters of one epoch"),
        (first, hearts, "it is the roster of hearts"),
        (first, forged, "compare the new key by telephone"),
        (second, forgets, "it drops the key of south without retiring it"),
        (second, reuses, "it forgets that a key of north was rotated at epoch 2"),
    ):
        with pytest.raises(ValueError, match=r"roster-2\.json: ") as caught:
            check_follows(old, new, NEW)
        assert reason in str(caught.value)
    check_follows(first, third, NEW)  # an epoch may be left out


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["rotate", "revoke", "enrol"]), max_size=6), st.data())
def test_whatever_the_changes_no_key_is_used_that_was_retired(kinds, data):
    roster = first_roster("lungs", LINES, public_text(SIGNER))
    current = {name: name for name in roster.by_name}
    for number, kind in enumerate(kinds):
        name = data.draw(st.sampled_from(sorted(current) or ["none"]))
        fresh = f"{name} {number}"
        if kind == "enrol":
            name = fresh = f"new-{number}"
            line = enrolment_line("site", name, keys(name))
        elif not current:
            continue
        elif kind == "rotate":
            line = rotation_line("lungs", name, keys(current[name]), keys(fresh))
        else:
            line = f"revoke {name}"
        after = next_roster(roster, [line])
        check_follows(roster, after, NEW)
        current[name] = fresh
        if kind == "revoke":
            del current[name]
        roster = after
    used = {member.key for member in roster.members}
    assert not used & {old.key for old in roster.retired}
