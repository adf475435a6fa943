"""From one roster to the next: lines by which parties enrol, rotate or leave, and what they change.

    enrol ROLE NAME KEY             a new party, or a party whose key was revoked; by telephone
    rotate NAME KEY SIGNATURE       a party's new key, signed with its old key
    revoke NAME                     a party that leaves, or whose key was stolen

The coordinator collects such lines in a file. The next roster has all their changes.

Security: whoever changes an enrolment line on its way takes the place of the party, so that the two
read it to each other by telephone. A rotation line needs no telephone: nobody makes one without the
old key. A thief of the old key can make one, so that a key that may be stolen is revoked instead.
The signature names the consortium, the party and both keys: it fits one change of one roster.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from vertibayes_mpc.randomness import KeyPair, label
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.signing import SigningKey, is_signed
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.parts import party_name
from vertibayes_protocols.deployment.roster.roster import (
    ROLES,
    Member,
    Retired,
    Roster,
    RosterRole,
    Why,
)
from vertibayes_protocols.public_keys import decode_public, public_text

ROTATION = "a party's new key in a roster, signed with its old key"
FORMS = "enrol ROLE NAME KEY, rotate NAME KEY SIGNATURE, or revoke NAME"


def check_enrolled(role: str, name: str) -> RosterRole:
    """Return a role as it is; refuse a role or a name that no party can have."""
    party_name(name)
    if role in ROLES:
        return role
    raise ValueError(f"the role must be one of {', '.join(ROLES)}, got {role!r}")


def enrolment_line(role: str, name: str, keys: KeyPair) -> str:
    """Return the line by which a party enrols; as `check_enrolled`."""
    return f"enrol {check_enrolled(role, name)} {name} {public_text(keys)}"


def rotation_line(consortium: str, name: Party, old: KeyPair, new: KeyPair) -> str:
    """Return the line by which a party replaces its key, signed with its old key."""
    text = public_text(new)
    signature = SigningKey.of(old).sign(_rotation(consortium, name, public_text(old), text))
    return f"rotate {name} {text} {base64.urlsafe_b64encode(signature).decode()}"


def _rotation(consortium: str, name: Party, old: str, new: str) -> bytes:
    return label(ROTATION, consortium, name, old, new)


def first_roster(consortium: str, lines: Iterable[str], signer: str) -> Roster:
    """Return the roster of epoch 1."""
    return _applied(Roster(consortium, 1, (), (), signer), lines)


def next_roster(old: Roster, lines: Iterable[str]) -> Roster:
    """Return the roster of the next epoch, with the changes of some lines; as `first_roster`."""
    return _applied(replace(old, epoch=old.epoch + 1), lines)


def _applied(roster: Roster, lines: Iterable[str]) -> Roster:
    before = roster
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            roster = _changed(roster, words)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if roster == before:
        raise ValueError(f"no line changes the roster; expected lines such as {FORMS}")
    return roster


def _changed(roster: Roster, words: list[str]) -> Roster:
    match words:
        case ["enrol", role, name, public]:
            if name in roster.by_name:
                advice = "give `rotate` its new key, or `revoke` its old key first"
                raise ValueError(f"{name} is in the roster: {advice}")
            member = Member(name, check_enrolled(role, name), public)
            return replace(roster, members=(*roster.members, member))
        case ["rotate", name, public, signature]:
            _check_rotation(roster, name, public, signature)
            return _without(roster, name, "rotated", public)
        case ["revoke", name]:
            return _without(roster, name, "revoked")
    raise ValueError(f"{' '.join(words)!r:.60} is not a valid line: expected {FORMS}")


def _without(roster: Roster, name: Party, why: Why, public: str = "") -> Roster:
    """Retire the key of a party; its new key takes the place, without one the party leaves."""
    if name not in roster.by_name:
        names = ", ".join(roster.by_name)
        raise ValueError(f"{name!r} is not in the roster; its parties are {names}")
    old = roster.by_name[name]
    kept = (m._replace(public=public) if m == old else m for m in roster.members)
    retired = Retired(name, old.public, roster.epoch, why)
    members = tuple(member for member in kept if member.public)
    return replace(roster, members=members, retired=(*roster.retired, retired))


def _check_rotation(roster: Roster, name: Party, public: str, signature: str) -> None:
    decode_public(public)
    member = roster.by_name.get(name)
    if member is None:
        return  # which `_without` refuses
    try:
        signed = base64.urlsafe_b64decode(signature)
    except ValueError:
        signed = b""
    text = _rotation(roster.consortium, name, member.public, public)
    if not is_signed(text, signed, member.signing):
        raise ValueError(
            f"the new key of {name} is not signed with its key in this roster: ask {name} for the "
            "line of `vertibayes roster rotate` again, or revoke the old key and enrol the new one"
        )


# ---- between two rosters -------------------------------------------------------------------------


def check_follows(old: Roster, new: Roster, path: Path) -> None:
    """Refuse a roster that does not follow the pinned one."""
    if (old.consortium, old.signer) != (new.consortium, new.signer):
        reason = (
            f"it is the roster of {new.consortium}, signed with {new.signer}; pinned is that of "
            f"{old.consortium}, signed with {old.signer}. To change the coordinator, compare the "
            "new key by telephone, and remove the table [roster]"
        )
        raise ValueError(f"{path}: {reason}")
    if new.epoch == old.epoch:
        reason = (
            f"another roster of epoch {new.epoch} is pinned ({grouped_digest(old.digest)}): the "
            "coordinator has signed two rosters of one epoch, and must make one of the next epoch"
        )
        raise ValueError(f"{path}: {reason}")
    if new.epoch < old.epoch:
        reason = f"its epoch is {new.epoch}, and epoch {old.epoch} is pinned: ask for the newest"
        raise ValueError(f"{path}: {reason}")
    if forgotten := [key for key in old.retired if key not in new.retired]:
        key = forgotten[0]
        reason = f"it forgets that a key of {key.name} was {key.why} at epoch {key.epoch}"
        raise ValueError(f"{path}: {reason}; ask the coordinator for a roster that keeps it")
    still = {member.public for member in new.members} | {key.public for key in new.retired}
    if dropped := [member.name for member in old.members if member.public not in still]:
        reason = f"it drops the key of {dropped[0]} without retiring it"
        raise ValueError(f"{path}: {reason}; ask the coordinator for a roster that revokes it")


def changes(old: Roster | None, new: Roster) -> Iterator[str]:
    """Yield, line by line, what differs in a roster from the one that was pinned before."""
    before = {} if old is None else old.by_name
    for member in new.members:
        known = before.get(member.name)
        if known is None:
            yield f"new:         {member.role} {member.name}, key {member.public}"
            continue
        if known.role != member.role:
            yield f"OTHER ROLE:  {member.name} was {known.role}, and is {member.role}"
        if known.public != member.public:
            yield f"key changed: {member.role} {member.name}, new key {member.public}"
    for member in before.values():
        if member.name not in new.by_name:
            yield f"left:        {member.role} {member.name}"
    for key in new.retired:
        if old is None or key not in old.retired:
            yield f"retired:     the key {key.public} of {key.name}: {key.why} at epoch {key.epoch}"
