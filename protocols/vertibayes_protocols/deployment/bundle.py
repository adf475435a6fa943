"""What a coordinator sends to all parties: one signed file.

    party       -> coordinator    a line: enrol ROLE NAME KEY TLS-KEY; of the relay: its address
    coordinator -> parties        bundle-N.json, by mail or from a server (`downloading.bundle_at`)
    coordinator -> parties        the digest of its roster, by telephone

A bundle has the roster, the relay's address, a certificate of each party, the serial numbers of
revoked certificates, and the files of studies. It has no private key: each party makes its own.

Security: whoever carries the bundle, the relay for example, can withhold it and can change nothing:
the coordinator has signed it, and each party compares the digest of the roster, which covers the
coordinator's key and the keys of all parties. A party also finds its own keys in the bundle, or
refuses: a line that was changed on its way is noticed before the party has compared the digest.
What the coordinator can do, docs/protocols/roster.md says. Leakage: who reads the bundle knows who
takes part, and the studies: their variables and options. A server hands it out to whoever asks by a
name of 64 bits that only the roster's digest gives. Cost: one file; 2 kB per party.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vertibayes_mpc.randomness import KeyPair, label
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.signing import SigningKey, is_signed
from vertibayes_protocols.canonical import canonical_json, taken
from vertibayes_protocols.contract import MOST_BYTES
from vertibayes_protocols.deployment.parts import OWN_TABLES, reached_address
from vertibayes_protocols.deployment.roster.roster import (
    CHANGED,
    ChangedError,
    Roster,
    read_signed,
    roster_of,
)
from vertibayes_protocols.public_keys import decode_signing
from vertibayes_protocols.storage.whole_file import write_whole
from vertibayes_protocols.transports.tls import SERIAL

FORMAT = 1
SIGNED = "a bundle, signed by its coordinator"
MOST = 4 * MOST_BYTES
NAME_DIGITS = 16
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.(toml|json|bif|bifxml)")
KEPT = "|".join(
    table for table in OWN_TABLES.values() if table != "study"
)  # by a party, for itself
KEPT_FILES = re.compile(rf"({KEPT})\.toml|(bundle|roster)\b.*")
_FIELDS = {
    "format": int, "number": int, "relay": str, "root": str, "certificates": dict, "revoked": list,
    "files": dict, "roster": dict,
}  # fmt: skip


@dataclass(frozen=True)
class Bundle:
    """What all parties of a consortium get from their coordinator."""

    number: int  # 1, 2, ...
    signed_roster: Mapping[str, Any] = field(repr=False)
    relay: str  # its address
    root: str = field(repr=False)  # in PEM, as the certificates
    certificates: Mapping[Party, str] = field(repr=False)
    revoked: tuple[str, ...]  # serial numbers of certificates, as the relay's list has them
    files: Mapping[str, str] = field(repr=False)  # of studies

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"the number of a bundle must be at least 1, got {self.number}")
        reached_address(self.relay)
        for name in self.files:
            check_name(name)
        texts = *self.certificates.values(), *self.files.values(), *self.revoked
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("certificates, files and serial numbers must be texts")
        if wrong := [number for number in self.revoked if SERIAL.fullmatch(number) is None]:
            raise ValueError(f"{wrong[0]!r:.60} is not a serial number of a certificate")

    @property
    def roster(self) -> Roster:
        """Its roster; a ValueError if the coordinator has not signed it."""
        return roster_of(self.signed_roster)

    def as_json(self) -> dict[str, Any]:
        """Return the bundle as JSON data, without its signature."""
        return {
            "format": FORMAT,
            "number": self.number,
            "roster": dict(self.signed_roster),
            "relay": self.relay,
            "root": self.root,
            "certificates": dict(self.certificates),
            "revoked": list(self.revoked),
            "files": dict(self.files),
        }

    def signed(self, keys: KeyPair) -> bytes:
        """Return the content of its file, signed with the coordinator's key."""
        signature = SigningKey.of(keys).sign(label(SIGNED, canonical_json(self.as_json())))
        content = {"bundle": self.as_json(), "signature": base64.b64encode(signature).decode()}
        return json.dumps(content, indent=1).encode() + b"\n"


def name_of(roster: Roster) -> str:
    """Return the name under which a server hands out a bundle: only who was sent it can ask."""
    return label("the name of a bundle", roster.digest).hex()[:NAME_DIGITS]


def check_name(name: str) -> None:
    """Refuse a name of a study's file that is a path, or that one of a party's own files has."""
    if FILE_NAME.fullmatch(name) is None or KEPT_FILES.fullmatch(name):
        raise ValueError(
            f"{name!r:.80} cannot be the name of a study's file: expected letters, digits, - and "
            "_, ending in .toml, .json, .bif or .bifxml, and no name of a party's own file"
        )


def bundle_of(content: Any) -> Bundle:
    """Return the bundle of JSON data, which the coordinator of its roster must have signed."""
    signed = taken(content, "signed bundle", {"bundle": dict, "signature": str})
    values = taken(signed["bundle"], "bundle", _FIELDS)
    if values.pop("format") != FORMAT:
        raise ValueError(
            f"its format is {signed['bundle']['format']}, and this release reads {FORMAT}; install "
            "the release of vertibayes that the coordinator has"
        )
    roster = roster_of(values["roster"])
    text = label(SIGNED, canonical_json(signed["bundle"]))
    signature = base64.b64decode(signed["signature"], validate=True)
    if not is_signed(text, signature, decode_signing(roster.signer)):
        raise ChangedError(CHANGED)
    revoked = tuple(values.pop("revoked"))
    return Bundle(signed_roster=values.pop("roster"), revoked=revoked, **values)


def read_bundle(path: Path) -> Bundle:
    """Read a bundle, and verify that the coordinator of its roster has signed it."""
    return read_signed(path, "bundle", MOST, bundle_of)


def roster_in(path: Path) -> Roster:
    """Read a roster, which may be in a bundle."""

    def made(content: Any) -> Roster:
        is_bundle = isinstance(content, dict) and "bundle" in content
        return bundle_of(content).roster if is_bundle else roster_of(content)

    return read_signed(path, "roster", MOST, made)


def write_bundle(path: Path, bundle: Bundle, keys: KeyPair) -> None:
    """Sign a bundle, and write it whole or not at all."""
    write_whole(path, bundle.signed(keys), 0o644)
