"""What all runs of approved studies have in common: the approval, and how they refuse."""

from __future__ import annotations

from vertibayes_protocols.approval import Approved, Asked, is_valid
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.roles import SiteRole


class StudyRun:
    """A run of an approved study at a site."""

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

    def _check_contract(self, query: Asked) -> None:
        """Refuse what free fields of a query have, and the contract has not."""
        try:
            query.matches(self.contract)
        except ValueError as error:
            raise self._refused(str(error)) from None

    def _refused(self, reason: str) -> QueryRefusedError:
        """Return the error that names the study."""
        study = grouped_digest(self.contract.digest)[:9]
        return QueryRefusedError(self.site.party, f"approved study {study}: {reason}")
