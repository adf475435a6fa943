"""Vectors in files: what may be written over them, and what is said when bytes differ from them.

A file is ``{"version": .., "vectors": ..}``. Under one version entries may be added to it; what is
recorded stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from vertibayes_mpc.scheduler import Sent
from vertibayes_protocols.wire import encode

FOLDER = Path(__file__).parent
SCRIPT = "python -m tests.vectors.make"
RAISE = "VERSION in vertibayes_protocols.wire"
LONGEST = 320  # bytes that are recorded in full
SHOWN = 5  # differences that a message names


def frozen(body: bytes) -> str:
    """Record bytes: in full, or the digest of long ones."""
    return body.hex() if len(body) <= LONGEST else f"{len(body)} bytes, {_digest(body)}"


def frozen_links(transcript: Iterable[Sent]) -> dict[str, list[str]]:
    """Record messages link by link.

    In which order a scheduler steps parties that do not wait for each other is nothing that they
    send: each message has its depth, the length of the chain of messages that ends with it.
    """
    links: dict[str, list[str]] = {}
    for sent in transcript:
        body = encode(sent.message)
        line = f"{sent.depth}: {type(sent.message).kind}, {len(body)} bytes, {_digest(body)}"
        links.setdefault(f"{sent.sender} -> {sent.receiver}", []).append(line)
    return dict(sorted(links.items()))


def _digest(body: bytes) -> str:
    return f"sha256 {hashlib.sha256(body).hexdigest()}"


def differences(recorded, made, place: str = "") -> Iterator[str]:
    """Return the places of what is recorded and no longer made; new entries are none of them."""
    if isinstance(recorded, dict) and isinstance(made, dict):
        for key, entry in recorded.items():
            at = f"{place}, {key}" if place else key
            if key not in made:
                yield f"{at}: not made any more"
            elif key == "fields":
                yield from (f"{at}: {name} has moved" for name in _moved(entry, made[key]))
            else:
                yield from differences(entry, made[key], at)
    elif isinstance(recorded, list) and isinstance(made, list):
        if len(recorded) != len(made):
            yield f"{place}: {len(made)} entries, recorded {len(recorded)}"
        for at, (old, new) in enumerate(zip(recorded, made, strict=False)):
            yield from differences(old, new, f"{place}, entry {at}")
    elif recorded != made:
        yield f"{place}: other bytes"


def _moved(recorded: list[str], made: list[str]) -> list[str]:
    """Return the fields that have another place: a renamed field keeps its place."""
    return [n for n in recorded if n in made and made.index(n) != recorded.index(n)]


def read(name: str, folder: Path = FOLDER):
    """Return a file's version and vectors; none of version 0 if there is no file."""
    path = folder / f"{name}.json"
    content = json.loads(path.read_text()) if path.exists() else {"version": 0, "vectors": {}}
    return content["version"], content["vectors"]


def complaint(name: str, made, version: int, folder: Path = FOLDER) -> str:
    """Return what differs from a file of vectors, and what to do; nothing if nothing differs."""
    recorded_version, recorded = read(name, folder)
    if version != recorded_version:
        return (
            f"{name}.json is of version {recorded_version}, the protocols are of version "
            f"{version}: run {SCRIPT}"
        )
    changed = list(differences(recorded, made))
    if changed:
        return (
            f"the bytes of version {version} have changed ({name}.json): {_listed(changed)}. "
            f"Restore them, or raise {RAISE} and run {SCRIPT}"
        )
    if recorded != made:
        return f"{name}.json does not record all messages: run {SCRIPT}"
    return ""


def write(name: str, made, version: int, folder: Path = FOLDER) -> None:
    """Write a file of vectors.

    Raises
    ------
    ValueError
        If it has other bytes than the file of the same version, or the file has a later version.
    """
    recorded_version, recorded = read(name, folder)
    if version < recorded_version:
        raise ValueError(
            f"{name}.json is of version {recorded_version}, the protocols are of version "
            f"{version}: raise {RAISE} above the file's"
        )
    changed = list(differences(recorded, made)) if version == recorded_version else []
    if changed:
        raise ValueError(
            f"{name}.json has other bytes of version {version}: {_listed(changed)}. Raise {RAISE} "
            "to replace them"
        )
    content = {"version": version, "vectors": made}
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _listed(changed: list[str]) -> str:
    more = [f"and {len(changed) - SHOWN} more"] if len(changed) > SHOWN else []
    return "; ".join(changed[:SHOWN] + more)
