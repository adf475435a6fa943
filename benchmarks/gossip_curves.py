"""Gossip naive Bayes on Adult: figure 6 of Giaretta et al. (2023), for `dp_naive_bayes.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from curves import legend, save, style
from local_noise import MODES, Data
from matplotlib.figure import Figure
from side_by_side import table

from vertibayes.naive_bayes.base import FLOOR
from vertibayes.naive_bayes.federated import exact_updates
from vertibayes.naive_bayes.gossip import gossip

NODES = 1000
EPS = 10**0.5
CASES = (("measured", EPS), ("declared", EPS, False), ("declared", EPS), ("declared", None))
FURTHER = (("declared", EPS, True, 10), ("declared", 10.0))
SCORED = (*range(1, 11), 12, 15, 20, 25, 30, 35, 40, 50, 60, 75, 100)
SHOWN = (1, 2, 3, 5, 10, 20, 30, 40, 50, 75, 100)
SETTLED = (10, 30, 50, 100)
RUNS = 10


def gossiping(adult: Data, repeats: int, generator) -> None:
    """Accuracy of all nodes' models over iterations, beside the federated model's."""
    cases = [Case(adult, *rest) for rest in CASES + FURTHER]
    curves = {c.title: c.curve(SCORED, NODES, generator) for c in cases[: len(CASES)]}
    draw(curves)
    copies = copies_of(generator)
    print(f"\nGossip, Adult, {NODES:,} nodes, one run: median [quartiles] of the nodes' "
          "accuracies, and share of nodes within .01 of the federated model\n")  # fmt: skip
    rows = [["copies of noise, times 1 / nodes", "", *(f"{copies[i]:.2f}" for i in SHOWN)]]
    for title, (federated, found) in curves.items():
        cells = []
        for i in SHOWN:
            low, middle, high = np.quantile(found[i], [0.25, 0.5, 0.75])
            near = (np.abs(found[i] - federated) <= 0.01).mean()
            cells.append(f"{middle:.3f} [{low:.3f}, {high:.3f}] {near:.2f}")
        rows.append([title, f"{federated:.3f}", *cells])
    header = ["noise", "federated", *(f"iteration {i}" for i in SHOWN)]
    print(table("gossip_curves", header, rows))
    runs = min(repeats, RUNS)
    print(
        f"\nRuns of {runs} in which the median of 100 nodes is within .01 of the federated model\n"
    )
    rows = []
    for case in cases:
        found = [case.curve(SETTLED, 100, generator) for _ in range(runs)]
        gaps = np.array([[abs(np.median(c[i]) - f) for i in SETTLED] for f, c in found])
        rows.append([case.title, *(int((column <= 0.01).sum()) for column in gaps.T),
                     *(f"{middle:.3f}" for middle in np.median(gaps, axis=0))])  # fmt: skip
    header = [*(f"iteration {i}" for i in SETTLED), *(f"median gap, {i}" for i in SETTLED)]
    print(table("gossip_curves_runs", ["noise", *header], rows))


@dataclass(frozen=True)
class Case:
    """Gossip under one noise."""

    data: Data
    mode: str
    eps: float | None
    raised: bool = True
    slots: int = 1

    @property
    def title(self) -> str:
        """The noise in words."""
        if self.eps is None:
            return "no noise"
        rule = "variances raised" if self.raised and self.mode == "declared" else f"floor {FLOOR:g}"
        awake = "" if self.slots == 1 else f", asynchronous ({self.slots} slots)"
        return f"{MODES[self.mode]}, eps = {self.eps:.3g}, {rule}{awake}"

    @cached_property
    def exact(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The nodes' records and statistics: the same in all runs."""
        way = self.data.ways[self.mode]
        places = np.random.default_rng(6).permutation(way.training.records)
        rows = np.array_split(places, NODES)
        return rows, exact_updates(way.schema, [way.training.rows(own) for own in rows])

    def curve(self, scored, count: int, generator) -> tuple[float, dict[int, np.ndarray]]:
        """Return the federated accuracy, and those of the first nodes at some iterations."""
        way, (rows, updates) = self.data.ways[self.mode], self.exact
        errors = None
        if self.eps is not None:
            budgets = np.full(NODES, self.eps)
            updates = updates + way.noise(rows, budgets, generator)
            errors = way.errors(budgets) if self.raised else None

        def accuracies(sums: np.ndarray) -> np.ndarray:
            return way.scorer.accuracies([way.model(row, errors, FLOOR) for row in sums])

        federated = accuracies(updates.sum(axis=0)[None])[0]
        found = {}
        states = gossip(updates, max(scored), generator, slots=self.slots)
        for iteration, state in enumerate(states, 1):
            if iteration in scored:
                found[iteration] = accuracies(state.estimates.values[:count] * NODES)
        return float(federated), found


def copies_of(generator) -> dict[int, float]:
    """Return how many times the federated model's noise variance a node's estimate has."""
    states = enumerate(gossip(np.eye(NODES), max(SCORED), generator), 1)
    return {i: NODES * float(np.median((s.estimates.values**2).sum(axis=1))) for i, s in states}


def draw(curves: dict) -> None:
    with style():
        figure = Figure(figsize=(9.5, 6), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        figure.suptitle(f"Gossip naive Bayes, Adult, {NODES:,} nodes: median and quartiles")
        for axes, (title, (federated, found)) in zip(panels.flat, curves.items(), strict=True):
            low, middle, high = np.quantile(np.array([*found.values()]), [0.25, 0.5, 0.75], axis=1)
            axes.fill_between([*found], low, high, color="C0", alpha=0.25, label="quartiles")
            axes.plot([*found], middle, color="C0", label="median of the nodes")
            axes.axhline(federated, color="0.3", linestyle=":", label="federated")
            axes.grid(color="0.9", linewidth=0.6)
            axes.set(title=title, ylabel="accuracy")
        for axes in panels[1]:
            axes.set_xlabel("iterations")
        legend(figure, panels[0, 0], 3)
        save(figure, "gossip_adult.svg")
