"""A study between machines, from Python: what ``vertibayes learn study.toml`` learns from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocols.deployment.files import StudyFile
from protocols.deployment.running import study_session
from protocols.opening import open_study
from protocols.session import Session
from vertibayes.counting.secure import SecureCounter
from vertibayes.table_file import TableFile


@contextmanager
def connect_study(path: str | Path) -> Iterator[SecureCounter]:
    """Connect to the parties of a study, and yield the counter that learners ask.

    The counter keeps what it receives beside the study's file: a later run does not ask again. The
    policies of all sites must set `free_tables`.

    Parameters
    ----------
    path : str or Path
        The analyst's `study.toml`; of its [learning] and [validation] nothing is done.

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
    with TableFile(file.tables) as kept, study_session(file) as session:
        yield counter_of(file, session, kept)


def counter_of(file: StudyFile, session: Session, kept: TableFile) -> SecureCounter:
    """Return the counter of a study: over its sites and variables, with the tables it has."""
    chosen = file.variables or None
    study = open_study(
        session,
        file.sites,
        file.dealer,
        order=chosen,
        variables=chosen,
        memory=file.memory,
        study=kept.study,
    )
    return SecureCounter(study, kept)
