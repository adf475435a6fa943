"""The log of a running party: one line for each event, `time party event key=value`, or JSON.

Lines have only names, numbers and reasons that any party may read, never an object, so that no line
can have a key, a record, an identifier or a cell. They go to the standard library's logging, as the
warnings of other libraries do.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.certificates import SOON, check_certificate
from vertibayes_protocols.deployment.files import PartyFile, RelayFile
from vertibayes_protocols.events import AGAIN, WAITING, Fact, Tell
from vertibayes_protocols.parties import Watch, study_now
from vertibayes_protocols.query import AnyQuery
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.session import Answer

LOG = logging.getLogger("vertibayes")

STUDY_BYTES = 8  # of a contract's digest, or of the id of a study
DAY_SECONDS = 86_400.0
EXPIRES, NOT_VALID = "certificate expires soon", "certificate not valid"
WARNINGS = WAITING, AGAIN, EXPIRES, NOT_VALID


class _Lines(logging.Formatter):
    """Writes an event as a line."""

    def formatTime(self, record: logging.LogRecord, _: str | None = None) -> str:  # noqa: N802
        """Return the time in ISO 8601, UTC."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Json(_Lines):
    """Writes an event as an object of JSON; of other libraries' records, the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        told = getattr(record, "told", {"logger": record.name, "message": super().format(record)})
        common = {"time": self.formatTime(record), "level": record.levelname.lower()}
        return json.dumps({**common, **told}, ensure_ascii=False)


def start_log(*, quiet: bool = False, as_json: bool = False) -> None:
    """Write the events, and the warnings of other libraries, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json("%(message)s") if as_json else _Lines("%(asctime)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    LOG.setLevel(logging.WARNING if quiet else logging.INFO)


def teller(party: Party) -> Tell:
    """Return the function that logs a party's events."""

    def tell(event: str, **facts: Fact) -> None:
        level = logging.WARNING if event in WARNINGS else logging.INFO
        told = {"party": party, "event": event, **facts}
        LOG.log(level, "%s", line(party, event, **facts), extra={"told": told})

    return tell


def line(party: Party, event: str, **facts: Fact) -> str:
    """Return an event as a line."""
    return " ".join([party, event, *(f"{name}={_shown(value)}" for name, value in facts.items())])


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_shown(item) for item in value)
    if type(value) not in (str, int):
        raise TypeError(f"a logged fact must be a text or a number, got {type(value).__name__}")
    text = str(value)
    return text if text.replace("-", "").replace("_", "").isalnum() else json.dumps(text)


class SessionLog(Watch):
    """Logs the events of a session: each line names the session, its analyst and its study."""

    def __init__(
        self,
        tell: Tell,
        role: SiteRole | DealerRole,
        session: bytes,
        reason_of: Callable[[Exception], str] = str,
    ) -> None:
        self._tell, self._role, self._reason_of = tell, role, reason_of
        self._facts: dict[str, Fact] = {"session": session.hex()[:8], "analyst": role.analyst}

    def begun(self) -> None:
        """Log that the session has begun."""
        self._tell("session begun", **self._facts)

    def considered(self, query: AnyQuery, answer: Answer, detail: str) -> None:
        """Log whether a query was agreed to or refused, and why."""
        facts = self._of(query)
        if answer.agreed:
            self._tell("agreed", **facts)
        else:
            more = {"detail": detail} if detail else {}
            self._tell("refused", **facts, reason=answer.reason, **more)

    def finished(self, query: AnyQuery, seconds: float, sent: int) -> None:
        """Log a query's seconds and bytes; and who has approved the study, where it begins."""
        approval = study_now(self._role)[1] if query.claims else ""
        more = {"approved": approval} if approval else {}
        self._tell("answered", **self._of(query), seconds=f"{seconds:.1f}", bytes=sent, **more)

    def ended(self, error: Exception | None) -> None:
        """Log how the session has ended."""
        reason = {} if error is None else {"reason": self._reason_of(error)}
        self._tell("session ended", **self._facts, **reason)

    def _of(self, query: AnyQuery) -> dict[str, Fact]:
        """Return the facts of a query; a session that has a study keeps it to its end."""
        if study := query.claims or bytes.fromhex(study_now(self._role)[0]):
            self._facts["study"] = grouped_digest(study[:STUDY_BYTES])
        return {"query": query.kind, **self._facts}


@contextmanager
def expiry_logged(file: PartyFile | RelayFile, tell: Tell) -> Iterator[None]:
    """Log that a party's certificate expires soon or is not valid, until the block ends.

    The files are read each time: after a renewal the lines end without a restart.
    """
    over = Event()

    def watch() -> None:
        tell_expiry(file, tell)
        while not over.wait(DAY_SECONDS):
            tell_expiry(file, tell)

    if file.certificates is not None:
        Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def tell_expiry(file: PartyFile | RelayFile, tell: Tell) -> None:
    """Log that the certificate of a party expires within 30 days, or why it is not valid."""
    assert file.certificates is not None  # asked before
    now = datetime.now(UTC)
    try:
        end = check_certificate(*file.certificates, file.party, now)
    except ValueError as error:
        tell(NOT_VALID, reason=str(error))
        return
    if end - now < SOON:
        tell(EXPIRES, days=(end - now).days, until=f"{end:%Y-%m-%d}")
