"""``vertibayes calibrate``: read, deal to nodes, calibrate without a server, compare, write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes.calibration.models import scales_of, to_naive_bayes
from vertibayes.calibration.network_model import to_network
from vertibayes.cli.calibrate_learned import (
    MOST_SCORED,
    Outcome,
    Request,
    Scenario,
    calibrate,
    finish,
)
from vertibayes.cli.inputs import Sites, read_pooled
from vertibayes.cli.json_files import read_structure
from vertibayes.cli.number_columns import with_bounds
from vertibayes.cli.outputs import described_columns
from vertibayes.cli.run import Run
from vertibayes.cli.source import Source
from vertibayes.cli.tested import about_lost, divided_records, have_class
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.report.calibration import Pooled, Traces, draw_calibration
from vertibayes.splitting import drift_parts, node_sizes
from vertibayes.words import counted
from vertibayes_protocols.calibration.classifier import (
    Examples,
    FactoredClassifier,
    naive_bayes,
    network_classifier,
)
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.nodes import relay_rate
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

SIMULATED = "numbers", "test", "holdout"  # of the source, which are options in summary.json
WORSE = 0.005  # in error, that the nodes are above maximum likelihood; less can be chance
MOST_SHOWN = 6  # columns whose bounds a warning has; summary.json has all


def run_calibrate(source: Source, request: Request, run: Run) -> None:
    """Run the command; see its help."""
    request = request.checked()
    structure = read_structure(request.structure)
    sites = read_pooled(source, with_bounds)
    (data,) = sites.data.values()
    schema = _schema(source, request, sites, data, structure)
    training, tested, said = divided_records(source, schema, data)
    lost = about_lost(training, request.target)
    training = training.rows(np.flatnonzero(have_class(training, request.target)))
    generators = np.random.default_rng(source.seed).spawn(4)
    scenario = _scenario(request, schema, structure, training, tested, generators[:3])
    with run:
        with run.progress() as progress:
            progress("calibration", 0, 1)
            outcome = calibrate(request, scenario, generators[3], progress.watch)
        run.warn([*sites.warnings, *said, *lost, *_about(request, source, sites, schema)])
        run.warn([*outcome.warnings, *_advice(request, outcome)])
        model = _model(outcome, schema, structure, training)
        about = {
            "data": source.data[0],
            "seed": source.seed,
            "left_out": dict(sites.left_out),
            "options": asdict(request) | source.options(*SIMULATED),
            "variables": described_columns(schema),
        }
        _report(run, request, outcome, model, about)


# ---- what is calibrated --------------------------------------------------------------------------


def _schema(
    source: Source, request: Request, sites: Sites, data: SiteData, structure: Structure | None
) -> Schema:
    """Return the class and the features."""
    sites.check_known(request.target, "--target")
    if request.target in data.numerics:
        raise ValueError(
            f"--target {request.target}: its column stays numbers, and a class has states; leave "
            "it out of --bounds and --numbers"
        )
    target = data.variables[request.target]
    cut_by_hand = any(text.startswith(f"{target.name}=") for text in source.cut)
    if bins_of(target.states) is not None and not cut_by_hand:
        raise ValueError(
            f"--target {target.name}: its column has numbers, and a class has states; "
            f"--cut {target.name}=EDGE,EDGE makes classes of them, --categorical {target.name} "
            "takes each number as a class"
        )
    columns: dict[str, Variable | Numeric] = {**data.variables, **data.numerics}
    if structure is not None:
        _check_structure(request, structure, sites, data)
    names = sites.order if structure is None else structure.nodes
    schema = Schema(target, {name: columns[name] for name in names if name != target.name})
    if request.covariance == "full" and len(schema.numeric) < 2:
        raise ValueError(
            "--covariance full needs two or more columns that stay numbers, got "
            f"{len(schema.numeric)}: name them in --numbers or --bounds"
        )
    return schema


def _check_structure(request: Request, structure: Structure, sites: Sites, data: SiteData) -> None:
    """Refuse a structure whose nodes are not states of columns, or that leaves the class alone."""
    for name in structure.nodes:
        if name in data.numerics:
            raise ValueError(
                f"--structure: {name!r} stays numbers, and a Bayesian network has states: leave it "
                "out of --bounds and --numbers"
            )
        if name not in data.variables:
            reason = sites.left_out.get(name)
            why = f"the column is left out: {reason}" if reason else "no such column"
            raise ValueError(f"--structure: {name!r}: {why}")
    if request.target not in structure.nodes:
        raise ValueError(f"--structure has no node {request.target!r}, the target")
    if not structure.moral_neighbours()[request.target]:
        raise ValueError(f"--structure has no edge from or to {request.target!r}, the target")


def _classifier(
    request: Request, schema: Schema, structure: Structure | None, data: LocalData
) -> FactoredClassifier:
    if structure is None:
        return naive_bayes(schema, scales_of(data), covariance=request.covariance)
    return network_classifier(schema.target.name, schema.variables, structure.families)


def _scenario(
    request: Request,
    schema: Schema,
    structure: Structure | None,
    training: LocalData,
    tested: LocalData | None,
    generators: Sequence[np.random.Generator],
) -> Scenario:
    """Draw the network, and deal the records to its nodes."""
    wiring, dealing, leaving = generators
    graph, network = request.network_of(wiring)
    nodes = graph.nodes
    if len(nodes) > training.records:
        raise ValueError(
            f"--nodes must be at most {training.records} (the number of records to learn from), "
            f"got {len(nodes)}"
        )
    classifier = _classifier(request, schema, structure, training)
    pooled = classifier.examples(training)
    sizes = node_sizes("equal", len(nodes), training.records, dealing)
    parts = drift_parts(training, sizes, request.drift, dealing, target=request.target)
    examples = {n: _rows(pooled, places) for n, places in zip(nodes, parts, strict=True)}
    if tested is not None:
        scored, what = classifier.examples(tested), "test records"
    else:
        chosen = dealing.permutation(training.records)[:MOST_SCORED]
        scored, what = _rows(pooled, chosen), "training records"
    absent = request.absences(nodes, leaving)
    return Scenario(classifier, examples, graph, network, absent, scored, what)


def _rows(examples: Examples, places: NDArray[np.int64]) -> Examples:
    return Examples(examples.columns[places], examples.classes[places])


def _about(request: Request, source: Source, sites: Sites, schema: Schema) -> Iterator[str]:
    """Return which columns are not used, and what nodes on machines of their own cannot do."""
    unused = [n for n in sites.order if n not in {request.target, *schema.features}]
    if unused:
        yield f"not in --structure, and therefore not used: {', '.join(unused)}"
    by_hand = {text.rpartition("=")[0] for text in source.bounds}
    from_data = [f"{n}={low:g},{high:g}" for n, low, high in schema.numerics.values()
                 if n not in by_hand]  # fmt: skip
    if from_data:
        count, more = len(from_data), len(from_data) - MOST_SHOWN
        from_data[MOST_SHOWN:] = [f"and {more} more"] if more > 0 else []
        yield (
            f"the bounds of {counted(count, 'column')} of numbers come from the pooled "
            f"records: {', '.join(from_data)}; between machines they are declared"
        )
    if request.mixing == "relay" and request.leaving:
        yield (
            "with --leaving, a relay keeps the last sums that it had of a node that is away: its "
            "records count until it comes back"
        )


# ---- what comes out ------------------------------------------------------------------------------


def _model(
    outcome: Outcome, schema: Schema, structure: Structure | None, training: LocalData
) -> NaiveBayes | Network:
    """Return the model of the nodes' mean statistics."""
    classifier = outcome.scenario.classifier
    if structure is None:
        return to_naive_bayes(classifier, schema, outcome.mean)
    data = SiteData(training.variables, training.codes)  # type: ignore[arg-type]
    return to_network(classifier, outcome.mean, fit_cpts(PlainCounter(data), structure))


def _report(
    run: Run,
    request: Request,
    outcome: Outcome,
    model: NaiveBayes | Network,
    about: Mapping[str, Any],
) -> None:
    """Write a run's results; `about` are further entries of the summary."""
    scenario = outcome.scenario
    graph, last = scenario.graph, outcome.rows[-1].errors
    summary = {
        **about,
        "target": request.target,
        "records": int(scenario.sizes.sum()),
        "message": {"numbers": _length(request, scenario.classifier)},
        "scored_on": {"what": scenario.scored_on, "records": len(scenario.scored.classes)},
        "error": {
            "nodes": _spread(last),
            "risk_based_calibration": outcome.pooled_error,
            "maximum_likelihood": outcome.likelihood_error,
        },
        "gap": outcome.gap,
        "seconds": {name: round(value, 4) for name, value in outcome.seconds.items()},
    }
    kind = "network" if request.is_file else f"{request.network} network"
    said = {"way": (way := _way(request, graph)), "kind": kind}
    drift = "" if request.drift == "none" else f", drift in {' and '.join(request.drift)}"
    soft = outcome.pooled.soft / scenario.sizes.sum()
    traces = Traces(
        np.array([row.errors for row in outcome.rows]),
        f"{len(scenario.scored.classes):,} {scenario.scored_on}",
        np.array([row.soft for row in outcome.rows]),
        Pooled(soft, outcome.pooled_error, outcome.likelihood_error),
    )
    picture = draw_calibration(traces, f"{request.target}: {way}{drift}")
    errors = dict(zip(graph.nodes, last.tolist(), strict=True))
    finish(run, model, graph, summary, said, (_trace(outcome), picture), errors)


def _trace(outcome: Outcome) -> dict[str, Any]:
    """Return the content of calibration.json."""
    scenario, rc, last = outcome.scenario, outcome.pooled, outcome.rows[-1]
    records = scenario.sizes.sum()
    nodes = zip(scenario.graph.nodes, scenario.sizes, last.own, last.errors, strict=True)
    return {
        "scored_on": {"what": scenario.scored_on, "records": len(scenario.scored.classes)},
        "rounds": [
            {
                "round": row.number,
                "present": row.present,
                "soft_loss": row.soft,
                "own_error": _spread(row.own),
                "error": _spread(row.errors),
                "repairs": row.repairs,
            }
            for row in outcome.rows
        ],
        "nodes": {
            node: {
                "records": int(size),
                "own_error": None if np.isnan(own) else own,
                "error": error,
            }
            for node, size, own, error in nodes
        },
        "pooled": {
            "risk_based_calibration": {
                "soft_loss": (rc.soft / records).tolist(),
                "training_error": (rc.errors / records).tolist(),
                "repairs": rc.repairs.tolist(),
                "best_iteration": rc.best,
                "error": outcome.pooled_error,
                "error_of_the_last_iteration": outcome.last_error,
            },
            "maximum_likelihood": {"error": outcome.likelihood_error},
        },
        "gap": outcome.gap,
    }


def _spread(values: Floats) -> dict[str, float] | None:
    """Return mean, minimum and maximum of the nodes that have a value."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return {"mean": known.mean(), "least": known.min(), "largest": known.max()}


def _way(request: Request, graph: Graph) -> str:
    way, rate = f"{request.mixing}, start {request.start}, rate ", request.rate
    if request.mixing == "relay" and (lower := relay_rate(rate, request.iterations, graph)) < rate:
        return f"{way}{lower:.2g} instead of {rate:g}, as sums are {graph.delay:.0f} rounds late"
    return f"{way}{rate:g}"


def _length(request: Request, classifier: FactoredClassifier) -> int:
    """Return how many numbers a message has: a relay sends two vectors and a count of records."""
    statistics = len(classifier.classes) * classifier.width
    return 2 * statistics + 1 if request.mixing == "relay" else statistics


def _advice(request: Request, outcome: Outcome) -> Iterator[str]:
    """Return warnings about a run."""
    if request.mixing == "relay" and request.start == "uniform":
        yield (
            "a relay with --start uniform converges slowly, and its errors can rise on the way: "
            "use --start data"
        )
    yield from _about_rate(request, outcome)
    if outcome.error > outcome.likelihood_error + WORSE:
        scenario = outcome.scenario
        size = ", a larger --size" if request.size else ""
        yield (
            f"the nodes have an error of {outcome.error:.4f} after the last round, maximum "
            f"likelihood of the records of all nodes {outcome.likelihood_error:.4f} (on "
            f"{len(scenario.scored.classes)} {scenario.scored_on}): calibration.svg shows whether "
            f"more --rounds{size} or a lower --rate can help"
        )
    if repairs := outcome.rows[-1].repairs:
        yield (
            f"in the last round the nodes' models needed {counted(repairs, 'repair')}: counts or "
            "variances that updates had driven too low; the models have the least valid ones"
        )


def _about_rate(request: Request, outcome: Outcome) -> Iterator[str]:
    """Return whether RC cannot improve on its start, or its rate is too high to do so."""
    soft = outcome.pooled.soft
    if request.rate > Request.rate and soft[1:3].max() > soft[0]:
        yield (
            f"the loss of RC on pooled records rises in its first iterations with --rate "
            f"{request.rate:g}: use a lower --rate (by default {Request.rate:g})"
        )
    elif not outcome.pooled.best:
        yield (
            "RC on pooled records has its lowest loss at its start, which is maximum likelihood: "
            "calibration does not help on these records"
        )
