"""What `vertibayes init` and `enrol` write: commented files, one for each party.

The folder `init` has the texts of the files, with $names for what differs between parties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.keys import make_private
from vertibayes_protocols.deployment.parts import OWN_FILES, ROOT, address, party_names, tls_name
from vertibayes_protocols.deployment.tables import quoted
from vertibayes_protocols.public_keys import public_text
from vertibayes_protocols.transports.mailbox import RELAY
from vertibayes_protocols.transports.route import is_this_machine

PRACTICE_ADDRESS = "127.0.0.1:8102"
EXAMPLE_ADDRESS = "relay.example.org:8102"

_PINNED = """
[{role}]    # {why}
name = "{name}"
public_key = "{key}"
"""

_PEERS = """
[{role}]    # their public keys, as they read them to you: by telephone, not by e-mail
{keys}
"""

_ROSTER = """
# `vertibayes fetch` writes what the coordinator's bundle has: the digest of the roster, which has
# the keys of all other parties, and the relay's address.
"""

_FETCHED = f"""\
[relay]
root = "{ROOT}"
certificate = "{{kind}}.crt"
key = "{{kind}}.key"               # private: made by `vertibayes enrol`; never sent
"""

_WAY = """\
# proxy = "none"                 # or SCHEME://HOST:PORT; that of HTTPS_PROXY if not given
# trust = "system"               # if a proxy or reverse proxy ends TLS before the relay
"""

_RELAY = """\
[relay]
address = "{address}"
"""

_CERTIFICATES = f"""\
root = "{ROOT}"              # from the coordinator, who runs `vertibayes provision`
certificate = "{{kind}}.crt"
key = "{{kind}}.key"
"""

_PRACTICE = f"""\
# For practice on this machine alone: with certificates of `vertibayes provision` add
# root = "{ROOT}"
# certificate = "{{kind}}.crt"
# key = "{{kind}}.key"
"""

_LISTENS = """\
address = "127.0.0.1:8102"       # where it listens for the reverse proxy, which ends TLS
tls = false
"""


@dataclass(frozen=True)
class Names:
    """The names of the parties."""

    sites: tuple[Party, ...]
    dealer: Party = "dealer"
    analysts: tuple[Party, ...] = ("analyst",)

    def __post_init__(self) -> None:
        party_names(self.parties)
        if not self.sites:
            raise ValueError("--sites is empty; name at least one site")
        if not self.analysts:
            raise ValueError("--analyst is empty; name at least one analyst")

    @property
    def parties(self) -> tuple[Party, ...]:
        """All parties except the relay."""
        return (*self.sites, self.dealer, *self.analysts)


def init(
    folder: Path,
    names: Names,
    *,
    practice: bool = False,
    relay_address: str | None = None,
    variables: Mapping[Party, Sequence[str]] | None = None,
) -> list[Path]:
    """Write a file for each party."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"--out {folder}: it has files; specify a new or empty folder")
    where = address(relay_address or (PRACTICE_ADDRESS if practice else EXAMPLE_ADDRESS))
    if practice and not is_this_machine(where.rpartition(":")[0]):
        raise ValueError(f"--practice needs a relay on this machine, got {where}")
    keys = {name: f"paste the public key of {name}" for name in names.parties}
    if practice:
        keys = {name: _new_key(folder, name) for name in names.parties}
    relay = (_RELAY + (_PRACTICE if practice else _CERTIFICATES)).format
    shown = dict.fromkeys(name for site in names.sites for name in (variables or {}).get(site, ()))
    written = []
    for name, file, pinned in _files(names, keys):
        kind = tls_name(name)
        text = _filled(
            file,
            name,
            "".join(pinned),
            relay(address=where, kind=kind) + _WAY * (name != RELAY),
            shown or ["example"],
            (variables or {}).get(name) or ["example"],
        )
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def enrolled_file(role: str, name: Party) -> str:
    """Return the file of a party that takes the rest from a bundle; of the relay, by address."""
    relay = _FETCHED.format(kind=tls_name(role))
    if role == RELAY:
        relay += _LISTENS if name.startswith("wss:") else f"address = {quoted(name)}\n"
    else:
        relay += _WAY
    sites = 'sites = ["example"]              # as the roster names them\n' * (role == "analyst")
    return _filled(OWN_FILES[role], name, _ROSTER, relay, ["example"], ["example"], sites)


def _filled(
    file: str,
    name: Party,
    pinned: str,
    relay: str,
    offered: Iterable[str],
    variables: Iterable[str],
    sites: str = "",
) -> str:
    """Return the text of a party's file."""
    template = files(__package__).joinpath("init", file).read_text(encoding="utf-8")
    return Template(template).substitute(
        name=name,
        offered=", ".join(map(quoted, offered)),
        sites=sites,
        pinned=pinned,
        relay=relay,
        variables="\n".join(f"{quoted(variable)} = {{}}" for variable in variables),
    )


def _new_key(folder: Path, name: Party) -> str:
    return public_text(make_private(folder / name / f"{name}.key"))


def _files(names: Names, keys: Mapping[Party, str]) -> Iterator[tuple[Party, str, tuple[str, ...]]]:
    """Yield the parties, each with the name of its file and the tables of the keys that it pins."""

    def one(role: str, name: Party, why: str) -> str:
        return _PINNED.format(role=role, name=name, why=why, key=keys[name])

    def several(role: str, parties: Sequence[Party]) -> str:
        lines = "\n".join(f'{name} = "{keys[name]}"' for name in parties)
        return _PEERS.format(role=role, keys=lines)

    def analysts(why: str) -> str:
        first, *others = names.analysts
        return several("analysts", names.analysts) if others else one("analyst", first, why)

    dealer = one("dealer", names.dealer, "deals masks; holds no data")
    for site in names.sites:
        peers = several("peers", [name for name in names.sites if name != site])
        yield site, "site.toml", (dealer, analysts("tables are revealed to it"), peers)
    sites = several("sites", names.sites)
    yield names.dealer, "dealer.toml", (analysts("it deals for the analyst's queries"), sites)
    dealer = one("dealer", names.dealer, "the dealer that the sites have pinned")
    yield from ((name, "study.toml", (dealer, sites)) for name in names.analysts)
    yield RELAY, "relay.toml", ()
