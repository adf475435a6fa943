"""Exact EM on records with missing cells, beside pyAgrum's, in one run.

    python benchmarks/em.py --data FOLDER [--seconds 120] [--tolerance 1e-8] [--only asia-30]

ALARM and Asia with 10 and 30 % of the cells missing, true structure, one thread. pyAgrum runs in a
process of its own and is stopped after --seconds; ours is timed until its log-likelihood changes
by less than 1e-8, relatively, and compared with pyAgrum's CPTs once it changes by less than 1e-15.
The peak of memory is that of a whole process. Prediction is of HYPOVOLEMIA from all that is known.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from runs import arguments
from side_by_side import Rows, on_one_thread, seconds_of, table

on_one_thread()

import numpy as np

from vertibayes.bif import write_bif
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.prediction import posterior
from vertibayes.inference.propagation import Batch
from vertibayes.network import Network, read_model
from vertibayes.parameters.em import fit_em
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns

CASES = (("asia", 10), ("asia", 30), ("alarm", 10), ("alarm", 30))


def load(folder: Path, name: str, share: int) -> tuple[Network, SiteData]:
    """Read the true network and the records."""
    truth = read_model(folder / name / f"{name}.bif")
    columns = read_columns(folder / name / f"{name}_missing{share}.csv.gz")
    columns.pop("record_id")
    states = {n: v.states for n, v in truth.variables.items()}
    return truth, SiteData.from_text(name, columns, Encoding(states=states))


def log_likelihood(network: Network, data: SiteData) -> float:
    """Return the log-likelihood of records with missing cells, in nats."""
    states = {n: len(v.states) for n, v in network.variables.items()}
    tree = JunctionTree.of(network.structure, states)
    return Batch(tree, states, dict(data.codes)).propagate(network).log_likelihood


def options_of(name: str) -> dict[str, float]:
    """Return the prior of a case and when EM is to stop."""
    return {"pseudo_count": 1.0 if name == "alarm" else 0.0, "tolerance": 1e-8}


def pyagrum_em(folder: Path, name: str, tolerance: float) -> None:
    """Learn by pyAgrum's EM; print seconds, leave the CPTs: a child process's part."""
    import pyagrum as gum

    network = gum.loadBN(str(folder / "model.bif"))
    learner = gum.BNLearner(str(folder / "data.csv"), network, ["?"])
    learner.setNumberOfThreads(1)
    learner.useEM(tolerance, 0.1)
    if options_of(name)["pseudo_count"]:
        learner.useSmoothingPrior(1)
    start = perf_counter()
    learned = learner.learnParameters(network.dag())
    print(perf_counter() - start)
    with (folder / "cpts.json").open("w") as file:
        json.dump({n: _cpt(learned.cpt(n)) for n in learned.names()}, file)


def _cpt(found: Any) -> dict[str, list[Any]]:
    """Return pyAgrum's CPT, the names of its axes, and the names of their states."""
    axes = [found.variable(n) for n in reversed(found.names)]  # the array's order
    labels = [list(axis.labels()) for axis in axes]
    return {"names": [a.name() for a in axes], "labels": labels, "cpt": found.toarray().tolist()}


def ours(folder: Path, name: str, share: int) -> None:
    """Fit once and print the peak of memory: a child process's part."""
    truth, data = load(folder, name, share)
    fit_em(data, truth.structure, **options_of(name))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def child(data: Path, *arguments: object, seconds: int) -> str | None:
    """Run this file in a process of its own; return what it prints, None if it is stopped."""
    command = [sys.executable, __file__, "--data", str(data), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout


def theirs(
    truth: Network, data: SiteData, name: str, given: argparse.Namespace, fitted: Network
) -> tuple[str, str]:
    """Return pyAgrum's seconds, or that it was stopped, and how far its CPTs are from ours."""
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        (folder / "model.bif").write_text(write_bif(truth), encoding="utf-8")
        columns = [np.array([*v.states, "?"])[data.codes[n]] for n, v in data.variables.items()]
        lines = [",".join(data.variables), *(",".join(row) for row in zip(*columns, strict=True))]
        (folder / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        told = child(given.data, "--pyagrum", folder, name, given.tolerance, seconds=given.seconds)
        if told is None:
            return f"stopped after {given.seconds}", ""
        found = json.loads((folder / "cpts.json").read_text())
    return f"{float(told):.2f}", f"{max(difference(fitted, n, c) for n, c in found.items()):.1e}"


def difference(fitted: Network, node: str, found: dict[str, Any]) -> float:
    """Return the largest difference between our CPT of a node and pyAgrum's."""
    members = (node, *fitted.structure.parents[node])
    axes = [found["names"].index(name) for name in members]
    cpt = np.array(found["cpt"]).transpose(axes)
    for axis, name in enumerate(members):
        labels = found["labels"][axes[axis]]
        cpt = cpt.take([labels.index(s) for s in fitted.variables[name].states], axis)
    return float(np.abs(cpt - fitted.cpts[node]).max())


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--tolerance", type=float, default=1e-8, help="pyAgrum's")
    parser.add_argument("--only", choices=[f"{n}-{share}" for n, share in CASES])
    parser.add_argument("--pyagrum", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--ours", nargs=2, help=argparse.SUPPRESS)
    given = arguments(parser, seeded=False, data=True)
    if given.pyagrum:
        folder, name, tolerance = given.pyagrum
        pyagrum_em(Path(folder), name, float(tolerance))
        return
    if given.ours:
        ours(given.data, given.ours[0], int(given.ours[1]))
        return
    cases = [(n, share) for n, share in CASES if given.only in (None, f"{n}-{share}")]
    rows = Rows(row(name, share, given) for name, share in cases)
    header = ["records with missing values", "ours s", "iterations", "s per iteration", "peak MiB",
              "log-likelihood", "pyAgrum s", "largest difference of a CPT"]  # fmt: skip
    print(table("em", header, rows))
    truth, data = load(given.data, "alarm", 10)
    seconds = seconds_of(lambda: posterior(truth, data.codes, "HYPOVOLEMIA"), 5)
    print(f"\nPrediction, ALARM: {seconds / data.records * 1000:.4f} ms per record")


def row(name: str, share: int, given: argparse.Namespace) -> list[object]:
    """Run a case."""
    truth, data = load(given.data, name, share)
    options = options_of(name)
    seconds = seconds_of(lambda: fit_em(data, truth.structure, **options), 3)
    fit = fit_em(data, truth.structure, **options)
    closer = fit_em(data, truth.structure, **options | {"tolerance": 1e-15}).network
    peak = float(child(given.data, "--ours", name, share, seconds=600) or 0)
    reached = log_likelihood(fit.network, data)
    return [f"{name}, {share} %", f"{seconds:.2f}", len(fit.trace),
            f"{seconds / len(fit.trace):.3f}", f"{peak:.0f}", f"{reached:.1f}",
            *theirs(truth, data, name, given, closer)]  # fmt: skip


if __name__ == "__main__":
    main()
