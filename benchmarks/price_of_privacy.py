"""Secure learning beside pooled learning, in one run, on one thread: the ratios.

    python benchmarks/price_of_privacy.py [--data FOLDER] [--repeats 7]

Without a folder of reference data (VERTIBAYES_DATA), ALARM and Asia are sampled from the networks
that pgmpy bundles. The published figures that are cited were not measured here.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
from pathlib import Path
from time import process_time

from runs import arguments, seed_of
from side_by_side import on_one_thread, seconds_of, table

on_one_thread()

import numpy as np
import pandas as pd
import pyagrum as gum
from pgmpy.utils import get_example_model

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.network import from_pgmpy
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.federation import Federation, federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text import read_columns
from vertibayes_protocols.variables import Family, Variable

PUBLISHED_ASIA = 10.8  # s, 2 sites, 10,000 records: the published code, cited, not run


def load(name: str, folder: Path | None) -> SiteData:
    """Read a reference file, or sample 10,000 records."""
    if folder is None:
        return sample(from_pgmpy(get_example_model(name)), 10_000, seed=seed_of())
    columns = read_columns(folder / name / f"{name}.csv.gz")
    columns.pop("record_id")
    return SiteData.from_text(name, columns)


class SecureRun:
    """One secure K2: keys, commitments and structure, with all parties' work in this process."""

    def __init__(self, data: SiteData, sites: int) -> None:
        self.data, self.parts = data, split_columns(data, sites)
        self.commit: list[float] = []
        self.structure: Structure
        self.federation: Federation
        self.counter: SecureCounter

    def __call__(self) -> None:
        """Run it, and keep what it found."""
        start = process_time()
        with federate(self.parts) as self.federation:
            self.counter = SecureCounter.of(self.federation, order=list(self.data.variables))
            self.commit.append(process_time() - start)
            self.structure = k2(self.counter, max_parents=3)


def pyagrum_k2(data: SiteData) -> gum.BNLearner:
    """Return pyAgrum's learner, its data loaded."""
    names = list(data.variables)
    frame = pd.DataFrame({n: np.array(data.variables[n].states)[data.codes[n]] for n in names})
    learner = gum.BNLearner(frame)
    learner.useScoreK2()
    learner.useK2([learner.idFromName(name) for name in names])
    learner.setMaxIndegree(3)
    learner.setNumberOfThreads(1)
    return learner


def learning(name: str, data: SiteData, sites: int, repeats: int) -> tuple[list[object], SecureRun]:
    """Compare K2 with at most 3 parents; return a row of the table, and the secure run."""
    secure, learner = SecureRun(data, sites), pyagrum_k2(data)
    ours = seconds_of(secure, repeats)
    theirs = seconds_of(learner.learnBN, repeats)
    plain = seconds_of(lambda: k2(PlainCounter(data), max_parents=3), repeats)
    found = {(learner.nameFromId(a), learner.nameFromId(b)) for a, b in learner.learnBN().arcs()}
    same = found == set(secure.structure.edges) == set(k2(PlainCounter(data)).edges)
    commit = sorted(secure.commit)[len(secure.commit) // 2]
    row = [
        f"{name}, {data.records} records, {sites} sites", f"{ours:.3f}", f"{commit:.3f}",
        f"{theirs:.3f}", f"{ours / theirs:.1f}", f"{plain:.3f}", f"{ours / plain:.1f}",
        "equal" if same else "DIFFERENT",
    ]  # fmt: skip
    return row, secure


def bytes_and_rounds(run: SecureRun) -> str:
    """Print the commitment's bytes beside their bound, and the rounds."""
    n, width = run.data.records, 2 if run.data.records < 2**16 else 4
    with federate(run.parts) as federation:
        SecureCounter.of(federation, order=list(run.data.variables))
        links = dict(federation.traffic.bytes_sent)
    rows = []
    for site, held in run.parts.items():
        states = sum(v.codes for v in held.variables.values())
        others = [other for other in run.parts if other != site]
        sent = max(links[site, other] for other in others)
        bound = n * states * width
        rows.append([site, states, sent, bound, f"{sent / bound:.2f}"])
    traffic = run.federation.traffic
    return (
        table(
            "price_of_privacy_bytes",
            ["site", "states", "bytes to commit, per receiver", "n x states x width", "ratio"],
            rows,
        )
        + f"\n\nK2: {traffic.rounds} rounds in all, {run.counter.calls} calls in "
        f"{run.counter.queries} queries; {traffic.bytes / 1e6:.1f} MB, all links"
    )


def rounds_by_variables(data: SiteData) -> str:
    """Print the rounds of K2 against the number of variables."""
    rows = []
    for count in (8, 16, 24, len(data.variables)):
        run = SecureRun(data.take(list(data.variables)[:count]), 3)
        run()
        traffic, counter = run.federation.traffic, run.counter
        rows.append([count, traffic.rounds, counter.calls, counter.queries])
    return table("price_of_privacy_rounds", ["variables", "rounds", "calls", "queries"], rows)


def one_table(repeats: int) -> tuple[float, float]:
    """Return the median seconds of a 4x4 table of 100,000 records at two sites, and of pooling."""
    generator, states = np.random.default_rng(seed_of()), ("0", "1", "2", "3")
    names = [f"v{i}" for i in range(2 * (repeats + 1))]
    codes = {name: generator.integers(0, 4, 100_000).astype(np.uint8) for name in names}
    variables = {name: Variable(name, states) for name in names}
    pooled = SiteData(variables, codes)
    parts = {f"site-{k}": pooled.take(names[k::2]) for k in range(2)}
    families = iter([Family(a, (b,)) for a, b in zip(names[::2], names[1::2], strict=True)])
    plain = PlainCounter(pooled)
    with federate(parts) as federation:
        counter = SecureCounter.of(federation, order=names)
        secure = seconds_of(lambda: counter.tables([next(families)]), repeats)
    return secure, seconds_of(lambda: plain.tables([Family("v0", ("v1",))]), repeats)


def where_the_time_goes(run: SecureRun) -> str:
    """Profile one run; print the heaviest functions, by their own time."""
    profile = cProfile.Profile()
    profile.runcall(run)
    stats = pstats.Stats(profile)
    own = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:12]  # type: ignore[attr-defined]
    total = sum(entry[2] for entry in stats.stats.values())  # type: ignore[attr-defined]
    rows = [
        [f"{Path(file).name}:{name}" if line else name, calls, f"{own_time / total:.0%}"]
        for (file, line, name), (_, calls, own_time, _, _) in own
    ]
    return table("price_of_privacy_profile", ["function", "calls", "of the profiled time"], rows)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--repeats", type=int, default=7)
    given = arguments(parser)
    folder = Path(given.data) if given.data else None
    alarm, asia = load("alarm", folder), load("asia", folder)
    rows, runs = [], {}
    for name, data, sites in (("ALARM", alarm, 3), ("ALARM", alarm, 8), ("Asia", asia, 2)):
        row, runs[name, sites] = learning(name, data, sites, given.repeats)
        rows.append(row)
    header = ["K2, at most 3 parents", "secure s", "of it commit", "pyAgrum s", "ratio",
              "our pooled s", "ratio", "structures"]  # fmt: skip
    print(table("price_of_privacy", header, rows))
    asia_seconds = float(str(rows[-1][1]))
    print(
        f"\nAsia, 2 sites: published code {PUBLISHED_ASIA} s (cited, not run); ours "
        f"{asia_seconds * 1000:.0f} ms, {PUBLISHED_ASIA / asia_seconds:.0f} times faster"
    )
    secure, plain = one_table(given.repeats)
    print(
        f"\n4x4 table, 100,000 records, 2 sites, committed: {secure * 1000:.1f} ms, all "
        f"parties' work; pooled {plain * 1000:.2f} ms"
    )
    print("\n" + bytes_and_rounds(runs["ALARM", 3]))
    print("\n" + rounds_by_variables(alarm))
    print("\n" + where_the_time_goes(runs["ALARM", 3]))


if __name__ == "__main__":
    main()
