"""The layout of ACRO 1.0, so that its tools read a release.

`evidence.json` and one CSV for each table are what ACRO writes in its federated mode for a trusted
aggregator, who runs the checks. `results.json` is what ACRO writes after its checks, and what
`acro.record.load_records` and SACRO-Viewer read; `config.json` has the limits, and `checksums/` a
digest of each file that is listed.

References
----------
ACRO 1.0.2 (https://github.com/AI-SDC/ACRO), `record.Records.finalise_evidence`, `finalise_json` and
`load_records`; SACRO-Viewer (https://github.com/AI-SDC/SACRO-Viewer), `sacro/models.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes import __version__
from vertibayes.network import Network
from vertibayes.report.release.assessment import Assessment, Verdict
from vertibayes_protocols.variables import Family

ACRO_VERSION = "1.0.2"  # `load_records` reads results of its own version alone
TOOL = {"@type": "SoftwareApplication", "name": "vertibayes", "version": __version__}
Rows: TypeAlias = list[list[object]]


def uid(place: int) -> str:
    """Return ACRO's name of the output at a place."""
    return f"output_{place}"


def count_file(place: int) -> str:
    """Return the name of the CSV with the table at a place."""
    return f"{uid(place)}_count_table.csv"


def cpt_file(place: int) -> str:
    """Return the name of the CSV with the CPT of the node whose table is at a place."""
    return f"{uid(place)}_cpt.csv"


def table_rows(assessment: Assessment, family: Family, table: NDArray[Any]) -> Rows:
    """Return a table: a row for each combination of the parents' states, a column for each state.

    A table without parents has a row for each state, and one column.
    """
    states = {name: assessment.states(name) for name in family.members}
    return _rows(family, states, table, "records")


def cpt_rows(network: Network, family: Family) -> Rows:
    """Return the CPT of a family's child in the layout of `table_rows`."""
    states = {name: network.variables[name].states for name in family.members}
    return _rows(family, states, network.cpts[family.child], "probability")


def _rows(
    family: Family, states: Mapping[str, Sequence[str]], table: NDArray[Any], column: str
) -> Rows:
    if not family.parents:
        rows = zip(states[family.child], table.tolist(), strict=True)
        return [[family.child, column], *([state, value] for state, value in rows)]
    parents = product(*(states[name] for name in family.parents))
    head: list[object] = [*family.parents, *states[family.child]]
    rest = zip(parents, _by_parents(table).tolist(), strict=True)
    return [head, *([*names, *row] for names, row in rest)]


def _by_parents(table: NDArray[Any]) -> NDArray[Any]:
    """Return a table as ACRO lays it out: a row for each combination of the parents' states."""
    return table.reshape(-1, 1) if table.ndim == 1 else table.reshape(len(table), -1).T


def evidence(assessment: Assessment) -> Mapping[str, Any]:
    """Return the content of evidence.json."""
    return {
        "version": ACRO_VERSION,
        "tool": TOOL,
        "outputs": {
            uid(place): {
                "command": _command(verdict.family),
                "analysis_names": ["FrequencyTable"],
                "variable_types": _variable_types(verdict.family),
                "dof": None,
                "interim_tables": {"count_table": count_file(place)},
            }
            for place, verdict in enumerate(assessment.verdicts)
        },
    }


def results(assessment: Assessment, cpts: Sequence[int]) -> Mapping[str, Any]:
    """Return the content of results.json; `cpts` are the places of tables with a CPT."""
    outputs = {}
    for place, verdict in enumerate(assessment.verdicts):
        files = [{"name": count_file(place), "sdc": _sdc(assessment, verdict)}]
        if place in cpts:
            files.append({"name": cpt_file(place), "sdc": {}})
        outputs[uid(place)] = _result(assessment, place, verdict) | {"files": files}
    return {"version": ACRO_VERSION, "tool": TOOL, "results": outputs}


def config(assessment: Assessment) -> Mapping[str, Any]:
    """Return the content of config.json: the limits, by ACRO's names."""
    limits = {
        "safe_threshold": assessment.appetite.threshold,
        "zeros_are_disclosive": _zeros(assessment),
    }
    return {**limits, "federated": True, **assessment.appetite.as_json(assessment.rule)}


def _zeros(assessment: Assessment) -> bool:
    return assessment.rule.kind == "exact" and assessment.appetite.zeros


def checksum(content: bytes) -> str:
    """Return the digest that `checksums/` has of a file."""
    return hashlib.sha256(content).hexdigest()


def _command(family: Family) -> str:
    return f"count {family.child} by {', '.join(family.parents) or 'no other variable'}"


def _variable_types(family: Family) -> Mapping[str, Any]:
    return {"dependent": "unknown", "independent": [*family.parents, family.child]}


def _result(assessment: Assessment, place: int, verdict: Verdict) -> dict[str, Any]:
    kind = assessment.rule.kind
    return {
        "uid": uid(place),
        "status": verdict.status,
        "type": "table",
        "properties": {"method": "crosstab", "mitigation": "none" if kind == "exact" else kind},
        "outcome": {},
        "command": _command(verdict.family),
        "summary": "; ".join([verdict.status, *verdict.reasons]),
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "comments": [],
        "exception": "",
        "fair": {"statbarn": "Frequencies"} | dict(_variable_types(verdict.family)),
    }


def _sdc(assessment: Assessment, verdict: Verdict) -> Mapping[str, Any]:
    """Return which cells of the CSV fail ACRO's checks, as (row, column) without headings."""
    if assessment.rule.is_noisy:
        return {"summary": {}, "cells": {}}
    table = verdict.table
    small = (table > 0) & (table < assessment.appetite.threshold)
    cells = {"MinimumThresholdCheck": _places(small)}
    if _zeros(assessment):
        cells["PresenceOfZeroCheck"] = _places(table == 0)
    return {"summary": {name: len(places) for name, places in cells.items()}, "cells": cells}


def _places(mask: NDArray[np.bool_]) -> list[list[int]]:
    places: list[list[int]] = np.argwhere(_by_parents(mask)).tolist()
    return places
