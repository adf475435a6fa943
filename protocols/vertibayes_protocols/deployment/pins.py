"""The parties that a file pins with their public keys; no two of them are one party.

The keys are in the file, or in the roster whose digest the file pins, and never in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.contract import DIGEST_BYTES, grouped_digest
from vertibayes_protocols.deployment.parts import party_name
from vertibayes_protocols.deployment.roster.roster import Roster, RosterRole, read_roster
from vertibayes_protocols.deployment.tables import Table, TomlFile
from vertibayes_protocols.public_keys import decode_public, decode_signing
from vertibayes_protocols.settings import PAILLIER

WORDS: Mapping[RosterRole, str] = {
    "site": "a site", "dealer": "the dealer", "analyst": "an analyst",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Pins:
    """The other parties that a file pins, and their public keys."""

    # The parties in each role.
    sites: Mapping[Party, bytes]
    dealer: Mapping[Party, bytes]
    analysts: Mapping[Party, bytes]
    signing: Mapping[Party, bytes] = field(default_factory=dict)
    roster: Roster | None = None  # the roster that the file pins

    @property
    def all(self) -> dict[Party, bytes]:
        """All parties with their public keys: sites, dealer, analysts."""
        return {**self.sites, **self.dealer, **self.analysts}


def pins_of(
    file: TomlFile,
    role: RosterRole,
    own: Party,
    chosen: Sequence[Party] | None = None,
    roster: Roster | None = None,
) -> Pins:
    """Return the parties that a file pins, by its own tables and by its roster.

    `roster` is the one that the file will pin, if its own file is not written yet.
    """
    roster = roster or pinned_roster(file)
    peers = file.table("peers" if role == "site" else "sites")
    pins = Pins(
        sites=_keys(peers),
        dealer={} if role == "dealer" else _own(file, "dealer", roster),
        analysts={} if role == "analyst" else _own(file, "analyst", roster),
        signing={
            name: key for name, text in peers.values.items() if (key := decode_signing(str(text)))
        },
    )
    if own in peers:
        raise peers.error(own, "this site's own name: its peers are others")
    if roster is None and chosen:
        reason = "they are names of a roster, and the file pins none: `vertibayes fetch`"
        raise file.error(("study", "sites"), reason)
    if roster is not None:
        pins = _joined(file, pins, roster, (own, role), chosen)
    if role != "site" and not pins.sites:
        raise file.error(("sites",), "it is empty; name at least one site")
    _check_apart(file, [(own, None, role), *_named(pins)])
    return pins


def _joined(
    file: TomlFile,
    pasted: Pins,
    roster: Roster,
    own: tuple[Party, RosterRole],
    chosen: Sequence[Party] | None,
) -> Pins:
    """Return what a file pins by its tables and by its roster together."""
    _check_member(file, roster, *own)
    _check_not_in_both(file, pasted, roster)
    others = [member for member in roster.members if member.name != own[0]]
    listed = {role: {m.name: m.key for m in others if m.role == role} for role in WORDS}
    sites = listed["site"] if chosen is None else _chosen(file, roster, listed["site"], chosen)

    def together(role: RosterRole, named: Mapping[Party, bytes]) -> dict[Party, bytes]:
        """Return the dealer or the analysts, whom the file or the roster names."""
        parties = {**named, **listed[role]}
        if role == own[1]:
            return {}
        if role == "dealer" and len(parties) > 1:
            reason = f"the file and {roster.title} name two dealers: {', '.join(parties)}; keep one"
            raise file.error((role,), reason)
        if not parties:
            reason = f"{roster.title} names no {role}: the coordinator must enrol one"
            raise file.error(("roster", "file"), reason)
        return parties

    return replace(
        pasted,
        sites={**sites, **pasted.sites},
        dealer=together("dealer", pasted.dealer),
        analysts=together("analyst", pasted.analysts),
        signing={**{name: roster.by_name[name].signing for name in sites}, **pasted.signing},
        roster=roster,
    )


def _chosen(
    file: TomlFile, roster: Roster, sites: Mapping[Party, bytes], chosen: Sequence[Party]
) -> dict[Party, bytes]:
    """Return the sites of a roster that a study has chosen, in the order of the study."""
    names = ", ".join(sites)
    for name in chosen:
        if name not in sites:
            reason = f"{name!r} is not a site in {roster.title}: its sites are {names}"
            raise file.error(("study", "sites"), reason)
    if not chosen and "sites" not in file.values:
        reason = f"missing; expected the sites of the study, of {names}"
        raise file.error(("study", "sites"), reason)
    return {name: sites[name] for name in chosen}


def _check_member(file: TomlFile, roster: Roster, own: Party, role: RosterRole) -> None:
    """Refuse a roster without the party whose file it is, or with another role for the party."""
    member = roster.by_name.get(own)
    if member is None:
        gone = [old for old in roster.retired_keys(own) if old.why == "revoked"]
        why = f"its key was revoked at epoch {gone[-1].epoch}; " if gone else ""
        reason = (
            f"{own!r} is not in {roster.title}: {why}send the coordinator the line of "
            f"`vertibayes enrol {role} {own}`"
        )
        raise file.error((role, "name"), reason)
    if member.role != role:
        reason = f"{own!r} is {WORDS[member.role]} in {roster.title}, and {WORDS[role]} here"
        raise file.error((role, "name"), reason)


def _check_not_in_both(file: TomlFile, pasted: Pins, roster: Roster) -> None:
    """Refuse a key in the file that the roster has or has retired."""
    retired = {old.key: old for old in roster.retired}
    for name, key, role in _named(pasted):
        if name in roster.by_name:
            reason = f"{roster.title} has the key of {name}: remove the key from this file"
            raise _at(file, name, role, reason)
        if (old := retired.get(key or b"")) is not None:
            reason = f"this key was {old.why} at epoch {old.epoch} of the roster: ask for a new one"
            raise _at(file, name, role, reason)


def pinned_roster(file: TomlFile) -> Roster | None:
    """Return the roster that a file pins by its digest; None if the file pins none."""
    if "roster" not in file.values:
        return None
    with file.table("roster") as table:
        path, pinned = table.path("file"), table.made("digest", digest_of_text)
    with table.at("file"):
        roster = read_roster(path)
    if roster.digest != pinned:
        reason = (
            f"{path} has another digest: {grouped_digest(roster.digest)} ({roster.title}); if this "
            "is a new roster, give it a file of its own, and pin it with `vertibayes fetch`; "
            "otherwise ask the coordinator for the pinned roster"
        )
        raise table.error("digest", reason)
    return roster


def digest_of_text(text: str) -> bytes:
    """Return the digest of a text; spaces are ignored."""
    try:
        digest = bytes.fromhex("".join(text.split()))
    except ValueError:
        digest = b""
    if len(digest) != DIGEST_BYTES:
        raise ValueError(f"{text!r:.90} is not a digest: expected 64 hexadecimal digits")
    return digest


def _own(file: TomlFile, role: RosterRole, roster: Roster | None) -> dict[Party, bytes]:
    """Return the dealer or the analysts that a file names; none if it leaves them to the roster."""
    if role == "analyst" and "analysts" in file.values:
        if role in file.values:
            reason = "the file also has [analysts]: name all analysts there, and remove [analyst]"
            raise file.error((role,), reason)
        if analysts := _keys(file.table("analysts")):
            return analysts
        raise file.error(("analysts",), "it is empty; name at least one analyst")
    if role in file.values:
        with file.table(role) as table:
            return {table.made("name", party_name): table.made("public_key", decode_public)}
    has_none = role == "dealer" and file.table("study").values.get("count_by") == PAILLIER
    if roster is None and not has_none:
        reason = (
            f"missing; expected [{role}] with name and public_key, or a roster, which `vertibayes "
            "fetch` pins"
        )
        raise file.error((role,), reason)
    return {}


def _keys(table: Table) -> dict[Party, bytes]:
    """Return the parties that a table names with their public keys."""
    pinned = {}
    for name in table.values:
        with table.at(name):
            party_name(name)
        pinned[name] = table.made(name, decode_public)
    return pinned


Named: TypeAlias = tuple[Party, bytes | None, RosterRole]


def _named(pins: Pins) -> Iterator[Named]:
    yield from ((name, key, "site") for name, key in pins.sites.items())
    yield from ((name, key, "dealer") for name, key in pins.dealer.items())
    yield from ((name, key, "analyst") for name, key in pins.analysts.items())


def _check_apart(file: TomlFile, parties: list[Named]) -> None:
    """Refuse two parties with the same name or the same key; the error names them."""
    names: dict[Party, RosterRole] = {}
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


def _at(file: TomlFile, name: Party, role: RosterRole, reason: str) -> ValueError:
    """Return the error about a party, placed where the file names the party."""
    places = ("peers", name), ("sites", name), ("analysts", name), (role,)
    place = next((keys for keys in places if file.line(keys) is not None), places[-1])
    return file.error(place, f"{name!r}: {reason}" if place == places[-1] else reason)
