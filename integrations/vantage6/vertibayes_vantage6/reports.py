"""The functions whose results go to the server: reports, and nothing else of a site."""

from __future__ import annotations

from typing import Any

import pandas as pd
from vantage6.algorithm.decorator import algorithm_client, central, dataframe, federated

KEYS = "party", "study", "state", "reason"
COUNTS = "runs", "tables", "cells", "refusals"


@federated
@dataframe(1)
def report(table: pd.DataFrame) -> dict[str, str | int]:
    """Return the report that `site` or `status` has left at this node.

    Raises
    ------
    ValueError
        If the data frame is not such a report: another data frame may have records.
    """
    if tuple(table.columns) != (*KEYS, *COUNTS) or len(table) != 1:
        raise ValueError("the data frame is not a report: specify one that `site` has returned")
    row = table.iloc[0]
    return {**{key: str(row[key]) for key in KEYS}, **{key: int(row[key]) for key in COUNTS}}


@central
@algorithm_client
def overview(client: Any, organizations: list[int] | None = None) -> list[dict[str, str | int]]:
    """Collect the reports of organizations; start no party.

    Parameters
    ----------
    client : AlgorithmClient
        From vantage6.
    organizations : list of int, optional
        Ids of the organizations; all of the collaboration if not given.
    """
    if organizations is None:
        organizations = [known["id"] for known in client.organization.list()]
    task = client.task.create(
        method="report",
        arguments={},
        organizations=organizations,
        name="vertibayes reports",
        description="The report of each site's process.",
    )
    results: list[dict[str, str | int]] = client.wait_for_results(task_id=task["id"], interval=5)
    return results
