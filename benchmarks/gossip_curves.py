"""Gossip naive Bayes on Adult: figure 6 of Giaretta et al. (2023), for `dp_naive_bayes.py`.

Of each counter of an estimate: Algorithm 4 prints `t of received + 1`, equation 27 has the sum
`t of previous + t of received + 1`, and ours is the sum up to 100 and then one more each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from unittest.mock import patch

import numpy as np
from curves import legend, mean_sd, save, style
from local_noise import MODES, Data
from matplotlib.figure import Figure
from side_by_side import table

from vertibayes.naive_bayes.base import FLOOR
from vertibayes.naive_bayes.federated import exact_updates
from vertibayes.naive_bayes.gossip import gossip
from vertibayes_protocols.gossip import ADDS_UP_TO, Estimate
from vertibayes_protocols.gossip import merge as merged

NODES = 1000
EPS = 10**0.5
CASES = (("measured", EPS), ("declared", EPS, False), ("declared", EPS), ("declared", None))
FURTHER = (("declared", EPS, True, 10), ("declared", 10.0))
SCORED = (*range(1, 11), 12, 15, 20, 25, 30, 35, 40, 50, 60, 75, 100)
SHOWN = (1, 2, 3, 5, 10, 20, 30, 40, 50, 75, 100)
SETTLED = (10, 30, 50, 100)
RUNS = 10
COUNTERS = {"sum to 100, then + 1": ADDS_UP_TO, "+ 1 (Algorithm 4)": 1}
SUM = {"sum (equation 27)": 2**53}
MIXES = {  # further counters, of which only the copies of noise are counted
    "sum to 20, then + 1": lambda previous, received: up_to(20, previous, received),
    "sum in 20 iterations, then + 1": lambda previous, received: up_to(2**20, previous, received),
    "sum, at most 100": lambda previous, received: np.minimum(previous + received + 1, 100),
}
COPIES = ((1000, 1), (1000, 10), (100, 1), (10, 1))  # nodes, slots


def up_to(most: int, previous: np.ndarray, received: np.ndarray) -> np.ndarray:
    """Return counters that add up to `most`, and then grow by one."""
    return np.minimum(previous + received + 1, np.maximum(most, received + 1))


def gossiping(adult: Data, repeats: int, seed: int) -> None:
    """Accuracy of all nodes' models over iterations, beside the federated model's."""
    runs = min(repeats, RUNS)
    show_copies(2, seed)
    show_runs([Case(adult, *rest) for rest in CASES + FURTHER], runs, seed)
    curves = {}
    for case in (Case(adult, *rest) for rest in CASES):
        for counter, most in COUNTERS.items():
            found = case.curve(SCORED, NODES, np.random.default_rng(seed), most)
            curves.setdefault(case.title, {})[counter] = found
    draw(curves)
    show_curves(curves)


def show_copies(runs: int, seed: int) -> None:
    """Show the copies of noise in the estimates of nodes, by counter."""
    rules = {name: lambda *t, most=most: up_to(most, *t) for name, most in (COUNTERS | SUM).items()}
    print("\nn times the sum of squared weights, median over nodes, mean ± sd of runs:")
    print(f"{runs} of {NODES:,} nodes, {10 * runs} of fewer\n")
    rows = []
    for nodes, slots in COPIES:
        for name, rule in (rules if slots > 1 else rules | MIXES).items():
            many = runs if nodes == NODES else 10 * runs
            found = [copies_of(np.random.default_rng((seed, run)), rule, nodes, slots)
                     for run in range(many)]  # fmt: skip
            cells = [mean_sd([each[i] for each in found]) for i in (5, *SETTLED)]
            rows.append([f"{nodes:,}", slots, name, *cells])
            print(*rows[-1], flush=True)
    header = ["nodes", "slots", "counter", *(f"iteration {i}" for i in (5, *SETTLED))]
    print("\n" + table("gossip_copies", header, rows, spread="SD over the runs"))


def show_runs(cases: list[Case], runs: int, seed: int) -> None:
    """Show in how many runs nodes are near the federated model, the same runs for each counter."""
    print(
        f"\nRuns of {runs} in which the median of 100 nodes is within .01 of the federated model\n"
    )
    rows = []
    for case in cases:
        for counter, most in (COUNTERS | SUM).items():
            found = [case.curve(SETTLED, 100, np.random.default_rng((seed, run)), most)
                     for run in range(runs)]  # fmt: skip
            gaps = np.array([[abs(np.median(c[i]) - f) for i in SETTLED] for f, c in found])
            rows.append([case.title, counter, *(int((column <= 0.01).sum()) for column in gaps.T),
                         *(mean_sd(column) for column in gaps.T)])  # fmt: skip
            print(*rows[-1], flush=True)
    header = [*(f"iteration {i}" for i in SETTLED), *(f"gap, {i}" for i in SETTLED)]
    print(
        "\n"
        + table(
            "gossip_curves_runs", ["noise", "counter", *header], rows, spread="SD over the runs"
        )
    )


def show_curves(curves: dict) -> None:
    """Show the accuracies of all nodes over iterations in one run."""
    print(f"\nGossip, Adult, {NODES:,} nodes, one run: median [quartiles] of the nodes' "
          "accuracies, and share of nodes within .01 of the federated model\n")  # fmt: skip
    rows = []
    for title, of_counters in curves.items():
        for counter, (federated, found) in of_counters.items():
            cells = []
            for i in SHOWN:
                low, middle, high = np.quantile(found[i], [0.25, 0.5, 0.75])
                near = (np.abs(found[i] - federated) <= 0.01).mean()
                cells.append(f"{middle:.3f} [{low:.3f}, {high:.3f}] {near:.2f}")
            rows.append([title, counter, f"{federated:.3f}", *cells])
    header = ["noise", "counter", "federated", *(f"iteration {i}" for i in SHOWN)]
    print(table("gossip_curves", header, rows, spread="quartiles over the nodes of one run"))


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

    def curve(
        self, scored, count: int, generator, adds_up_to: int = ADDS_UP_TO
    ) -> tuple[float, dict[int, np.ndarray]]:
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
        states = gossip(updates, max(scored), generator, slots=self.slots, adds_up_to=adds_up_to)
        for iteration, state in enumerate(states, 1):
            if iteration in scored:
                found[iteration] = accuracies(state.estimates.values[:count] * NODES)
        return float(federated), found


def copies_of(generator, rule, nodes: int = NODES, slots: int = 1) -> dict[int, float]:
    """Return how many times the federated model's noise variance a node's estimate has."""

    def merge(previous: Estimate, received: Estimate, update, _) -> Estimate:
        found = merged(previous, received, update)
        return Estimate(rule(previous.weights, received.weights), found.values)

    with patch("vertibayes_protocols.gossip.merge", merge):
        states = enumerate(gossip(np.eye(nodes), max(SETTLED), generator, slots=slots), 1)
        kept = {i: s.estimates.values for i, s in states if i in (5, *SETTLED)}
    return {i: nodes * float(np.median((v**2).sum(axis=1))) for i, v in kept.items()}


def draw(curves: dict) -> None:
    """Draw figure 6: the quartiles with our counter, and the medians with both."""
    with style():
        figure = Figure(figsize=(9.5, 6), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        figure.suptitle(f"Gossip naive Bayes, Adult, {NODES:,} nodes: median and quartiles")
        for axes, (title, of_counters) in zip(panels.flat, curves.items(), strict=True):
            for colour, (counter, (_, found)) in enumerate(of_counters.items()):
                quartiles = np.quantile(np.array([*found.values()]), [0.25, 0.5, 0.75], axis=1)
                if not colour:
                    axes.fill_between([*found], *quartiles[::2], alpha=0.25, label="quartiles")
                label = f"median, t: {counter}"
                axes.plot([*found], quartiles[1], f"C{colour}", label=label)
            federated = next(iter(of_counters.values()))[0]
            axes.axhline(federated, color="0.3", linestyle=":", label="federated")
            axes.grid(color="0.9", linewidth=0.6)
            axes.set(title=title, ylabel="accuracy")
        for axes in panels[1]:
            axes.set_xlabel("iterations")
        legend(figure, panels[0, 0], 4)
        save(figure, "gossip_adult.svg")
