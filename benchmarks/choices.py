"""K2 by choices beside K2 by tables, in one run: structures, seconds, bytes, and how close it was.

    python benchmarks/choices.py [--data FOLDER] [--repeats 5] [--parts prices structures many ...]

By choices the analyst learns which candidate wins and sees no table of a candidate. The structures
are compared with those of plain K2 on pooled records. The margin of a choice is the score of the
best candidate less that of the second; the bound is how far two scores by choices may be off
together. The part `search` runs `hybrid` by choices over three sites, without repeats. Where the
margin is below the bound, plain K2 may decide otherwise. How many margins are
below the bound is computed from pooled records; how many choices are undecided is what the protocol
itself reveals. The two can differ: the bound of one query can be below the largest, which is shown,
and values by choices have errors too, so that a margin of up to twice the bound can be undecided.

Without a folder of reference data (VERTIBAYES_DATA), ALARM is sampled from the network that pgmpy
bundles, as CHILD and INSURANCE always are.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from real_data import MIB, resident
from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, seconds_of, table

on_one_thread()

import numpy as np
from pgmpy.utils import get_example_model

from vertibayes.choosing import TableChooser
from vertibayes.choosing.secret import SecretChooser
from vertibayes.cli.inputs import Source, read_sites
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.network import from_pgmpy
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2, learn_structure
from vertibayes.table_scores import log_likelihoods
from vertibayes_protocols.approval import Winners
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.federation import Federation, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text import read_columns
from vertibayes_protocols.variables import Variable

RECORDS = 10_000
SITES = (2, 3, 5, 8)
PARTS = ["prices", "structures", "many", "search"]


class Margins:
    """A chooser over pooled records that notes the margin of each choice."""

    def __init__(self, data: SiteData) -> None:
        self._counter = PlainCounter(data)
        self._chooser = TableChooser(self._counter)
        self.variables, self.records = self._chooser.variables, self._chooser.records
        self.most_variables, self.fits = None, self._chooser.fits
        self.check, self.score_error = self._chooser.check, self._chooser.score_error
        self.margins: list[float] = []
        self.undecided = 0

    def choose(self, choices: Choices) -> Winners:
        """Choose, and note the margins."""
        winners = []
        for scores in self._chooser.scores_of(choices):
            second, best = sorted(scores)[-2:]
            self.margins.append(best - second)
            winners.append(scores.index(best))
        return tuple(winners)


@dataclass
class SecureRun:
    """One K2 over sites, with all parties' work in this process."""

    data: SiteData
    sites: int
    bytes: int = 0
    rounds: int = 0
    structure: Structure | None = None

    def __call__(self) -> None:
        """Run it, and keep what it learned and sent."""
        with federate(split_columns(self.data, self.sites)) as federation:
            self.structure = self.learn(federation, list(self.data.variables))
            self.bytes, self.rounds = federation.traffic.bytes, federation.traffic.rounds

    def learn(self, federation: Federation, order: list[str]) -> Structure:
        """Learn the structure."""
        raise NotImplementedError


@dataclass
class ByChoices(SecureRun):
    """K2 by choices."""

    bound: float = 0.0
    undecided: int = 0

    def learn(self, federation: Federation, order: list[str]) -> Structure:
        """Learn the structure; keep the bound, and the number of undecided choices."""
        session, sites, dealer = federation.session, federation.sites, federation.dealer
        chooser = Bounds(open_study(session, sites, dealer, order=order, choices=True))
        structure = k2(chooser, max_parents=3)
        self.bound, self.undecided = 2 * chooser.largest, chooser.undecided
        return structure


class Bounds(SecretChooser):
    """Notes the largest error of a score."""

    largest = 0.0

    def choose(self, choices: Choices) -> Winners:
        """Choose."""
        self.largest = max(self.largest, self.score_error(choices))
        return super().choose(choices)


@dataclass
class ByTables(SecureRun):
    """K2 by tables."""

    cells: int = 0

    def learn(self, federation: Federation, order: list[str]) -> Structure:
        """Learn the structure; keep the number of revealed cells."""
        counter = SecureCounter.of(federation, order=order)
        structure = k2(counter, max_parents=3)
        self.cells = counter.ledger.cells
        return structure


@dataclass
class Searching(SecureRun):
    """The hybrid search by choices."""

    calls: int = 0
    undecided: int = 0

    def learn(self, federation: Federation, order: list[str]) -> Structure:
        """Learn the structure; keep the numbers of calls and of undecided choices."""
        session, sites, dealer = federation.session, federation.sites, federation.dealer
        chooser = Calls(open_study(session, sites, dealer, order=order, choices=True))
        structure = learn_structure(chooser, "hybrid")
        self.calls, self.undecided = chooser.calls, chooser.undecided
        return structure


class Calls(SecretChooser):
    """Counts its calls."""

    calls = 0

    def choose(self, choices: Choices) -> Winners:
        """Choose."""
        self.calls += 1
        return super().choose(choices)


def read(folder: Path, name: str, file: str) -> SiteData:
    """Read a reference file."""
    columns = read_columns(folder / name / file)
    columns.pop("record_id", None)
    return SiteData.from_text(name, columns)


def with_missing(data: SiteData, share: float) -> SiteData:
    """Remove a share of the values, completely at random."""
    generator = np.random.default_rng(seed_of(7))  # by the records' seed both would be dependent
    variables = {n: Variable(n, v.states, True) for n, v in data.variables.items()}
    codes = {
        n: np.where(generator.random(data.records) < share, len(variables[n].states), c).astype(
            np.uint8
        )
        for n, c in data.codes.items()
    }
    return SiteData(variables, codes)


def cases(folder: Path | None) -> dict[str, SiteData]:
    """Return the data: four networks and data sets with 0 to 30 % of the values missing."""
    sampled = {name: sample(from_pgmpy(get_example_model(name)), RECORDS, seed=seed_of())
               for name in ("alarm", "child", "insurance")}  # fmt: skip
    complete = dict(sampled)
    if folder is not None:
        complete["alarm"] = read(folder, "alarm", "alarm.csv.gz")
        complete["diabetes"] = read(folder, "diabetes", "diabetes_binned.csv")
    return {
        f"{name}, {share:.0%} missing": with_missing(data, share) if share else data
        for name, data in complete.items()
        for share in (0.0, 0.1, 0.3)
    }


def structures(data: dict[str, SiteData]) -> str:
    """Compare structures with those of plain K2, for every number of sites."""
    rows = Rows()
    for name, whole in data.items():
        margins = Margins(whole)
        plain = k2(margins, max_parents=3)
        closest, equal, undecided, bound = min(margins.margins), [], set(), 0.0
        for sites in SITES:
            run = ByChoices(whole, sites)
            run()
            equal.append(f"{sites}: {'equal' if run.structure == plain else 'DIFFERENT'}")
            bound = max(bound, run.bound)
            undecided.add(run.undecided)
        close = sum(margin < bound for margin in margins.margins)
        rows.append([name, len(plain.edges), len(margins.margins), f"{closest:.2g}",
                     f"{bound:.1e}", close, *undecided, ", ".join(equal)])  # fmt: skip
    header = ["data", "edges", "choices", "smallest margin, nats", "bound, nats",
              "margins below the bound", "undecided choices",
              "structure, by sites"]  # fmt: skip
    return table("choices_structures", header, rows)


def prices(data: SiteData, repeats: int) -> str:
    """Compare time and bytes of K2 by choices and by tables."""
    rows = Rows()
    for sites in SITES:
        choices, tables = ByChoices(data, sites), ByTables(data, sites)
        ours, theirs = seconds_of(choices, repeats), seconds_of(tables, repeats)
        same = "equal" if choices.structure == tables.structure else "DIFFERENT"
        rows.append([
            sites, f"{theirs:.3f}", f"{ours:.3f}", f"{ours / theirs:.2f}",
            f"{tables.bytes / 1e6:.1f}", f"{choices.bytes / 1e6:.1f}",
            f"{choices.bytes / tables.bytes:.2f}", tables.rounds, choices.rounds,
            tables.cells, same,
        ])  # fmt: skip
    header = ["sites", "tables s", "choices s", "ratio", "tables MB", "choices MB", "ratio",
              "tables rounds", "choices rounds", "cells revealed by tables",
              "structures"]  # fmt: skip
    return table("choices", header, rows)


def bic(data: SiteData, structure: Structure) -> float:
    """Return the BIC of a structure on complete records, in nats."""
    tables = PlainCounter(data).tables(structure.families)
    parameters = sum((len(table) - 1) * table[0].size for table in tables)
    return sum(log_likelihoods(tables)) - parameters * np.log(data.records) / 2


def search(folder: Path | None, data: SiteData) -> str:
    """Run the hybrid search by choices over three sites."""
    rows = Rows()
    named = {"alarm": data}
    if folder is not None:
        named["adult_train"] = read_binned(folder / "uci" / "adult_train.csv.gz")
    for name, whole in named.items():
        run, before, start = Searching(whole, 3), resident("VmRSS", reset=True), process_time()
        run()
        seconds, peak = process_time() - start, resident("VmHWM") - before
        assert run.structure is not None
        rows.append([name, f"{seconds:.1f}", f"{run.bytes / 1e6:.0f}", run.rounds, run.calls,
                     round(peak / MIB), len(run.structure.edges),
                     f"{bic(whole, run.structure):.1f}", run.undecided])  # fmt: skip
    header = ["data", "CPU s", "MB", "rounds", "calls", "MiB", "edges", "BIC",
              "undecided choices"]  # fmt: skip
    return table("choices_search", header, rows)


def read_binned(path: Path) -> SiteData:
    """Read a file whose numbers become ten intervals, as the command does."""
    found = read_sites(Source((str(path),), sites=1, id_column=None))
    (whole,) = found.data.values()
    return whole


def once(data: SiteData) -> str:
    """Learn once from many records, both ways."""
    rows = Rows()
    for way in (ByTables(data, 3), ByChoices(data, 3)):
        start = perf_counter()
        way()
        rows.append([type(way).__name__, f"{perf_counter() - start:.1f}", f"{way.bytes / 1e6:.0f}"])
    return table("choices_many", ["way", "seconds", "MB"], rows)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--parts", nargs="+", default=PARTS)
    given = arguments(parser)
    data = cases(Path(given.data) if given.data else None)
    if "prices" in given.parts:
        measured = prices(data["alarm, 0% missing"], given.repeats)
        print(f"ALARM, {RECORDS} records, at most 3 parents\n\n{measured}\n")
    if "structures" in given.parts:
        print(f"{structures(data)}\n")
    if "search" in given.parts:
        folder = Path(given.data) if given.data else None
        print(f"hybrid by choices, 3 sites\n\n{search(folder, data['alarm, 0% missing'])}\n")
    if "many" in given.parts:
        many = sample(from_pgmpy(get_example_model("alarm")), given.records, seed=seed_of(1))
        print(f"ALARM, {given.records} records, 3 sites, once\n\n{once(many)}")


if __name__ == "__main__":
    main()
