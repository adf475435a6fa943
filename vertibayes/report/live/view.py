"""What is said of a run: every sentence of the terminal and of the page, from its status alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TypedDict, cast

from vertibayes.words import counted, size
from vertibayes_protocols.deployment.run_status import (
    AWAY,
    CONNECTING,
    ENDED_EARLY,
    JOINED,
    REACHED,
    WRITTEN,
    RunStatus,
)
from vertibayes_protocols.errors import printable

QUIET_SECONDS = 30  # without a change, before that is said
PHASES = {
    "connecting": "Connect to the parties",
    "beginning": "Begin the approved run",
    "aligning": "Find the people of the study",
    "comparing": "Compare the lists of people",
    "describing": "Ask the sites for their variables",
    "committing": "Have the sites commit their columns",
    "structure": "Learn the structure",
    "release": "Release the tables of the families",
    "CPTs": "Fit the probability tables (CPTs)",
    "strengths": "Measure the strengths of the arcs",
    "learning": "Learn the classifier",
    "calibration": "Calibrate the classifier",
    "prediction": "Predict over the sites",
    "validation": "Validate the results",
    "writing": "Write the results",
}
TITLES = {
    "bayesian_network": "Bayesian network",
    "naive_bayes": "Naive Bayes",
    "calibration": "Calibration",
    "prediction": "Prediction",
}
STATES = {
    CONNECTING: "is not connected",
    REACHED: "is connected, and has not joined the session",
    JOINED: "has joined",
    AWAY: "is away",
}
RUNS, WAITS, ENDED, DIED = "runs", "waits", "ended", "does not run"  # a run, in a word
UNKNOWN = "unknown"


class PhaseView(TypedDict):
    """A phase: its name, "done", "now", "ended here" or "to come", and how long it took."""

    name: str
    state: str
    took: str


class PartyView(TypedDict):
    """A party: its name, its role if that is another, its state, and the sentence about it."""

    name: str
    role: str
    state: str
    says: str


class View(TypedDict):
    """What is said of a run."""

    title: str  # who runs what, and how it is with the run now
    headline: str  # who runs what, and how it is with the run now
    state: str  # "runs", "waits", "ended", "does not run" or "unknown"
    well: bool  # whether nothing is wrong
    over: bool  # whether nothing changes any more
    progress: str  # how far the learner is, and an estimate of what is left
    share: float  # the share of the steps that has been done; -1 if it is not known
    phases: list[PhaseView]
    parties: list[PartyView]
    facts: list[list[str]]
    events: list[list[str]]  # the newest first


def view_of(status: RunStatus, *, runs: bool, now: datetime | None = None) -> View:
    """Return what is said of a run."""
    at = now or datetime.now(UTC)
    over = bool(status.ended) or not runs
    state = _state(status, runs)
    view = View(
        title=f"{TITLES.get(status.learner, status.learner)}, run by {status.party}",
        headline=_headline(status, state),
        state=state,
        well=status.ended == WRITTEN or state == RUNS,
        over=over,
        progress="" if over else _progress(status),
        share=_share(status),
        phases=list(_phases(status, over, at)),
        parties=[_party(name, known, at) for name, known in status.parties.items()],
        facts=list(_facts(status, at)),
        events=[[_clock(note["at"]), note["text"]] for note in reversed(status.notes)],
    )
    return _printable(view)


def unreadable(reason: str) -> View:
    """Return what is said of a run whose status cannot be read."""
    return _printable(
        View(
            title="A run",
            headline=f"The status cannot be read: {reason}",
            state=UNKNOWN,
            well=False,
            over=False,
            progress="",
            share=-1.0,
            phases=[],
            parties=[],
            facts=[],
            events=[],
        )
    )


def lines_of(view: View) -> list[str]:
    """Return the lines that a terminal shows of a run."""
    lines = [f"{view['title']}: {view['headline']}"]
    lines += [f"  {view['progress']}"] if view["progress"] else []
    for phase in view["phases"]:
        mark = {"done": "+", "now": ">", "ended here": "x"}.get(phase["state"], " ")
        took = f" ({phase['took']})" if phase["took"] else ""
        lines.append(f"  {mark} {phase['name']}{took}")
    for party in view["parties"]:
        role = f" ({party['role']})" if party["role"] else ""
        lines.append(f"  {party['name']}{role} {party['says']}")
    lines += [f"  {name:<12} {value}" for name, value in view["facts"]]
    return lines + [f"  {at} {text}" for at, text in view["events"][:5]]


def changes_of(view: View) -> list[str]:
    """Return the lines that a log has of a run: without what changes with the clock alone."""
    step = view["progress"].partition(", ")[0]
    events = [f"{at} {text}" for at, text in reversed(view["events"])]
    return [*events, view["headline"], *([step] if step else [])]


# ---- parts ---------------------------------------------------------------------------------------


def _state(status: RunStatus, runs: bool) -> str:
    if status.ended:
        return ENDED
    if not runs:
        return DIED
    late = any(status.parties.get(name, {}).get("state") != JOINED for name in status.waits)
    return WAITS if late or not status.connected else RUNS


def _headline(status: RunStatus, state: str) -> str:
    if state == ENDED:
        return _end(status)
    if state == DIED:
        return (
            "The run does not run: its process has ended and has left no reason, for example "
            "because it was killed. The same command resumes it."
        )
    if not status.connected:
        return "The run waits for the relay, which cannot be reached."
    if state == WAITS:
        return f"The run waits for {_waits(status)}."
    now = _phase(status.phase)  # and no time: a screen reader reads each change
    return f"The run is in progress. Now: {now[:1].lower()}{now[1:]}."


def _waits(status: RunStatus) -> str:
    return f"{', '.join(status.waits)} {status.waits_for}".strip()


def _end(status: RunStatus) -> str:
    if status.ended == WRITTEN:
        return f"The run has ended. The results are in {status.result}."
    if status.ended == ENDED_EARLY:
        return "The run was stopped. The same command resumes it."
    return f"The run has failed: {status.result}"


def _progress(status: RunStatus) -> str:
    if not status.stage:
        return ""
    most = f" of at most {status.most_steps}" if status.most_steps else ""
    text = f"{status.stage.replace('_', ' ')}: step {status.step}{most}"
    if status.share:
        text += f", {status.share:.0%} of this step"
    return text + (f", about {_seconds(status.left)} left in this step" if status.left else "")


def _share(status: RunStatus) -> float:
    if status.ended == WRITTEN:
        return 1.0
    if not status.most_steps:
        return -1.0
    return min(1.0, max(0.0, (status.step - 1 + status.share) / status.most_steps))


def _phases(status: RunStatus, over: bool, at: datetime) -> Iterator[PhaseView]:
    for phase in status.plan:
        state = "done" if phase in status.spent else "to come"
        spent = status.spent.get(phase, 0.0)
        if phase == status.phase and not over:
            state, spent = "now", spent + _since(status.since, at)
        elif phase == status.phase and status.ended != WRITTEN:
            state = "ended here"
        took = _seconds(spent) if state != "to come" else ""
        yield PhaseView(name=_phase(phase), state=state, took=took)


def _phase(phase: str) -> str:
    return PHASES.get(phase, phase)


def _party(name: str, known: Mapping[str, str], at: datetime) -> PartyView:
    says = STATES.get(known["state"], known["state"])
    says += f": {known['reason']}" if known["reason"] else ""
    if known["at"]:
        of = f" ({known['query']})" if known["query"] else ""
        says += f"; its last message came {_ago(known['at'], at)} ago{of}"
    role = "" if known["role"] == name else known["role"]
    return PartyView(name=name, role=role, state=known["state"], says=says)


def _facts(status: RunStatus, at: datetime) -> Iterator[list[str]]:
    if status.approved:
        yield ["approved as", status.approved]
    yield ["started", f"{_clock(status.started)}, process {status.process}"]
    asked = f"; the current one is {status.query}" if status.query else ""
    queries = f"{status.queries} answered in {counted(status.sessions, 'session')}"
    yield ["queries", queries + asked]
    yield ["sent", f"{size(status.sent)} by the analyst, in {counted(status.rounds, 'round')}"]
    if status.waits:
        yield ["waits for", f"{_waits(status)}, since {_ago(status.waits_since, at)}"]
    if status.warnings:
        warnings = counted(status.warnings, "warning")
        yield ["warnings", f"{warnings}: the command has printed the text"]
    silent = _since(status.updated, at)
    quiet = f", {_seconds(silent)} ago" if silent >= QUIET_SECONDS and not status.ended else ""
    yield ["last change", f"{_clock(status.updated)}{quiet}"]


def _ago(text: str, at: datetime) -> str:
    return _seconds(_since(text, at))


def _since(text: str, at: datetime) -> float:
    try:
        return max(0.0, (at - datetime.fromisoformat(text)).total_seconds())
    except (ValueError, TypeError):  # not a time, or a time without its zone
        return 0.0


def _clock(text: str) -> str:
    """Return a time as clocks here show it."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return text


def _seconds(seconds: float) -> str:
    if 0 < seconds < 0.5:
        return "under 1 s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _printable(view: View) -> View:
    """Replace what a terminal may act on, in all texts."""
    return cast("View", _clean(dict(view)))


def _clean(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    return value
