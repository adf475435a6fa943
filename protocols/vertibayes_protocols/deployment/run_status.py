"""What an analyst's run says of itself: `study.status.json` beside `study.toml`.

The run locks and replaces the file as other parties do (`status`). The file shows

- the parties, whether each has joined, when its last message came and of which query;
- the phase of the run, the stage and the step of the learner, and an estimate of the time left;
- how many queries were answered, the bytes that the analyst has sent, rounds, seconds, the number
  of warnings;
- the last events, and how the run ended: the folder of the results or the reason.

Leakage: the file has no count, no cell, no winner and no value of the data, and neither names nor
states of variables. It is not given results of queries. Of an error it has the text only if a
transport or a protocol raised it, and without its numbers, which may count records (dates and
digests stay), if a protocol or another party wrote it; of any other error the class alone
(`reason_of`). A refusal may name variables, and another party can write any words. The number of
steps and queries follows from winners: whoever reads the file learns how long the search was, as
whoever sees the messages does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from vertibayes_mpc.errors import PartyGoneError, ProtocolError
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    TROUBLED,
    Kept,
    Status,
    StatusFile,
    as_status,
    check_shape,
    locked,
    now,
    read_content,
    read_status,
)
from vertibayes_protocols.errors import (
    PeerAbortedError,
    QueryRefusedError,
    TransportError,
    printable,
)
from vertibayes_protocols.events import AGAIN, CONNECTED, WAITING, Fact, Tell, silent
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch, SessionView
from vertibayes_protocols.storage.whole_file import InUseError

ROLE = "analyst"
MOST_NOTES = 20  # events that are kept
MOST_CHARACTERS = 500  # of a reason
CONNECTING, AWAY, REACHED, JOINED = "not connected", "away", "connected", "joined"  # of a party
WRITTEN, FAILED, ENDED_EARLY = "written", "failed", "stopped"  # how a run ends
JOIN, TO_CONNECT = "to join the session", "to connect"
DATE = r"\b20\d\d-[01]\d-[0-3]\d(?:T[0-2]\d:[0-5]\d(?::[0-5]\d)?(?:\+00:00)?)?(?![\w-])"
DIGEST = r"(?<![\w-])[0-9a-f]{4}(?: [0-9a-f]{4}){3,}(?![\w-])"
OPENING = {  # which phase of the run a query belongs to; others belong to what is learned
    "begin": "beginning",
    "align": "aligning",
    "meet": "comparing",
    "describe": "describing",
    "commit": "committing",
    "release": "release",
}


@dataclass
class RunStatus(Kept):
    """The state of an analyst's run."""

    learner: str  # what the study learns
    approved: str = ""  # the digest that the sites have approved, in groups
    connected: bool = field(default=True, kw_only=True)  # whether the relay can be reached
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
        away |= self.waits_for == TO_CONNECT
        return TROUBLED if away or not self.connected else HEALTHY


def a_party(role: str) -> dict[str, str]:
    """Return the state of a party of which nothing is known."""
    return {"role": role, "state": CONNECTING, "at": "", "query": "", "reason": ""}


SHAPE = {
    **vars(RunStatus("", "", "", "")),
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


class KeptRun(RunWatch):
    """Keeps the status of a run while it is called."""

    def __init__(
        self,
        file: StatusFile | None,
        status: RunStatus,
        say: Callable[[str], object] = UNWATCHED.say,
        clock: Callable[[], float] = monotonic,
        tell: Tell = silent,
    ) -> None:
        super().__init__(say)
        self._tell = tell
        self.status, self._file, self._clock = status, file, clock
        self._work, self._began = "", clock()
        self._before = (0, 0)  # bytes and rounds of earlier sessions
        self._messages: dict[Party, int] = {}
        self._events: deque[tuple[str, Mapping[str, Fact], str]] = deque()
        status.since = now()

    # ---- sessions --------------------------------------------------------------------------------

    def began(self, parties: Collection[Party]) -> None:
        """Note that a session begins: nobody has joined it yet."""
        status = self.status
        status.sessions += 1
        self._before = status.sent, status.rounds
        self._messages = dict.fromkeys(parties, 0)
        for party in parties:
            if self._party(party)["state"] != AWAY:  # which it is until it is reached
                self._party(party).update(state=CONNECTING, reason="")
        self._waits(parties, JOIN)
        self._enter("connecting")

    def late(self, parties: Collection[Party], seconds: float) -> None:
        """Note who is not connected; the others of the session are."""
        for party in self._messages.keys() - set(parties):
            self._party(party)["state"] = REACHED
        self._waits(parties, TO_CONNECT)
        self._note(f"{', '.join(parties)} not connected yet, waiting for {seconds:.0f} s at most")
        self.write()
        super().late(parties, seconds)

    def noticed(self, text: str) -> None:
        """Note a warning."""
        self._note(text)
        super().noticed(text)

    def saw(self, view: SessionView) -> None:
        """Note who has joined, whose message came, and who is awaited."""
        status, before = self.status, self._states()
        for party, messages in view.messages.items():
            reason = _why(view.gone[party], status.parties) if party in view.gone else ""
            state = AWAY if party in view.gone else JOINED if party in view.joined else REACHED
            known = self._party(party)
            if known["state"] != state and state != REACHED:
                self._note(f"{party} {'is away: ' + reason if reason else 'has joined'}")
            known.update(state=state, reason=reason)
            if messages > self._messages.get(party, 0):
                self._messages[party] = messages
                known.update(at=now(), query=status.query)
        status.sent, status.rounds = self._before[0] + view.sent, self._before[1] + view.rounds
        joining = [party for party in view.awaited if party not in view.joined]
        answer = f"to answer ({status.query})" if status.query else ""
        self._waits(joining or view.awaited, JOIN if joining else answer)
        self.write(if_due=self._states() == before)

    def asked(self, kind: str) -> None:
        """Note the query, and enter its phase."""
        self.status.query = kind
        self._enter(OPENING.get(kind) or self._work or self.status.phase)
        self.write(if_due=True)

    def answered(self) -> None:
        """Count the query; nobody is awaited."""
        self.status.queries += 1
        self.status.query = ""
        self._waits((), "")
        self.write(if_due=True)

    def broke(self, error: TransportError, seconds: float) -> None:
        """Note that there is no session, and who is away."""
        self._lost(error)
        parties = self.status.parties.items()
        away = [party for party, known in parties if known["state"] == AWAY]
        self._waits(away, "to come back")
        why = reason_of(error, self.status.parties)
        self._note(f"there is no session ({why}): the next try is in {seconds:.0f} s")
        self._enter("connecting")
        self.write()
        super().broke(error, seconds)

    # ---- the learner -----------------------------------------------------------------------------

    def phase(self, name: str) -> None:
        """Enter a phase; queries that do not open the study belong to it."""
        self._work = name
        status = self.status
        status.stage, status.step, status.most_steps, status.share, status.left = "", 0, 0, 0.0, 0.0
        self._enter(name)

    def progressed(self, stage: str, done: int, most: int, share: float, left: float) -> None:
        """Note how far the learner is."""
        status = self.status
        status.stage, status.step = stage, min(done + 1, most) if most else done + 1
        status.most_steps, status.share, status.left = most, round(share, 3), round(left, 1)
        self.write(if_due=True)

    def warned(self, warnings: int) -> None:
        """Count warnings."""
        self.status.warnings += warnings

    # ---- the end ---------------------------------------------------------------------------------

    def told(self, event: str, **facts: Fact) -> None:
        """Log an event, perhaps of another thread; the next call keeps it."""
        self._tell(event, **facts)
        self._events.append((event, facts, now()))

    def end(self, how: str, result: str) -> None:
        """Note how the run has ended."""
        status = self.status
        self._leave()
        status.ended, status.result = how, printable(result)[:MOST_CHARACTERS]
        status.query, status.connected = "", False
        self._waits((), "")
        self._note(f"the run has ended: {how}")
        self.write()

    def failed(self, error: BaseException) -> None:
        """Note the error that ends the run."""
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return self.end(ENDED_EARLY, "")
        self._lost(error)
        return self.end(FAILED, reason_of(error, self.status.parties))

    # ---- parts -----------------------------------------------------------------------------------

    def _party(self, party: Party) -> dict[str, str]:
        return self.status.parties.setdefault(party, a_party("site"))

    def _states(self) -> list[str]:
        return [known["state"] for known in self.status.parties.values()]

    def _lost(self, error: BaseException) -> None:
        """Note the parties that an error says are gone."""
        if isinstance(error, PartyGoneError):
            for party in error.parties:
                if party in self.status.parties:
                    reason = _why(error, self.status.parties)
                    self._party(party).update(state=AWAY, reason=reason)

    def _waits(self, parties: Iterable[Party], what: str) -> None:
        status, waits = self.status, sorted(parties)
        if (waits, what) != (status.waits, status.waits_for):
            status.waits, status.waits_for, status.waits_since = waits, what, now()

    def _enter(self, phase: str) -> None:
        status = self.status
        if phase == status.phase:
            return
        self._leave()
        if phase not in status.plan:
            at = status.plan.index(status.phase) + 1 if status.phase in status.plan else 0
            status.plan = [*status.plan[:at], phase, *status.plan[at:]]
        status.phase, status.since, self._began = phase, now(), self._clock()
        self.write()

    def _leave(self) -> None:
        """Add up the seconds of the phase that ends."""
        seconds = self._clock() - self._began
        spent = self.status.spent
        spent[self.status.phase] = round(spent.get(self.status.phase, 0.0) + seconds, 1)

    def _note(self, text: str) -> None:
        self.status.note(text, now())

    def write(self, *, if_due: bool = False) -> None:
        """Write the file; with `if_due` only if the last time is long enough ago."""
        while self._events:
            self.status.take(*self._events.popleft())
        self.status.updated = now()
        if self._file is not None:
            self._file.write(if_due=if_due)


def reason_of(error: BaseException, names: Collection[Party] = ()) -> str:
    """Return what a status may have of an error: no number that may count records, and no value."""
    if isinstance(error, TransportError) and not isinstance(error, PeerAbortedError):
        return str(error)
    if isinstance(error, ProtocolError | TransportError | QueryRefusedError):
        return without_numbers(str(error), names)
    return f"{type(error).__name__}: the command has printed the reason"


def without_numbers(text: str, names: Collection[Party] = ()) -> str:
    """Return a text with each number replaced by dots.

    Names of parties, as s1, dates, and digests in groups of four stay: none counts records.
    """
    known = "|".join(re.escape(name) for name in names if not name.isdigit())
    name = rf"(?<![\w-])(?:{known})(?![\w-])" if known else "(?!)"
    kept = rf"{name}|{DATE}|{DIGEST}"
    return re.sub(rf"({kept})|\d[\d.,]*", lambda found: found[1] or "...", text)


def _why(error: PartyGoneError, names: Collection[Party]) -> str:
    """Return why a party is away."""
    is_written = isinstance(error, PeerAbortedError)
    text = without_numbers(error.reason, names) if is_written else error.reason
    return printable(text)[:MOST_CHARACTERS]


@contextmanager
def kept_run(
    path: Path,
    status: RunStatus,
    result: str,
    tell: Tell,
    say: Callable[[str], object] = UNWATCHED.say,
) -> Iterator[KeptRun]:
    """Keep the status of a run while the block runs."""
    with ExitStack() as held:
        file: StatusFile | None = StatusFile(path, status)
        try:
            held.enter_context(locked(path))
        except InUseError:  # another run of the study, whose lock ends this one with its reason
            file = None
        watch = KeptRun(file, status, say, tell=tell)

        watch.write()  # that it connects: nothing of an earlier run stays
        try:
            yield watch
        except BaseException as error:
            watch.failed(error)
            raise
        watch.end(WRITTEN, result)
