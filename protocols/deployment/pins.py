"""The parties that a file pins with their public keys; no two of them are one party."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mpc.rounds import Party
from protocols.deployment.parts import party_name
from protocols.deployment.tables import Table, TomlFile
from protocols.public_keys import decode_public, decode_signing

OwnRole: TypeAlias = Literal["site", "dealer", "analyst"]


@dataclass(frozen=True, kw_only=True)
class Pins:
    """The other parties that a file pins, and their public keys.

    Parameters
    ----------
    sites, dealer, analysts : mapping of Party to bytes
        The parties in each role; the party whose file it is is in none of them.
    signing : mapping of Party to bytes
        The signing keys of the sites that have one.
    """

    sites: Mapping[Party, bytes]
    dealer: Mapping[Party, bytes]
    analysts: Mapping[Party, bytes]
    signing: Mapping[Party, bytes] = field(default_factory=dict)

    @property
    def all(self) -> dict[Party, bytes]:
        """All parties with their public keys: sites, dealer, analysts."""
        return {**self.sites, **self.dealer, **self.analysts}


def pins_of(file: TomlFile, role: OwnRole, own: Party) -> Pins:
    """Return the parties that a file pins.

    Parameters
    ----------
    file : TomlFile
        The file of a site, the dealer or an analyst.
    role : str
        Whose file it is.
    own : Party
        The name of the party whose file it is.

    Raises
    ------
    ValueError
        If a key is missing or not valid, or two parties have one name or one key; the message names
        the file, the line and the party.
    """
    place = "peers" if role == "site" else "sites"
    peers = file.table(place)
    pins = Pins(
        sites=_keys(peers),
        dealer={} if role == "dealer" else _one(file, "dealer"),
        analysts={} if role == "analyst" else _analysts(file),
        signing=_signing_keys(peers),
    )
    if own in peers:
        raise peers.error(own, "this site's own name: its peers are others")
    if role != "site" and not pins.sites:
        raise file.error(("sites",), "it is empty; name at least one site")
    _check_apart(file, [(own, None, role), *_named(pins)])
    return pins


def _analysts(file: TomlFile) -> dict[Party, bytes]:
    """Return the analysts that a file names: one in [analyst], or several in [analysts]."""
    if "analysts" not in file.values:
        return _one(file, "analyst")
    if "analyst" in file.values:
        reason = "the file also has [analysts]: name all analysts there, and remove [analyst]"
        raise file.error(("analyst",), reason)
    if analysts := _keys(file.table("analysts")):
        return analysts
    raise file.error(("analysts",), "it is empty; name at least one analyst")


def _one(file: TomlFile, role: str) -> dict[Party, bytes]:
    """Return the name and public key of the one party that a table pins."""
    table = file.table(role)
    pinned = {table.made("name", party_name): table.made("public_key", decode_public)}
    table.end()
    return pinned


def _keys(table: Table) -> dict[Party, bytes]:
    """Return the parties that a table names with their public keys."""
    pinned = {}
    for name in table.values:
        try:
            party_name(name)
        except ValueError as error:
            raise table.error(name, str(error)) from None
        pinned[name] = table.made(name, decode_public)
    return pinned


def _signing_keys(table: Table) -> dict[Party, bytes]:
    """Return the signing keys of the parties that a table names, of those that have one."""
    keys = {name: decode_signing(str(text)) for name, text in table.values.items()}
    return {name: key for name, key in keys.items() if key}


Named: TypeAlias = tuple[Party, bytes | None, OwnRole]


def _named(pins: Pins) -> Iterator[Named]:
    yield from ((name, key, "site") for name, key in pins.sites.items())
    yield from ((name, key, "dealer") for name, key in pins.dealer.items())
    yield from ((name, key, "analyst") for name, key in pins.analysts.items())


WORDS = {"site": "a site", "dealer": "the dealer", "analyst": "an analyst"}


def _check_apart(file: TomlFile, parties: list[Named]) -> None:
    """Refuse two parties with the same name or the same key; the error names them."""
    names: dict[Party, OwnRole] = {}
    keys: dict[bytes, Party] = {}
    for name, key, role in parties:
        if name in names:
            reason = f"{WORDS[names[name]]} has that name, {WORDS[role]} is another party"
            raise _at(file, name, role, reason)
        names[name] = role
        if key is not None and key in keys:
            raise _at(file, name, role, f"it has the public key of {keys[key]}: one party")
        if key is not None:
            keys[key] = name


def _at(file: TomlFile, name: Party, role: OwnRole, reason: str) -> ValueError:
    """Return the error about a party, placed where the file names the party."""
    places = ("peers", name), ("sites", name), ("analysts", name), (role,)
    place = next((keys for keys in places if file.line(keys) is not None), places[-1])
    return file.error(place, f"{name!r}: {reason}" if place == places[-1] else reason)
