"""Keep the status of a run while a command runs it; `vertibayes status study.toml` reads it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vertibayes import __version__
from vertibayes.cli.phases import VALIDATION, WORK, WRITING
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.deployment.log import start_log, teller
from vertibayes_protocols.deployment.run_status import ROLE, RunStatus, a_party, kept_run
from vertibayes_protocols.deployment.status import status_path
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch


@contextmanager
def watched_run(
    file: StudyFile,
    learner: str,
    result: Path,
    *,
    quiet: bool = False,
    contract: Contract | None = None,
    validates: bool = False,
) -> Iterator[RunWatch]:
    """Log a run, and keep its status beside the study's file while the block runs."""
    start_log(quiet=quiet)
    roles = {party: "site" if party in file.sites else "dealer" for party in file.parties}
    status = RunStatus(
        file.party,
        ROLE,
        __version__,
        learner,
        "" if contract is None else grouped_digest(contract.digest),
        plan=_plan(file, learner, contract, validates),
        parties={party: a_party(role) for party, role in roles.items()},
    )
    path, tell = status_path(file.source.path), teller(file.party)
    say = UNWATCHED.say if quiet else sys.stderr.write
    with kept_run(path, status, str(result), tell, say) as watch:
        yield watch


def _plan(file: StudyFile, learner: str, contract: Contract | None, validates: bool) -> list[str]:
    """Return the phases that the run is expected to have."""
    work, networks = list(WORK.get(learner, ())), learner == "bayesian_network"
    if networks and contract is not None:
        work.insert(1, "release")
    opening = ["comparing", "describing", "committing"] if networks else []
    return [
        "connecting",
        *(["beginning"] if contract is not None else []),
        *(["aligning"] if file.alignment is not None else []),
        *opening,
        *work,
        *([VALIDATION] if validates else []),
        WRITING,
    ]
