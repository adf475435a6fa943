"""A party makes its keys and its file, and the line by which the coordinator enrols it."""

from __future__ import annotations

from pathlib import Path

from vertibayes_protocols.deployment.certificates import make_tls_key
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.parts import OWN_FILES, reached_address, tls_name
from vertibayes_protocols.deployment.pins import pinned_roster
from vertibayes_protocols.deployment.roster.changes import check_enrolled, enrolment_line
from vertibayes_protocols.deployment.roster.pinning import Own, later_keys
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.deployment.templates import enrolled_file
from vertibayes_protocols.storage.whole_file import write_whole
from vertibayes_protocols.transports.mailbox import RELAY
from vertibayes_protocols.transports.route import host_and_port


def enrol(folder: Path, role: str, name: str) -> tuple[str, Path]:
    """Make a party's keys and its file, as far as they do not exist; return its line and the file.

    The command can be repeated: it prints the same line again. A party that has pinned a roster
    gets new keys beside those in use, for a coordinator who revokes the old ones.
    """
    if role not in OWN_FILES:
        raise ValueError(f"the role must be one of {', '.join(OWN_FILES)}, got {role!r}")
    if role == RELAY:
        reached_address(name)
    else:
        check_enrolled(role, name)
    path = folder / OWN_FILES[role]
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, enrolled_file(role, name).encode())
    if role == RELAY:
        _check_listens(path, name)
        key = make_tls_key(folder / f"{tls_name(RELAY)}.key")
        return f"relay {name} {key}", path
    own = Own.read(path)
    if (own.role, own.party) != (role, name):
        raise ValueError(f"{path} is that of {own.role} {own.party}: specify another --folder")
    return _line(own, role), path


def _check_listens(path: Path, name: str) -> None:
    """Refuse a line of another address than that of the relay's file; a reverse proxy has both."""
    relay = TomlFile.read(path).table("relay").values
    where, tls = relay.get("address"), relay.get("tls", True)
    everywhere = f"0.0.0.0:{host_and_port(name)[1]}"
    if tls != name.startswith("wss:") and (not tls or where in (name, everywhere)):
        return
    raise ValueError(
        f"{path} has address = {where!r}{'' if tls else ' and tls = false'}, which is not for "
        f"{name}: change the file first, or specify another --folder"
    )


def _line(own: Own, role: str) -> str:
    """Return a party's line, with the keys that its file names, or with keys made after them."""
    tls: Path = (
        TomlFile.read(own.file.path).table("relay").path("key", f"{tls_name(own.party)}.key")
    )
    key = own.key
    if pinned_roster(own.file) is not None:
        key, tls = later_keys(key)[-1], later_keys(tls)[-1]
    keys = read_private(key) if key.exists() else make_private(key)
    return f"{enrolment_line(role, own.party, keys)} {make_tls_key(tls)}"
