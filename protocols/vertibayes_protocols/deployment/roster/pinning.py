"""A party pins a roster: what would change, and the new digest in its file."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.approvals import approvals_in, read_approval
from vertibayes_protocols.deployment.files import SITES
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.parts import OWN_TABLES, own_party
from vertibayes_protocols.deployment.pins import pinned_roster, pins_of
from vertibayes_protocols.deployment.roster.changes import changes, check_follows, rotation_line
from vertibayes_protocols.deployment.roster.roster import ROLES, Roster, RosterRole
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.storage.whole_file import write_whole

TEXT = r"""("(?:[^"\\]|\\.)*"|'[^']*')"""


@dataclass(frozen=True)
class Own:
    """A party's file, as far as its roster concerns it."""

    file: TomlFile
    role: RosterRole
    party: Party
    key: Path

    @classmethod
    def read(cls, path: Path) -> Own:
        """Read a party's file, also if it pins no roster yet."""
        file = TomlFile.read(path)
        roles = [role for role in ROLES if OWN_TABLES[role] in file.values]
        roles.sort(key="dealer".__eq__)  # last: other files name the dealer, too
        if not roles:
            raise ValueError(f"{path}: not the file of a site, dealer or study: it pins no keys")
        return cls(file, roles[0], *own_party(file.table(roles[0])))


@dataclass(frozen=True)
class Pinning:
    """A roster that a party's file can pin."""

    roster: Roster
    changed: TomlFile | None  # the file that pins it; None if it is pinned already
    lines: tuple[str, ...]  # what changes, in words


def pinning(path: Path, roster_path: Path, new: Roster) -> Pinning:
    """Return what changes if a party's file pins a roster, which a path will have."""
    own = Own.read(path)
    old = pinned_roster(own.file)
    if old is not None and old.digest == new.digest:
        return Pinning(new, None, ())
    if old is not None:
        check_follows(old, new, roster_path)
    changed = with_texts(
        own.file,
        {
            ("roster", "file"): os.path.relpath(roster_path, path.parent),
            ("roster", "digest"): grouped_digest(new.digest),
        },
    )
    chosen = changed.table("study").take(SITES) if own.role == "analyst" else None
    pins_of(changed, own.role, own.party, chosen, new)  # which refuses what does not fit
    lines = list(changes(old, new))
    key = _own_key(own, new)
    if key != own.key:
        table = own.file.table(own.role)
        text = str(Path(table.text("key")).with_name(key.name))
        changed = with_texts(changed, {(own.role, "key"): text})
        lines.append(f"own key:     {text}, in place of {own.key.name}")
    return Pinning(new, changed, (*lines, *_voided(own, new), *_free(own, old, new)))


def _own_key(own: Own, roster: Roster) -> Path:
    """Return the file of the private key that the roster has of a party."""
    wanted = roster.by_name[own.party].key
    for path in (own.key, *later_keys(own.key)):
        if path.exists() and read_private(path).public == wanted:
            return path
    reason = (
        f"{roster.title} has the key {roster.by_name[own.party].public} of {own.party}, which is "
        f"neither in {own.key} nor in a later key beside it; ask the coordinator who has enrolled "
        "it"
    )
    raise own.file.error((own.role, "key"), reason)


def _voided(own: Own, roster: Roster) -> Iterator[str]:
    """Yield which approved studies name a key that a roster does not have: they are void."""
    if own.role != "site":
        return
    folder = own.file.table("site").path("folder", "memory") / "approved"
    for path in approvals_in(folder):
        contract = read_approval(path).contract
        other = [
            name for name, key in contract.keys.items()
            if name in roster.by_name and roster.by_name[name].key != key
        ]  # fmt: skip
        gone = [old.name for old in roster.retired if old.key in contract.keys.values()]
        if names := sorted({*other, *gone}):
            yield (
                f"void:        the approval of {grouped_digest(contract.digest)[:9]}...: its "
                f"contract has another key of {', '.join(names)}; approve the study again"
            )


def _free(own: Own, old: Roster | None, new: Roster) -> Iterator[str]:
    """Yield a warning if new analysts could ask any query."""
    known = {} if old is None else old.in_role("analyst")
    names = [name for name in new.in_role("analyst") if name not in known]
    if own.role == "site" and names and own.file.table("policy").values.get("free_tables") is True:
        yield (
            f"warning:     {own.file.path.name} sets free_tables = true: {', '.join(names)} may "
            "ask any query within its policy, without an approval"
        )


# ---- a new key of one's own ----------------------------------------------------------------------


def rotate(path: Path) -> tuple[str, Path]:
    """Make a new key beside the one in use, and return the line that the coordinator needs.

    A key that was made before and is in no roster is taken again: the command can be repeated.
    """
    own = Own.read(path)
    roster = pinned_roster(own.file)
    if roster is None:
        reason = (
            "missing; without a roster, make a key with `vertibayes keygen`, and give it to each "
            "party by telephone"
        )
        raise own.file.error(("roster",), reason)
    old = read_private(own.key)
    member = roster.by_name.get(own.party)
    if member is None or member.key != old.public:
        known = f"the key of {own.party} in {roster.title}"
        reason = f"{own.key} is not {known}: fetch the newest bundle"
        raise own.file.error((own.role, "key"), reason)
    key = later_keys(own.key)[-1]
    new = read_private(key) if key.exists() else make_private(key)
    return rotation_line(roster.consortium, own.party, old, new), key


def later_keys(key: Path) -> list[Path]:
    """Return the keys made after a key, clinic.2.key after clinic.key; or where the first goes."""
    later = [_after(key)]
    while later[-1].exists():
        later.append(_after(later[-1]))
    return later[:-1] or later


def _after(key: Path) -> Path:
    """Return the file of the key that follows: NAME.2.key, NAME.3.key."""
    match = re.fullmatch(r"(.*)\.([1-9][0-9]*)", key.stem)
    stem, number = (match[1], int(match[2])) if match else (key.stem, 1)
    return key.with_name(f"{stem}.{number + 1}{key.suffix}")


# ---- the file with other values: comments and order stay -----------------------------------------


def write_file(file: TomlFile) -> None:
    """Write a file again, whole or not at all, with its mode, mark and ends of lines."""
    path, content = file.path.resolve(), file.text  # a link stays a link
    old = path.read_bytes()
    content = content.replace("\n", "\r\n") if b"\r\n" in old else content
    mark = b"\xef\xbb\xbf" if old.startswith(b"\xef\xbb\xbf") else b""
    write_whole(path, mark + content.encode(), stat.S_IMODE(path.stat().st_mode))


def with_texts(file: TomlFile, texts: Mapping[tuple[str, str], str]) -> TomlFile:
    """Return a file with other texts at some keys; nothing is written."""
    changed = file
    for (table, key), text in texts.items():
        values: dict[str, Any] = deepcopy(dict(changed.values))
        values.setdefault(table, {})[key] = text
        new = _with_text(changed, table, key, text)
        try:
            is_right = tomllib.loads(new) == values
        except tomllib.TOMLDecodeError:
            is_right = False
        if not is_right:
            reason = f"cannot be written by this command; write {key} = {json.dumps(text)} yourself"
            raise file.error((table, key), reason)
        changed = TomlFile(file.path, new, values)
    return changed


def _with_text(file: TomlFile, table: str, key: str, text: str) -> str:
    lines = file.text.splitlines(keepends=True)
    value = json.dumps(text, ensure_ascii=False)
    if (number := file.line((table, key))) is not None:
        pattern = rf"(\b{key}\s*=\s*){TEXT}"
        lines[number - 1] = re.sub(pattern, lambda m: m[1] + value, lines[number - 1], count=1)
    elif (number := file.line((table,))) is not None:
        lines.insert(number, f"{key} = {value}\n")
    else:
        ended = "" if file.text.endswith("\n") or not file.text else "\n"
        lines.append(f"{ended}\n[{table}]\n{key} = {value}\n")
    return "".join(lines)
