"""What a running party says of itself: `site.status.json` beside `site.toml`, for a monitor.

The party locks the file for as long as it runs, and replaces it at events of its log: at once if
the connection or the sessions change, otherwise at most once a second. The file has what the log
has and nothing else: names, numbers and reasons. It is not kept: a party that cannot write it goes
on. `run_status` has the status of an analyst's run.
"""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.events import AGAIN, CONNECTED, WAITING, Fact, Tell
from vertibayes_protocols.storage.whole_file import (
    NOFOLLOW,
    InUseError,
    is_locked,
    lock,
    open_own,
    write_whole,
)
from vertibayes_protocols.wire import VERSION

FORMAT = 1  # of the file
SECONDS = 1.0  # between two writes, at least
HEALTHY, TROUBLED, STOPPED = 0, 1, 3  # exit status of `vertibayes status`; 2 is a wrong file
MOST_EVENTS = 64  # kinds of events that are counted
NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # Windows has none, and no pipes with names
MOST_BYTES = 1 << 20  # of a status that is read
NOT_JSON = UnicodeDecodeError, json.JSONDecodeError
PROBED, PROBE_SECONDS = 20, 0.05  # a monitor that asks whether a party runs holds its lock so long


@dataclass
class Kept(ABC):
    """A status that a file keeps: its fields are JSON data."""

    party: Party
    role: str
    release: str
    _: KW_ONLY
    protocol: int = VERSION  # the version of the protocols, and the number of the process
    process: int = field(default_factory=os.getpid)
    # Times in ISO 8601, UTC.
    started: str = ""
    updated: str = ""
    connected: bool = False  # whether the relay gives receipts

    @property
    def present(self) -> tuple[object, ...]:
        """What the file must have at once: nothing may follow for hours that writes it again."""
        return (self.connected,)

    @abstractmethod
    def take(self, event: str, facts: Mapping[str, Fact], at: str) -> None:
        """Take in an event of the log."""


A_SESSION: dict[str, str | int] = {
    "analyst": "", "since": "", "study": "", "answered": 0, "last": "", "at": "",
}  # fmt: skip


@dataclass
class Status(Kept):
    """The state of a party, as its events tell it."""

    sessions: dict[str, dict[str, str | int]] = field(default_factory=dict)
    last: str = ""  # the latest event
    last_error: dict[str, str] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)  # how often each event has happened

    @property
    def present(self) -> tuple[object, ...]:
        """The sessions too."""
        return self.connected, *self.sessions

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
            began = {"analyst": str(facts.get("analyst", "")), "since": at, "at": at}
            self.sessions[str(facts.get("session"))] = {**A_SESSION, **began}
        elif event == "session ended":
            self.sessions.pop(str(facts.get("session")), None)
        elif "session" in facts and (known := self.sessions.get(str(facts["session"]))):
            known["study"] = str(facts.get("study", known["study"]))
            known["answered"] = int(known["answered"]) + (event == "answered")
            known["last"], known["at"] = f"{event} {facts.get('query', '')}".strip(), at
        if event in ("session ended", "refused") and "reason" in facts:
            self.last_error = {"at": at, "event": event, "reason": str(facts["reason"])}

    def health(self, *, runs: bool) -> int:
        """Return `HEALTHY`, `TROUBLED` (the party runs without the relay) or `STOPPED`."""
        if not runs:
            return STOPPED
        return HEALTHY if self.connected else TROUBLED


class StatusFile:
    """Writes a party's status."""

    def __init__(self, path: Path, status: Kept, clock: Callable[[], float] = monotonic) -> None:
        self.path, self.status = path, status
        self._clock, self._due = clock, clock()
        status.started = status.updated = now()

    def take(self, event: str, facts: Mapping[str, Fact]) -> None:
        """Take in an event, and write the file, unless the last time is not long enough ago."""
        before = self.status.present
        self.status.take(event, facts, now())
        self.write(if_due=self.status.present == before)

    def write(self, *, if_due: bool = False) -> None:
        """Replace the file, which its owner alone can read, if it is time to; or go on without."""
        if if_due and self._clock() < self._due:
            return
        self._due = self._clock() + SECONDS
        text = json.dumps({"format": FORMAT, **vars(self.status)}, ensure_ascii=False)
        with suppress(OSError):
            write_whole(self.path, text.encode("utf-8", "replace") + b"\n", durable=False)


SHAPE = {**vars(Status("", "", "")), "sessions": {"": A_SESSION}, "last_error": {"": ""},
         "events": {"": 0}}  # fmt: skip


class NotStartedError(ValueError):
    """No party or run has been started with a file, as far as its folder shows."""


def status_path(file: Path) -> Path:
    """Return the file of a party's status, beside the file of its configuration."""
    return file.with_suffix(".status.json")


def existing_status(file: Path) -> Path:
    """Return the file of the status of a party or of a run."""
    path = status_path(file)
    if path.exists() or path.is_symlink():
        return path
    if file.is_dir():
        raise ValueError(f"{file}: a folder; specify a file in it, as {file / 'study.toml'}")
    if not file.exists():
        raise ValueError(f"{file}: no such file; specify study.toml, or the file of a party")
    if file.suffix != ".toml":
        raise ValueError(f"{file}: not a .toml file; specify study.toml, or the file of a party")
    tables = TomlFile.read(file).values
    role = next((name for name in ("site", "study", "dealer", "relay") if name in tables), "study")
    start = f"learn {file.name} --out RESULTS" if role == "study" else f"{role} {file.name}"
    raise NotStartedError(
        f"{file}: no run or party has been started with this file ({path.name} does not exist); "
        f"start it first, as with `vertibayes {start}`"
    )


@contextmanager
def kept_status(path: Path, status: Status, tell: Tell) -> Iterator[Tell]:
    """Keep a party's status while the block runs."""
    file = StatusFile(path, status)

    def tell_and_keep(event: str, **facts: Fact) -> None:
        tell(event, **facts)
        file.take(event, facts)

    with locked(path):
        file.write()
        try:
            yield tell_and_keep
        finally:
            status.sessions, status.connected = {}, False
            file.write()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a party's status while the block runs; raises as `kept_status`."""
    try:
        descriptor = open_own(_lock_of(path))
    except OSError:  # of a folder that the party may only read
        yield
        return
    try:
        for left in reversed(range(PROBED)):  # a monitor that looks at the lock lets go at once
            try:
                lock(descriptor, path)
                break
            except InUseError as error:
                if not left:
                    reason = "this party runs in this folder already; stop that process first"
                    raise InUseError(f"{error}: {reason}") from None
            sleep(PROBE_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def read_status(path: Path) -> tuple[Status, bool]:
    """Read a party's status, and whether the party runs."""
    content, runs = read_content(path)
    with as_status(path):
        check_shape(content, SHAPE)
        status = Status(**content)
        status.events = Counter(status.events)
    return status, runs


def read_content(path: Path) -> tuple[dict[str, Any], bool]:
    """Read the content of a status of this format, and whether its party runs."""
    ran = is_running(path)
    try:
        with as_status(path):
            content = json.loads(_read(path))
            if not isinstance(content, dict):
                raise TypeError("it is not a JSON object")
            version = content.pop("format")
    except FileNotFoundError:
        reason = f"{path} does not exist: no party has been started with this file"
        raise ValueError(reason) from None
    except OSError as error:  # a symbolic link: O_NOFOLLOW
        raise ValueError(f"{path} is not a valid status: {error.strerror}") from None
    if version != FORMAT:
        reason = f"{path} has the format {version}, this release reads {FORMAT}"
        raise ValueError(f"{reason}: use the release that the party runs")
    return content, ran or is_running(path)  # it may have been started meanwhile


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | NOFOLLOW | NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise TypeError("it is not a regular file")
        if len(content := file.read(MOST_BYTES + 1)) > MOST_BYTES:
            raise TypeError(f"it has more than {MOST_BYTES} bytes")
        return content


@contextmanager
def as_status(path: Path) -> Iterator[None]:
    """Raise a ValueError if the block finds that a file is not a status."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, RecursionError, *NOT_JSON) as error:
        raise ValueError(f"{path} is not a valid status: {error}; restart the party") from None


def check_shape(value: object, shape: object, name: str = "the file") -> None:
    """Refuse, with a TypeError, JSON data of other types than a shape has."""
    if isinstance(shape, float) and type(value) is int:
        return
    if type(value) is not type(shape):
        raise TypeError(f"{name} must be {type(shape).__name__}, got {type(value).__name__}")
    if isinstance(value, dict) and isinstance(shape, dict):
        if "" not in shape and (missing := sorted(shape.keys() - value.keys())):
            raise TypeError(f"{name} has no {missing[0]}")
        for key, item in value.items():
            if (expected := shape.get(key, shape.get(""))) is not None:
                check_shape(item, expected, key)
    elif isinstance(value, list) and isinstance(shape, list):
        for item in value:
            check_shape(item, shape[0], name)


def is_running(path: Path) -> bool:
    """Whether the party whose status a file keeps runs."""
    try:
        descriptor = os.open(_lock_of(path), os.O_RDONLY | NOFOLLOW | NONBLOCK)
    except OSError:
        return False
    try:
        return is_locked(descriptor)
    finally:
        os.close(descriptor)


def now() -> str:
    """Return the time in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
