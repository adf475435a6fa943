"""The executor of a client: it runs the client's own party, and carries its packets."""

from __future__ import annotations

import io
from pathlib import Path
from threading import Event
from zipfile import ZIP_DEFLATED, ZipFile

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from vertibayes.cli.hosted import (
    REFUSED,
    RELEASED,
    Report,
    host_analyst,
    host_dealer,
    host_site,
)
from vertibayes_nvflare.courier import Courier
from vertibayes_nvflare.parties import (
    ANALYST,
    MINUTES,
    OVER,
    REPORT,
    RESULTS,
    ROLE,
    SITE,
    STUDY,
    Parties,
)


class PartyExecutor(Executor):
    """Runs a site, the dealer or the analyst, whose file `vertibayes.json` here names."""

    def __init__(self) -> None:
        super().__init__()
        self._over = Event()
        self._courier: Courier | None = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Be ready for packets, and for the end of the study, when the job begins."""
        if event_type == EventType.START_RUN:
            engine = fl_ctx.get_engine()
            self._courier = Courier(engine)
            engine.register_aux_message_handler(OVER, self._end)

    def _end(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        del topic, request, fl_ctx
        self._over.set()
        return make_reply(ReturnCode.OK)

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Run the party until the study is released, the time is over, or the job ends.

        Returns
        -------
        reply : Shareable
            With a report, also of a party that was not started; with the results, if the machine's
            administrator lets them go to the server.
        """
        del task_name  # the job has one
        parties, name = Parties.read(fl_ctx), fl_ctx.get_identity_name()
        role, study, reply = shareable[ROLE], str(shareable[STUDY]), Shareable()
        file, reason = parties.file_of(name, role)
        out = file.parent / f"results-{fl_ctx.get_job_id()}"
        if reason:
            report = Report(name, study, REFUSED, reason)
        else:
            report = self._run(role, file, study, shareable[MINUTES], out, abort_signal)
        if role == ANALYST and report.state == RELEASED and parties.sends_results:
            reply[RESULTS] = zipped(out)
        self.log_info(fl_ctx, f"vertibayes: {report.state} {report.reason}")
        reply[REPORT] = report.as_json()
        return reply

    def _run(
        self, role: str, file: Path, study: str, minutes: float, out: Path, abort_signal: Signal
    ) -> Report:
        assert self._courier is not None  # since the job began

        def is_stopped() -> bool:
            return abort_signal.triggered or self._over.is_set()

        carry = self._courier.carry
        if role == SITE:
            return host_site(file, study, minutes, is_stopped, carry)
        if role == ANALYST:
            return host_analyst(file, study, minutes, out, is_stopped, carry)
        return host_dealer(file, study, minutes, is_stopped, carry)


def zipped(folder: Path) -> bytes:
    """Return a folder's files as a ZIP file."""
    content = io.BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return content.getvalue()
