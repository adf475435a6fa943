"""What ``vertibayes learn`` says of a learned network: its summary, its lines and its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vertibayes.cli.cuts import report_of_cuts
from vertibayes.cli.outputs import described, write_counts, write_json, write_rows, write_text
from vertibayes.cli.release import report_of_release
from vertibayes.cli.validations import as_json, warnings_of
from vertibayes.counting.released import ReleasedCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.learning import Learned
from vertibayes.report.counts import counts_json
from vertibayes.report.curves import draw_curves
from vertibayes.report.disclosure import Disclosure
from vertibayes.report.edges import report_of_edges
from vertibayes.report.people import alignment_as_json, report_of_people
from vertibayes.report.strengths import draw_learned, report_of_strengths, summary_of_strengths
from vertibayes.validation.methods import Validation
from vertibayes.words import area_of, counted, size
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.roles import Party
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.study import Study

HINTS = {
    "public": ", public records",
    "scv": ", synthetic records, optimistic",
    "svdg": ", synthetic records",
}


class Results(NamedTuple):
    """What a run has learned."""

    learned: Learned
    counter: SecureCounter | ReleasedCounter  # the source of the counts
    validated: Mapping[str, Validation]
    disclosed: Disclosure


def summarize(
    results: Results, study: OpenStudy, sender: Party | None, spent: Mapping[str, float]
) -> dict[str, Any]:
    """Return the summary of a run as JSON data."""
    learned, counter, validated, disclosed = results
    sites, people, traffic = study.study, study.people, study.traffic
    links = {f"{one} -> {other}": n for (one, other), n in sorted(traffic.bytes_sent.items())}
    seconds = {
        "commit": spent["commit"],
        "structure": learned.structure_seconds,
        "parameters": learned.parameters_seconds,
        "strengths": learned.strengths_seconds,
        "validation": spent["validation"],
    }
    seconds["total"] = sum(seconds.values())
    return {
        "records": counter.records,
        **({} if people is None else {"alignment": alignment_as_json(people)}),
        "sites": {s: [n for n in sites.variables if s in sites.holders[n]] for s in sites.sites},
        "variables": described(counter.variables),
        "left_out": {},
        "algorithm": learned.algorithm,
        "edges": len(learned.network.structure.edges),
        "strengths": summary_of_strengths(learned.strengths),
        "pseudo_count": learned.pseudo_count,
        "missing": learned.missing,
        "scores": learned.scores.as_json(),
        "unseen_parent_configurations": {n: c for n, c in learned.network.unseen.items() if c},
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "rounds": traffic.rounds,
        "bytes": {"sent_by": sender or "all parties", "total": traffic.bytes, "links": links},
        "auc": {method: validation.overall.auc for method, validation in validated.items()},
        "auc_interval": {method: validation.interval for method, validation in validated.items()},
        "widened": [step._asdict() for step in learned.widenings],
        "opened": {
            "tables": len(study.ledger.tables),
            "cells": study.ledger.cells,
            "single_record": disclosed._asdict(),
        },
    }


def warnings_about(results: Results) -> Iterator[str]:
    """Yield the warnings about results."""
    for method, validation in results.validated.items():
        yield from warnings_of(method, validation)
    if results.disclosed.cells:
        yield results.disclosed.sentence()
    unseen = sum(results.learned.network.unseen.values())
    if unseen:
        counts = "record" if isinstance(results.counter, SecureCounter) else "released record"
        are = "has" if unseen == 1 else "have"
        columns = "its CPT column is" if unseen == 1 else "their CPT columns are"
        yield (
            f"{counted(unseen, 'parent configuration')} {are} no {counts}; {columns} uniform "
            "(summary.json: unseen_parent_configurations)"
        )


def write_more(
    part: Path,
    results: Results,
    study: Study,
    further: Callable[[Path], object] | None = None,
) -> None:
    """Write the files beside the model, its summary and its ledger."""
    learned, counter, validated, _ = results
    write_counts(part, counts_json(learned, counter))
    if validated:
        aic = learned.scores.aic
        write_json(part / "validation.json", {n: as_json(v, aic) for n, v in validated.items()})
    holders = {name: ", ".join(sites) for name, sites in study.holders.items()}
    write_text(part / "structure.svg", draw_learned(learned, holders))
    for name, validation in validated.items():
        picture = draw_curves(validation, title_of(name, validation))
        write_text(part / f"validation-{name}.svg", picture)
    if learned.synthetic is not None:
        _write_records(part / "synthetic.csv", learned.synthetic)
    if further is not None:
        further(part)


def title_of(method: str, validation: Validation) -> str:
    """Return the title of a validation's picture."""
    records = "synthetic records" if validation.synthetic else "records"
    area = area_of(validation.overall.auc, validation.interval)
    return (
        f"{validation.target}, {method.upper()} on {validation.overall.scored:,} {records}: {area}"
    )


def _write_records(path: Path, data: SiteData) -> None:
    """Write records as CSV: missing cells are empty fields."""
    columns = [
        np.array([*variable.states, ""])[data.codes[name]]
        for name, variable in data.variables.items()
    ]
    write_rows(path, [data.variables, *zip(*columns, strict=True)])


def _smoothing(learned: Learned, kind: str) -> str:
    """Say from what the CPTs are."""
    counts = {
        "em": f"the counts that EM estimates from the {kind} tables",
        "synthetic": f"the counts that EM estimates from records drawn from the {kind} tables",
    }.get(learned.missing, f"the {kind} counts")
    if not learned.pseudo_count:
        return f"{counts}, divided (maximum likelihood)"
    return f"{counts}, {learned.pseudo_count:g} added to each (--pseudo-count), divided"


def report_of(learned: Learned, summary: dict[str, Any]) -> list[str]:
    """Return the lines that the command prints about a run."""
    seconds, opened, sent = summary["seconds"], summary["opened"], summary["bytes"]
    scores, structure = learned.scores, learned.network.structure
    sender = "" if sent["sent_by"] == "all parties" else f" by {sent['sent_by']}"
    is_released = "release" in summary
    has_choices = is_released and summary["choices"]["decisions"]
    winners = ", the winners of the choices" if has_choices else ""
    winners += ", how many people are in which lists" if "alignment" in summary else ""
    by = "" if learned.algorithm is None else f" by {learned.algorithm}"
    lines = [
        f"{counted(summary['records'], 'record')}, "
        f"{counted(len(summary['variables']), 'variable')} at "
        f"{counted(len(summary['sites']), 'site')}",
        f"structure{by}: {counted(len(structure.edges), 'edge')}; BIC {scores.bic:.3f}, "
        f"AIC {scores.aic:.3f}, K2 score {scores.k2:.3f} nats",
        *(report_of_people(summary["alignment"]) if "alignment" in summary else []),
        *report_of_edges(learned),
        *report_of_strengths(learned, summary),
        *(report_of_release(summary) if is_released else []),
        *(report_of_cuts(summary["discretization"]) if "discretization" in summary else []),
        f"CPTs: {_smoothing(learned, 'released' if is_released else 'exact')}",
        f"seconds: commit {seconds['commit']:.3f}, structure {seconds['structure']:.3f}, "
        f"parameters {seconds['parameters']:.3f}, arc strengths {seconds['strengths']:.3f}",
        f"sent{sender}: {size(sent['total'])} in {counted(summary['rounds'], 'round')}",
        f"revealed to the analyst: {counted(opened['tables'], 'table')}, "
        f"{counted(opened['cells'], 'cell')}{winners}, and nothing else of the records",
    ]
    for method, auc in summary["auc"].items():
        area = area_of(auc, summary["auc_interval"][method])
        lines.append(f"{method}{HINTS[method]}: {area}")
    return lines
