"""The controller of a job: it starts the parties of a study, waits for them, and keeps reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from vertibayes.cli.hosted import hosted
from vertibayes_nvflare.parties import (
    DEALER_TASK,
    MINUTES,
    RELAY,
    REPORT,
    SITE_TASK,
    STUDY,
    party_file,
)

REPORTS = "vertibayes_reports.json"  # in the folder of the job, which `download_job` fetches


class StudyController(Controller):
    """Starts the sites and the dealer of a study, and waits until the sites are done.

    Parameters
    ----------
    study : str
        The digest of the study, which the owner of each site has approved.
    sites : list of str
        FLARE names of the clients that are sites.
    dealer : str, default=""
        FLARE name of the client that is the dealer; empty if the dealer runs elsewhere.
    minutes : float, default=60
        For how long the sites run at most.
    """

    def __init__(self, study: str, sites: list[str], dealer: str = "", minutes: float = 60.0):
        super().__init__()
        if dealer in sites:
            raise ValueError(f"{dealer!r} cannot be a site and the dealer: specify another client")
        self.study, self.sites, self.dealer, self.minutes = study, sites, dealer, minutes
        self.reports: dict[str, dict[str, str | int]] = {}

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing: all is done in `control_flow`."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Start the parties, and return when all sites have reported."""
        with self._relay(fl_ctx):
            if self.dealer:
                self.broadcast(self._task(DEALER_TASK), fl_ctx, targets=[self.dealer])
            self.broadcast_and_wait(
                self._task(SITE_TASK),
                fl_ctx,
                targets=self.sites,
                min_responses=len(self.sites),
                abort_signal=abort_signal,
            )
        self._write(fl_ctx)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing: processes end with `control_flow`."""

    def process_result_of_unknown_task(
        self, client: Client, task_name: str, client_task_id: str, result: Shareable,
        fl_ctx: FLContext,
    ) -> None:  # fmt: skip
        """Pass over a reply that comes after the job's end, as the dealer's may."""

    @contextmanager
    def _relay(self, fl_ctx: FLContext) -> Iterator[None]:
        """Run the relay while the parties run, if the server's `vertibayes.json` names one."""
        file = party_file(fl_ctx, RELAY)
        if file is None:
            yield
            return
        with hosted("relay", file):
            yield

    def _task(self, name: str) -> Task:
        data = Shareable()
        data[STUDY], data[MINUTES] = self.study, self.minutes
        return Task(name=name, data=data, result_received_cb=self._received)

    def _received(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        name, result = client_task.client.name, client_task.result
        report = result.get(REPORT) if result is not None else None
        self.reports[name] = report or {"state": "failed", "reason": "no report"}
        self.log_info(fl_ctx, f"vertibayes: {name} {self.reports[name]}")

    def _write(self, fl_ctx: FLContext) -> None:
        workspace = fl_ctx.get_engine().get_workspace()
        path = Path(workspace.get_run_dir(fl_ctx.get_job_id())) / REPORTS
        path.write_text(json.dumps(self.reports, indent=1) + "\n", encoding="utf-8")
