"""Tables that no records have: one error for all checks, and the check in one ledger alone.

A site that changes what it sends learns a bit per run from whether the run ends. If the error said
which check failed, or named the sites of the table, then the site would learn a bit per table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.study import Study


@contextmanager
def uniform_errors(analyst: AnalystRole, study: Study) -> Iterator[None]:
    """Raise the same error for all tables that no records have.

    Parameters
    ----------
    analyst : AnalystRole
        Whose ledger notes which check failed.
    study : Study
        The study, whose sites and dealer the error names.

    Raises
    ------
    ImpossibleTablesError
        If the block raises one; it names all sites of the study and no check.
    """
    try:
        yield
    except ImpossibleTablesError as error:
        analyst.ledger.note(f"a check failed: {error.check}", analyst.party, (analyst.party,))
        raise ImpossibleTablesError(study.sites, study.dealer) from None
