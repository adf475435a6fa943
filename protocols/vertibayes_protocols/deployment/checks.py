"""What `vertibayes check` finds before a run, in one file or between several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.certificates import (
    SOON,
    check_certificate,
    number_of,
    public_key_of,
)
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import (
    DealerFile,
    PartyFile,
    RelayFile,
    SiteFile,
    StudyFile,
    own_keys,
)
from vertibayes_protocols.deployment.status import is_running, status_path
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.errors import TransportError, words
from vertibayes_protocols.public_keys import public_text
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.ledger_entries import Tables, read_ledger
from vertibayes_protocols.storage.ledger_file import compared
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.whole_file import InUseError
from vertibayes_protocols.transports.route import Route
from vertibayes_protocols.transports.tls import read_revoked

How: TypeAlias = Literal["ok", "warning", "wrong"]
AnyFile: TypeAlias = PartyFile | RelayFile
FILES: tuple[type[AnyFile], ...] = SiteFile, StudyFile, DealerFile, RelayFile
KINDS = {file.kind: file for file in FILES}  # by the first table that a file has


UNFETCHED = (
    "relay.address: missing; expected HOST:PORT, which `vertibayes fetch` writes, with the keys of "
    "the other parties"
)


class Outside(NamedTuple):
    """Checks outside the files: each returns a warning or None, or raises a ValueError."""

    reach: Callable[[Route], str | None]
    listen: Callable[[Route], str | None]
    study: Callable[[StudyFile], str | None]  # checks the settings of a study
    # These return what is right, or None if it is not checked.
    site: Callable[[StudyFile, SiteFile, SiteData], str | None] = lambda *_: None
    digest: Callable[[StudyFile], str | None] = lambda _: None


@dataclass
class Findings:
    """The findings, in order."""

    parts: list[list[tuple[How, str]]] = field(default_factory=list)
    party: Party = ""  # whose file is checked

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

    def note(self, how: How, text: str) -> None:
        """Add a line about the party whose file is checked."""
        self.say(how, f"{self.party}: {text}")

    def ask(self, subject: str, good: str, question: Callable[[], str | None]) -> None:
        """Add the line of one check of the party."""
        try:
            doubt = question()
        except ValueError as error:
            self.note("wrong", f"{subject}{error}")
        except TransportError:  # its own files cannot be used: another check says why
            pass
        else:
            self.note("warning" if doubt else "ok", f"{subject}{doubt or good}")

    @contextmanager
    def wrong_if_it_fails(self) -> Iterator[None]:
        """Add a line about a ValueError or an OSError of the block, and continue."""
        try:
            yield
        except (ValueError, OSError) as error:
            self.say("wrong", words(error))

    @property
    def wrong(self) -> bool:
        """Whether anything is wrong."""
        return any(how == "wrong" for how, _ in self.lines)


def read_any(path: Path) -> AnyFile:
    """Read the file of a party of any kind."""
    tables = TomlFile.read(path).values
    for name, kind in KINDS.items():
        if name in tables:
            return kind.read(path)
    raise ValueError(
        f"{path}: not the file of a site, dealer, study or relay: expected a table "
        f"{', '.join(f'[{name}]' for name in KINDS)}, as `vertibayes enrol` writes it"
    )


def _unfetched(path: Path) -> SiteFile | None:
    return SiteFile.unfetched(path) if "site" in TomlFile.read(path).values else None


def check_files(paths: Sequence[Path], outside: Outside, now: datetime | None = None) -> Findings:
    """Check each file, and that several files agree."""
    findings, files = Findings(), list[AnyFile]()
    public: dict[Party, bytes] = {}
    data: dict[Party, SiteData] = {}
    for path in paths:
        findings.begin()
        with findings.wrong_if_it_fails():
            file = _unfetched(path) or read_any(path)
            findings.say("ok", f"{path}: {file.kind} {file.party}")
            findings.party = file.party
            if isinstance(file, SiteFile) and not file.pinned:
                findings.note("wrong", UNFETCHED)
            else:
                files.append(file)
                _check_file(findings, file, outside, now or datetime.now(UTC), public)
            if isinstance(file, SiteFile):
                with findings.wrong_if_it_fails():
                    data[file.party] = read_data(file)
                    _check_data(findings, file, data[file.party])
                with findings.wrong_if_it_fails():
                    _check_memory(findings, file, data.get(file.party))
    findings.begin()
    _check_pins(findings, files, public)
    _check_one_roster(findings, files)
    _check_one_certificate_a_party(findings, files)
    _check_one_relay(findings, files)
    if not findings.wrong:  # an error in a file would be repeated
        _check_sites(findings, files, outside, data)
    return findings


def _check_file(
    findings: Findings, file: AnyFile, outside: Outside, now: datetime, public: dict[Party, bytes]
) -> None:
    relay = file.relay
    if relay is None:
        findings.note("ok", "no [relay]: only a job of NVIDIA FLARE can start this party")
    elif isinstance(file, RelayFile):
        findings.ask(f"the relay {relay.address} ", "can listen", lambda: outside.listen(relay))
    else:
        findings.ask(f"the relay {relay.address} ", "listens", lambda: outside.reach(relay))
    metrics = None if isinstance(file, StudyFile) else file.metrics
    if metrics is not None and not is_running(status_path(file.source.path)):
        monitored = Route(metrics)
        findings.ask(
            f"[metrics] address {metrics} ", "can listen", lambda: outside.listen(monitored)
        )
    with findings.wrong_if_it_fails():
        _check_certificate(findings, file, now)
    if not isinstance(file, RelayFile):
        with findings.wrong_if_it_fails():
            keys, roster = own_keys(file), file.roster
            text = f"public key {public_text(keys)}; others must pin it"
            if roster is not None:
                shown = grouped_digest(roster.digest)
                text = (
                    f"its key is in {roster.title}, digest of the roster {shown}: each party "
                    "compares it with the coordinator"
                )
            findings.note("ok", text)
            public[file.party] = keys.public
    if isinstance(file, StudyFile):
        findings.ask("", "the settings of the study are valid", lambda: outside.study(file))
        with findings.wrong_if_it_fails():
            if digest := outside.digest(file):
                text = (
                    f"the digest of the study is {digest}: each site's owner compares it with you"
                )
                findings.note("ok", text)


def _check_certificate(findings: Findings, file: AnyFile, now: datetime) -> None:
    if file.relay is None:
        return
    if file.certificates is None:
        findings.note("warning", "no certificates; this is only for practice on one machine")
        return
    end = check_certificate(*file.certificates, file.party, now)
    number = number_of(file.certificates.certificate)
    text = f"its certificate is valid until {end:%Y-%m-%d} (serial number {number})"
    is_soon = end - now < SOON
    text += ": ask the coordinator for a new one" if is_soon else ""
    findings.note("warning" if is_soon else "ok", text)
    if isinstance(file, RelayFile):
        revoked = len(read_revoked(file.revoked))
        findings.note("ok", f"{revoked} certificates are revoked in {file.revoked}")


def _check_data(findings: Findings, file: SiteFile, data: SiteData) -> None:
    agree = "; sites that hold columns must all have as many, or align their lists of people"
    records = f"{data.records} records{agree if data.identifiers is None else ''}"
    findings.note("ok", records)
    if data.identifiers is not None:
        people, rules = len(data.identifiers), ", ".join(data.identifiers.rules)
        text = f"{people} people can be aligned with other sites, by the rules {rules}"
        findings.note("ok", "; ".join([text, *data.identifiers.shapes]))
        for text in data.identifiers.findings():
            findings.note("warning", text)
    if (report := data.report.message()) is not None:
        findings.note("warning", report)
    findings.note("ok", "the counts below are private: show them to nobody else")
    for name, variable in data.variables.items():
        counts = np.bincount(data.codes[name], minlength=len(variable.states) + 1)
        names = [*variable.states, "missing"]
        shown = [f"{n} ({c})" for n, c in zip(names, counts.tolist(), strict=True)]
        text = f"{name}: {', '.join(shown if counts[-1] else shown[:-1])}"
        useless = np.count_nonzero(counts[:-1]) < 2
        text += ": only one state has records; the variable is useless" if useless else ""
        findings.note("warning" if useless else "ok", text)
    for name, numbers in data.numbers.items():
        numeric, gone = data.numerics[name], int(np.isnan(numbers).sum())
        text = f"{len(numbers) - gone} numbers, {gone} missing, {numeric.beyond(numbers)} beyond"
        text = f"{name}: {text} {numeric.low:g} to {numeric.high:g}"
        findings.note("ok" if gone < len(numbers) else "warning", text)
    texts = [] if data.ids is None or data.identifiers is not None else data.ids.texts
    if spaced := sum(text != text.strip() for text in texts):
        text = f"{spaced} identifiers begin or end with a space: others without do not match"
        findings.note("warning", text)
    if data.records < file.policy.fewest_records:
        text = f"{data.records} records: its policy requires {file.policy.fewest_records}"
        findings.note("wrong", text)


def _check_memory(findings: Findings, file: SiteFile, data: SiteData | None) -> None:
    """Add what a site remembers; read nothing of a site that is running."""
    remembered = []
    if file.folder.is_dir():
        try:
            memory = SiteMemory(file.memory)
        except InUseError:
            findings.note("ok", "is running, on this machine")
            return
        with closing(memory):
            for text in compared(file.ledger, file.memory)[2]:
                findings.note("wrong", f"{text}: `vertibayes repair` says what to do")
            if file.memory.exists():
                remembered.append(f"{len(memory.sets)} record sets answered for")
            # An aligned study has some of the list, in another order: a session compares those.
            whole = None if file.matching is not None else data
            changed = memory.changed({} if whole is None else whole.codes)
            if whole is not None:
                for text in _about_earlier(memory, whole, file.policy.fewest_records):
                    findings.note("warning", text)
        if changed:
            text = f"{', '.join(changed)}: not as in the latest study, which cannot be resumed"
            findings.note("warning", text)
    if file.ledger.exists():
        noted = [entry.noted for entry in read_ledger(file.ledger).entries]
        tables = sum(len(note.tables) for note in noted if isinstance(note, Tables))
        remembered.append(f"{tables} tables revealed")
    findings.note("ok", f"remembers {', '.join(remembered) or 'nothing: it is a new site'}")


def _about_earlier(memory: SiteMemory, data: SiteData, fewest: int) -> Iterator[str]:
    """Say how data differ from those of earlier studies, and what the site refuses."""
    try:
        beside = memory.beside_earlier(data, "exact", fewest)
    except ValueError:  # without identifiers, any change is refused
        return
    for difference in beside.differences:
        yield (
            f"since an earlier study: {difference.words}; another study may be refused, until "
            "`vertibayes approve` has shown you what both show"
        )


# ---- several files -------------------------------------------------------------------------------


def check_matching(study: StudyFile, site: SiteFile) -> None:
    """Refuse an alignment in which a site would not take part, by the two files."""
    asked, own, its = study.alignment, site.matching, site.source.path
    assert asked is not None  # of a study with an alignment

    def refuse(reason: str, *key: str) -> NoReturn:
        raise study.source.error(("alignment", *key), reason)

    if own is None:
        refuse(f"{its} has no [alignment]: {site.party} aligns its list with nobody")
    if asked.rules != own.rules:
        theirs, ours = ", ".join(asked.rules), ", ".join(own.rules)
        refuse(f"{theirs}: {its} has {ours}; the rules must be equal", "rules")
    if asked.level < own.limits.least_level:
        refuse(f"{its} has least_level = {own.limits.least_level}", "level")
    for peer, most in own.limits.most_people.items():
        if (size := asked.sizes.get(peer, 0)) > most:
            refuse(f"{peer} has {size}, {its} allows at most {most}", "sizes")
    if asked.fewest < site.policy.fewest_records:
        refuse(f"{its} has fewest_records = {site.policy.fewest_records}", "fewest")


def _check_everyone(study: StudyFile, sites: Sequence[SiteFile]) -> None:
    """Refuse that two sites with one variable, which have different people, must hold everybody.

    Without `everyone` an approved study is of the people of all its sites; that of a free study
    follows from what the sites show.
    """
    asked = study.alignment
    if asked is None or (asked.everyone is None and "release" not in study.source.values):
        return
    everyone = study.sites if asked.everyone is None else asked.everyone
    offered = {site.party: set(site.variables) for site in sites if site.party in everyone}
    for one, other in combinations(offered, 2):
        shared = offered[one] & offered[other] & set(study.variables or offered[one])
        if shared:
            reason = (
                f"{one} and {other} both offer {', '.join(sorted(shared))}, so they must hold "
                "different people, and the study asks for people whom both hold: name the sites "
                "that hold everybody, "
                f'as everyone = ["a", "b"], and apart = [["{one}", "{other}"]]'
            )
            raise study.source.error(("alignment", "everyone"), reason)


def _check_pins(
    findings: Findings, files: Sequence[AnyFile], public: Mapping[Party, bytes]
) -> None:
    """Compare the keys that files pin with the keys of the other files' parties."""
    for file in files:
        pinned = {} if isinstance(file, RelayFile) else file.pinned
        for party, key in pinned.items():
            if party in public and public[party] != key:
                reason = f"pins a key of {party} that {party} does not use"
                findings.say("wrong", f"{file.source.path}: {reason}")
    owners: dict[bytes, Party] = {}
    for party, key in public.items():
        if key in owners:
            findings.say("wrong", f"{owners[key]} and {party} have the same key: one party")
        owners[key] = party


def _check_one_roster(findings: Findings, files: Sequence[AnyFile]) -> None:
    """Compare the rosters that files pin: an older one may have another key of some party."""
    rosters = {f.party: f.roster for f in files if not isinstance(f, RelayFile) and f.roster}
    if len({roster.digest for roster in rosters.values()}) > 1:
        texts = [f"{party}: {roster.title}" for party, roster in rosters.items()]
        text = f"the files pin several rosters: {', '.join(texts)}; fetch the newest bundle"
        findings.say("warning", text)


def _check_one_certificate_a_party(findings: Findings, files: Sequence[AnyFile]) -> None:
    """Refuse two parties that show the same certificate, as a dealer that shows the relay's."""
    shown: dict[bytes, Party] = {}
    for file in files:
        certificates = file.certificates
        if certificates is None or not certificates.certificate.exists():
            continue
        with findings.wrong_if_it_fails():
            key = public_key_of(certificates.certificate)
            if shown.setdefault(key, file.party) != file.party:
                raise ValueError(f"{shown[key]} and {file.party} show the same certificate")


def _check_one_relay(findings: Findings, files: Sequence[AnyFile]) -> None:
    addresses = {file.relay.address: file.party for file in files if file.relay is not None}
    if len(addresses) > 1:
        text = ", ".join(f"{party}: {where}" for where, party in addresses.items())
        findings.say("warning", f"the files have several addresses of the relay: {text}")


def _check_sites(
    findings: Findings, files: Sequence[AnyFile], outside: Outside, data: Mapping[Party, SiteData]
) -> None:
    """Check that the sites of a study take part in it."""
    studies = [file for file in files if isinstance(file, StudyFile)]
    sites = [file for file in files if isinstance(file, SiteFile)]
    for study in studies:
        with findings.wrong_if_it_fails():
            _check_everyone(study, sites)
        for site in sites:
            if site.party in study.sites:
                with findings.wrong_if_it_fails():
                    if study.alignment is not None:
                        check_matching(study, site)
                with findings.wrong_if_it_fails():
                    if good := outside.site(study, site, data[site.party]):
                        findings.say("ok", good)
