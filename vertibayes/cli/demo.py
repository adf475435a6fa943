"""``vertibayes demo``: ALARM over three sites, compared with the truth and with pooled learning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes.cli.inputs import Sites
from vertibayes.cli.learn import Here, Task, learn_at
from vertibayes.cli.run import Run
from vertibayes.counting import PlainCounter
from vertibayes.learning import Learned, learn
from vertibayes.network import Network, from_pgmpy
from vertibayes.options import Options
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns


def run_demo(out: Path | None, records: int, sites: int, seed: int) -> None:
    """Run the demo and print its results."""
    run = Run(out)
    truth = alarm()
    _say(f"Drawing {records} records of {len(truth.variables)} variables from the ALARM network.")
    pooled = sample(truth, records, seed)
    data = split_columns(pooled, sites, seed)
    for site, held in data.items():
        _say(f"  {site} holds {', '.join(held.variables)}")
    options = Options(bootstrap=0)  # quick: no samples for arc strengths
    with run:
        place = Here(Sites(data, tuple(pooled.variables)))
        learned, summary = learn_at(place, Task(options), run)
        start = perf_counter()
        plain = learn(PlainCounter(pooled), options)
        seconds = perf_counter() - start
        run.lines[:0] = ["", "Learned over the sites, none of which saw another's records:"]
        run.lines += [*_edges(learned), *_cpts(learned.network)]
        run.lines += [*_compared(learned, plain, truth, seconds), *_revealed(summary)]


def alarm() -> Network:
    """Return the ALARM network (Beinlich et al. 1989) that pgmpy bundles."""
    from pgmpy.utils import get_example_model

    with warnings.catch_warnings():  # its successor would download the network
        warnings.simplefilter("ignore", FutureWarning)
        return from_pgmpy(get_example_model("alarm"))


def _edges(learned: Learned) -> Iterator[str]:
    yield ""
    yield "Structure (node <- parents):"
    for node, parents in learned.network.structure.parents.items():
        if parents:
            yield f"  {node} <- {', '.join(parents)}"


def _cpts(network: Network) -> Iterator[str]:
    yield ""
    yield "Three of its CPTs:"
    small = sorted(network.cpts, key=lambda node: network.cpts[node].size)
    with_parents = [node for node in small if network.structure.parents[node]][:3]
    for node in with_parents:
        parents = network.structure.parents[node]
        yield f"  P({node} | {', '.join(parents)})"
        yield from _cpt_rows(network, node, parents)


def _cpt_rows(network: Network, node: str, parents: tuple[str, ...]) -> Iterator[str]:
    cpt: NDArray[np.float64] = network.cpts[node]
    states = network.variables[node].states
    for place in np.ndindex(cpt.shape[1:]):
        given = ", ".join(
            f"{p}={network.variables[p].states[i]}" for p, i in zip(parents, place, strict=True)
        )
        column = cpt[(slice(None), *place)]
        values = "  ".join(f"{s} {v:.4f}" for s, v in zip(states, column, strict=True))
        yield f"    {given}:  {values}"


def _compared(
    learned: Learned, plain: Learned, truth: Network, plain_seconds: float
) -> Iterator[str]:
    ours, pooled = learned.network, plain.network
    same = ours.structure == pooled.structure and all(
        np.array_equal(ours.cpts[node], pooled.cpts[node]) for node in ours.cpts
    )
    distance = ours.structure.hamming_distance(truth.structure)
    seconds = learned.structure_seconds + learned.parameters_seconds
    yield ""
    yield "Compared:"
    yield (f"  with pooled learning: {'identical, bit for bit' if same else 'DIFFERENT'}; "
         f"{seconds:.2f} s here, {plain_seconds:.2f} s pooled")  # fmt: skip
    yield (
        f"  with the network the records came from: structural Hamming distance {distance} of "
        f"{len(truth.structure.edges)} edges"
    )


def _revealed(summary: dict[str, Any]) -> Iterator[str]:
    opened = summary["opened"]
    yield ""
    yield "Revealed, to whom (ledger.json has each table, with --out):"
    yield f"  to the analyst: {opened['tables']} contingency tables, {opened['cells']} cells"
    yield "  to the sites and the dealer: the number of records, names and states of variables,"
    yield "    and which tables were asked; of the records nothing"
    yield "  between sites: columns under masks; to the dealer: no column in any form"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
