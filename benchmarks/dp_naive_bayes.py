"""Federated and gossip naive Bayes under local noise: the figures of Giaretta et al. (2023).

    python benchmarks/dp_naive_bayes.py --data FOLDER [--fetched FOLDER] [--repeats 40] [--seed 0]
                                        [--parts accuracy,floors,sizes,threshold,gossip,speed]

Writes docs/figures/federated_*.svg and gossip_adult.svg, and prints Markdown tables. *Measured* is
the paper's sensitivity, the largest absolute value in a class at each node, without pseudo-counts,
as in the paper; it is **not private**. *Declared* takes bounds declared beforehand, and one
pseudo-count, and raises variances to their standard errors under the noise. The noise is drawn with
numpy from the law of the project's samplers: for experiments, not for release.

Congressional Voting Records is read from ``congressional-voting.csv`` in the folder ``--fetched``,
with the class in the column ``Class``; get it with the package ucimlrepo:

    from ucimlrepo import fetch_ucirepo
    records = fetch_ucirepo(id=105).data
    records.features.join(records.targets).to_csv("congressional-voting.csv", index=False)
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from time import process_time

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from curves import errors, legend, mean_sd, save, style
from gossip_curves import gossiping
from local_noise import ALPHA, MODES, Data, Way, load
from matplotlib.figure import Figure

from tests.splits import deal_records
from vertibayes.naive_bayes.federated import aggregate, exact_updates, local_updates, relative_error
from vertibayes.naive_bayes.gossip import gossip, models_of
from vertibayes.splitting import log_uniform, node_sizes
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.accounting import Accounting, Privacy

EPS = tuple(10 ** (place / 4) for place in range(-8, 5))
NODES = (1, 10, 100, 1000)

# ---- figure 2 ------------------------------------------------------------------------------------


def accuracy(sets: list[Data], repeats: int, generator) -> None:
    """Accuracy over eps, for 1 to 1,000 nodes."""
    curves = {}
    for data in sets:
        for mode, way in data.ways.items():
            curves[data.name, mode] = curve(way, repeats, generator)
            print(data.name, mode, flush=True)
    draw_accuracy(sets, curves)
    show_accuracy(sets, curves, repeats)


def curve(way: Way, repeats: int, generator) -> dict:
    """Return the accuracies of each number of nodes and eps, and without noise."""
    found = {"exact": way.scorer.accuracies([way.model(way.sums)])}
    for nodes in NODES:
        for eps in EPS:
            noisy = (way.noise_of_total(nodes, eps, generator) for _ in range(repeats))
            errors = way.errors(np.full(nodes, eps))
            models = [way.model(way.sums + noise, errors) for noise in noisy]
            found[nodes, eps] = way.scorer.accuracies(models)
    return found


def show_accuracy(sets: list[Data], curves: dict, repeats: int) -> None:
    shown = [EPS[i] for i in (0, 2, 4, 6, 8, 10, 12)]
    print(f"\nMean ± sd over {repeats} repetitions\n")
    rows = []
    for data, mode in product(sets, MODES):
        found = curves[data.name, mode]
        kept = [data.name, MODES[mode], ALPHA[mode]]
        rows.append([*kept, "no noise", *[f"{found['exact'][0]:.3f}"] * len(shown)])
        for nodes in NODES:
            cells = [mean_sd(found[nodes, eps]) for eps in shown]
            rows.append([*kept, nodes, *cells])
    header = ["data", "sensitivity", "pseudo-counts", "nodes"]
    header += [f"eps {eps:.3g}" for eps in shown]
    print(table("dp_naive_bayes", header, rows, spread=f"SD over {repeats} repetitions"))


def draw_accuracy(sets: list[Data], curves: dict) -> None:
    with style():
        figure = Figure(figsize=(9.5, 2.5 * len(sets) + 0.8), layout="constrained")
        panels = figure.subplots(len(sets), 2, sharex=True, sharey="row", squeeze=False)
        figure.suptitle("Federated naive Bayes under local noise: accuracy, mean ± sd")
        for row, data in zip(panels, sets, strict=True):
            for axes, mode in zip(row, MODES, strict=True):
                found = curves[data.name, mode]
                axes.axhline(found["exact"][0], color="0.4", linestyle=":", label="without noise")
                for place, nodes in enumerate(NODES):
                    values = np.array([found[nodes, eps] for eps in EPS])
                    aside = np.array(EPS) * (1 + 0.03 * (place - 1.5))
                    label = f"{nodes:,} nodes" if nodes > 1 else "1 node"
                    errors(axes, aside, values, label, f"C{place}")
                kind = MODES[mode] if data.has_numbers else "counts alone"
                pseudo = "one pseudo-count" if ALPHA[mode] else "no pseudo-count"
                axes.set(title=f"{data.name}: {kind}, {pseudo}", xscale="log")
        for axes in panels[-1]:
            axes.set_xlabel("eps of a record at its node")
        legend(figure, panels[0, 0], 5)
        save(figure, "federated_accuracy.svg")


# ---- the floor of variances ----------------------------------------------------------------------


def floors(sets: list[Data], repeats: int, generator, nodes: int = 1000) -> None:
    """Accuracy if variances are raised to more than 1e-6, or to their errors; declared bounds."""
    given, rows = (1e-6, 1e-4, 1e-2, 1e-1), []
    for data in sets:
        way = data.ways["declared"]
        for eps in (None, 0.1, 1.0):
            noises = [0] if eps is None else [
                way.noise_of_total(nodes, eps, generator) for _ in range(repeats)
            ]  # fmt: skip
            cells, errors = [], None if eps is None else way.errors(np.full(nodes, eps))
            for rule in (*((None, floor) for floor in given), (errors,)):
                models = [way.model(way.sums + noise, *rule) for noise in noises]
                found = way.scorer.accuracies(models)
                cells.append(f"{found[0]:.3f}" if eps is None else mean_sd(found))
            rows.append([data.name, eps or "no noise", *cells])
    print(f"\n{nodes:,} nodes, declared bounds, {repeats} repetitions\n")
    header = [*(f"floor {floor:g}" for floor in given), "raised to its standard error"]
    spread = f"SD over {repeats} repetitions"
    print(table("dp_naive_bayes_floors", ["data", "eps", *header], rows, spread=spread))


# ---- figure 4 ------------------------------------------------------------------------------------


def sizes(adult: Data, repeats: int, generator, nodes: int = 1000) -> None:
    """Accuracy for different node sizes, and for different budgets at the nodes."""
    found = {}
    cases = ("equal", "uniform", "exponential", "budgets")
    for mode, way in adult.ways.items():
        for eps in EPS[::2]:
            for case in cases:
                totals = (one_total(way, case, eps, nodes, generator) for _ in range(repeats))
                models = [way.model(way.sums + noise, errors) for noise, errors in totals]
                found[mode, case, eps] = way.scorer.accuracies(models)
    titles = {"equal": "equal sizes", "uniform": "sizes of U(1, 10)", "exponential":
              "sizes of Exp(2)", "budgets": "budgets log-uniform, eps/10 to 10 eps"}  # fmt: skip
    with style():
        figure = Figure(figsize=(9.5, 3.6), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        figure.suptitle(f"Adult, {nodes:,} nodes of different sizes or budgets: mean ± sd")
        for axes, mode in zip(panels, MODES, strict=True):
            for place, case in enumerate(cases):
                values = np.array([found[mode, case, eps] for eps in EPS[::2]])
                aside = np.array(EPS[::2]) * (1 + 0.05 * (place - 1.5))
                errors(axes, aside, values, titles[case], f"C{place}")
            axes.set(title=MODES[mode], xscale="log", xlabel="eps of a record at its node")
        legend(figure, panels[0], 4)
        save(figure, "federated_sizes.svg")
    print(f"\n**Adult**, {nodes:,} nodes, mean ± sd over {repeats} repetitions\n")
    rows = [[MODES[mode], titles[case], *(mean_sd(found[mode, case, eps]) for eps in EPS[::2])]
            for mode in MODES for case in cases]  # fmt: skip
    header = ["sensitivity", "nodes", *(f"eps {eps:.3g}" for eps in EPS[::2])]
    print(table("dp_naive_bayes_sizes", header, rows, spread=f"SD over {repeats} repetitions"))


def one_total(way: Way, case: str, eps: float, nodes: int, generator):
    """Return the sum of the nodes' noise in one repetition, and its standard errors."""
    records = way.training.records
    each = np.full(nodes, eps)
    if case == "budgets":
        each, case = log_uniform(eps / 10, eps * 10, nodes, generator), "equal"
    ends = np.cumsum(node_sizes(case, nodes, records, generator))
    rows = np.split(generator.permutation(records), ends[:-1])
    return way.noise(rows, each, generator).sum(axis=0), way.errors(each)


# ---- figure 5 ------------------------------------------------------------------------------------


def threshold(sets: list[Data], repeats: int, generator) -> None:
    """Accuracy if the noisiest nodes stay out, over the share of nodes that stay in."""
    kept = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    with style():
        figure = Figure(figsize=(9.5, 3.1 * len(sets)), layout="constrained")
        panels = figure.subplots(len(sets), 3, squeeze=False)
        rows = []
        for row, data in zip(panels, sets, strict=True):
            for axes, mode in zip(row[1:], MODES, strict=True):
                runs = [thresholded(data.ways[mode], kept, generator) for _ in range(repeats)]
                by_error, by_eps = (np.array([run[i] for run in runs]).T for i in (0, 1))
                errors(axes, kept - 0.005, by_error, "by relative error, mean ± sd", "C0")
                errors(axes, kept + 0.005, by_eps, "by eps, mean ± sd", "C1")
                axes.plot(kept, by_error.min(axis=1), "C0.", label="least, by relative error")
                axes.plot(kept, by_eps.min(axis=1), "C1.", label="least, by eps")
                axes.set(title=f"{data.name}: {MODES[mode]}", xlabel="share of nodes kept")
                for share, one, other in zip(kept, by_error, by_eps, strict=True):
                    cells = [mean_sd(one), f"{one.min():.3f}", mean_sd(other), f"{other.min():.3f}"]
                    rows.append([data.name, MODES[mode], f"{share:.2f}", *cells])
            counts, budgets, noises = runs[-1][2:]
            dots = row[0].scatter(counts, budgets, c=np.log10(noises), s=14, cmap="viridis")
            figure.colorbar(dots, ax=row[0], label="log10 of the relative error")
            row[0].set(title=f"{data.name}: nodes of one run", xlabel="records", ylabel="eps",
                       xscale="log", yscale="log")  # fmt: skip
        legend(figure, panels[0, 1], 4)
        save(figure, "federated_threshold.svg")
    print(f"\nNodes kept by least relative error (equation 28) or largest eps, {repeats} runs\n")
    header = ["data", "sensitivity", "share of nodes kept", "by relative error", "least", "by eps",
              "least"]  # fmt: skip
    print(table("dp_naive_bayes_threshold", header, rows, spread=f"SD over {repeats} repetitions"))


def thresholded(way: Way, kept: np.ndarray, generator) -> tuple[np.ndarray, ...]:
    """Return one run's accuracies by error and by eps, its sizes, budgets and errors."""
    records = way.training.records
    mean = (records / 5 - 2) / np.log(records / 10)  # of log-uniform sizes
    nodes = round(records / mean)
    counts = node_sizes("log-uniform", nodes, records, generator)
    budgets = log_uniform(0.01, 10, nodes, generator)
    rows = np.split(generator.permutation(records), np.cumsum(counts)[:-1])
    exact = exact_updates(way.schema, [way.training.rows(places) for places in rows])
    noisy = exact + way.noise(rows, budgets, generator)
    noises = relative_error(way.schema, noisy, exact)
    last = np.maximum(np.rint(kept * nodes).astype(int), 1) - 1
    found = []
    for order in (noises, -budgets):
        places = np.argsort(order)
        added = np.cumsum(noisy[places], axis=0)
        models = [way.model(added[end], way.errors(budgets[places[: end + 1]])) for end in last]
        found.append(way.scorer.accuracies(models))
    return *found, counts, budgets, noises


# ---- speed ---------------------------------------------------------------------------------------


def speed(adult: Data, generator, nodes: int = 1000, iterations: int = 100) -> None:
    """CPU seconds of each step for 1,000 nodes, and the variance that shares of noise save."""
    way, rows = adult.ways["declared"], []
    parts = deal_records(way.training, node_sizes("equal", nodes, way.training.records, generator),
                         generator)  # fmt: skip
    exact = timed(rows, "statistics of all nodes", lambda: exact_updates(way.schema, parts))
    updates, errors = {}, {}
    for noise in ("laplace", "gaussian", "polya"):
        privacy = Privacy(eps=10**0.5, noise=noise)
        local_updates(way.schema, parts[:1], privacy)  # imports OpenDP
        step = f"statistics and noise, {noise}"
        updates[noise] = timed(rows, step, lambda p=privacy: local_updates(way.schema, parts, p))
        copies = 1 if noise == "polya" else nodes
        errors[noise] = Accounting(way.schema, privacy).errors(copies)
        timed(rows, f"aggregate, {noise}",
              lambda n=noise: aggregate(way.schema, updates[n], errors=errors[n]))  # fmt: skip
    run = timed(rows, f"gossip, {iterations} iterations",
                lambda: list(gossip(updates["laplace"], iterations, generator)))  # fmt: skip
    own = errors["laplace"]
    models = timed(rows, f"{nodes:,} models of an iteration",
                   lambda: models_of(way.schema, run[-1].estimates, errors=own))  # fmt: skip
    timed(rows, f"accuracies of {nodes:,} models, {way.test.records:,} records",
          lambda: way.scorer.accuracies(models))  # fmt: skip
    print(f"\nAdult, {nodes:,} nodes, {exact.shape[1]} values a node, one thread\n")
    print(table("dp_naive_bayes_speed", ["step", "CPU s"], rows))
    scale = np.repeat([p.Delta for p in way.accounting.parts], way.cells)
    rows = []
    for noise, values in updates.items():
        drawn = (((values - exact).sum(axis=0) / scale) ** 2).mean()
        accounting = Accounting(way.schema, Privacy(eps=10**0.5, noise=noise))
        expected = nodes * accounting.noise(nodes, SystemRandomness()).variance
        rows.append([noise, f"{drawn:.4g}", f"{expected:.4g}"])
    print(f"\nVariance of the noise in the sum of {nodes:,} nodes, in squared changes by a record")
    print(f"(one release: the mean over {exact.shape[1]} values)\n")
    print(table("dp_naive_bayes_noise", ["noise", "one release", "expected"], rows))


def timed(rows: list, step: str, call):
    """Run a step and note its CPU seconds."""
    start = process_time()
    result = call()
    rows.append([step, f"{process_time() - start:.3f}"])
    return result


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fetched", type=Path)
    parser.add_argument("--parts", default="accuracy,floors,sizes,threshold,gossip,speed")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="each part begins with it again")
    given = arguments(parser, data=True)
    parts = given.parts.split(",")
    print(f"seed {given.seed}, {given.repeats} repetitions")
    sets = {data.name: data for data in load(given.data, given.fetched)}
    if "accuracy" in parts:
        accuracy([*sets.values()], given.repeats, np.random.default_rng(given.seed))
    if "floors" in parts:
        floors(
            [s for s in sets.values() if s.has_numbers],
            given.repeats,
            np.random.default_rng(given.seed),
        )
    if "sizes" in parts:
        sizes(sets["Adult"], given.repeats, np.random.default_rng(given.seed))
    if "threshold" in parts:
        threshold([sets["Adult"], sets["Skin"]], given.repeats, np.random.default_rng(given.seed))
    if "gossip" in parts:
        gossiping(sets["Adult"], given.repeats, given.seed)
    if "speed" in parts:
        speed(sets["Adult"], np.random.default_rng(given.seed))


if __name__ == "__main__":
    main()
