"""The coordinator's folder: from the lines of parties and the files of studies to the next bundle.

    FOLDER/coordinator.key     signs rosters and bundles
    FOLDER/root.key            signs certificates; with rootCA.pem and issued.txt
    FOLDER/bundle-N.json       all bundles; the next one follows the last

A bundle keeps what the one before it had, and makes certificates again that expire soon.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.bundle import Bundle, check_name, read_bundle, write_bundle
from vertibayes_protocols.deployment.certificates import certify, decode_tls, serials_of, tls_key_of
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.parts import reached_address
from vertibayes_protocols.deployment.roster.changes import first_roster, next_roster
from vertibayes_protocols.deployment.roster.pinning import with_texts
from vertibayes_protocols.deployment.roster.roster import Roster, roster_of, signed_roster
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.public_keys import public_text
from vertibayes_protocols.transports.mailbox import RELAY
from vertibayes_protocols.transports.route import host_and_port

NAMED = "constraints", "ordering", "structure", "model"  # files of [learning] that owners need


def make_bundle(
    folder: Path,
    lines: Iterable[str],
    studies: Sequence[Path],
    consortium: str | None,
    days: int,
    *,
    new_root: bool = False,
    check: Callable[[Path], object] = lambda _: None,
) -> tuple[Path, Bundle, Bundle | None]:
    """Write the next bundle of a coordinator's folder; return it and the one before.

    `check` raises a ValueError about the file of a study that cannot run.
    """
    old = _before(folder, consortium)
    changes, keys_of, relay = _divided(lines)
    relay = relay or (old.relay if old else "")
    if not relay:
        raise ValueError("no line names the relay: expected that of `vertibayes enrol relay`")
    key_file = folder / "coordinator.key"
    keys = read_private(key_file) if key_file.exists() or old else make_private(key_file)
    if old is None:
        roster = first_roster(consortium or "", changes, public_text(keys))
    else:
        roster = next_roster(old.roster, changes) if any(changes) else old.roster
    signed = signed_roster(roster, keys)
    texts = dict(_pinned(_of_studies(studies) or (old.files if old else {}), roster, relay))
    if studies:  # what an earlier bundle has must not keep the coordinator from revoking a key
        check_studies(texts, signed, check)
    revoked = _revoked(folder, roster, old, keys_of.get(RELAY))  # before new ones are issued
    members = {*roster.by_name, RELAY}
    root, certificates = certify(
        folder,
        keys_of,
        {n: pem for n, pem in (old.certificates if old else {}).items() if n in members},
        host_and_port(relay)[0],
        days,
        new_root=new_root,
    )
    bundle = Bundle(
        number=old.number + 1 if old else 1,
        signed_roster=signed,
        relay=relay,
        root=root,
        certificates=certificates,
        revoked=revoked,
        files=texts,
    )
    path = folder / f"bundle-{bundle.number}.json"
    write_bundle(path, bundle, keys)
    return path, bundle, old


def _before(folder: Path, consortium: str | None) -> Bundle | None:
    """Return the newest bundle; the first one, and no later one, needs the consortium's name."""
    old = last_bundle(folder)
    if (consortium is None) == (old is None):
        raise ValueError(
            f"{folder} has no bundle: specify --consortium NAME for the first one"
            if old is None
            else f"{folder} has the bundles of {old.roster.consortium}: remove --consortium"
        )
    return old


def _revoked(
    folder: Path, roster: Roster, old: Bundle | None, relay_key: str | None
) -> tuple[str, ...]:
    """Return the serial numbers of all certificates that were revoked, each once."""
    known = old.roster.retired if old else ()
    new = [
        number for key in roster.retired if key.why == "revoked" and key not in known
        for number in serials_of(folder, key.name)
    ]  # fmt: skip
    if old is not None and relay_key not in (None, tls_key_of(old.certificates[RELAY])):
        new += serials_of(folder, RELAY)  # of the key that is replaced
    return tuple(dict.fromkeys((*(old.revoked if old else ()), *new)))


def last_bundle(folder: Path) -> Bundle | None:
    """Return the newest bundle of a folder; None if it has none."""
    numbers = [
        int(text) for path in folder.glob("bundle-*.json")
        if (text := path.stem.removeprefix("bundle-")).isdecimal()
    ]  # fmt: skip
    return read_bundle(folder / f"bundle-{max(numbers)}.json") if numbers else None


def _divided(lines: Iterable[str]) -> tuple[list[str], dict[Party, str], str]:
    """Return lines for the roster, the public keys for TLS, and the relay's address."""
    changes: list[str] = []
    keys: dict[Party, str] = {}
    relay = ""
    for number, line in enumerate(lines, 1):
        match line.partition("#")[0].split():
            case ["relay", where, key]:
                name, line, relay = RELAY, "", where
            case ["enrol", role, name, public, key]:
                line = f"enrol {role} {name} {public}"
            case words:
                changes.append(" ".join(words))
                continue
        changes.append(line)
        try:
            reached_address(relay or "relay:1")
            decode_tls(key)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        keys[name] = key
    return changes, keys, relay


def _of_studies(studies: Sequence[Path]) -> dict[str, str]:
    """Return the texts of studies, and of the files that they name, by their names."""
    texts: dict[str, str] = {}
    for path in studies:
        file = TomlFile.read(path)
        if "study" not in file.values:
            raise ValueError(f"{path}: not the file of a study: expected a table [study]")
        if "@" in str(file.table("relay").values.get("proxy", "")):
            reason = "it has a password, and all parties get this file: use HTTPS_PROXY"
            raise file.error(("relay", "proxy"), reason)
        texts[path.name] = file.text
        for key in NAMED:
            value = file.table("learning").values.get(key)
            if isinstance(value, str):
                with file.table("learning").at(key):
                    check_name(value)
                    texts[value] = (path.parent / value).read_text(encoding="utf-8")
    return texts


def check_studies(
    texts: Mapping[str, str], signed: Mapping[str, Any], check: Callable[[Path], object]
) -> None:
    """Check the studies of a bundle as a party finds them, which has no other file of theirs."""
    roster = f"roster-{roster_of(signed).epoch}.json"
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in {**texts, roster: json.dumps(signed)}.items():
            (folder / path).write_text(text, encoding="utf-8")
        for path in texts:
            if path.endswith(".toml"):
                try:
                    check(folder / path)
                except ValueError as error:
                    raise ValueError(str(error).replace(f"{folder}/", "")) from None


def _pinned(texts: Mapping[str, str], roster: Roster, relay: str) -> Iterator[tuple[str, str]]:
    """Yield the files of studies: each study names the roster and the relay of the bundle."""
    known = {
        ("roster", "file"): f"roster-{roster.epoch}.json",
        ("roster", "digest"): grouped_digest(roster.digest),
        ("relay", "address"): relay,
    }
    for name, text in texts.items():
        if not name.endswith(".toml"):
            yield name, text
            continue
        yield name, with_texts(TomlFile(Path(name), text, tomllib.loads(text)), known).text
