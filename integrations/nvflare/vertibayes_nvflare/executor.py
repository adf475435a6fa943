"""The executor of a client: it runs the client's own party for as long as a study."""

from __future__ import annotations

from pathlib import Path
from time import sleep

from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from vertibayes.cli.hosted import FAILED, REFUSED, STOPPED, Report, host_site, hosted
from vertibayes_nvflare.parties import DEALER_TASK, FILE, MINUTES, REPORT, STUDY, party_file

POLL_SECONDS = 0.5


class PartyExecutor(Executor):
    """Runs a site or the dealer, whose file `vertibayes.json` of this machine names."""

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Run the party until the study is released, the time is over, or the job ends.

        Returns
        -------
        reply : Shareable
            With a report, also of a party that was not started.
        """
        is_dealer = task_name == DEALER_TASK
        file = party_file(fl_ctx, fl_ctx.get_identity_name())
        if file is None or file.stem != ("dealer" if is_dealer else "site"):
            kind = "dealer.toml" if is_dealer else "site.toml"
            reason = f"local/{FILE} of this client names no {kind} under the client's name"
            report = Report("", str(shareable.get(STUDY)), REFUSED, reason)
        elif is_dealer:
            report = _deal(file, abort_signal)
        else:
            minutes = shareable.get(MINUTES)
            report = host_site(file, shareable[STUDY], minutes, lambda: abort_signal.triggered)
        self.log_info(fl_ctx, f"vertibayes: {report.state} {report.reason}")
        reply = Shareable()
        reply[REPORT] = report.as_json()
        return reply


def _deal(file: Path, abort_signal: Signal) -> Report:
    """Run the dealer until the job ends: the controller ends the job when the sites are done."""
    with hosted("dealer", file) as process:
        while not abort_signal.triggered:
            if process.poll() is not None:
                reason = "its process ended: dealer.log at the dealer has the reason"
                return Report("dealer", "", FAILED, reason)
            sleep(POLL_SECONDS)
    return Report("dealer", "", STOPPED)
