"""The files of the folder `release/`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from vertibayes.counting.released import ReleasedCounter
from vertibayes.network import Network
from vertibayes.report.release import acro
from vertibayes.report.release.appetite import Appetite
from vertibayes.report.release.assessment import Assessment, assess
from vertibayes.report.release.crate import NAME, crate
from vertibayes.report.release.texts import FILES, ledger_in_words, readme
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.roles import Party
from vertibayes_protocols.storage.whole_file import replacing


def write_release(
    folder: Path,
    counter: ReleasedCounter,
    network: Network,
    *,
    ledger: Ledger,
    study: Mapping[str, Any] | None = None,
    appetite: Appetite | None = None,
    sites: Sequence[Party] = (),
) -> Assessment:
    """Write the folder `release/` of a run.

    Parameters
    ----------
    folder : Path
        The folder, which is made.
    counter : ReleasedCounter
        The released tables.
    network : Network
        The network learned from them.
    ledger : Ledger
        The analyst's ledger.
    study : mapping, optional
        What the summary says about the study between machines; ledger.txt has all of it.
    appetite : Appetite, optional
        The limits of the verdicts; those of the rule if not given.
    sites : sequence of str
        The sites of the study.

    Returns
    -------
    assessment : Assessment
        For summary.json (`as_json`) and the messages of the command (`sentences`).

    Raises
    ------
    OSError
        If a file cannot be written; the error names the file.
    """
    assessment = assess(counter, network, appetite)
    texts = {
        "README.txt": readme(assessment),
        "tables.csv": _csv(_tables(assessment)),
        "small_cells.csv": _csv(_small_cells(assessment)),
        "differences.csv": _csv(_differences(assessment)),
        "ledger.txt": ledger_in_words(ledger, assessment, study),
    } | _acro_files(assessment, network)
    contents = {name: text.encode() for name, text in texts.items()}
    contract = (study or {}).get("contract", "")
    about = crate(assessment, contents, dict(FILES), ledger, sites, contract)
    (folder / "checksums").mkdir(parents=True)
    for name, content in (contents | {NAME: _json(about).encode()}).items():
        with replacing(folder / name) as part:
            part.write_bytes(content)
        with replacing(folder / "checksums" / f"{name}.txt") as part:
            part.write_text(acro.checksum(content), encoding="utf-8")
    return assessment


def _acro_files(assessment: Assessment, network: Network) -> dict[str, str]:
    """Return the tables and CPTs as CSV, and the JSON files that ACRO's tools read."""
    files = {}
    cpts = []
    for place, verdict in enumerate(assessment.verdicts):
        family = verdict.family
        rows = acro.table_rows(assessment, family, verdict.table)
        files[acro.count_file(place)] = _csv(rows)
        if network.structure.parents.get(family.child) == family.parents:
            cpts.append(place)
            files[acro.cpt_file(place)] = _csv(acro.cpt_rows(network, family))
    files["evidence.json"] = _json(acro.evidence(assessment))
    files["results.json"] = _json(acro.results(assessment, cpts))
    files["config.json"] = _json(acro.config(assessment))
    return files


def _tables(assessment: Assessment) -> Iterator[list[object]]:
    yield [
        *("output", "child", "parents", "cells", "rule", "verdict", "smallest count above 0"),
        *("small cells", "zeros", "small differences", "reasons"),
    ]
    for place, verdict in enumerate(assessment.verdicts):
        family, smallest = verdict.family, verdict.smallest
        yield [
            *(
                acro.uid(place),
                family.child,
                "; ".join(family.parents),
                verdict.table.size,
                assessment.rule.words,
            ),
            *(verdict.status, "" if smallest is None else smallest, verdict.below, verdict.zeros),
            *(verdict.differences, "; ".join(verdict.reasons)),
        ]


def _small_cells(assessment: Assessment) -> Iterator[list[object]]:
    yield ["output", "variables", "states", "count"]
    for cell in assessment.small:
        names = _named(assessment, cell.variables, cell.codes)
        yield [acro.uid(cell.table), "; ".join(cell.variables), names, cell.counted]


def _differences(assessment: Assessment) -> Iterator[list[object]]:
    yield ["larger in", "smaller in", "variables", "states", "difference"]
    for item in assessment.differences:
        names = _named(assessment, item.variables, item.codes)
        places = [_source(item.larger), _source(item.smaller)]
        yield [*places, "; ".join(item.variables), names, item.counted]


def _source(place: int | None) -> str:
    return "number of records" if place is None else acro.uid(place)


def _named(assessment: Assessment, variables: Iterable[str], codes: Iterable[int]) -> str:
    pairs = zip(variables, codes, strict=True)
    return "; ".join(assessment.states(name)[code] for name, code in pairs)


def _csv(rows: Iterable[Iterable[object]]) -> str:
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
