"""Figures 2, 3 and 7 of Giaretta et al. (2023): what `dp_naive_bayes.py` leaves out of them.

    python benchmarks/giaretta.py --data FOLDER [--fetched FOLDER] [--parts ...] [--seed 0]

    baseline     Figure 2's baseline of Vaidya et al. (2013; `vaidya.py`) beside federated naive
                 Bayes, and Congressional Voting Records: a new split for each repetition
    sensitivity  Figure 3: by how much sensitivities fall if records are split among nodes
    parameters   Figure 7: parameters of all nodes' models over iterations of gossip, Adult

Prints Markdown tables and writes docs/figures/federated_{baseline,sensitivity}.svg and
gossip_parameters.svg. `fetched.py` says how to get the votes for --fetched.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
import vaidya
from curves import errors, legend, mean_sd, save, style
from fetched import voting
from gossip_curves import COUNTERS
from local_noise import ALPHA, MODES, Data, Way, data_of, load, split
from matplotlib.figure import Figure
from pandas import DataFrame
from runs import arguments

from vertibayes.naive_bayes.base import FLOOR, NaiveBayes
from vertibayes.naive_bayes.federated import exact_updates
from vertibayes.naive_bayes.gossip import gossip

EPS = tuple(10 ** (place / 2) for place in range(-4, 3))
NODES = (10, 100, 1000)
VOTINGS = 5  # times as many repetitions, each with another split: 43 records are tested
VERTICAL = "Vaidya, vertically, eps"
DRAWN = ("federated, 1 node", "federated, 1000 nodes", "Vaidya, 1 holder",
         "Vaidya, horizontally, 1000 nodes", f"{VERTICAL} of a record")  # fmt: skip

# ---- figure 2 ------------------------------------------------------------------------------------


def models(way: Way, eps: float, dealt: dict, generator) -> Iterator[tuple[str, NaiveBayes]]:
    """Draw a model by each way to add noise."""
    for nodes in (1, *NODES):
        sums = way.sums + way.noise_of_total(nodes, eps, generator)
        title = f"federated, {nodes} node" + "s" * (nodes > 1)
        yield title, way.model(sums, way.errors(np.full(nodes, eps)))
    parties = len(way.schema.features)
    for nodes, held in dealt.items():
        where = f"horizontally, {nodes} nodes" if nodes > 1 else "1 holder"
        budgets = vaidya.central(way, eps)
        yield f"Vaidya, {where}", vaidya.model(way, held, budgets, generator)
    for spread in ("raised", "exact") if way.schema.numeric else ():
        one = vaidya.model(way, dealt[1], vaidya.central(way, eps), generator, spread=spread)
        yield f"Vaidya, 1 holder, deviations {spread}", one
    for each, whose in ((eps, "at each party"), (eps / parties, "of a record")):
        budgets = vaidya.vertical(way, each)
        yield f"{VERTICAL} {whose}", vaidya.model(way, dealt[1], budgets, generator)


def repetition(way: Way, generator) -> dict[tuple[str, float], float]:
    """Return the accuracy of each way at each eps, in one dealing of the records to nodes."""
    order = generator.permutation(way.training.records)
    dealt = {n: vaidya.hold(way, np.array_split(order, n)) for n in (1, *NODES)}
    drawn = {("no noise", eps): way.model(way.sums) for eps in EPS}
    for eps in EPS:
        drawn |= {(title, eps): m for title, m in models(way, eps, dealt, generator)}
    return dict(zip(drawn, way.scorer.accuracies([*drawn.values()]), strict=True))


def baseline(sets: list[Data], votes: DataFrame, repeats: int, seed: int) -> None:
    """Make figure 2 with its baseline."""
    found: dict[tuple[str, str], dict] = {}
    for name, mode in product([*(data.name for data in sets), "Voting"], MODES):
        curves = found[name, mode] = defaultdict(list)
        for place in range(repeats * (VOTINGS if name == "Voting" else 1)):
            generator = np.random.default_rng([seed, place])
            if name == "Voting":
                data = data_of(name, *split(votes, seed=generator))
            else:
                (data,) = (each for each in sets if each.name == name)
            for key, accuracy in repetition(data.ways[mode], generator).items():
                curves[key].append(accuracy)
        print(f"{name}, {mode}: done", flush=True)
    rows = [
        [name, words(name, mode, sets), ALPHA[mode], title,
         *(mean_sd(curves[title, eps]) for eps in EPS)]
        for (name, mode), curves in found.items()
        for title in dict.fromkeys(title for title, _ in curves)
    ]  # fmt: skip
    header = ["data", "sensitivity", "pseudo-counts", "noise", *(f"eps {eps:.3g}" for eps in EPS)]
    print(f"\nMean ± sd over {repeats} repetitions, of Voting {VOTINGS * repeats} splits\n")
    spread = f"SD over {repeats} repetitions, of Voting {VOTINGS * repeats}"
    print(table("giaretta_baseline", header, rows, spread=spread))
    draw_baseline(found, sets)


def words(name: str, mode: str, sets: list[Data]) -> str:
    """Name what the noise is scaled by."""
    numbers = any(data.has_numbers for data in sets if data.name == name)
    return MODES[mode] if numbers else "counts alone"


def draw_baseline(found: dict, sets: list[Data]) -> None:
    names = list(dict.fromkeys(name for name, _ in found))
    with style():
        figure = Figure(figsize=(9.5, 2.3 * len(names) + 0.8), layout="constrained")
        panels = figure.subplots(len(names), 2, sharex=True, sharey="row", squeeze=False)
        figure.suptitle("Naive Bayes of Vaidya et al. and federated: accuracy, mean ± sd")
        for (name, mode), axes in zip(product(names, MODES), panels.flat, strict=True):
            curves = found[name, mode]
            axes.axhline(np.mean(curves["no noise", EPS[0]]), color="0.4", linestyle=":",
                         label="without noise")  # fmt: skip
            for place, title in enumerate(DRAWN):
                values = np.array([curves[title, eps] for eps in EPS])
                errors(axes, np.array(EPS) * (1 + 0.04 * place), values, title, f"C{place}")
            pseudo = "one pseudo-count" if ALPHA[mode] else "no pseudo-count"
            axes.set(title=f"{name}: {words(name, mode, sets)}, {pseudo}", xscale="log")
        for axes in panels[-1]:
            axes.set_xlabel("eps")
        legend(figure, panels[0, 0], 3)
        save(figure, "federated_baseline.svg")


# ---- figure 3 ------------------------------------------------------------------------------------


def sensitivity(sets: list[Data], repeats: int, seed: int) -> None:
    """Show the largest |x| at nodes beside that of all records: the sensitivity of the sums S.

    Noise is that of all nodes together, as a multiple of one holder's standard deviation: below 1,
    splitting helps.
    """
    rows, boxes = [], {}
    for data in sets:
        way = data.ways["measured"]
        everything = way.tops([np.arange(way.training.records)])
        for nodes in NODES:
            shares = []
            for place in range(repeats):
                generator = np.random.default_rng([seed, place])
                parts = np.array_split(generator.permutation(way.training.records), nodes)
                shares.append(way.tops(parts) / everything)
            found = np.array(shares)  # repetitions, nodes, numbers, classes
            for number, name in enumerate(way.schema.numeric):
                for c, state in enumerate(way.schema.target.states):
                    own = found[:, :, number, c]
                    low, middle, high = np.quantile(own, [0.25, 0.5, 0.75])
                    noise = (mean_sd(np.sqrt((own**power).sum(axis=1))) for power in (2, 4))
                    rows.append([data.name, name, state, nodes, f"{middle:.3f}", f"{low:.3f}",
                                 f"{high:.3f}", mean_sd(own.mean(axis=1)), *noise])  # fmt: skip
                boxes[data.name, name, nodes] = found[:, :, number].reshape(-1)
    header = ["data", "number", "class", "nodes", "median", "quartile", "other quartile", "mean",
              "noise of S", "noise of Q"]  # fmt: skip
    print(f"\nLargest |x| of a class at a node, as a share of all records', {repeats} dealings\n")
    print(table("giaretta_sensitivity", header, rows, spread=f"SD over {repeats} dealings"))
    draw_sensitivity([data.name for data in sets], boxes)


def draw_sensitivity(names: list[str], boxes: dict) -> None:
    with style():
        figure = Figure(figsize=(9.5, 3.6), layout="constrained")
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        figure.suptitle("Sensitivity of S at a node, as a share of that of all records (figure 3)")
        for axes, name in zip(panels, names, strict=True):
            own = {key: values for key, values in boxes.items() if key[0] == name}
            columns = list(dict.fromkeys(column for _, column, _ in own))
            for place, nodes in enumerate(NODES):
                values = [own[name, column, nodes] for column in columns]
                box = axes.boxplot(values, positions=np.arange(len(columns)) + 0.25 * place,
                                   widths=0.2, showfliers=False, patch_artist=True)  # fmt: skip
                for patch in box["boxes"]:
                    patch.set_facecolor(f"C{place}")
                box["boxes"][0].set_label(f"{nodes:,} nodes")
            axes.set(title=name, ylim=(0, 1.05))
            axes.set_xticks(np.arange(len(columns)) + 0.25, columns, rotation=30)
        legend(figure, panels[0], 3)
        save(figure, "federated_sensitivity.svg")


# ---- figure 7 ------------------------------------------------------------------------------------

ITERATIONS = (1, 2, 3, 5, 10, 20, 30, 40, 50, 75, 100)
KINDS = {"prior": "prior probabilities, difference",
         "conditional": "conditional probabilities, difference",
         "mean": "means, difference / standard deviation",
         "deviation": "standard deviations, ratio - 1"}  # fmt: skip
GOSSIPING = 1000


def parameters(adult: Data, seeds: int, seed: int) -> None:
    """Show how far the nodes' parameters are from the federated model's, over iterations."""
    rows, drawn = [], {}
    for mode, (counter, adds_up_to) in product(MODES, COUNTERS.items()):
        found = {kind: [] for kind in KINDS}
        for place in range(seeds):
            generator = np.random.default_rng([seed, place])
            for kind, values in gaps(adult.ways[mode], generator, adds_up_to).items():
                found[kind].append(values)
            print(f"{mode}, {counter}, run {place}: done", flush=True)
        for kind, title in KINDS.items():
            each = np.array([[[np.median(gap), np.subtract(*np.quantile(own, [0.75, 0.25], axis=0))
                               .mean()] for gap, own in run] for run in found[kind]])  # fmt: skip
            drawn[mode, counter, kind] = each
            for what, values in zip(("from federated", "between nodes"), each.T, strict=True):
                cells = [f"{v.mean():.4f} ± {v.std(ddof=1):.4f}" for v in values]
                rows.append([MODES[mode], counter, title, what, *cells])
    header = ["sensitivity", "counter", "parameter", "gap", *(f"iteration {i}" for i in ITERATIONS)]
    print(f"\nAdult, {GOSSIPING:,} nodes, eps = {10**0.5:.3g}, mean ± sd over {seeds} runs: "
          "median over parameters and nodes of the absolute gap to the federated model, and mean "
          "interquartile range of a parameter over nodes\n")  # fmt: skip
    print(table("giaretta_parameters", header, rows, spread=f"SD over {seeds} runs"))
    draw_parameters(drawn)


def gaps(way: Way, generator, adds_up_to: int) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Return each kind's absolute and signed gaps, shape (nodes, parameters), by iteration."""
    rows = np.array_split(generator.permutation(way.training.records), GOSSIPING)
    budgets = np.full(GOSSIPING, 10**0.5)
    updates = exact_updates(way.schema, [way.training.rows(own) for own in rows])
    updates = updates + way.noise(rows, budgets, generator)
    noise = way.errors(budgets)
    federated = way.model(updates.sum(axis=0), noise, FLOOR)
    found = {kind: [] for kind in KINDS}
    states = gossip(updates, max(ITERATIONS), generator, adds_up_to=adds_up_to)
    for place, state in enumerate(states, 1):
        if place in ITERATIONS:
            sums = state.estimates.values * GOSSIPING
            nodes = [difference(way.model(row, noise, FLOOR), federated) for row in sums]
            for kind in KINDS:
                signed = np.array([node[kind] for node in nodes])
                found[kind].append((np.abs(signed), signed))
    return found


def difference(model: NaiveBayes, federated: NaiveBayes) -> dict[str, np.ndarray]:
    """Return how far each parameter is from the federated model's."""
    features, numbers = model.feature_log_prob_, model.theta_
    spread = {n: np.sqrt(federated.var_[n]) for n in numbers}
    return {
        "prior": np.exp(model.class_log_prior_) - np.exp(federated.class_log_prior_),
        "conditional": np.concatenate(
            [(np.exp(t) - np.exp(federated.feature_log_prob_[n])).ravel()
             for n, t in features.items()]
        ),
        "mean": np.concatenate([(m - federated.theta_[n]) / spread[n] for n, m in numbers.items()]),
        "deviation": np.concatenate([np.sqrt(model.var_[n]) / spread[n] - 1 for n in numbers]),
    }  # fmt: skip


def draw_parameters(drawn: dict) -> None:
    with style():
        figure = Figure(figsize=(9.5, 7), layout="constrained")
        panels = figure.subplots(len(KINDS), 2, sharex=True, squeeze=False)
        figure.suptitle("Parameters of gossip's models, Adult, 1,000 nodes (figure 7)")
        for axes, (kind, mode) in zip(panels.flat, product(KINDS, MODES), strict=True):
            for place, counter in enumerate(COUNTERS):
                gap, between = drawn[mode, counter, kind].T
                errors(axes, ITERATIONS, gap, f"gap to federated, t: {counter}", f"C{place}")
                errors(axes, ITERATIONS, between, f"between nodes, t: {counter}", f"C{place + 2}")
            axes.set(title=f"{KINDS[kind]}: {MODES[mode]}", yscale="log")
        for axes in panels[-1]:
            axes.set_xlabel("iterations")
        legend(figure, panels[0, 0], 2)
        save(figure, "gossip_parameters.svg")


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fetched", type=Path)
    parser.add_argument("--parts", default="baseline,sensitivity,parameters")
    parser.add_argument("--repeats", type=int, default=40, help="of figures 2 and 3")
    parser.add_argument("--gossips", type=int, default=5, help="runs of figure 7")
    given = arguments(parser, data=True)
    parts = given.parts.split(",")
    sets = {data.name: data for data in load(given.data, given.fetched) if data.name != "Voting"}
    if "baseline" in parts:
        baseline([*sets.values()], voting(given.fetched), given.repeats, given.seed)
    if "sensitivity" in parts:
        with_numbers = [data for data in sets.values() if data.has_numbers]
        sensitivity(with_numbers, given.repeats, given.seed)
    if "parameters" in parts:
        parameters(sets["Adult"], given.gossips, given.seed)


if __name__ == "__main__":
    main()
