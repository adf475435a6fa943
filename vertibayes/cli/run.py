"""A run of a command: what it says, and that it leaves its results or, if it fails, its ledger."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vertibayes import __version__
from vertibayes.cli.folders import is_free
from vertibayes.cli.notices import warn
from vertibayes.cli.outputs import UnwrittenError, write_folder, write_json
from vertibayes.cli.phases import WRITING
from vertibayes.cli.progress import Progress, progress_shown
from vertibayes.cli.report import add_report
from vertibayes.words import counted
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch

Write = Callable[[Path], object]


@dataclass
class Run:
    """A run, as the block of a `with`: at its end it prints what it has to say of its results.

    If the block fails after something was revealed, the folder of the results gets the ledger.
    """

    out: Path | None = None  # the folder for the results; None writes no results
    quiet: bool = False  # whether to print errors and warnings only
    watch: RunWatch = UNWATCHED  # notes what the run does, for its status
    sums: bool = False  # whether facts are worth a ledger, as those on sums; tables always are
    ledger: Ledger | None = None  # the analyst's, as soon as there is one
    warnings: list[str] = field(default_factory=list)  # that the run has printed
    lines: list[str] = field(default_factory=list)  # to print at its end

    def __enter__(self) -> Run:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None:
            if not self.quiet:
                written = [f"Written: {self.out}{self._to_take()}"] if self.out else []
                sys.stdout.writelines(f"{line}\n" for line in [*self.lines, *written])
        elif not isinstance(error, UnwrittenError):  # of which the ledger is with the other results
            self._keep_ledger()

    def _to_take(self) -> str:
        """Say which of the files a person opens, and which one other libraries take."""
        if self.out is None or not (self.out / "model.bifxml").exists():
            return ""
        return " (report.html to read; model.bifxml for pgmpy and pyAgrum, with your names)"

    def _keep_ledger(self) -> None:
        ledger, out = self.ledger, self.out
        if ledger is None or out is None or not is_free(out):
            return
        if not (ledger.tables or (self.sums and ledger.facts)):
            return
        try:
            write_folder(out, lambda part: write_json(part / "ledger.json", ledger.as_json()))
        except UnwrittenError as error:
            self.warn([str(error)])
        else:
            tables = len(ledger.tables)
            what = f"{counted(tables, 'table')} {'was' if tables == 1 else 'were'}"
            what = what if tables else "what was"
            self.warn([f"{what} revealed before the run failed: {out / 'ledger.json'}"])

    def warn(self, warnings: Iterable[str]) -> None:
        """Print warnings, which the summary has too."""
        self.warnings += warn(warnings, self.watch)

    def progress(
        self, watchers: list[Callable[[int, int], None]] | None = None, *, ticks: bool = False
    ) -> AbstractContextManager[Progress]:
        """Show how far the run is."""
        return progress_shown(self.quiet, watchers, ticks=ticks, watch=self.watch)

    def finish(
        self,
        command: str,
        summary: Mapping[str, Any],
        lines: Iterable[str],
        model: Write,
        more: Write,
    ) -> None:
        """Write all results: the model first, as it matters most on a full disk."""
        written = datetime.now(UTC).isoformat(timespec="seconds")
        head = {"command": command, "version": __version__, "written": written}
        self.lines += lines
        self.watch.phase(WRITING)

        def write(part: Path) -> None:
            model(part)
            if self.ledger is not None:
                write_json(part / "ledger.json", self.ledger.as_json())
            write_json(part / "summary.json", {**head, **summary, "warnings": self.warnings})
            more(part)
            add_report(part)

        if self.out is not None:
            write_folder(self.out, write)
