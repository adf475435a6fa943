"""The files of the folder `release/`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protocols.ledger import Ledger
from vertibayes.network import Network
from vertibayes.report.release.assessment import Assessment, assess
from vertibayes.report.release.released import Released


def write_release(
    folder: Path,
    counter: Released,
    network: Network,
    *,
    ledger: Ledger,
    study: Mapping[str, Any] | None = None,
) -> Assessment:
    """Write the folder `release/` of a run.

    Parameters
    ----------
    folder : Path
        The folder; it is made.
    counter : ReleasedCounter
        The released tables.
    network : Network
        The network learned from them.
    ledger : Ledger
        The analyst's ledger.
    study : mapping, optional
        What the summary says about the study between machines.

    Returns
    -------
    assessment : Assessment
        For summary.json (`as_json`) and the command's messages (`sentences`).
    """
    folder.mkdir(parents=True)
    return assess(counter, network)
