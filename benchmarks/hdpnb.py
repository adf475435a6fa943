"""HDPNB: accuracy under noise (the paper's Fig. 1 a), 1,000 parties, joins and leaves.

    python benchmarks/hdpnb.py --data FOLDER [--parts accuracy,parties,churn] [--repeats 100]

Writes docs/figures/hdpnb_car.svg and prints Markdown tables. Accuracy: Car Evaluation, one record a
party, n of them drawn for each repetition, ten-fold cross-validation (the parties of nine folds
learn), gamma = 1, delta = 1e-5, one pseudo-count in all models. The noise of a sum is drawn at once
(`noise_of_sums.py`); that releases by the protocol have this law is a test. Parties: CPU seconds of
all parties and the aggregator in one process; bytes a party sends and hears, envelopes included.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from runs import arguments, figure_path, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np
from noise_of_sums import noise_of_sum

from tests.vertibayes.hdpnb_worlds import pooled
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.distributed import HDPNB
from vertibayes_mpc.membership import Estimates
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.accounting import Accounting, Privacy
from vertibayes_protocols.federation import ANALYST
from vertibayes_protocols.queries import Sums
from vertibayes_protocols.queries.sums.sums import PAIRS
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.roles import agree_pairs
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Traffic
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.site.text import read_columns

EPS = (0.1, 0.2, 0.3, 0.4)
PARTIES = (200, 400, 600, 800, 1000, 1250, 1500, 1728)
WAYS = [(accounting, noise) for accounting in ("count", "whole") for noise in ("diluted", "polya")]
TITLES = {"count": "eps for each count, as the paper", "whole": "eps for the whole record"}
NOISES = {"diluted": "diluted geometric", "polya": "Polya shares"}


def load(path: Path, target: str = "class") -> tuple[Schema, LocalData]:
    """Read a file; its states are declared here, from all of it."""
    columns = {name: column for name, column in read_columns(path).items() if len(column.texts) > 1}
    names = list(columns)
    data = SiteData.from_text(path.stem, columns, Encoding(categorical=names))
    features = {name: data.variables[name] for name in names if name != target}
    schema = Schema(data.variables[target], features)
    return schema, LocalData(schema.variables, {n: data.codes[n] for n in schema.variables})


def matrix(schema: Schema, data: LocalData) -> np.ndarray:
    """Return each record's own counts: shape (n, counts)."""
    return np.array([schema.measure(data.rows(np.array([i]))) for i in range(data.records)])


class Fig1:
    """Accuracy of one repetition at one n, for all noises at once."""

    def __init__(self, schema: Schema, data: LocalData, seed: int) -> None:
        self.schema, self.data, self.counts = schema, data, matrix(schema, data)
        self.generator = np.random.default_rng(seed)
        self.noises: dict[tuple, Accounting] = {}
        for eps in EPS:
            for way in WAYS:
                privacy = Privacy(eps=eps, accounting=way[0], noise=way[1])
                self.noises[(eps, *way)] = Accounting(schema, privacy, 1)

    def repetition(self, n: int) -> dict[tuple, float]:
        """Return the ten-fold accuracy of standard naive Bayes, and of each noise."""
        chosen = self.generator.permutation(self.data.records)[:n]
        right: dict[tuple, float] = dict.fromkeys([(), *self.noises], 0.0)
        for fold in np.array_split(np.arange(n), 10):
            train, test = np.delete(chosen, fold), self.data.rows(chosen[fold])
            sums = self.counts[train].sum(axis=0)
            right[()] += self.accuracy(sums, test) * len(fold) / n
            for key, accounting in self.noises.items():
                noise = accounting.noise(len(train), SystemRandomness())
                noisy = sums + noise_of_sum(noise, len(train), len(sums), self.generator)
                right[key] += self.accuracy(noisy, test) * len(fold) / n
        return right

    def accuracy(self, sums: np.ndarray, test: LocalData) -> float:
        """Return a model's accuracy; noise alone names the first class."""
        if not np.maximum(sums[: len(self.schema.target.states)], 0).any():
            return float((test.codes[self.schema.target.name] == 0).mean())
        return NaiveBayes(self.schema).fit_sums(sums).score(test)


def accuracy(folder: Path, repeats: int) -> None:
    """Make the figure and the table."""
    schema, data = load(folder / "uci" / "car.csv")
    study = Fig1(schema, data, seed_of(1))
    found: dict[int, list[dict]] = {}
    for n in PARTIES:
        found[n] = [study.repetition(n) for _ in range(repeats)]
        print(f"  {n} parties done", file=sys.stderr, flush=True)
    majority = np.bincount(data.codes["class"]).max() / data.records
    draw(found, majority)
    print(f"\nCar Evaluation, ten-fold, {repeats} repetitions; majority class {majority:.3f}\n")
    header = ["accounting", "noise", "eps", "eps, delta of a record", "sd of a count", *PARTIES]
    rows = [["none", "none", "", "", "", *(shown(found[n], ()) for n in PARTIES)]]
    for accounting, noise in WAYS:
        for eps in EPS:
            key = (eps, accounting, noise)
            drawn = study.noises[key].noise(1555, SystemRandomness())
            promise = study.noises[key].promise([drawn] * 1555, 1555)
            whole, sd = f"{promise.eps:.1f}, {promise.delta:.0e}", f"{promise.sd:.1f}"
            cells = [shown(found[n], key) for n in PARTIES]
            rows.append([TITLES[accounting], NOISES[noise], eps, whole, sd, *cells])
    print(table("hdpnb_accuracy", header, rows, spread=f"SD over {repeats} repetitions"))


def shown(found: list[dict], key: tuple) -> str:
    """Return mean and standard deviation over repetitions."""
    values = [each[key] for each in found]
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def draw(found: dict[int, list[dict]], majority: float) -> None:
    """Draw four panels, one an accounting and noise: mean and standard deviation."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "hdpnb", "font.size": 9}):
        figure = Figure(figsize=(10, 7.4), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        figure.suptitle("HDPNB, Car Evaluation, one record a party: accuracy, ten-fold")
        for axes, (accounting, noise) in zip(panels.flat, WAYS, strict=True):
            axes.set(title=f"{TITLES[accounting]}; {NOISES[noise]}", ylim=(0, 1))
            axes.grid(color="0.9", linewidth=0.6)
            axes.axhline(majority, color="0.5", linestyle=":", label="majority class")
            line(axes, found, (), "standard naive Bayes", "black", 0)
            for place, eps in enumerate(EPS):
                key = (eps, accounting, noise)
                line(axes, found, key, f"eps = {eps}", f"C{place}", 8 * place - 12)
        for axes in panels[1]:
            axes.set_xlabel("parties, of which nine tenths learn")
        for axes in panels[:, 0]:
            axes.set_ylabel("accuracy, mean ± sd over repetitions")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
        figure.savefig(figure_path("hdpnb_car.svg"), metadata={"Date": None})


def line(axes, found, key, label, colour, aside) -> None:
    n = np.array(PARTIES)
    values = np.array([[each[key] for each in found[m]] for m in PARTIES])
    mean, sd = values.mean(axis=1), values.std(axis=1, ddof=1)
    axes.errorbar(n + aside, mean, sd, label=label, color=colour, capsize=2, linewidth=1.3)


def many_parties(folder: Path, parties: int) -> None:
    """Time a release of so many parties, both ways, and count bytes."""
    rows = Rows()
    for name in ("car.csv", "mushroom.csv.gz"):
        schema, data = load(folder / "uci" / name)
        places = np.random.default_rng(seed_of(2)).permutation(data.records)
        split = np.array_split(places, parties)
        parts = {f"party-{i:04}": data.rows(rows) for i, rows in enumerate(split)}
        for via in ("additive", "masked"):
            rows.append(one_release(name, schema, parts, via))
    print(f"\n{parties:,} parties, one process\n")
    header = ["data", "sums", "via", "rounds", "keys, CPU s", "release, CPU s", "CPU ms per party",
              "bytes sent per party", "bytes received per party", "aggregator sends, MB",
              "sd of the noise, measured / promised", "parties check drop-outs"]  # fmt: skip
    print(table("hdpnb_parties", header, rows))


def one_release(name, schema, parts, via) -> list[object]:
    """Run one release with noise, and compare this with its promise."""
    most = max(data.records for data in parts.values())
    privacy = Privacy(eps=0.5, gamma=0.9)
    terms = Terms(schema, len(parts), most, privacy, dishonest=0.05, dropouts=0.05)
    start = process_time()
    study = HDPNB(terms, parts, via=via)
    traffic = study.federation.traffic
    if via == "additive":
        agree_all(study)
    keys = process_time() - start
    start = process_time()
    model = study.round()
    seconds = process_time() - start
    noise = model.sums_ - pooled(terms, list(parts.values())).sums_
    sent = median(sum_of(traffic, sender=p) for p in parts)
    heard = median(sum_of(traffic, receiver=p) for p in parts)
    return [
        name.split(".")[0], terms.counts, via, traffic.rounds, f"{keys:.1f}", f"{seconds:.1f}",
        f"{seconds / len(parts) * 1e3:.0f}", f"{sent:,.0f}", f"{heard:,.0f}",
        f"{sum_of(traffic, sender=ANALYST) / 1e6:.1f}",
        f"{noise.std():.1f} / {study.promise_.sd:.1f}",
        "yes" if study.promise_.checked else "no",
    ]  # fmt: skip


def agree_all(study: HDPNB) -> None:
    """Have all parties agree keys with their neighbours, which they keep, and with the analyst."""
    analyst = study.federation.analyst
    sum_ = Sums.of(analyst, study.terms, study.members).summation()
    for party, site in study.federation.roles.items():
        agree_pairs(site, set().union(*sum_.neighbourhood(party)) - {party}, PAIRS)
    agree_pairs(analyst, study.parties, PAIRS)


def sum_of(traffic: Traffic, sender: str | None = None, receiver: str | None = None) -> int:
    return sum(
        count
        for (a, b), count in traffic.bytes_sent.items()
        if sender in (None, a) and receiver in (None, b)
    )


def churn() -> None:
    """Count keys and estimates that random joins and leaves change, against n."""
    rows = Rows()
    for n in (10, 100, 1000, 10_000):
        steps = 60 if n > 100 else 200
        changed, estimates = random_steps(n, steps)
        keys, most = median(changed), max(changed)
        rows.append([n, steps, f"{keys:.0f}", most, max(estimates), n + 1])
    print("\nKeys that a join or leave changes, additive scheme; masked sums change none\n")
    header = ["parties", "random steps", "keys, median", "most", "u changed, most",
              "one zero-sum set-up"]  # fmt: skip
    print(table("hdpnb_churn", header, rows))


def random_steps(n: int, steps: int) -> tuple[list[int], list[int]]:
    from vertibayes_mpc.membership import Groups

    generator = np.random.default_rng(seed_of(3))
    names = [f"p{i}" for i in range(n)]
    groups, estimates = Groups(names, SystemRandomness()), Estimates(names)
    changed, updated = [], []
    for step in range(steps):
        if step % 2:
            party = names.pop(int(generator.integers(len(names))))
            changed.append(len(groups.leave(party)))
            updated.append(len(estimates.leave(party)))
        else:
            names.append(f"new{step}")
            changed.append(len(groups.join(names[-1])))
            updated.append(len(estimates.join(names[-1])))
    return changed, updated


def long_study(folder: Path, rounds: int) -> None:
    """Random joins, leaves, absences and releases at 2048 bits: always the pooled model."""
    schema, data = load(folder / "uci" / "car.csv")
    generator, most = np.random.default_rng(seed_of(4)), 40
    terms = Terms(schema, 30, most, None, dropouts=0.3)

    def part() -> LocalData:
        return data.rows(generator.integers(0, data.records, int(generator.integers(0, most))))

    for via in ("additive", "masked"):
        held = {f"p{i}": part() for i in range(12)}
        study, start, wrong, joins, leaves = HDPNB(terms, held, via=via), perf_counter(), 0, 0, 0
        for step in range(rounds):
            if generator.random() < 0.5 and len(held) < 30:
                held[f"n{step}"] = part()
                study.join(f"n{step}", held[f"n{step}"])
                joins += 1
            elif len(held) > 4:
                gone = sorted(held)[int(generator.integers(len(held)))]
                study.leave(gone)
                del held[gone]
                leaves += 1
            absent = set(generator.permutation(sorted(held))[: int(generator.integers(0, 3))])
            absent = set(list(absent)[: terms.absent(len(held))])
            found = study.round(absent=absent).sums_
            there = [records for party, records in held.items() if party not in absent]
            wrong += not np.array_equal(found, pooled(terms, there).sums_)
        print(
            f"\n{via}: {rounds} rounds, {joins} joins, {leaves} leaves, {wrong} models differ from "
            f"pooled learning, {perf_counter() - start:.0f} s"
        )


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default="accuracy,parties,churn,long")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--parties", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=100)
    given = arguments(parser, data=True)
    parts = given.parts.split(",")
    if "accuracy" in parts:
        accuracy(given.data, given.repeats)
    if "parties" in parts:
        many_parties(given.data, given.parties)
    if "churn" in parts:
        churn()
    if "long" in parts:
        long_study(given.data, given.rounds)


if __name__ == "__main__":
    main()
