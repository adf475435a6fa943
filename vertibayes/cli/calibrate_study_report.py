"""The files and the report of a calibration between machines, as far as the analyst sees it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vertibayes.calibration.between_machines import CalibratedSites
from vertibayes.cli.calibrate_report import model_files, write_parts
from vertibayes.cli.notices import warn
from vertibayes.cli.outputs import write_folder, write_json, write_text
from vertibayes.cli.report import add_report
from vertibayes.cli.summaries import described_columns, head_of, options_as_json
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes.report.calibration import Traces, draw_calibration
from vertibayes_protocols.calibration.agreed import Calibration
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.schema import Schema


@dataclass(frozen=True)
class StudyOutcome:
    """What the sites of a study have reached, as far as their analyst sees it."""

    agreed: Calibration  # what the sites have agreed on
    schema: Schema  # the class and the features
    model: NaiveBayes | Network  # the model of the mean of the sites' statistics
    sites: CalibratedSites  # the losses of all rounds, and who was there
    ledger: Ledger  # the analyst's
    traffic: tuple[int, int]  # the analyst's rounds of messages, and the bytes that it sent
    seconds: float
    error: float | None  # the error on the tested records, and how many these are
    tested: int  # the error on the tested records, and how many these are
    warnings: list[str]
    study: Mapping[str, Any]  # what identifies the study


def report_study(
    out: Path, values: Mapping[str, Any], outcome: StudyOutcome, *, quiet: bool
) -> None:
    """Write and print the results of a study."""
    warn(outcome.warnings)
    agreed, sites = outcome.agreed, outcome.sites
    way = f"{agreed.mixing}, start {agreed.start}, rate {agreed.rate:g}"
    records = np.maximum(sites.records, 1)
    own = (sites.errors / records)[:, None]
    traces = Traces(own, "the sites' own records", sites.soft / records)
    summary = _summary_of_study(values, outcome)

    def write(part: Path) -> None:
        write_parts(part, outcome.model, agreed.network, {})
        write_json(part / "calibration.json", _trace_of_study(sites))
        write_json(part / "summary.json", summary)
        write_json(part / "ledger.json", outcome.ledger.as_json())
        title = f"{outcome.schema.target.name}: {way}"
        write_text(part / "calibration.svg", draw_calibration(traces, title))
        add_report(part)

    write_folder(out, write)
    if not quiet:
        sys.stdout.write(_shown_of_study(way, outcome, summary) + f"Written: {out}\n")


def _trace_of_study(sites: CalibratedSites) -> dict[str, Any]:
    """Return the content of calibration.json: sums over the sites that have finished a part."""
    names = "soft_loss", "errors", "records", "repairs"
    soft = sites.soft / np.maximum(sites.records, 1)
    traces = soft, sites.errors, sites.records, sites.repairs
    rounds = zip(*(trace.tolist() for trace in traces), strict=True)
    return {
        "rounds": [
            {"round": number, **dict(zip(names, values, strict=True))}
            for number, values in enumerate(rounds, start=1)
        ],
        "parts": [part._asdict() for part in sites.parts],
    }


def _summary_of_study(values: Mapping[str, Any], outcome: StudyOutcome) -> dict[str, Any]:
    """Return the content of summary.json."""
    agreed, sites = outcome.agreed, outcome.sites
    rounds, sent = outcome.traffic
    size = None if agreed.mixing == "relay" else agreed.size
    last = max(int(sites.records[-1]), 1)
    return {
        **head_of("calibrate"),
        "study": dict(outcome.study),
        "target": outcome.schema.target.name,
        "records": int(sites.records[-1]),
        "nodes": len(agreed.network.nodes),
        "sites": list(sites.parts[-1].parties),
        "edges": len(agreed.network.edges),
        "variables": described_columns(outcome.schema),
        "model": model_files(outcome.model),
        "options": {**options_as_json(values), "mixing": agreed.mixing, "size": size},
        "own_error": float(sites.errors[-1] / last),
        "test": None
        if outcome.error is None
        else {"records": outcome.tested, "error": outcome.error},
        "seconds": {"total": round(outcome.seconds, 4)},
        "rounds": rounds,
        "bytes": {"sent_by": "the analyst", "total": sent},
        "warnings": outcome.warnings,
    }


def _shown_of_study(way: str, outcome: StudyOutcome, summary: Mapping[str, Any]) -> str:
    """Return a study in a few lines."""
    network, sees = outcome.agreed.network, "each other's statistics"
    if not outcome.agreed.shown:
        sees = "sums over their neighbourhoods"
    there, nodes = outcome.sites.parts[-1].parties, len(network.nodes)
    of = f"{nodes}" if len(there) == nodes else f"{len(there)} ({', '.join(there)}) of {nodes}"
    lines = [
        f"{summary['records']} records at {of} sites, {len(network.edges)} edges; neighbours see "
        f"{sees}",
        f"{way}, {len(outcome.sites.soft)} rounds",
        f"error of the sites on their own records: {summary['own_error']:.4f}",
        f"seconds: {outcome.seconds:.3f}",
        f"model of the sites' mean statistics: {', '.join(summary['model'])}",
        "what was revealed, and to whom: ledger.json",
    ]
    if outcome.error is not None:
        lines.insert(3, f"error on {outcome.tested} test records: {outcome.error:.4f}")
    return "\n".join(lines) + "\n"
