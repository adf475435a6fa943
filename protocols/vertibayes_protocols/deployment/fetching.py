"""A party takes a bundle: what would change, and then its own files."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.bundle import Bundle, bundle_of, name_of, read_bundle
from vertibayes_protocols.deployment.certificates import make_tls_key, tls_key_of
from vertibayes_protocols.deployment.downloading import PATH, bundle_at
from vertibayes_protocols.deployment.parts import ROOT, proxy_in, reached_address, tls_name
from vertibayes_protocols.deployment.pins import pinned_roster
from vertibayes_protocols.deployment.roster.pinning import (
    Own,
    later_keys,
    pinning,
    with_texts,
    write_file,
)
from vertibayes_protocols.deployment.roster.roster import parsed
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.storage.whole_file import write_whole
from vertibayes_protocols.transports.entrance import state_of
from vertibayes_protocols.transports.mailbox import RELAY
from vertibayes_protocols.transports.tls import REVOKED, read_revoked

PLACE = re.compile(r"(wss://[^\\]+|[^/\\]+:[0-9]+)/[0-9a-f]{16}")  # where a bundle is handed out
KEPT = "bundle.json"  # the last bundle, which the relay also hands out


@dataclass(frozen=True)
class Fetched:
    """A bundle that a party can take."""

    bundle: Bundle
    lines: tuple[str, ...]  # what changes, in words
    compares_digest: bool  # whether a person must first compare the roster's digest
    changed: TomlFile  # the party's file
    restarts: bool  # whether a running party uses this only after a restart: its file changes
    files: dict[Path, bytes] = field(repr=False)  # what is written beside it, in order

    def write(self) -> None:
        """Write all files, each whole; the party's own after those that it names."""
        *files, kept = self.files.items()
        for path, content in files:
            write_whole(path, content, 0o644)
        write_file(self.changed)
        write_whole(*kept, 0o644)


def bundle_from(file: Path, source: str | None) -> tuple[str, bytes, Bundle]:
    """Return where a bundle is, its content and the bundle: of a file, or of a relay."""
    if source is None or PLACE.fullmatch(source):
        own = TomlFile.read(file)
        where, relay = source or _place(own), own.table("relay")
        content = bundle_at(where, proxy_in(relay))
        return where, content, parsed(where, content, "bundle", bundle_of)
    bundle = read_bundle(Path(source))
    return source, Path(source).read_bytes(), bundle


def _place(file: TomlFile) -> str:
    """Return where a party's relay hands out the bundle of the roster that the party has pinned."""
    roster = pinned_roster(file) if "roster" in file.values else None
    if roster is None:
        raise ValueError(
            f"{file.path} pins no roster: specify the coordinator's file, or the place that the "
            "coordinator has sent, as HOST:PORT/NAME"
        )
    return f"{file.table('relay').made('address', reached_address)}/{name_of(roster)}"


def handed_out(folder: Path, path: str) -> bytes | None:
    """Return what a relay answers a request of HTTP for a path; None if it has no such bundle.

    A reverse proxy may pass on its own part of the path before `PATH`.
    """
    kept, (_, found, name) = folder / KEPT, path.rpartition(PATH)
    if not found:
        return None
    there = _kept_there(kept, state_of([kept]))
    if there is None or not hmac.compare_digest(name.encode(), there[0]):
        return None
    return there[1]


@lru_cache(maxsize=1)  # strangers ask, and a bundle takes milliseconds to verify
def _kept_there(kept: Path, state: object) -> tuple[bytes, bytes] | None:
    """Return the name of a relay's bundle and its content; the state is the file's."""
    del state
    try:
        content = kept.read_bytes()
        roster = parsed(str(kept), content, "bundle", bundle_of).roster
    except (OSError, ValueError):  # it is damaged: `vertibayes check` and `fetch` say so
        return None
    return name_of(roster).encode(), content


def fetching(path: Path, bundle: Bundle, content: bytes) -> Fetched:
    """Return what a bundle changes at a party; `content` is the bundle's file."""
    folder, before = path.parent, TomlFile.read(path)
    file = before
    old = _kept(folder / KEPT, bundle)
    is_relay = {"relay"} <= {*file.values} <= {"relay", "metrics"}
    lines: list[str] = []
    files: dict[Path, bytes] = {}
    pin = None
    if is_relay:
        party, role = RELAY, "relay"
    else:
        own = Own.read(path)
        party, role = own.party, own.role
        roster_path = folder / f"roster-{bundle.roster.epoch}.json"
        pin = pinning(path, roster_path, bundle.roster)
        lines += pin.lines
        if pin.changed is not None:
            file = pin.changed
            files[roster_path] = json.dumps(bundle.signed_roster, indent=1).encode() + b"\n"
    texts, certified = _certified(file, party, bundle)
    lines += _other_texts(file, texts)
    files |= certified
    file = with_texts(file, texts)
    if role == "site":
        files |= {folder / name: text.encode() for name, text in bundle.files.items()}
    own_list = file.table("relay").path("revoked", REVOKED) if is_relay else folder / REVOKED
    files |= _revoked(own_list, bundle)
    lines += _news(files, bundle, old)
    files[folder / KEPT] = content
    compares_digest = old is None if pin is None else pin.changed is not None
    return Fetched(bundle, tuple(lines), compares_digest, file, file.text != before.text, files)


def _kept(path: Path, new: Bundle) -> Bundle | None:
    """Return the bundle that a party took before; refuse one that does not follow it."""
    if not path.exists():
        return None
    old = read_bundle(path)
    reason = ""
    if new.roster.signer != old.roster.signer:
        reason = (
            f"another coordinator has signed it, with {new.roster.signer}; if the consortium has a "
            f"new one, remove {path}"
        )
    elif new.number < old.number:
        reason = f"it is number {new.number}, and {path} is number {old.number}: ask for the newest"
    elif new.number == old.number and new.as_json() != old.as_json():
        reason = f"the coordinator has signed two bundles of number {new.number}: ask for a new one"
    if reason:
        raise ValueError(f"the bundle is refused: {reason}")
    return old


def _certified(
    file: TomlFile, party: Party, bundle: Bundle
) -> tuple[dict[tuple[str, str], str], dict[Path, bytes]]:
    """Return what a party's file says of the relay, and the root and certificate beside it."""
    texts = {} if party == RELAY else {("relay", "address"): bundle.relay}
    if party not in bundle.certificates:
        return texts, {}
    relay, folder = file.table("relay"), file.path.parent
    first = relay.path("key", f"{tls_name(party)}.key")
    certificate = bundle.certificates[party]
    for key in (first, *later_keys(first)):
        if key.exists() and make_tls_key(key) == tls_key_of(certificate):
            break
    else:
        raise file.error(
            ("relay", "key"),
            f"the bundle certifies another key of {party} than {first} or a later one beside it: "
            "send the coordinator the line of `vertibayes enrol` again, by another way",
        )
    own = key.with_suffix(".crt")
    if own.parent != folder:
        raise file.error(("relay", "key"), f"it must be in {folder}, where the certificate goes")
    for name, value in (("root", ROOT), ("certificate", own.name), ("key", key.name)):
        texts["relay", name] = value
    return texts, {folder / ROOT: bundle.root.encode(), own: certificate.encode()}


def _other_texts(file: TomlFile, texts: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield which texts of a party's file change."""
    for (table, key), text in texts.items():
        before = file.table(table).values.get(key)
        if before != text:
            yield f"{f'{table}:':13}{key} = {text!r}" + (f", was {before!r}" if before else "")


def _revoked(path: Path, bundle: Bundle) -> dict[Path, bytes]:
    """Return a party's list of revoked certificates, with those of the bundle."""
    listed = read_revoked(path)
    new = [number for number in bundle.revoked if int(number, 16) not in listed]
    if not new:
        return {}
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    more = "".join(f"{number}    # bundle {bundle.number}\n" for number in new)
    return {path: f"{before.rstrip()}\n{more}".lstrip().encode()}


def _news(files: Mapping[Path, bytes], bundle: Bundle, old: Bundle | None) -> Iterator[str]:
    """Yield which files are new or other; refuse to replace one that no bundle brought."""
    for path, content in files.items():
        if not path.exists():
            yield f"new file:    {path.name}"
        elif path.read_bytes() != content:
            if path.name in bundle.files and path.name not in (old.files if old else ()):
                raise ValueError(f"{path} exists and is from no bundle: give it another name")
            yield f"other file:  {path.name}"
