"""What can be said before a run: `vertibayes check` on one file, or on several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from mpc.rounds import Party
from protocols.deployment.certificates import check_certificate, public_key_of
from protocols.deployment.data import read_data
from protocols.deployment.files import (
    DealerFile,
    PartyFile,
    RelayFile,
    SiteFile,
    StudyFile,
    own_keys,
)
from protocols.deployment.tables import TomlFile
from protocols.public_keys import encode_public
from protocols.site.ledger_file import LedgerFile
from protocols.site.memory import SiteMemory

How: TypeAlias = Literal["ok", "warning", "wrong"]
AnyFile: TypeAlias = PartyFile | RelayFile

SOON = timedelta(days=30)


@dataclass
class Findings:
    """What was found, in order: lines that say what is right, what may be wrong, what is.

    Attributes
    ----------
    lines : list of (str, str)
        Each "ok", "warning" or "wrong", and a sentence.
    """

    lines: list[tuple[How, str]] = field(default_factory=list)

    def say(self, how: How, text: str) -> None:
        """Add a line."""
        self.lines.append((how, text))

    @contextmanager
    def wrong_if_it_fails(self) -> Iterator[None]:
        """Note a ValueError as what is wrong, and go on."""
        try:
            yield
        except (ValueError, OSError) as error:
            self.say("wrong", str(error))

    @property
    def wrong(self) -> bool:
        """Whether anything is wrong."""
        return any(how == "wrong" for how, _ in self.lines)


def read_any(path: Path) -> AnyFile:
    """Read a party's file, whichever party's it is.

    Raises
    ------
    ValueError
        If it is at fault, or is none.
    """
    tables = TomlFile.read(path).values
    if "site" in tables:
        return SiteFile.read(path)
    if "study" in tables:
        return StudyFile.read(path)
    if "dealer" in tables and "sites" in tables:
        return DealerFile.read(path)
    if "relay" in tables:
        return RelayFile.read(path)
    raise ValueError(f"{path}: no file of a site, dealer, study or relay")


def check_files(
    paths: Sequence[Path], reach: Callable[[str, int], str | None], now: datetime | None = None
) -> Findings:
    """Check files, each for itself, and what several say of each other.

    Parameters
    ----------
    paths : sequence of Path
    reach : callable
        (host, port) -> None if somebody listens there, else why not.
    now : datetime, optional
        The clock's time if None.
    """
    found, files = Findings(), list[AnyFile]()
    for path in paths:
        with found.wrong_if_it_fails():
            file = read_any(path)
            found.say("ok", f"{path}: {file.kind} {file.party}")
            files.append(file)
    public: dict[Party, bytes] = {}
    for file in files:
        with found.wrong_if_it_fails():
            _check_reach(found, file, reach)
        with found.wrong_if_it_fails():
            _check_certificate(found, file, now or datetime.now(UTC))
        if not isinstance(file, RelayFile):
            with found.wrong_if_it_fails():
                public[file.party] = _check_key(found, file)
        if isinstance(file, SiteFile):
            with found.wrong_if_it_fails():
                _check_data(found, file)
            with found.wrong_if_it_fails():
                _check_memory(found, file)
    _check_pins(found, files, public)
    _check_one_certificate_a_party(found, files)
    _check_one_relay(found, files)
    return found


def _check_key(found: Findings, file: PartyFile) -> bytes:
    public = own_keys(file).public
    found.say("ok", f"{file.party}: public key {encode_public(public)}; the others pin it")
    return public


def _check_reach(found: Findings, file: AnyFile, reach: Callable[[str, int], str | None]) -> None:
    if isinstance(file, RelayFile):
        return
    reason = reach(*file.relay.host_and_port)
    told = f"{file.party}: the relay {file.relay.address}"
    found.say("warning" if reason else "ok", f"{told} {reason or 'listens'}")


def _check_certificate(found: Findings, file: AnyFile, now: datetime) -> None:
    if file.relay.certificates is None:
        found.say("warning", f"{file.party}: no certificates: for practice on this machine alone")
        return
    end = check_certificate(*file.relay.certificates, file.party, now)
    how: How = "warning" if end - now < SOON else "ok"
    found.say(how, f"{file.party}: its certificate is good until {end:%Y-%m-%d}")


def _check_data(found: Findings, file: SiteFile) -> None:
    data = read_data(file)
    found.say("ok", f"{file.party}: {data.records} records; compare the number with the others")
    for variable in data.variables.values():
        gaps = ", some missing" if variable.missing else ""
        states = ", ".join(variable.states)
        found.say("ok", f"{file.party}: {variable.name}: {states}{gaps}")
    if data.records < file.policy.fewest_records:
        text = f"{data.records} records: its policy wants {file.policy.fewest_records} in a table"
        found.say("wrong", f"{file.party}: {text}")


def _check_memory(found: Findings, file: SiteFile) -> None:
    """Say what a site remembers."""
    told = []
    if file.memory.exists():
        memory = SiteMemory(file.memory)
        told.append(f"{memory.count_sets()} record sets answered for")
        memory.close()
    if file.ledger.exists():
        ledger = LedgerFile(file.ledger)
        told.append(f"{len(ledger.tables)} tables opened")
        ledger.close()
    found.say("ok", f"{file.party}: remembers {', '.join(told) or 'nothing: a new site'}")


# ---- several files -------------------------------------------------------------------------------


def _check_pins(found: Findings, files: Sequence[AnyFile], public: Mapping[Party, bytes]) -> None:
    """Compare the keys that files pin with those that the others have."""
    for file in files:
        pinned = {} if isinstance(file, RelayFile) else file.pinned
        for party, key in pinned.items():
            if party in public and public[party] != key:
                found.say("wrong", f"{file.source.path}: pins another public key than {party} has")
    owners: dict[bytes, Party] = {}
    for party, key in public.items():
        if key in owners:
            found.say("wrong", f"{owners[key]} and {party} have one key: they are one party")
        owners[key] = party


def _check_one_certificate_a_party(found: Findings, files: Sequence[AnyFile]) -> None:
    """Two parties that show one are one: a dealer who shows the relay's is refused."""
    shown: dict[bytes, Party] = {}
    for file in files:
        certificates = file.relay.certificates
        if certificates is None or not certificates.certificate.exists():
            continue
        with found.wrong_if_it_fails():
            key = public_key_of(certificates.certificate)
            if shown.setdefault(key, file.party) != file.party:
                raise ValueError(f"{shown[key]} and {file.party} show one certificate")


def _check_one_relay(found: Findings, files: Sequence[AnyFile]) -> None:
    addresses = {file.relay.address: file.party for file in files}
    if len(addresses) > 1:
        told = ", ".join(f"{party}: {where}" for where, party in addresses.items())
        found.say("warning", f"the relay has several addresses: {told}")
