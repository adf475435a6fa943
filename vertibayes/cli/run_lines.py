"""What `vertibayes status` says of a run: every sentence, from its status alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

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
EVENTS, BAR = 5, 30  # events that are shown, and letters of the bar
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


def lines_of_run(status: RunStatus, *, runs: bool, now: datetime | None = None) -> list[str]:
    """Return the lines that a terminal shows of a run; nothing in them acts on it."""
    at = now or datetime.now(UTC)
    title = f"{TITLES.get(status.learner, status.learner)}, run by {status.party}"
    lines = [f"{title}: {headline(status, runs=runs)}"]
    if runs and not status.ended:
        lines += _progress(status)
    lines += _phases(status, runs and not status.ended, at)
    lines += (_party(status, name, known, at) for name, known in status.parties.items())
    lines += (f"{name:<12} {value}" for name, value in _facts(status, at))
    lines += (f"{_clock(n['at'])} {n['text']}" for n in reversed(status.notes[-EVENTS:]))
    return [printable(line if at == 0 else f"  {line}") for at, line in enumerate(lines)]


def changes_of_run(status: RunStatus, *, runs: bool) -> list[str]:
    """Return the lines that a log has of a run: without what changes with the clock alone."""
    lines = [f"{_clock(note['at'])} {note['text']}" for note in status.notes]
    lines.append(headline(status, runs=runs))
    if status.stage and runs and not status.ended:
        lines.append(_step(status))
    return [printable(line) for line in lines]


def headline(status: RunStatus, *, runs: bool) -> str:
    """Return how it is with a run now, and what to do about it."""
    if status.ended == WRITTEN:
        return f"The run has ended. The results are in {status.result}."
    if status.ended == ENDED_EARLY:
        return "The run was stopped. The same command resumes it."
    if status.ended:
        return f"The run has failed: {status.result}"
    if not runs:
        return (
            "The run does not run: its process has ended and has left no reason, for example "
            "because it was killed. The same command resumes it."
        )
    if not status.connected:
        return "The run waits for the relay, which cannot be reached."
    if any(status.parties.get(name, {}).get("state") != JOINED for name in status.waits):
        return f"The run waits for {_waits(status)}."
    now = PHASES.get(status.phase, status.phase)
    return f"The run is in progress. Now: {now[:1].lower()}{now[1:]}."


def _waits(status: RunStatus) -> str:
    return f"{', '.join(status.waits)} {status.waits_for}".strip()


def _step(status: RunStatus) -> str:
    most = f" of at most {status.most_steps}" if status.most_steps else ""
    return f"{status.stage.replace('_', ' ')}: step {status.step}{most}"


def _progress(status: RunStatus) -> Iterator[str]:
    """Yield how far the learner is, and an estimate of what is left."""
    if not status.stage:
        return
    text = _step(status) + (f", {status.share:.0%} of this step" if status.share else "")
    yield text + (f", about {_seconds(status.left)} left in this step" if status.left else "")
    if status.most_steps:
        done = min(1.0, max(0.0, (status.step - 1 + status.share) / status.most_steps))
        yield f"[{'#' * round(BAR * done):.<{BAR}}] {done:.0%} of the steps"


def _phases(status: RunStatus, goes_on: bool, at: datetime) -> Iterator[str]:
    """Yield the phases: done (+), now (>), the one in which the run ended (x), and to come."""
    for phase in status.plan:
        spent, mark = status.spent.get(phase), " " if phase not in status.spent else "+"
        if phase == status.phase and goes_on:
            mark, spent = ">", (spent or 0.0) + _since(status.since, at)
        elif phase == status.phase and status.ended != WRITTEN:
            mark, spent = "x", spent or 0.0
        took = "" if spent is None else f" ({_seconds(spent)})"
        yield f"{mark} {PHASES.get(phase, phase)}{took}"


def _party(status: RunStatus, name: str, known: Mapping[str, str], at: datetime) -> str:
    """Return what is known of a party, and how its owner starts it if the run waits for it."""
    role, state = known["role"], known["state"]
    says = f"{name} " if role == name else f"{name} ({role}) "
    says += STATES.get(state, state) + (f": {known['reason']}" if known["reason"] else "")
    if known["at"]:
        of = f" ({known['query']})" if known["query"] else ""
        says += f"; its last message came {_ago(known['at'], at)} ago{of}"
    if name in status.waits and state in (CONNECTING, AWAY) and role in ("site", "dealer"):
        says += f"; its owner starts it with `vertibayes {role} {role}.toml`"
    return says


def _facts(status: RunStatus, at: datetime) -> Iterator[tuple[str, str]]:
    if status.approved:
        yield "approved as", status.approved
    yield "started", f"{_clock(status.started)}, process {status.process}"
    asked = f"; the current one is {status.query}" if status.query else ""
    yield "queries", f"{status.queries} answered in {counted(status.sessions, 'session')}{asked}"
    yield "sent", f"{size(status.sent)} by the analyst, in {counted(status.rounds, 'round')}"
    if status.waits:
        yield "waits for", f"{_waits(status)}, since {_ago(status.waits_since, at)}"
    if status.warnings:
        yield "warnings", f"{counted(status.warnings, 'warning')}: the command has printed the text"
    silent = _since(status.updated, at)
    quiet = f", {_seconds(silent)} ago" if silent >= QUIET_SECONDS and not status.ended else ""
    yield "last change", f"{_clock(status.updated)}{quiet}"


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
