"""``vertibayes learn study.toml`` with ``learner = "calibration"``: the nodes are sites.

The sites send statistics to their neighbours, or neighbours see masked sums; the analyst sees the
losses of each round, summed over all sites, and at the end the mean of their statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from vertibayes.calibration.between_machines import (
    CalibratedSites,
    Part,
    calibrate_sites,
)
from vertibayes.calibration.models import error_rates
from vertibayes.calibration.network_model import model_of
from vertibayes.calibration.topologies import network_of
from vertibayes.cli.calibrate_learned import finish
from vertibayes.cli.json_files import read_structure
from vertibayes.cli.machines import Machines
from vertibayes.cli.naive_bayes_study import schema_of, variables_of
from vertibayes.cli.outputs import described_columns
from vertibayes.cli.phases import CALIBRATING
from vertibayes.cli.run import Run
from vertibayes.cli.study_settings import test_of
from vertibayes.cli.tested import read_tested
from vertibayes.dag import Structure
from vertibayes.report.calibration import Traces, draw_calibration
from vertibayes.settings import BETWEEN_MACHINES, CALIBRATION, LEARNER, NEIGHBOURS, TEST
from vertibayes_protocols.calibration.agreed import Calibration, ClassifierSpec
from vertibayes_protocols.calibration.choices import Mixing
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.deployment.files import SiteFile, StudyFile, own_keys
from vertibayes_protocols.deployment.running import role_of
from vertibayes_protocols.deployment.tables import Table
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError, words
from vertibayes_protocols.queries import Consensus
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Traffic
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData


@dataclass(frozen=True)
class CalibrationStudy:
    """What a study's file says: what is calibrated, for how long, and on what it is tested.

    `tested` has the records of the file `test`, and `said` the warnings about them.
    """

    file: StudyFile
    agreed: Calibration
    schema: Schema
    structure: Structure | None
    values: dict[str, Any]
    test: Path | None
    tested: LocalData | None = None
    said: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The class."""
        return self.schema.target.name


def read_calibration(file: StudyFile) -> CalibrationStudy:
    """Return what a study calibrates; refuse settings and test records that cannot be used."""
    study = settings_of(file)
    if study.test is None:
        return study
    try:  # after a run, an error in the records would be too late
        tested, said = read_tested(study.test, study.schema, needed=study.schema.features)
    except (OSError, ValueError) as error:
        reason = words(error).removeprefix("--test ")
        raise file.source.error(("learning", "test"), reason) from None
    return replace(study, tested=tested, said=tuple(said))


def check_site(file: StudyFile, site: SiteFile, data: SiteData) -> str:
    """Return that a site takes part in a calibration; it considers the first query of a run."""
    study, role = settings_of(file), role_of(site, own_keys(site), data)
    analyst = AnalystRole(file.party, signing_keys=dict(file.signing))
    rounds = min(study.values["rounds"], study.values["rounds_per_part"])
    query = Consensus.of(analyst, study.agreed, rounds)
    query = replace(query, analyst=role.analyst_key)  # `check` compares the keys themselves
    try:
        consider(role, query)
    except QueryRefusedError as refusal:
        raise ValueError(f"{site.source.path}: {refusal}") from None
    return f"{site.party}: takes part in the calibration of {file.source.path}"


def settings_of(file: StudyFile) -> CalibrationStudy:
    """Return what a study calibrates, without its test records; as `read_calibration`."""
    table = file.source.table("learning")
    values = table.take_all([LEARNER, *CALIBRATION, *BETWEEN_MACHINES, *TEST])
    table.end()
    test = test_of(table, values)
    if file.class_counts:
        raise file.source.error(("class_counts",), "calibration does not use it: remove the table")
    if not file.states:
        raise file.source.error(("states",), "declare the states of the class and of the features")
    with table.at("structure"):
        structure = read_structure(values["structure"])
    schema = schema_of(file, values["target"], variables_of(file.states))
    with table.at("structure"):
        spec = _spec(schema, structure)
    agreed = _agreed(table, values, spec, _network(file))
    return CalibrationStudy(file, agreed, schema, structure, values, test)


def _agreed(
    table: Table, values: dict[str, Any], spec: ClassifierSpec, network: Graph
) -> Calibration:
    """Return what the sites agree on."""
    mixing: Mixing = values["mixing"] or ("relay" if values["shown"] else "mean")
    if mixing == "relay" and not values["shown"]:
        raise table.error("mixing", "a relay shows statistics to neighbours: set shown = true")
    if mixing == "relay" and values["size"] is not None:
        raise table.error("size", 'a relay does not use it: remove it, or use mixing = "mean"')
    size = values["size"] or values["most_records"] / values["rate"]
    own = {n: values[n] for n in ("most_records", "start", "shown", "rate", "iterations")}
    try:
        return Calibration(spec, network, mixing=mixing, size=size, **own)
    except ValueError as error:
        raise table.file.error(table.keys, str(error)) from None


def _spec(schema: Schema, structure: Structure | None) -> ClassifierSpec:
    """Return the classifier, as the sites agree on it."""
    if structure is None:
        return ClassifierSpec.of(schema)
    if differing := set(structure.nodes) ^ {schema.target.name, *schema.features}:
        raise ValueError(
            f"{min(differing)!r} must be a node of the structure and a variable of "
            "[states]; [study] variables selects some of these"
        )
    return ClassifierSpec(schema.target.name, schema.variables, schema.numerics, structure.families)


def _network(file: StudyFile) -> Graph:
    """Return who are neighbours."""
    table = file.source.table("network")
    values = table.take_all(NEIGHBOURS)
    table.end()
    kind, edges = values["kind"], values["edges"]
    if (kind is None) == (not edges):
        raise file.source.error(("network",), "specify kind or edges: which sites are neighbours")
    try:
        if kind is not None:
            return network_of(kind, file.sites, np.random.default_rng(0))
        graph = Graph.of(file.sites, [(one, other) for one, other in edges])
        graph.check_connected()
    except ValueError as error:
        raise file.source.error(("network",), str(error)) from None
    return graph


def run_calibration_study(place: Machines, study: CalibrationStudy, run: Run) -> None:
    """Calibrate a classifier over the sites of a study, and write the results."""
    traffic, rounds = Traffic(), study.values["rounds"]
    start = perf_counter()

    def finished(part: Part | None) -> None:
        done = part.first + part.rounds - 1 if part else 0
        run.watch.progressed("rounds", done, rounds, 0.0, 0.0)

    with place.neighbours(run, traffic) as open_session:
        run.watch.phase(CALIBRATING)
        finished(None)
        sites = calibrate_sites(
            open_session,
            study.agreed,
            rounds,
            rounds_per_part=study.values["rounds_per_part"],
            finished=finished,
        )
    seconds = perf_counter() - start
    run.warn([*study.said, *_warnings(study, sites)])
    _report(study, sites, traffic, seconds, place.entry(), run)


def _report(
    study: CalibrationStudy,
    sites: CalibratedSites,
    traffic: Traffic,
    seconds: float,
    entry: Mapping[str, Any],
    run: Run,
) -> None:
    """Write the results of a study; `entry` says which one."""
    agreed, there, target = study.agreed, sites.parts[-1].parties, study.target
    network, model = agreed.network, model_of(agreed.spec, sites.statistics)
    own, soft = (each / np.maximum(sites.records, 1) for each in (sites.errors, sites.soft))
    size = None if agreed.mixing == "relay" else agreed.size
    summary = {
        "study": entry,
        "target": target,
        "records": int(sites.records[-1]),
        "sites": there,
        "variables": described_columns(study.schema),
        "options": {**study.values, "mixing": agreed.mixing, "size": size},
        "own_error": float(own[-1]),
        "test": _test(study, sites),
        "seconds": {"total": round(seconds, 4)},
        "rounds": traffic.rounds,
        "bytes": {"sent_by": "the analyst", "total": traffic.bytes},
    }
    way = f"{agreed.mixing}, start {agreed.start}, rate {agreed.rate:g}"
    said = {"way": way, "done": len(soft)}
    traces = Traces(own[:, None], "the sites' own records", soft)
    picture = draw_calibration(traces, f"{target}: {way}")
    finish(run, model, network, summary, said, (_trace(sites, soft), picture), {})


def _trace(sites: CalibratedSites, soft: Floats) -> dict[str, Any]:
    """Return the content of calibration.json: sums over the sites that have finished a part."""
    names = "soft_loss", "errors", "records", "repairs"
    traces = soft, sites.errors, sites.records, sites.repairs
    rounds = enumerate(zip(*(trace.tolist() for trace in traces), strict=True), start=1)
    return {
        "rounds": [{"round": n, **dict(zip(names, row, strict=True))} for n, row in rounds],
        "parts": [part._asdict() for part in sites.parts],
    }


def _test(study: CalibrationStudy, sites: CalibratedSites) -> dict[str, Any] | None:
    """Return the error on the tested records, if there are some."""
    if study.tested is None:
        return None
    classifier = study.agreed.classifier
    rates = error_rates(classifier, sites.statistics[None], classifier.examples(study.tested))
    return {"records": study.tested.records, "error": float(rates[0])}


def _warnings(study: CalibrationStudy, sites: CalibratedSites) -> list[str]:
    """Return who was away or left, and which tables of a network nobody has calibrated."""
    said = []
    for part in sites.parts:
        rounds = f"rounds {part.first} to {part.first + part.rounds - 1}"
        left = set(study.agreed.network.nodes) - set(part.absent) - set(part.parties)
        over = f"sums over {', '.join(part.parties)} alone"
        if part.absent:
            said.append(f"away in {rounds}: {', '.join(part.absent)}; {over}")
        if left:
            said.append(f"left during {rounds}: {', '.join(sorted(left))}; {over}")
    if study.structure is not None:
        target = study.target
        alone = [f.child for f in study.structure.families if target not in f.members]
        if alone:
            said.append(
                f"the tables of {', '.join(alone)} are uniform in the model, as {target} is not in "
                f"them: predict {target} of records that have values of these variables"
            )
    return said
