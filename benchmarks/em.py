"""Exact EM on records with missing cells, beside pyAgrum's, in one run.

    python benchmarks/em.py --data FOLDER [--seconds 120]

ALARM and Asia with 10 and 30 % of the cells missing, true structure, one thread. pyAgrum runs in a
process of its own and is stopped after --seconds; ours runs until its log-likelihood changes by
less than 1e-8, relatively. Prediction is of HYPOVOLEMIA from all that is known.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from side_by_side import on_one_thread, seconds_of, table

on_one_thread()

import numpy as np

from protocols.site.data import SiteData
from protocols.site.encoding import Encoding
from protocols.site.text import read_columns
from vertibayes.bif import read_bif_file
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.prediction import posterior
from vertibayes.inference.propagation import Batch
from vertibayes.network import Network
from vertibayes.parameters.em import fit_em

CASES = (("asia", 10), ("asia", 30), ("alarm", 10), ("alarm", 30))


def load(folder: Path, name: str, share: int) -> tuple[Network, SiteData]:
    """Read the true network and the records."""
    truth = read_bif_file(folder / name / f"{name}.bif")
    columns = read_columns(folder / name / f"{name}_missing{share}.csv.gz")
    columns.pop("record_id")
    states = {n: v.states for n, v in truth.variables.items()}
    return truth, SiteData.from_text(name, columns, Encoding(states=states))


def log_likelihood(network: Network, data: SiteData) -> float:
    """Return the log-likelihood of records with missing cells, in nats."""
    states = {n: len(v.states) for n, v in network.variables.items()}
    tree = JunctionTree.of(network.structure, states)
    return Batch(tree, states, dict(data.codes)).propagate(network).log_likelihood


def pyagrum_em(model: Path, data: Path, out: Path) -> None:
    """Learn by pyAgrum's EM: the child process's part."""
    import pyagrum as gum

    network = gum.loadBN(str(model))
    learner = gum.BNLearner(str(data), network, ["?"])
    learner.setNumberOfThreads(1)
    learner.useEM(1e-8, 0.1)
    if network.size() > 10:
        learner.useSmoothingPrior(1)
    start = perf_counter()
    learned = learner.learnParameters(network.dag())
    print(perf_counter() - start)
    gum.saveBN(learned, str(out))


def theirs(folder: Path, truth: Network, data: SiteData, seconds: int) -> str:
    """Return pyAgrum's seconds, or that it was stopped."""
    from vertibayes.bif import write_bif

    with tempfile.TemporaryDirectory() as name:
        model, records = Path(name, "model.bif"), Path(name, "data.csv")
        model.write_text(write_bif(truth), encoding="utf-8")
        columns = [np.array([*v.states, "?"])[data.codes[n]] for n, v in data.variables.items()]
        lines = [",".join(data.variables), *(",".join(row) for row in zip(*columns, strict=True))]
        records.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, __file__, "--data", str(folder), "--child", name]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return f"stopped after {seconds}"
        return f"{float(done.stdout.split()[-1]):.2f}" if done.stdout else "failed"


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        pyagrum_em(*(given.child / name for name in ("model.bif", "data.csv", "out.bif")))
        return
    if not given.data:
        parser.error("--data FOLDER is wanted")
    rows = []
    for name, share in CASES:
        truth, data = load(given.data, name, share)
        prior = 1.0 if name == "alarm" else 0.0
        options = {"pseudo_count": prior, "tolerance": 1e-8}
        ours = seconds_of(lambda t=truth, d=data, o=options: fit_em(d, t.structure, **o), 3)
        fit = fit_em(data, truth.structure, **options)
        reached = log_likelihood(fit.network, data)
        rows.append(
            [f"{name}, {share} %", f"{ours:.2f}", len(fit.trace), f"{ours / len(fit.trace):.3f}",
             f"{reached:.1f}", theirs(given.data, truth, data, given.seconds)]
        )  # fmt: skip
    header = ["records with cells missing", "ours s", "iterations", "s an iteration",
              "log-likelihood", "pyAgrum s"]  # fmt: skip
    print(table(header, rows))
    truth, data = load(given.data, "alarm", 10)
    seconds = seconds_of(lambda: posterior(truth, data.codes, "HYPOVOLEMIA"), 5)
    print(f"\nPrediction, ALARM: {seconds / data.records * 1000:.4f} ms a record")


if __name__ == "__main__":
    main()
