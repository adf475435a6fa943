"""VDPNB on Car Evaluation: accuracy by eps and records, and what a batch of predictions costs.

    python benchmarks/vdpnb.py --data FOLDER [--runs 40] [--figures docs/figures]

FOLDER has uci/car.csv. Ten-fold, one attribute a site, as Fig. 1b of Huai et al. (2015); under the
paper's accounting (eps for each count) and ours (eps for a whole record). Accuracies are those of
the noisy tables' model, which the tests show that predictions over sites equal; noise is OpenDP's.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

from runs import arguments, figure_path, seed_of
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.vertical import model_of, predict_joint_log_proba, tables_of
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.federation import ANALYST, federate
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Scores
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.split import Split, count_tables
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.site.text import read_columns

SIZES = (200, 400, 600, 800, 1000, 1200, 1400, 1600, 1728)
EPS = (0.1, 0.2, 0.3, 0.4)
FOLDS = 10
TITLES = {"count": "eps for each count (the paper's)", "whole": "eps for a whole record (ours)"}


def car(folder: Path) -> tuple[Schema, LocalData]:
    """Read Car Evaluation."""
    data = SiteData.from_text("car", read_columns(folder / "uci" / "car.csv"))
    features = {name: v for name, v in data.variables.items() if name != "class"}
    schema = Schema(data.variables["class"], features)
    return schema, LocalData(schema.variables, {n: data.codes[n] for n in schema.variables})


def split_of(schema: Schema, training: LocalData) -> Split:
    """Give each attribute a site of its own."""
    counts = np.bincount(training.codes["class"], minlength=len(schema.target.states))
    holders = {f"site-{name}": (name,) for name in schema.features}
    return Split.of(schema, holders, tuple(counts.tolist()))


def noisy_model(split: Split, training: LocalData, noise: RecordNoise) -> NaiveBayes:
    """Return the model of all sites' noisy tables."""
    drawn = noise.of_a_table(split.schema)
    tables = [count_tables(split, site, training, drawn) for site in split.sites]
    return model_of(split, {name: t for held in tables for name, t in held.items()})


def as_printed(model: NaiveBayes, exact: NaiveBayes) -> NaiveBayes:
    """Divide noisy counts by the public n_j, as the paper has it, in place of their own totals."""
    printed = NaiveBayes(model.schema).fit_sums(model.sums_)
    for name, counts in tables_of(model, model.schema.categorical).items():
        divisors = exact.class_count_ + len(counts)
        printed.feature_log_prob_[name] = np.log((counts + 1) / divisors).T
    return printed


def one_run(schema: Schema, data: LocalData, records: int, seed: int) -> dict[object, float]:
    """Return the ten-fold accuracy of each variant over a random part of the records."""
    order = np.random.default_rng((seed_of(seed), records)).permutation(data.records)[:records]
    right: dict[object, float] = {}
    for part in np.array_split(order, FOLDS):
        training, tested = data.rows(np.setdiff1d(order, part)), data.rows(part)
        split, exact = split_of(schema, training), NaiveBayes(schema).fit(training)
        models: dict[object, NaiveBayes] = {"standard": exact}
        for accounting in TITLES:
            for eps in EPS:
                noisy = noisy_model(split, training, RecordNoise(eps, accounting))
                models[accounting, eps] = noisy
                if records == SIZES[-1]:
                    models["printed", accounting, eps] = as_printed(noisy, exact)
        for key, model in models.items():
            right[key] = right.get(key, 0.0) + model.score(tested) * len(part) / records
    return right


def accuracies(schema: Schema, data: LocalData, runs: int) -> dict[int, dict[object, np.ndarray]]:
    """Return, of each number of records and variant, the accuracies of all runs."""
    found = {}
    for records in SIZES:
        each = [one_run(schema, data, records, seed) for seed in range(runs)]
        found[records] = {key: np.array([run[key] for run in each]) for key in each[0]}
        print(f"  {records} records done", flush=True)
    return found


def draw_curves(found: dict[int, dict[object, np.ndarray]], runs: int, path: Path) -> None:
    """Write the curves, error bars of one standard deviation of a run, as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vdpnb", "font.size": 9}):
        figure = Figure(figsize=(10, 4.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        colours = mpl.colormaps["viridis"](np.linspace(0.05, 0.85, len(EPS)))
        for axes, (accounting, title) in zip(panels, TITLES.items(), strict=True):
            lines = [("standard naive Bayes", "standard", "black", "--")]
            lines += [(f"VDPNB, eps = {eps}", (accounting, eps), colour, "-")
                      for eps, colour in zip(EPS, colours, strict=True)]  # fmt: skip
            for place, (label, key, colour, style) in enumerate(lines):
                mean = [found[n][key].mean() for n in SIZES]
                deviation = [found[n][key].std(ddof=1) for n in SIZES]
                at = np.array(SIZES) + 7 * (place - 2)  # apart, so that bars do not hide each other
                axes.errorbar(at, mean, deviation, label=label, color=colour, linestyle=style,
                              linewidth=1.4, elinewidth=0.8, capsize=2)  # fmt: skip
            axes.set(title=title, xlabel="records")
            axes.grid(color="0.9")
        panels[0].set_ylabel(f"accuracy, ten-fold, mean of {runs} runs")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        figure.savefig(path, format="svg", metadata={"Date": None})


def shown(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def costs(schema: Schema, data: LocalData, records: int) -> str:
    """Time a batch of predictions at 2048 bits, by both variants."""
    split, batch = split_of(schema, data), data.rows(np.arange(records))
    model = NaiveBayes(schema).fit(data)
    tables, exact = tables_of(model, schema.categorical), model.predict_joint_log_proba(batch)
    rows, sites = [], {site: site_data(batch, split, site) for site in split.sites}
    for name, via in (("sums of logarithms, 32 bits", "additive"), ("products", "product")):
        with federate(sites, policy=ALLOW_ALL) as all_:
            role, places = all_.session.role, (0, records)
            query = Scores.of(role, split, all_.dealer, tables, places, via)
            variant = query.variant(role.modulus)
            site, keys = split.sites[0], variant.deal(SystemRandomness())
            own = {n: tables[n] for n in split.holders[site]}
            start = perf_counter()
            values = variant.values(own, batch)
            _ = next(variant.contribute(site, keys.parties[site], values, ANALYST))
            site_seconds = perf_counter() - start
            start = perf_counter()
            joint = predict_joint_log_proba(all_.session, all_.dealer, split, tables, places, via)
            seconds = perf_counter() - start
            sent = max(all_.traffic.bytes_sent[s, ANALYST] for s in split.sites)
        aggregator, off = seconds - len(split.sites) * site_seconds, np.abs(joint - exact).max()
        rows.append([name, f"{seconds:.2f}", f"{site_seconds:.3f}", f"{aggregator:.2f}", sent,
                     f"{off:.1e}", f"{variant.error:.1e}"])  # fmt: skip
    header = [f"{records} records, 4 classes, 6 sites", "all parties s", "one site s",
              "the aggregator s",
              "bytes per site", "largest error, nats", "bound"]  # fmt: skip
    return table("vdpnb_costs", header, rows)


def site_data(records: LocalData, split: Split, site: str) -> SiteData:
    """Return what one site has of some records."""
    names = split.holders[site]
    codes = {n: records.codes[n].astype(np.uint16) for n in names}
    return SiteData({n: records.variables[n] for n in names}, codes)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    given = arguments(parser, data=True)
    schema, data = car(given.data)
    print(costs(schema, data, 173), "\n")
    start = perf_counter()
    found = accuracies(schema, data, given.runs)
    draw_curves(found, given.runs, figure_path("vdpnb_car.svg"))
    keys: list[tuple[str, object]] = [("standard", "standard")]
    keys += [(f"{a}, {eps}", (a, eps)) for a in TITLES for eps in EPS]
    rows = [[n, *(shown(found[n][key]) for _, key in keys)] for n in SIZES]
    header, spread = ["records", *(name for name, _ in keys)], f"SD over {given.runs} runs"
    print("\n" + table("vdpnb", header, rows, spread=spread))
    last = found[SIZES[-1]]
    rows = [[a, eps, shown(last[a, eps]), shown(last["printed", a, eps])]
            for a in TITLES for eps in EPS]  # fmt: skip
    header = ["accounting", "eps", "divided by their own totals", "by n_j, as printed"]
    print("\n" + table("vdpnb_totals", header, rows, spread=spread))
    majority = np.bincount(data.codes["class"]).max() / data.records
    print(f"\nmost frequent class {majority:.3f}; {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
