"""The sites of a study's file: processes on this machine or others, whatever they learn.

Here a run notes its ledger, and begins at sites that have approved the study.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from vertibayes.choosing.secret import SecretChooser
from vertibayes.cli.learn import Opened, Task
from vertibayes.cli.notices import warn
from vertibayes.cli.run import Run
from vertibayes.cli.study_settings import placed
from vertibayes.counting.secure import SecureCounter
from vertibayes.options import checks
from vertibayes.released import check_validations
from vertibayes.study import opener
from vertibayes.study_files import RunFile, TableFile
from vertibayes.words import counted
from vertibayes_protocols.approved_study import open_approved
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.deployment.running import (
    record_sessions,
    star_session,
    study_session,
    study_sessions,
)
from vertibayes_protocols.open_study import OpenStudy, Renewing
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.queries import Begin
from vertibayes_protocols.roles import Party
from vertibayes_protocols.session import Session, Traffic
from vertibayes_protocols.study import Study

There = tuple[Session, frozenset[Party]]  # a session, and the sites that are not there


@dataclass(frozen=True)
class Machines:
    """The sites of a study's file, each a process on this machine or another."""

    file: StudyFile
    contract: Contract | None  # what all sites have approved; None if they answer any query

    def entry(self, study: Study | None = None) -> dict[str, Any]:
        """Return what identifies the study: its file, id, parties' keys and digest."""
        file, contract = self.file, self.contract
        keys = {party: encode_public(key) for party, key in file.pinned.items()}
        own = {} if study is None else {"id": study.id.hex()}
        approved = {} if contract is None else {"contract": contract.digest.hex()}
        return {"file": str(file.source.path), **own, "keys": keys, **approved}

    @contextmanager
    def session(self, run: Run) -> Iterator[Session]:
        """Begin a run in a session of all parties."""
        with study_session(self.file, run.watch) as session:
            self._begin(session, run)
            yield session

    @contextmanager
    def star(self, most_absent: int, run: Run) -> Iterator[There]:
        """Begin a run in a session of sites that need not know each other."""
        with star_session(self.file, most_absent, run.watch) as (session, absent):
            self._begin(session, run, absent)
            yield session, absent

    @contextmanager
    def neighbours(
        self, run: Run, traffic: Traffic
    ) -> Iterator[Callable[[], AbstractContextManager[There]]]:
        """Yield what opens sessions of sites that speak with each other; add what travels."""
        with record_sessions(self.file, run.watch) as open_session:

            @contextmanager
            def begin() -> Iterator[There]:
                with open_session() as (session, absent):
                    try:
                        self._begin(session, run, absent)
                        yield session, absent
                    finally:
                        traffic.include(session.transport.traffic)

            yield begin

    def _begin(self, session: Session, run: Run, absent: Collection[Party] = ()) -> None:
        run.ledger = session.role.ledger
        if self.contract is not None:
            session.ask(Begin.of(self.contract, absent))

    @contextmanager
    def opened(self, task: Task, run: Run) -> Iterator[Opened]:
        """Open the study, or resume it; as `Place.opened`."""
        file = self.file
        with self._kept() as kept, study_sessions(file, run.watch) as begin:
            self._say_what_is_resumed(kept, run)
            with Renewing(begin, self._opener(kept), file.patience, run.watch) as renewing:
                study = renewing.first()
                run.ledger = study.ledger
                source = (
                    SecureCounter(study, kept)
                    if isinstance(kept, TableFile)
                    else SecretChooser(study)
                )
                about = {"study": self.entry(study.study)}
                yield Opened(study, source, _fitting(file, source, task), about, sender=file.party)
            if isinstance(kept, RunFile):
                kept.finish()

    def _kept(self) -> TableFile | RunFile:
        """Return the file that has what was revealed before."""
        if self.contract is None:
            return TableFile(self.file.tables)
        return RunFile(self.file.run, self.contract.digest)

    def _opener(self, kept: TableFile | RunFile) -> Callable[[Session], OpenStudy]:
        """Return what opens the study in a session."""
        if isinstance(kept, TableFile):
            return opener(self.file, kept)
        contract = self.contract
        assert contract is not None  # `_kept` opens the file of its runs
        return lambda session: open_approved(session, contract, kept.study, kept.seen, kept.add)

    def _say_what_is_resumed(self, kept: TableFile | RunFile, run: Run) -> None:
        if isinstance(kept, TableFile):
            warn(kept.recovered(), run.watch)
            before = len(kept.tables)
            were = "table that was" if before == 1 else "tables that were"
            what = f"the study with {before} {were} revealed before"
        else:
            before = len(kept.seen)
            what = f"the run after {counted(before, 'step')} that were answered before"
        if before and not run.quiet:
            sys.stderr.write(f"resuming {what}\n")


def _fitting(file: StudyFile, source: SecureCounter | SecretChooser, task: Task) -> Task:
    """Refuse options that do not fit what the sites offer, before a table is revealed."""
    table = file.source.table("learning")
    for key, check in checks(source, task.options).items():
        with table.at(key):
            check()
    with placed(file.source.table("validation")):
        if task.rule is not None:
            check_validations(source.variables, task.options, task.validations.validate)
        validations = task.validations.prepared(source.variables, source.records)
    return replace(task, validations=validations)
