"""The analyst's program: add up the shares of the sums."""

from __future__ import annotations

from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Program
from vertibayes_mpc.sharing import open_sum
from vertibayes_mpc.table_lookups.plan import TableLookupPlan


def open_rows(plan: TableLookupPlan) -> Program[Elements]:
    """Add up the sites' shares: the analyst's side.

    Returns
    -------
    sums : ndarray of shape (columns, records), dtype `plan.ring.dtype`

    Raises
    ------
    MalformedMessageError
        If a site's share has a wrong size.
    """
    records = plan.selection.records
    sums = yield from open_sum(plan.parties, plan.ring, plan.columns * records)
    return sums.reshape(plan.columns, records)
