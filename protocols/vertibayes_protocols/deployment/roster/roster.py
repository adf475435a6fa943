"""The roster of a consortium: the names, roles and public keys of all parties, in one signed file.

coordinator -> parties    roster.json      signed; each party pins its digest before it is used

A roster has an epoch, which increases by one with each change. Keys that were rotated or revoked
stay in it, with the epoch in which they were retired: no later roster takes one of them again.

Security: the coordinator's signature alone changes nothing at a party. A party uses the one roster
whose digest its owner has written into its file, and takes no newer one by itself. See
docs/protocols/roster.md. Leakage: the file is public in the consortium; it has no secret.
Cost: one file; 200 bytes per party.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from vertibayes_mpc.randomness import KeyPair, label
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.signing import SigningKey, is_signed
from vertibayes_protocols.canonical import canonical_json, taken
from vertibayes_protocols.contract import MOST_BYTES, MOST_NAME
from vertibayes_protocols.deployment.parts import party_name, party_names
from vertibayes_protocols.public_keys import decode_public, decode_signing

FORMAT = 1
SIGNED = "a roster, signed by its coordinator"
CHANGED = "its content was changed after it was signed; ask the coordinator for the file again"

T = TypeVar("T")

RosterRole: TypeAlias = Literal["site", "dealer", "analyst"]
Why: TypeAlias = Literal["rotated", "revoked"]
ROLES: tuple[RosterRole, ...] = get_args(RosterRole)


class ChangedError(ValueError):
    """A signature does not fit its content."""


class Member(NamedTuple):
    """A party of a roster; `public` is the text of its public keys."""

    name: Party
    role: RosterRole
    public: str

    @property
    def key(self) -> bytes:
        """The key with which messages are sealed for the party."""
        return decode_public(self.public)

    @property
    def signing(self) -> bytes:
        """The key with which the party's signatures are verified."""
        return decode_signing(self.public)


class Retired(NamedTuple):
    """A key that no party may use any more, whose it was, since which epoch, and why."""

    name: Party
    public: str
    epoch: int
    why: Why

    @property
    def key(self) -> bytes:
        """The key with which messages were sealed for the party."""
        return decode_public(self.public)


@dataclass(frozen=True)
class Roster:
    """Who takes part in a consortium."""

    consortium: str  # its name
    epoch: int  # the number of this roster: 1, 2, ...
    members: tuple[Member, ...]  # the parties
    retired: tuple[Retired, ...]  # the keys that were rotated or revoked, the oldest first
    signer: str  # the public key of the coordinator, as text

    def __post_init__(self) -> None:
        if not (1 <= len(self.consortium) <= MOST_NAME and self.consortium.isprintable()):
            raise ValueError(
                f"the name of a consortium must have 1 to {MOST_NAME} printable characters, got "
                f"{self.consortium!r:.80}"
            )
        if self.epoch < 1:
            raise ValueError(f"the epoch of a roster must be at least 1, got {self.epoch}")
        if not decode_signing(self.signer):
            raise ValueError(
                "the coordinator's public key has no part for signatures: specify the whole line "
                "that `vertibayes keygen` prints"
            )
        dealers = [member.name for member in self.members if member.role == "dealer"]
        if len(dealers) > 1:
            raise ValueError(f"a roster has one dealer, got {', '.join(dealers)}")
        self._check_keys()

    def _check_keys(self) -> None:
        """Refuse a name or a key that appears twice, also among the retired keys."""
        retired = {part: old for old in self.retired for part in _parts(old.public)}
        for old in self.retired:
            party_name(old.name)
            if not 1 <= old.epoch <= self.epoch:
                raise ValueError(
                    f"a key of {old.name} was {old.why} at epoch {old.epoch}: expected an epoch "
                    f"from 1 to that of the roster, {self.epoch}"
                )
        party_names([member.name for member in self.members])
        owners: dict[bytes, Party] = {}
        for member in self.members:
            if not member.signing:
                raise ValueError(
                    f"the public key of {member.name} has no part for signatures: specify the "
                    "whole line that `vertibayes keygen` prints"
                )
            if member.role == "dealer" and member.signing == decode_signing(self.signer):
                raise ValueError(
                    f"{member.name} has the coordinator's key: the dealer cannot be the coordinator"
                )
            for part in _parts(member.public):
                if part in retired:
                    old = retired[part]
                    raise ValueError(
                        f"the key of {member.name} is one of {old.name} that was {old.why} at "
                        f"epoch {old.epoch}: a retired key is never used again; make a new one "
                        "with `vertibayes keygen`"
                    )
                if part in owners:
                    raise ValueError(f"{owners[part]} and {member.name} have the same key")
                owners[part] = member.name

    @cached_property
    def by_name(self) -> Mapping[Party, Member]:
        """The members by their names."""
        return {member.name: member for member in self.members}

    def in_role(self, role: RosterRole) -> dict[Party, bytes]:
        """Return the parties in a role, with their public keys."""
        return {member.name: member.key for member in self.members if member.role == role}

    def retired_keys(self, party: Party) -> tuple[Retired, ...]:
        """Return the keys of a party that were retired."""
        return tuple(old for old in self.retired if old.name == party)

    def former_keys(self, party: Party) -> tuple[bytes, ...]:
        """Return the earlier keys of a party since it enrolled, each of which signed the next."""
        chain: list[bytes] = []
        for old in self.retired_keys(party):
            chain = [*chain, old.key] if old.why == "rotated" else []
        return tuple(chain)

    @property
    def title(self) -> str:
        """The consortium and the epoch, in words."""
        return f"epoch {self.epoch} of the roster of {self.consortium}"

    @cached_property
    def canonical(self) -> bytes:
        """The canonical JSON, in ASCII, without the signature."""
        return canonical_json(self.as_json())

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the canonical JSON: 32 bytes. It covers the coordinator's key."""
        return hashlib.sha256(self.canonical).digest()

    def as_json(self) -> dict[str, Any]:
        """Return the roster as JSON data."""
        return {
            "format": FORMAT,
            "consortium": self.consortium,
            "epoch": self.epoch,
            "signer": self.signer,
            "members": [dict(zip(_MEMBER, member, strict=True)) for member in self.members],
            "retired": [dict(zip(_RETIRED, old, strict=True)) for old in self.retired],
        }

    @classmethod
    def from_json(cls, content: Any) -> Roster:
        """Return the roster of JSON data."""
        values = taken(content, "roster", _FIELDS)
        if values.pop("format") != FORMAT:
            raise ValueError(
                f"the format of the roster is {content['format']}, and this release reads "
                f"{FORMAT}; install the release of vertibayes that the coordinator has"
            )
        members = [Member(*_row("member", _MEMBER, row)) for row in values["members"]]
        retired = [Retired(*_row("retired key", _RETIRED, row)) for row in values["retired"]]
        for what, given, known in (
            ("role", [member.role for member in members], ROLES),
            ("reason", [old.why for old in retired], get_args(Why)),
        ):
            if wrong := [value for value in given if value not in known]:
                raise ValueError(f"the {what} must be one of {', '.join(known)}, got {wrong[0]!r}")
        return cls(**{**values, "members": tuple(members), "retired": tuple(retired)})


_FIELDS = {
    "format": int, "consortium": str, "epoch": int, "signer": str, "members": list, "retired": list,
}  # fmt: skip
_MEMBER = {"name": str, "role": str, "public_key": str}
_RETIRED = {"name": str, "public_key": str, "epoch": int, "why": str}


def _row(what: str, fields: Mapping[str, type], content: Any) -> Iterator[Any]:
    values = taken(content, what, fields)
    return (values[name] for name in fields)


def _parts(public: str) -> tuple[bytes, bytes]:
    return decode_public(public), decode_signing(public)


def signed_roster(roster: Roster, keys: KeyPair) -> dict[str, Any]:
    """Return a roster with the coordinator's signature, as JSON data."""
    key = SigningKey.of(keys)
    if key.public != decode_signing(roster.signer):
        raise ValueError(
            f"the key is not that of the coordinator of {roster.consortium}: specify it with --key"
        )
    signature = base64.b64encode(key.sign(label(SIGNED, roster.canonical))).decode()
    return {"roster": roster.as_json(), "signature": signature}


def roster_of(content: Any) -> Roster:
    """Return the roster of `signed_roster`; a ValueError says what is wrong, or who changed it."""
    values = taken(content, "signed roster", {"roster": dict, "signature": str})
    roster = Roster.from_json(values["roster"])
    signature = base64.b64decode(values["signature"], validate=True)
    if not is_signed(label(SIGNED, roster.canonical), signature, decode_signing(roster.signer)):
        raise ChangedError(CHANGED)
    return roster


def read_roster(path: Path) -> Roster:
    """Read a roster, and verify that the coordinator that it names has signed it."""
    return read_signed(path, "roster", MOST_BYTES, roster_of)


def read_signed(path: Path, what: str, most: int, make: Callable[[Any], T]) -> T:
    """Return what `make` makes of a file of JSON that a coordinator has signed."""
    try:
        if path.stat().st_size > most:
            raise ValueError(f"{path}: not a valid {what} (it has more than {most:,} bytes)")
        content = path.read_bytes()
    except FileNotFoundError:
        reason = f"no such file; ask the coordinator for this {what}, and copy it there"
        raise ValueError(f"{path}: {reason}") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    return parsed(str(path), content, what, make)


def parsed(place: str, content: bytes, what: str, make: Callable[[Any], T]) -> T:
    """Return what `make` makes of the content of a file; as `read_signed`."""
    try:
        return make(json.loads(content))
    except ChangedError as error:
        raise ValueError(f"{place}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: not a valid {what} ({error})") from None
