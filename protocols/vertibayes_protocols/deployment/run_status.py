"""What an analyst's run says of itself: `study.status.json` beside `study.toml`.

The run locks and replaces the file as other parties do (`status`). The file shows

- the parties, whether each has joined, when its last message came and of which query;
- the phase of the run, the stage and the step of the learner, and an estimate of the time left;
- how many queries were answered, the bytes that the analyst has sent, rounds, seconds, the number
  of warnings;
- the last events, and how the run ended: the folder of the results or the reason.

Leakage: the file has no count, no cell, no winner and no value of the data, and neither names nor
states of variables. It is not given results of queries. Of an error it has the text only if a
transport or a protocol raised it, and without its numbers, which may count records, if a protocol
or another party wrote it; of any other error the class alone (`kept_run`). A refusal may name
variables, and another party can write any words. The number of steps and queries follows from
winners: whoever reads the file learns how long the search was, as whoever sees the messages does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.log import AGAIN, CONNECTED, WAITING, Fact
from vertibayes_protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    TROUBLED,
    Status,
    as_status,
    check_shape,
    label,
    measures,
    read_content,
    read_status,
)
from vertibayes_protocols.errors import printable
from vertibayes_protocols.wire import VERSION

ROLE = "analyst"
MOST_NOTES = 20  # events that are kept
MOST_CHARACTERS = 500  # of a reason
CONNECTING, AWAY, REACHED, JOINED = "not connected", "away", "connected", "joined"  # of a party
WRITTEN, FAILED, ENDED_EARLY = "written", "failed", "stopped"  # how a run ends


@dataclass
class RunStatus:
    """The state of an analyst's run."""

    party: Party  # the analyst
    release: str  # of the packages
    learner: str  # what the study learns
    approved: str = ""  # the digest that the sites have approved, in groups
    role: str = ROLE
    # As of `Status`.
    protocol: int = VERSION
    process: int = field(default_factory=os.getpid)
    # Times in ISO 8601, UTC.
    started: str = ""
    updated: str = ""
    connected: bool = True  # whether the relay can be reached
    plan: list[str] = field(default_factory=list)  # the phases of the run, in their order
    phase: str = "connecting"  # the phase now
    spent: dict[str, float] = field(default_factory=dict)  # seconds that each earlier phase took
    since: str = ""  # when the phase began
    stage: str = ""  # what the learner does
    step: int = 0  # the number of its step
    most_steps: int = 0  # how many there are at most; 0 if that is not known
    share: float = 0.0
    left: float = 0.0
    query: str = ""  # the kind of the current query; empty between two queries
    queries: int = 0  # that were answered
    sessions: int = 0  # that have begun
    warnings: int = 0  # that were printed
    parties: dict[Party, dict[str, str]] = field(default_factory=dict)
    waits: list[Party] = field(default_factory=list)  # whose messages the analyst waits for
    waits_since: str = ""
    waits_for: str = ""
    sent: int = 0  # bytes that the analyst has sent, in all sessions
    rounds: int = 0  # of all sessions
    notes: list[dict[str, str]] = field(default_factory=list)  # the last events: when, and what
    ended: str = ""  # "", "written", "failed" or "stopped"
    result: str = ""  # the folder of the results, or the reason

    def note(self, text: str, at: str) -> None:
        """Keep an event, among the last ones."""
        self.notes = [*self.notes, {"at": at, "text": printable(text)[:MOST_CHARACTERS]}]
        self.notes = self.notes[-MOST_NOTES:]

    def take(self, event: str, facts: Mapping[str, Fact], at: str) -> None:
        """Take in an event of the log: the relay is reached, or not."""
        self.updated = at
        if event in (CONNECTED, AGAIN, WAITING):
            self.connected = event != WAITING
            self.note(f"{event} {facts.get('reason', '')}".strip(), at)

    def health(self, *, runs: bool) -> int:
        """Return `HEALTHY` also of a run that has written its results, `TROUBLED` or `STOPPED`."""
        if self.ended or not runs:
            return HEALTHY if self.ended == WRITTEN else STOPPED
        away = any(known["state"] == AWAY for known in self.parties.values())
        return TROUBLED if away or not self.connected else HEALTHY

    def prometheus(self, *, runs: bool) -> str:
        """Return the status in the text format of Prometheus, for a collector of text files."""
        joined = sum(known["state"] == JOINED for known in self.parties.values())
        lines = measures(self, [
            ("up", "Whether the run's process runs.", "", int(runs)),
            ("connected", "Whether the relay can be reached.", "", int(self.connected)),
            ("parties", "Parties of the study.", "", len(self.parties)),
            ("parties_joined", "Parties that have joined the session.", "", joined),
            ("queries_answered", "Queries that were answered.", "", self.queries),
            ("sent_bytes", "Bytes that the analyst has sent.", "", self.sent),
            ("rounds", "Rounds of all sessions.", "", self.rounds),
            ("written", "Whether the results are written.", "", int(self.ended == WRITTEN)),
            ("phase", "The phase of the run.", f',phase="{label(self.phase)}"', 1),
        ])  # fmt: skip
        return "\n".join(lines) + "\n"


def a_party(role: str) -> dict[str, str]:
    """Return the state of a party of which nothing is known."""
    return {"role": role, "state": CONNECTING, "at": "", "query": "", "reason": ""}


SHAPE = {
    **vars(RunStatus("", "", "")),
    "plan": [""],
    "spent": {"": 0.0},
    "parties": {"": a_party("")},
    "waits": [""],
    "notes": [{"at": "", "text": ""}],
}


def read_any_status(path: Path) -> tuple[Status | RunStatus, bool]:
    """Read the status of a party or of an analyst's run, and whether it runs; as `read_status`."""
    content, runs = read_content(path)
    if content.get("role") != ROLE:
        return read_status(path)
    with as_status(path):
        check_shape(content, SHAPE)
        return RunStatus(**content), runs
