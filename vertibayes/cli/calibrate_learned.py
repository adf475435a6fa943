"""What ``vertibayes calibrate`` is asked, what it computes, and how it ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, get_args

import numpy as np

from vertibayes.calibration.absences import Away
from vertibayes.calibration.crc import Networks, Round, collaborative_rc
from vertibayes.calibration.models import error_rates
from vertibayes.calibration.rc import Calibrated, risk_based_calibration
from vertibayes.calibration.topologies import Changing, network_of, node_names, read_network
from vertibayes.cli.outputs import models_of, write_json, write_model, write_text
from vertibayes.cli.run import Run
from vertibayes.cli.texts import text
from vertibayes.drawing.svg import draw
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes.report.communication import draw_network
from vertibayes.settings import NETWORKS, DrawnNetwork
from vertibayes_protocols.calibration.choices import Covariance, Mixing, Start
from vertibayes_protocols.calibration.classifier import Examples, FactoredClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import statistics_of

MOST_SCORED = 10_000  # training records on which all nodes' models are scored in each round
OF_KINDS = {
    "extra_edges": "adds to a network that is drawn",
    "changes": "draws a network again",
}


@dataclass(frozen=True)
class Request:
    """The options of ``vertibayes calibrate``; each is a setting of `vertibayes.settings`."""

    target: str
    rounds: int = 64
    rate: float = 0.05
    iterations: int = 1
    mixing: Mixing | None = None  # that of the network, if not given
    start: Start = "data"
    size: float | None = None
    structure: Path | None = None
    nodes: int | None = None
    network: str = "tree"
    extra_edges: int = 0
    changes: int | None = None
    drift: str = "none"
    leaving: float = 0.0
    returning: float = 0.5
    asleep: float = 0.0
    covariance: Covariance = "diagonal"

    @property
    def is_file(self) -> bool:
        """Whether the network is that of a file."""
        return self.network not in NETWORKS

    def checked(self) -> Request:
        """Return the request with its mixing filled in; refuse what cannot be."""
        self._check_network()
        if self.structure and self.covariance == "full":
            raise ValueError("--covariance full excludes --structure: a network has states")
        stays = not (self.changes or self.leaving or self.asleep)
        given: Mixing = self.mixing or ("relay" if stays else "mean")
        if given == "relay":
            for name, value in (("size", self.size), ("asleep", self.asleep)):
                if value:
                    raise ValueError(
                        f"--{name} has an effect with --mixing mean or metropolis alone, got relay"
                    )
            if self.changes:
                raise ValueError(
                    "--mixing relay needs a network that stays as it is: leave out --changes, or "
                    "use --mixing mean"
                )
        return replace(self, mixing=given)

    def _check_network(self) -> None:
        """Refuse options that do not fit the kind of network."""
        if not self.is_file:
            if self.nodes is None:
                raise ValueError(
                    f"specify --nodes N: --network {self.network} is drawn for N nodes"
                )
            if self.network == "small-world" and self.nodes < 5:
                raise ValueError(
                    f"--network small-world needs --nodes 5 or more, which it gives four "
                    f"neighbours each, got {self.nodes}"
                )
            if self.changes and self.network not in get_args(DrawnNetwork) and not self.extra_edges:
                raise ValueError(
                    f"--changes draws the network again, and each {self.network} is the same: use "
                    f"--network {' or '.join(get_args(DrawnNetwork))}, or --extra-edges"
                )
            return
        if not self.network.endswith(".json") and not Path(self.network).exists():
            raise ValueError(
                f"--network must be {', '.join(NETWORKS)} or a FILE.json, got {self.network}"
            )
        for name, does in OF_KINDS.items():
            if getattr(self, name):
                option = "--" + name.replace("_", "-")
                raise ValueError(f"{option} {does}: it has no effect on {self.network}")

    def network_of(self, generator: np.random.Generator) -> tuple[Graph, Networks]:
        """Return the network of the first round, and that of each round."""
        if self.is_file:
            graph = read_network(Path(self.network))
            if len(graph.nodes) < 2:
                raise ValueError(f"--network {self.network}: it must have at least 2 nodes, got 1")
            if self.nodes not in (None, len(graph.nodes)):
                raise ValueError(
                    f"--nodes {self.nodes}: {self.network} has {len(graph.nodes)} nodes; leave out "
                    "--nodes"
                )
            return graph, graph
        assert self.nodes is not None  # the request was checked
        names, more = node_names(self.nodes), {"extra_edges": self.extra_edges}
        try:
            if self.changes is None:
                graph = network_of(self.network, names, generator, **more)
                return graph, graph
            changing = Changing(self.network, names, self.changes, generator, **more)
        except ValueError as error:
            reason = str(error).replace("extra_edges", "--extra-edges")
            raise ValueError(f"--network {self.network}: {reason}") from None
        return changing(1), changing

    def absences(self, names: tuple[str, ...], generator: np.random.Generator) -> Away | None:
        """Return which nodes are away in which rounds; None if all stay."""
        if not self.leaving:
            return None
        chances = {"leaving": self.leaving, "returning": self.returning}
        return Away.drawn(names, self.rounds, generator, **chances)


# ---- the run ------------------------------------------------------------------------------------


class Scenario(NamedTuple):
    """The nodes of a run, their records and network, and the records that score their models."""

    classifier: FactoredClassifier
    examples: Mapping[str, Examples]  # the records of each node
    graph: Graph  # the network, or that of the first round
    network: Networks  # the network of each round
    absent: Away | None  # which nodes are away in which rounds
    scored: Examples  # the records on which all models are scored
    scored_on: str  # what these are: "test records" or "training records"

    @property
    def sizes(self) -> Floats:
        """The number of records of each node."""
        return np.array([len(part.classes) for part in self.examples.values()], np.float64)

    @property
    def pooled(self) -> Examples:
        """The records of all nodes."""
        columns, classes = zip(*self.examples.values(), strict=True)
        return Examples(np.concatenate(columns), np.concatenate(classes))


class Row(NamedTuple):
    """One round."""

    number: int
    soft: float  # the soft 0-1 loss per record, on the records of the nodes that took part
    own: Floats  # the error of each node on its own records; nan for a node that did not take part
    errors: Floats  # the error of each node's model on the scored records
    repairs: int  # how many statistics of all nodes were not valid
    present: int  # how many nodes took part


@dataclass
class Outcome:
    """What the nodes have reached, and what RC and maximum likelihood reach on pooled records."""

    scenario: Scenario
    rows: list[Row]  # the rounds
    statistics: Floats  # those of the nodes' models after the last round
    pooled: Calibrated  # RC on the records of all nodes
    pooled_error: float
    last_error: float
    likelihood_error: float
    seconds: dict[str, float]
    warnings: list[str]

    @property
    def error(self) -> float:
        """The mean error of the nodes' models after the last round."""
        return float(self.rows[-1].errors.mean())

    @property
    def gap(self) -> float:
        """The mean error of the nodes' models, less that of RC."""
        return self.error - self.pooled_error

    @property
    def mean(self) -> Floats:
        """The mean of the nodes' statistics: shape (classes, width)."""
        return np.asarray(self.statistics.mean(axis=0))


def calibrate(
    request: Request,
    scenario: Scenario,
    seed: np.random.Generator,
    rounds_done: Callable[[int, int], None],
) -> Outcome:
    """Let the nodes calibrate, and calibrate all records in one place.

    `rounds_done` is called with the number of rounds that have ended, and of all rounds.
    """
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        rows, statistics = _rounds(request, scenario, seed, rounds_done)
    middle = perf_counter()
    pooled = scenario.pooled
    rc = risk_based_calibration(scenario.classifier, pooled, request.rounds, rate=request.rate)
    likelihood = statistics_of(scenario.classifier, pooled)
    compared = np.stack([rc.statistics, rc.last, likelihood])
    of_best, of_last, of_likelihood = error_rates(scenario.classifier, compared, scenario.scored)
    seconds = {"nodes": middle - start, "pooled": perf_counter() - middle}
    said = [str(warning.message) for warning in caught]
    errors = float(of_best), float(of_last), float(of_likelihood)
    return Outcome(scenario, rows, statistics, rc, *errors, seconds, said)


def _rounds(
    request: Request,
    scenario: Scenario,
    seed: np.random.Generator,
    rounds_done: Callable[[int, int], None],
) -> tuple[list[Row], Floats]:
    """Return all rounds, and the statistics after the last."""
    assert request.mixing is not None  # the request was checked
    rows, step = list[Row](), None
    for step in collaborative_rc(
        scenario.classifier,
        scenario.examples,
        scenario.network,
        request.rounds,
        rate=request.rate,
        size=request.size,
        iterations=request.iterations,
        mixing=request.mixing,
        start=request.start,
        absent=scenario.absent,
        asleep=request.asleep,
        generator=seed,
    ):
        rows.append(_row(step, scenario))
        rounds_done(len(rows), request.rounds)
    assert step is not None  # there is one round or more
    return rows, step.statistics


def _row(step: Round, scenario: Scenario) -> Row:
    there = step.present & (scenario.sizes > 0)
    records = scenario.sizes[there].sum()
    own = np.full(len(there), np.nan)
    own[there] = step.errors[there] / scenario.sizes[there]
    errors = error_rates(scenario.classifier, step.statistics, scenario.scored)
    soft = float(step.soft[there].sum() / max(records, 1.0))
    return Row(step.number, soft, own, errors, int(step.repairs.sum()), int(step.present.sum()))


# ---- how a calibration ends, here and between machines -------------------------------------------


def finish(
    run: Run,
    model: NaiveBayes | Network,
    graph: Graph,
    summary: Mapping[str, Any],
    said: Mapping[str, object],
    traces: tuple[Mapping[str, Any], str],
    errors: Mapping[str, float],
) -> None:
    """Write the model, and the network over which it was calibrated, with drawings of all.

    `said` is what the printed lines say beside the summary.
    """
    trace, picture = traces
    nodes, edges, files = list(graph.nodes), [list(edge) for edge in graph.edges], models_of(model)
    summary = {**summary, "nodes": len(nodes), "edges": len(edges), "model": files}

    def more(part: Path) -> None:
        write_json(part / "network.json", {"nodes": nodes, "edges": edges})
        write_text(part / "structure.svg", draw(model.structure))
        write_text(part / "network.svg", draw_network(graph, errors))
        write_json(part / "calibration.json", trace)
        write_text(part / "calibration.svg", picture)

    lines = text("calibrate.txt.j2", **summary, **said).splitlines()
    run.finish("calibrate", summary, lines, partial(write_model, model=model), more)
