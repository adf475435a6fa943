"""What a running party says of itself: `site.status.json` beside `site.toml`, for a monitor.

The party locks the file for as long as it runs, and replaces it at events of its log, at most once
a second. The file has what the log has and nothing else: names, numbers and reasons. It is not
kept: a party that cannot write it goes on.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.log import AGAIN, CONNECTED, WAITING, Fact, Tell
from vertibayes_protocols.storage.whole_file import NOFOLLOW, InUseError, lock, replacing
from vertibayes_protocols.wire import VERSION

FORMAT = 1  # of the file
SECONDS = 1.0  # between two writes, at least
HEALTHY, TROUBLED, STOPPED = 0, 1, 3  # exit status of `vertibayes status`; 2 is a wrong file
MOST_EVENTS = 64  # kinds of events that are counted


@dataclass
class Status:
    """The state of a party, as its events tell it.

    Attributes
    ----------
    party, role, release : str
    protocol, process : int
        The version of the protocols, and the number of the process.
    started, updated : str
        Times in ISO 8601, UTC.
    connected : bool
        Whether the relay gives receipts.
    sessions : dict of str to dict
        The sessions that are open: by their name, the analyst, since when, the study, how many
        queries were run, and the latest.
    last : str
        The latest event.
    last_error : dict
        The latest reason for which a session ended or a packet was refused, and when.
    events : dict of str to int
        How often each event has happened.
    """

    party: Party
    role: str
    release: str
    protocol: int = VERSION
    process: int = field(default_factory=os.getpid)
    started: str = ""
    updated: str = ""
    connected: bool = False
    sessions: dict[str, dict[str, str | int]] = field(default_factory=dict)
    last: str = ""
    last_error: dict[str, str] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)

    def take(self, event: str, facts: Mapping[str, Fact], at: str) -> None:
        """Take in an event of the log."""
        self.updated, self.last = at, event
        if event in self.events or len(self.events) < MOST_EVENTS:
            self.events[event] += 1
        if event in (CONNECTED, AGAIN, "listening"):
            self.connected = True
        elif event == WAITING:
            self.connected = False
        elif event == "session begun":
            self._begun(facts, at)
        elif event == "session ended":
            self.sessions.pop(str(facts.get("session")), None)
        elif "session" in facts and (known := self.sessions.get(str(facts["session"]))):
            known["study"] = str(facts.get("study", known["study"]))
            known["answered"] = int(known["answered"]) + (event == "answered")
            known["last"], known["at"] = f"{event} {facts.get('query', '')}".strip(), at
        if event in ("session ended", "refused") and "reason" in facts:
            self.last_error = {"at": at, "event": event, "reason": str(facts["reason"])}

    def _begun(self, facts: Mapping[str, Fact], at: str) -> None:
        self.sessions[str(facts.get("session"))] = {
            "analyst": str(facts.get("analyst", "")),
            "since": at,
            "study": "",
            "answered": 0,
            "last": "",
            "at": at,
        }


class StatusFile:
    """Writes a party's status.

    Parameters
    ----------
    path : Path
        The file, in a folder that exists.
    status : Status
        The state to begin with.
    clock : callable, optional
        Returns seconds.
    """

    def __init__(self, path: Path, status: Status, clock: Callable[[], float] = monotonic) -> None:
        self.path, self.status = path, status
        self._clock, self._due = clock, clock()
        status.started = status.updated = _now()

    def take(self, event: str, facts: Mapping[str, Fact]) -> None:
        """Take in an event, and write the file if the last time is long enough ago."""
        self.status.take(event, facts, _now())
        if self._clock() >= self._due:
            self.write()

    def write(self) -> None:
        """Replace the file, or go on without."""
        self._due = self._clock() + SECONDS
        text = json.dumps({"format": FORMAT, **vars(self.status)}, ensure_ascii=False)
        with suppress(OSError), replacing(self.path) as part:
            part.write_text(text + "\n", encoding="utf-8")
            part.chmod(0o600)


def status_path(file: Path) -> Path:
    """Return the file of a party's status, beside the file of its configuration."""
    return file.with_suffix(".status.json")


@contextmanager
def kept_status(path: Path, status: Status, tell: Tell) -> Iterator[Tell]:
    """Keep a party's status while the block runs.

    Parameters
    ----------
    path : Path
        The file.
    status : Status
        The state to begin with.
    tell : callable
        Logs an event.

    Yields
    ------
    tell : callable
        Logs an event, and keeps the status.

    Raises
    ------
    InUseError
        If another process of the party runs in this folder.
    """
    file = StatusFile(path, status)

    def tell_and_keep(event: str, **facts: Fact) -> None:
        tell(event, **facts)
        file.take(event, facts)

    with _locked(path):
        file.write()
        try:
            yield tell_and_keep
        finally:
            status.sessions, status.connected = {}, False
            file.write()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        descriptor = os.open(_lock_of(path), os.O_WRONLY | os.O_CREAT | NOFOLLOW, 0o600)
    except OSError:  # of a folder that the party may only read
        yield
        return
    try:
        try:
            lock(descriptor, path)
        except InUseError as error:
            reason = f"{error}: this party runs in this folder already; stop that process first"
            raise InUseError(reason) from None
        yield
    finally:
        os.close(descriptor)


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def read_status(path: Path) -> tuple[Status, bool]:
    """Read a party's status, and whether the party runs.

    Raises
    ------
    ValueError
        If there is no status, or it was written by another release.
    """
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = content.pop("format")
        if version != FORMAT:
            reason = f"{path} has the format {version}, this release reads {FORMAT}"
            raise ValueError(f"{reason}: use the release that the party runs")
        status = Status(**content)
        status.events = Counter(status.events)
    except FileNotFoundError:
        reason = f"{path} does not exist: no site, dealer or relay has been started with this file"
        raise ValueError(reason) from None
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a valid status: {error}; restart the party") from None
    return status, _runs(path)


def _runs(path: Path) -> bool:
    try:
        descriptor = os.open(_lock_of(path), os.O_WRONLY | NOFOLLOW)
    except OSError:
        return False
    try:
        lock(descriptor, path)
    except InUseError:
        return True
    finally:
        os.close(descriptor)
    return False


def health(status: Status, *, runs: bool) -> int:
    """Return `HEALTHY`, `TROUBLED` (the party runs without the relay) or `STOPPED`."""
    if not runs:
        return STOPPED
    return HEALTHY if status.connected else TROUBLED


def prometheus(status: Status, *, runs: bool) -> str:
    """Return a status in the text format of Prometheus, for a collector of text files."""
    who = f'party="{status.party}",role="{status.role}"'
    started = datetime.fromisoformat(status.started).timestamp()
    gauges = [
        ("up", "Whether the party runs.", "", int(runs)),
        ("connected", "Whether the party is connected to the relay.", "", int(status.connected)),
        ("sessions", "Sessions that are open.", "", len(status.sessions)),
        ("started_seconds", "When the party was started, Unix time.", "", int(started)),
        ("info", "The release and the version of the protocols.",
         f',release="{status.release}",protocol="{status.protocol}"', 1),
    ]  # fmt: skip
    lines = []
    for name, text, labels, value in gauges:
        lines += [f"# HELP vertibayes_{name} {text}", f"# TYPE vertibayes_{name} gauge"]
        lines += [f"vertibayes_{name}{{{who}{labels}}} {value}"]
    lines += ["# HELP vertibayes_events_total Events of the log since the party was started."]
    lines += ["# TYPE vertibayes_events_total counter"]
    for event, count in sorted(status.events.items()):
        lines.append(f'vertibayes_events_total{{{who},event="{event}"}} {count}')
    return "\n".join(lines) + "\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
