"""ACRO's own checks of a release: `python acro_checks.py RELEASE [RECORDS.csv]`, where ACRO is.

ACRO reads results.json, and checks the tables of evidence.json as an aggregator does. With the
pooled records, it also counts each table itself. Prints a JSON object.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from acro import ACRO, record
from acro.sdcchecks import SDCEvidence

logging.disable(logging.CRITICAL)
CHECKS = "MinimumThresholdCheck", "PresenceOfZeroCheck"
FIELDS = "analysis_names", "variable_types", "dof"  # also command and files, which have own names


class Model:
    """What ACRO's checks of a table ask of the model that made it."""

    model_type = "table"

    def __init__(self, names: list[str], counts: pd.DataFrame) -> None:
        self.names, self.counts = names, counts

    def get_dimension_names(self) -> list[str]:
        """Return the variables of the table."""
        return self.names

    def get_allfalse_table(self) -> pd.DataFrame:
        """Return a mask that marks nothing."""
        return self.counts < 0


def masks(counts: pd.DataFrame, names: list[str], session: ACRO) -> tuple[str, list[Any]]:
    """Return ACRO's status of a table, and the masks of two checks."""
    evidence = SDCEvidence(interim_tables={"count_table": counts})
    done = session.sdc_checks.run_checks_for_analysis(
        "FrequencyTable", evidence, Model(names, counts)
    )
    return done.overall_status, [done.outcomes[check].to_numpy() for check in CHECKS]


def counted_by_acro(entries: dict[str, Any], folder: Path, records: Path, into: Path) -> int:
    """Let ACRO count each table that has parents; return how many files equal the release's."""
    data = pd.read_csv(records, dtype=str)
    session = ACRO(federated=True)
    places = []
    for uid, entry in entries.items():
        *parents, child = entry["variable_types"]["independent"]
        if not parents:
            continue
        table = pd.read_csv(folder / entry["interim_tables"]["count_table"], dtype=str)
        states = {p: list(dict.fromkeys(table[p])) for p in parents}
        states[child] = list(table.columns[len(parents) :])
        axes = {n: pd.Series(pd.Categorical(data[n], s), name=n) for n, s in states.items()}
        session.crosstab([axes[p] for p in parents], axes[child], dropna=False)
        places.append(uid)
    session.finalise(str(into))
    theirs = json.loads((into / "evidence.json").read_text())["outputs"]
    same = 0
    for place, uid in enumerate(places):
        entry = theirs[f"output_{place}"]
        file = (into / entry["interim_tables"]["count_table"]).read_bytes()
        ours = (folder / entries[uid]["interim_tables"]["count_table"]).read_bytes()
        fields = all(
            entry[k] == entries[uid][k] for k in ("analysis_names", "variable_types", "dof")
        )
        same += file == ours and fields and set(entry) == set(entries[uid])
    return same


def main(folder: Path, records: Path | None) -> None:
    """Print what ACRO finds."""
    session = ACRO()
    session.config["safe_threshold"] = json.loads((folder / "config.json").read_text())[
        "safe_threshold"
    ]
    loaded = record.load_records(str(folder)).results
    entries = json.loads((folder / "evidence.json").read_text())["outputs"]
    found = dict.fromkeys(("tables", "small", "ours", "agree", "small_or_zero", "fail", "same"), 0)
    for uid, entry in entries.items():
        names = entry["variable_types"]["independent"]
        index = list(range(max(len(names) - 1, 1)))
        counts = pd.read_csv(folder / entry["interim_tables"]["count_table"], index_col=index)
        status, (low, zero) = masks(counts, names, session)
        cells = loaded[uid].sdc["cells"]
        ours = np.zeros(low.shape, bool)
        ours[tuple(np.array(cells["MinimumThresholdCheck"], int).reshape(-1, 2).T)] = True
        small = low & ~zero
        same_verdict = (loaded[uid].status == "fail") == bool(small.any())
        found["tables"] += 1
        found["small"] += int(small.sum())
        found["ours"] += int(ours.sum())
        found["agree"] += bool((ours == small).all() and same_verdict)
        found["small_or_zero"] += int(low.sum())
        found["fail"] += status == "fail"
    if records:
        with tempfile.TemporaryDirectory() as at:
            found["same"] = counted_by_acro(entries, folder, records, Path(at) / "acro")
    print(json.dumps(found))


if __name__ == "__main__":
    given = [Path(name).resolve() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as at:
        os.chdir(at)  # ACRO writes folders where it runs
        main(given[0], given[1] if len(given) > 1 else None)
