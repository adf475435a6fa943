"""A study between machines, from Python: what ``vertibayes learn study.toml`` learns from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vertibayes.counting.secure import SecureCounter
from vertibayes.study_files import TableFile
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.deployment.running import study_sessions
from vertibayes_protocols.open_study import OpenStudy, Renewing
from vertibayes_protocols.opening import new_study, open_study
from vertibayes_protocols.queries import Begin
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch
from vertibayes_protocols.session import Session


@contextmanager
def connect_study(path: str | Path, watch: RunWatch = UNWATCHED) -> Iterator[SecureCounter]:
    """Connect to the parties of a study, and yield the counter that learners ask.

    The counter keeps what it receives beside the study's file: a later run does not ask again. If
    its session breaks, the counter begins another one, for as long as `[run] patience` says, and
    the learner that asks it waits. The policies of all sites must set `free_tables`.

    Parameters
    ----------
    path : str or Path
        The analyst's `study.toml`; of its [learning] and [validation] nothing is done.
    watch : RunWatch, optional
        Notes what the sessions do.

    Yields
    ------
    counter : SecureCounter

    Raises
    ------
    ValueError
        If a file is at fault: it names the file.
    QueryRefusedError, ProtocolError, TransportError
        If a party refuses, does not follow the protocol, or cannot be reached: it names the party.

    Examples
    --------
    ::

        with connect_study("study.toml") as counter:
            network = fit_cpts(counter, k2(counter, max_parents=2))
    """
    file = StudyFile.read(Path(path))
    with (
        TableFile(file.tables) as kept,
        study_sessions(file, watch) as begin,
        Renewing(begin, opener(file, kept), file.patience, watch) as renewing,
    ):
        yield SecureCounter(renewing.first(), kept)


@contextmanager
def approved_study(
    file: StudyFile, contract: Contract, watch: RunWatch = UNWATCHED
) -> Iterator[OpenStudy]:
    """Connect to the parties of a study whose contract declares its queries, and begin a run."""
    with study_sessions(file, watch) as begin, begin() as session:
        session.ask(Begin.of(contract))
        yield open_study(
            session,
            contract.site_names,
            contract.dealer[0],
            order=contract.variables,
            variables=contract.variables,
            memory=contract.memory,
            alignment=contract.alignment,
        )


def opener(file: StudyFile, kept: TableFile) -> Callable[[Session], OpenStudy]:
    """Return what opens a study in a session: over its sites and variables, with its id."""
    chosen = file.variables or None
    study = kept.study
    if file.alignment is not None and study is None:
        study = new_study()  # a session that breaks before the first table aligns nobody again

    def open_(session: Session) -> OpenStudy:
        return open_study(
            session,
            file.sites,
            file.dealer,
            order=chosen,
            variables=chosen,
            memory=file.memory,
            count_by=file.count_by,
            study=study if kept.study is None else kept.study,
            alignment=file.alignment,
        )

    return open_
