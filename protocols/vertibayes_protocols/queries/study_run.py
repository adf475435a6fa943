"""What all runs of approved studies have in common: the approval, and how they refuse."""

from __future__ import annotations

from vertibayes_protocols.approval import Approved, is_valid
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.queries.align import Align
from vertibayes_protocols.queries.meet import Meet
from vertibayes_protocols.roles import SiteRole


class StudyRun:
    """A run of an approved study at a site.

    Parameters
    ----------
    site : SiteRole
    approved : Approved
    """

    def __init__(self, site: SiteRole, approved: Approved) -> None:
        self.site, self.approved = site, approved

    @property
    def contract(self) -> Contract:
        """The contract that is run."""
        return self.approved.contract

    def _check_approval(self) -> None:
        """Refuse any query if the approval is withdrawn."""
        if not is_valid(self.approved, self.site.approvals):
            raise self._refused("its approval has been withdrawn or has changed")

    def _check_alignment(self, query: Align) -> None:
        """Refuse an alignment that is not the contract's, or that shares other columns."""
        with refusing(self.site.party):
            alignment = query.alignment
        if alignment != self.contract.alignment:
            raise self._refused("the alignment is not that of the contract")
        columns = tuple(sorted(name for name, *_ in query.columns))
        if alignment.level == 2 and columns != tuple(sorted(self.contract.variables)):
            raise self._refused("the columns of the alignment are not those of the contract")

    def _check_keys(self, query: Align | Meet) -> None:
        """Refuse keys that are not the contract's."""
        keys = self.contract.keys
        if tuple(query.keys) != tuple(keys.get(party) for party in query.named):
            raise self._refused("the keys of the parties are not those of the contract")

    def _refused(self, reason: str) -> QueryRefusedError:
        """Return the error that names the study."""
        study = grouped_digest(self.contract.digest)[:9]
        return QueryRefusedError(self.site.party, f"approved study {study}: {reason}")
