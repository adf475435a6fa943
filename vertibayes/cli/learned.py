"""What ``vertibayes learn`` says of a learned network: its summary, its lines and its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vertibayes.cli.cuts import report_of_cuts
from vertibayes.cli.outputs import described, write_counts, write_json, write_rows, write_text
from vertibayes.cli.texts import text
from vertibayes.cli.validations import as_json, warnings_of
from vertibayes.counting.released import ReleasedCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.holdout import HeldOut
from vertibayes.learning import Learned
from vertibayes.released import Released
from vertibayes.report.counts import counts_json
from vertibayes.report.curves import draw_curves
from vertibayes.report.disclosure import Disclosure
from vertibayes.report.edges import report_of_edges
from vertibayes.report.people import alignment_as_json, report_of_people
from vertibayes.report.release import Appetite, assess
from vertibayes.report.rule_cost import cut_cost, noise_cost
from vertibayes.report.strengths import draw_learned, report_of_strengths, summary_of_strengths
from vertibayes.validation.methods import Validation
from vertibayes.words import area_of, counted
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries.releases.plan import ReleaseNoise
from vertibayes_protocols.roles import Party
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.study import Study


class Results(NamedTuple):
    """What a run has learned."""

    learned: Learned
    counter: SecureCounter | ReleasedCounter  # the source of the counts
    validated: Mapping[str, Validation]
    disclosed: Disclosure
    remedy: str  # what hides records that are alone in a revealed cell


def summarize(
    results: Results, study: OpenStudy, sender: Party | None, spent: Mapping[str, float]
) -> dict[str, Any]:
    """Return the summary of a run as JSON data."""
    learned, counter, validated, disclosed, _ = results
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
        "count_by": sites.count_by,
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
        "auc_spread": {method: validation.spread for method, validation in validated.items()},
        **{
            method: {
                "records": validation.overall.scored + validation.overall.left_out,
                **validation.as_json(),
            }
            for method, validation in validated.items()
            if isinstance(validation, HeldOut)
        },
        "widened": [step._asdict() for step in learned.widenings],
        "opened": {
            "tables": len(study.ledger.tables),
            "cells": study.ledger.cells,
            "single_record": disclosed._asdict(),
        },
    }


def summary_of_release(
    released: Released, sites: int, appetite: Appetite | None = None
) -> dict[str, Any]:
    """Return what summary.json has of choices and a release beside the results."""
    assessment = assess(released.counter, released.learned.network, appetite)
    return {
        "calls": released.calls,
        "release": {**assessment.as_json(), "sentences": assessment.sentences()},
        "choices": {
            "decisions": released.decisions,
            "candidates": released.candidates,
            "undecided": released.undecided,
            "bits_at_most": round(released.bits, 1),
            "too_large": released.too_large,
            "resolution_in_nats": released.resolution,
        },
        "cost": cost_of(released, sites),
    }


def cost_of(released: Released, sites: int) -> dict[str, Any] | None:
    """Return what the rule costs, as JSON data; None if the released tables do not show it."""
    counter, learned = released.counter, released.learned
    request = counter.request
    if request.rule.is_noisy:
        deviation = sqrt(sites * ReleaseNoise(request, sites).of_a_site().variance)
        about = None
        if learned.pseudo_count and not request.missing:
            about = noise_cost(learned.network, counter.records, deviation, learned.pseudo_count)
        return {"deviation": deviation, "nats_about": about}
    if request.rule.kind != "cut":
        return None
    cost = cut_cost(counter, learned.network, learned.pseudo_count)
    return None if cost is None else cost._asdict()


def warnings_about(results: Results) -> Iterator[str]:
    """Yield the warnings about results."""
    for method, validation in results.validated.items():
        yield from warnings_of(method, validation)
    request = getattr(results.counter, "request", None)
    if results.validated and request is not None and request.rule.is_noisy:
        yield (
            "the records of this validation are drawn from noisy tables: the more noise these "
            "have, the closer to 1 its AUC can be, whatever the network predicts of real records"
        )
    if results.disclosed.cells:
        yield results.disclosed.sentence(results.remedy)
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
    learned, counter, validated, *_ = results
    write_counts(part, counts_json(learned, counter))
    if validated:
        aic = learned.scores.aic
        write_json(part / "validation.json", {n: as_json(v, aic) for n, v in validated.items()})
    holders = {name: ", ".join(sites) for name, sites in study.holders.items()}
    write_text(part / "structure.svg", draw_learned(learned, holders))
    for name, validation in validated.items():
        kind = "records" if name == "public" else f"{validation.test_records} records"
        over = " over the folds" if validation.by_fold else ""
        area = area_of(validation.overall.auc, validation.interval, over)
        on = f"{name.upper()} on {validation.overall.scored:,} {kind}"
        picture = draw_curves(validation, f"{validation.target}, {on}: {area}")
        write_text(part / f"validation-{name}.svg", picture)
    if learned.synthetic is not None:
        _write_records(part / "synthetic.csv", learned.synthetic)
    if further is not None:
        further(part)


def _write_records(path: Path, data: SiteData) -> None:
    """Write records as CSV: missing cells are empty fields."""
    columns = [
        np.array([*variable.states, ""])[data.codes[name]]
        for name, variable in data.variables.items()
    ]
    write_rows(path, [data.variables, *zip(*columns, strict=True)])


def report_of(learned: Learned, summary: Mapping[str, Any]) -> list[str]:
    """Return the lines that the command prints about a run."""
    people = report_of_people(summary["alignment"]) if "alignment" in summary else []
    about = [*people, *report_of_edges(learned), *report_of_strengths(learned, summary)]
    cut = report_of_cuts(summary["discretization"]) if "discretization" in summary else []
    return text("learn.txt.j2", **summary, about=about, cut=cut).splitlines()
