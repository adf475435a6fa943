"""What the sessions of a site or dealer share, which run side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.calibration.nodes import Checkpoints
from vertibayes_protocols.storage.memory import Digests


class Session(Protocol):
    """The role of a session."""

    analyst: Party


@dataclass(frozen=True)
class Running:
    """A study that a session runs."""

    analyst: Party  # who runs it
    since: str  # when the session began to, in UTC
    session: object = field(repr=False)  # the role of the session


@dataclass
class SharedState:
    """What the sessions of a party share beside its memory; nothing of it outlives the process."""

    running: dict[bytes, Running] = field(default_factory=dict)
    queries: int = 0  # how many queries were begun, in all sessions
    digests: Digests | None = field(default=None, repr=False)  # at a site
    checkpoints: dict[bytes, Checkpoints] = field(default_factory=dict, repr=False)  # at a site
    comparing: Counter[Party] = field(default_factory=Counter)  # at a site

    def claim(self, study: bytes, session: Session) -> Running | None:
        """Note that a session runs a study; return the other session that does, if there is one."""
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        running = self.running.setdefault(study, Running(session.analyst, since, session))
        return None if running.session is session else running

    def release(self, session: object) -> None:
        """Note that a session is over, and runs nothing any more."""
        self.running = {s: r for s, r in self.running.items() if r.session is not session}
