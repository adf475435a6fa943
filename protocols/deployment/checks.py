"""What can be said before a run: `vertibayes check` on one file, or on several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

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
from protocols.deployment.parts import RelayAddress
from protocols.deployment.tables import TomlFile
from protocols.errors import words
from protocols.public_keys import encode_public
from protocols.site.data import SiteData
from protocols.site.ledger_file import LedgerFile
from protocols.site.memory import SiteMemory
from protocols.site.whole_file import InUseError

How: TypeAlias = Literal["ok", "warning", "wrong"]
AnyFile: TypeAlias = PartyFile | RelayFile

SOON = timedelta(days=30)


class Outside(NamedTuple):
    """What is asked beyond the files: each returns a doubt or None, or raises a ValueError.

    Parameters
    ----------
    reach : callable
        Whether the relay listens where a party looks for it.
    listen : callable
        Whether the relay can listen there.
    study : callable
        Whether it can be learned what a study's file says.
    """

    reach: Callable[[RelayAddress], str | None]
    listen: Callable[[RelayAddress], str | None]
    study: Callable[[StudyFile], str | None]


@dataclass
class Findings:
    """What was found, in order: lines that say what is right, what may be wrong, what is.

    Attributes
    ----------
    parts : list of list of (str, str)
        Of each file, and of all together: each "ok", "warning" or "wrong", and a sentence.
    """

    parts: list[list[tuple[How, str]]] = field(default_factory=list)

    @property
    def lines(self) -> list[tuple[How, str]]:
        """All lines."""
        return [line for part in self.parts for line in part]

    def begin(self) -> None:
        """Begin another part."""
        self.parts.append([])

    def say(self, how: How, text: str) -> None:
        """Add a line."""
        self.parts[-1].append((how, text))

    def ask(self, told: str, good: str, question: Callable[[], str | None]) -> None:
        """Say what is good, what may be wrong, or what is."""
        try:
            doubt = question()
        except ValueError as error:
            self.say("wrong", f"{told} {error}")
        else:
            self.say("warning" if doubt else "ok", f"{told} {doubt or good}")

    @contextmanager
    def wrong_if_it_fails(self) -> Iterator[None]:
        """Note a ValueError as what is wrong, and go on."""
        try:
            yield
        except (ValueError, OSError) as error:
            self.say("wrong", words(error))

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


def check_files(paths: Sequence[Path], outside: Outside, now: datetime | None = None) -> Findings:
    """Check files, each for itself, and what several say of each other.

    Parameters
    ----------
    paths : sequence of Path
    outside : Outside
    now : datetime, optional
        The clock's time if None.
    """
    found, files = Findings(), list[AnyFile]()
    public: dict[Party, bytes] = {}
    for path in paths:
        found.begin()
        with found.wrong_if_it_fails():
            file = read_any(path)
            found.say("ok", f"{path}: {file.kind} {file.party}")
            files.append(file)
            _check_file(found, file, outside, now or datetime.now(UTC), public)
    found.begin()
    _check_pins(found, files, public)
    _check_one_certificate_a_party(found, files)
    _check_one_relay(found, files)
    return found


def _check_file(
    found: Findings, file: AnyFile, outside: Outside, now: datetime, public: dict[Party, bytes]
) -> None:
    told = f"{file.party}: the relay {file.relay.address}"
    if isinstance(file, RelayFile):
        found.ask(told, "can listen", lambda: outside.listen(file.relay))
    else:
        found.ask(told, "listens", lambda: outside.reach(file.relay))
    with found.wrong_if_it_fails():
        _check_certificate(found, file, now)
    if not isinstance(file, RelayFile):
        with found.wrong_if_it_fails():
            public[file.party] = _check_key(found, file)
    if isinstance(file, StudyFile):
        found.ask(
            f"{file.party}:", "what is to be learned is in order", lambda: outside.study(file)
        )
    if isinstance(file, SiteFile):
        data = None
        with found.wrong_if_it_fails():
            data = read_data(file)
            _check_data(found, file, data)
        with found.wrong_if_it_fails():
            _check_memory(found, file, data)


def _check_key(found: Findings, file: PartyFile) -> bytes:
    public = own_keys(file).public
    found.say("ok", f"{file.party}: public key {encode_public(public)}; the others must pin this")
    return public


def _check_certificate(found: Findings, file: AnyFile, now: datetime) -> None:
    if file.relay.certificates is None:
        found.say("warning", f"{file.party}: no certificates: for practice on this machine alone")
        return
    end = check_certificate(*file.relay.certificates, file.party, now)
    how: How = "warning" if end - now < SOON else "ok"
    found.say(how, f"{file.party}: its certificate is good until {end:%Y-%m-%d}")


def _check_data(found: Findings, file: SiteFile, data: SiteData) -> None:
    found.say("ok", f"{file.party}: {data.records} records; compare the number with the others")
    report = data.report.message()
    if report is not None:
        found.say("warning", f"{file.party}: {report}")
    found.say("ok", f"{file.party}: the counts below are its own: no line of them is for others")
    for name, variable in data.variables.items():
        counts = np.bincount(data.codes[name], minlength=len(variable.states) + 1)
        names = [*variable.states, "missing"]
        shown = [f"{n} ({c})" for n, c in zip(names, counts.tolist(), strict=True)]
        told = f"{file.party}: {name}: {', '.join(shown if counts[-1] else shown[:-1])}"
        if np.count_nonzero(counts[:-1]) > 1:
            found.say("ok", told)
        else:
            found.say("warning", f"{told}: no two states have records, so that it tells nothing")
    spaced = 0 if data.ids is None else sum(text != text.strip() for text in data.ids.texts)
    if spaced:
        text = f"{spaced} identifiers begin or end with a space: to others' without, they are new"
        found.say("warning", f"{file.party}: {text}")
    if data.records < file.policy.fewest_records:
        text = f"{data.records} records: its policy wants {file.policy.fewest_records} in a table"
        found.say("wrong", f"{file.party}: {text}")


def _check_memory(found: Findings, file: SiteFile, data: SiteData | None) -> None:
    """Say what a site remembers; of one that is running nothing is read."""
    told = []
    if file.folder.is_dir():
        try:
            memory = SiteMemory(file.memory)
        except InUseError:
            found.say("ok", f"{file.party}: is running, on this machine")
            return
        with closing(memory):
            if file.memory.exists():
                told.append(f"{memory.count_sets()} record sets answered for")
            changed = memory.changed({} if data is None else data.codes)
        if changed:
            text = f"{', '.join(changed)}: not as in the latest study, which cannot be gone on with"
            found.say("warning", f"{file.party}: {text}")
    if file.ledger.exists():
        with closing(LedgerFile(file.ledger)) as ledger:
            told.append(f"{len(ledger.tables)} tables opened")
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
