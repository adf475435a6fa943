"""The controller of a job: it starts the parties of a study, waits for its end, keeps reports."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic, sleep

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from vertibayes.cli.hosted import FAILED, RELEASED
from vertibayes_nvflare.parties import (
    ANALYST,
    DEALER,
    MINUTES,
    OVER,
    REPORT,
    RESULTS,
    ROLE,
    SITE,
    STUDY,
    TASK,
)

REPORTS = "vertibayes_reports.json"  # both in the folder of the job, which `download_job` fetches
ARCHIVE = "vertibayes_results.zip"
POLL_SECONDS, ANSWER_SECONDS = 0.5, 5.0
LAST_SECONDS = 30.0  # for the reports of the parties, when the study is over


class StudyController(Controller):
    """Starts the sites and the dealer of a study, then its analyst, and waits for the analyst.

    Parameters
    ----------
    study : str
        The digest of the study, which the owner of each site has approved.
    sites : list of str
        Names of the sites, which are those of their FLARE clients.
    analyst : str
        Name of the analyst.
    dealer : str
        Name of the dealer.
    minutes : float, default=60
        For how long the parties run at most.
    """

    def __init__(
        self, study: str, sites: list[str], analyst: str, dealer: str, minutes: float = 60.0
    ):
        super().__init__()
        self.roles = {**dict.fromkeys(sites, SITE), dealer: DEALER, analyst: ANALYST}
        if len(self.roles) < len(sites) + 2:
            raise ValueError("sites, dealer and analyst must be different clients")
        self.study, self.analyst, self.minutes = study, analyst, minutes
        self.started: set[str] = set()
        self.reports: dict[str, dict[str, str | int]] = {}

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing: all is done in `control_flow`."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Start the parties; end them when the analyst has learned, or when one has failed."""
        others = self.roles.keys() - {self.analyst}
        for name in others:
            self._start(name, fl_ctx)
        while not (abort_signal.triggered or self._is_over()):
            if self.started == others:  # their processes are about to answer
                self._start(self.analyst, fl_ctx)
                others = self.roles.keys()
            sleep(POLL_SECONDS)
        self._end(fl_ctx)
        if self.reports.get(self.analyst, {}).get("state") != RELEASED:
            self.system_panic(f"the study is not released: {REPORTS} of the job says why", fl_ctx)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing: processes end with `control_flow`."""

    def process_result_of_unknown_task(
        self, client: Client, task_name: str, client_task_id: str, result: Shareable,
        fl_ctx: FLContext,
    ) -> None:  # fmt: skip
        """Pass over a reply that comes after the job's end."""

    def _start(self, name: str, fl_ctx: FLContext) -> None:
        data = Shareable({STUDY: self.study, MINUTES: self.minutes, ROLE: self.roles[name]})
        task = Task(
            name=TASK, data=data, after_task_sent_cb=self._sent, result_received_cb=self._received
        )
        self.broadcast(task, fl_ctx, targets=[name], min_responses=1)

    def _sent(self, client_task: ClientTask, fl_ctx: FLContext) -> None:  # noqa: ARG002
        self.started.add(client_task.client.name)

    def _received(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        name, result = client_task.client.name, client_task.result or Shareable()
        self._note(name, result.get(REPORT) or {"state": FAILED, "reason": "no report"}, fl_ctx)
        results = result.get(RESULTS)
        if name == self.analyst and isinstance(results, bytes):
            (self._folder(fl_ctx) / ARCHIVE).write_bytes(results)

    def _note(self, name: str, report: dict[str, str | int], fl_ctx: FLContext) -> None:
        self.reports[name] = report
        self.log_info(fl_ctx, f"vertibayes: {name} {report}")

    def _is_over(self) -> bool:
        """Whether the analyst has ended, or a party has failed, or a client is away."""
        failed = any(report["state"] != RELEASED for report in self.reports.values())
        away = any(self.get_client_disconnect_time(name) for name in self.roles)
        return failed or away or self.analyst in self.reports

    def _end(self, fl_ctx: FLContext) -> None:
        """End the parties, and write their reports."""
        names = [name for name in self.started if name not in self.reports]
        engine, end = fl_ctx.get_engine(), monotonic() + LAST_SECONDS
        if names:  # an empty list means all
            engine.send_aux_request(names, OVER, Shareable(), ANSWER_SECONDS, fl_ctx, optional=True)
        while self.reports.keys() < self.started and monotonic() < end:
            sleep(POLL_SECONDS)
        for name in self.roles.keys() - self.reports.keys():
            self._note(name, {"state": FAILED, "reason": "no report"}, fl_ctx)
        text = json.dumps(self.reports, indent=1) + "\n"
        (self._folder(fl_ctx) / REPORTS).write_text(text, encoding="utf-8")

    def _folder(self, fl_ctx: FLContext) -> Path:
        return Path(fl_ctx.get_engine().get_workspace().get_run_dir(fl_ctx.get_job_id()))
