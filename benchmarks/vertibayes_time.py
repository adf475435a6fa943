"""Figure 3 of the VertiBayes paper: time by records, attributes and the size of the CPTs.

    python benchmarks/vertibayes_time.py --data FOLDER [--sets NAME ...]

Counts the tables of given structures over two sites, missing values as a state: step 1 of
VertiBayes, on the paper's sets, and on random columns of which one of the three grows (the
structure is Asia's, several times for more attributes). "Tables" are masked tables, what this
project does, from the keys and commitments to the counts. "Products" are scalar products of two
parties as in the paper, on a ring, one for each cell of a family that lies at both sites. Seconds
are the processor's, of all parties, in one process; those of tables include sessions, approval and
the encoding of messages, those of products do not. Seconds of tables
are the median of three runs, those of products of one. Megabytes of products are two masked vectors
each.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from side_by_side import on_one_thread, seconds_of

on_one_thread()

import matplotlib as mpl
import numpy as np
from curves import legend, save, style
from matplotlib.figure import Figure
from peers.scalar_product import products
from runs import arguments
from vertibayes_tables import FILES, TABLE_2, load, print_table

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.splitting import split_columns
from vertibayes_mpc.ring import Ring
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

TIMES = 3
HEADER = ("case", "grows", "records", "attributes", "CPT cells", "tables s", "tables MB",
          "scalar products", "products s", "products MB", "s: products / tables")  # fmt: skip
PANELS = {"records": 2, "attributes": 3, "CPT cells": 4}
SIZES = {  # records, copies of Asia's structure, states of a variable
    "records": [(1_000, 1, 4), (10_000, 1, 4), (100_000, 1, 4)],
    "attributes": [(10_000, 1, 2), (10_000, 2, 2), (10_000, 4, 2), (10_000, 8, 2)],
    "CPT cells": [(10_000, 1, states) for states in (2, 4, 8, 12)],
}
Case = tuple[str, str, SiteData, Structure]


def cases(folder: Path, sets: Sequence[str], seed: int) -> Iterator[Case]:
    """Return the paper's sets, and random columns."""
    for name, missing in TABLE_2:
        if name in sets:
            yield f"{name}, {missing} % missing", "", *load(folder, name, missing)
    structure = load(folder, "asia", 0)[1]
    for grows, sizes in SIZES.items():
        for records, copies, states in sizes:
            yield "random columns", grows, *random_columns(structure, records, copies, states, seed)


def random_columns(
    structure: Structure, records: int, copies: int, states: int, seed: int
) -> tuple[SiteData, Structure]:
    """Return independent uniform columns, and a structure several times: time is no other."""
    generator = np.random.default_rng(seed)
    own = [(f"{node}{k}", k) for k in range(copies) for node in structure.nodes]
    names = [name for name, _ in own]
    edges = [(f"{a}{k}", f"{b}{k}") for k in range(copies) for a, b in structure.edges]
    variables = {n: Variable(n, tuple(str(state) for state in range(states))) for n in names}
    codes = {n: generator.integers(0, states, records).astype(np.uint8) for n in names}
    return SiteData(variables, codes), Structure.of(names, edges)


def by_tables(parts: dict[str, SiteData], structure: Structure) -> tuple[list[np.ndarray], float]:
    """Count by masked tables; return the tables, and megabytes."""
    with federate(parts) as federation:
        order = [name for data in parts.values() for name in data.variables]
        counter = SecureCounter.of(federation, order=order)
        return counter.tables(structure.families, missing=True), federation.traffic.bytes / 1e6


def by_products(parts: dict[str, SiteData], structure: Structure) -> tuple[list[np.ndarray], int]:
    """Count each cell by a scalar product, if its family lies at two sites; return how many."""
    tables, count = [], 0
    for family in structure.families:
        held = {s: [n for n in family.members if n in d.variables] for s, d in parts.items()}
        columns, sizes = {}, {}
        for site, names in held.items():
            if names:
                shape = [parts[site].variables[name].codes for name in names]
                codes = [parts[site].codes[name] for name in names]
                columns[site], sizes[site] = np.ravel_multi_index(codes, shape), shape
        cells = list(np.ndindex(*(int(np.prod(shape)) for shape in sizes.values())))
        if len(columns) == 1:
            (own,) = columns.values()
            counts = np.bincount(own, minlength=len(cells))
        else:
            counts = products(columns, cells)
            count += len(cells)
        members = [name for names in held.values() for name in names]
        table = np.reshape(counts, [states for shape in sizes.values() for states in shape])
        tables.append(table.transpose([members.index(name) for name in family.members]))
    return tables, count


def row(case: Case, seed: int) -> list[object]:
    """Measure a case, and check that both ways count what pooled records have."""
    name, grows, data, structure = case
    parts = split_columns(data, 2, seed)
    pooled = PlainCounter(data).tables(structure.families, missing=True)
    tables, megabytes = by_tables(parts, structure)
    from_products, count = by_products(parts, structure)
    for found in (tables, from_products):
        assert all(map(np.array_equal, found, pooled))
    ours = seconds_of(lambda: by_tables(parts, structure), TIMES)
    theirs = seconds_of(lambda: by_products(parts, structure), 1)
    cells = sum(table.size for table in pooled)
    sent = 2 * count * data.records * Ring.holding(data.records).dtype.itemsize / 1e6
    return [name, grows, data.records, len(data.variables), cells, f"{ours:.3f}",
            f"{megabytes:.2f}", count, f"{theirs:.3f}", f"{sent:.2f}",
            f"{theirs / ours:.1f}"]  # fmt: skip


def draw(rows: Sequence[Sequence[object]]) -> None:
    """Draw the three panels."""
    with style():
        figure = Figure(figsize=(8, 3), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        for panel, (grows, place) in zip(axes, PANELS.items(), strict=True):
            for label, at, colour in (("masked tables", 5, "C0"), ("scalar products", 8, "C1")):
                grown = [[float(str(r[k])) for k in (place, at)] for r in rows if r[1] == grows]
                sets = [[float(str(r[k])) for k in (place, at)] for r in rows if not r[1]]
                panel.plot(*np.array(grown).T, "o-", color=colour, markersize=3, label=label)
                panel.plot(*np.array(sets).T, "x", color=colour, markersize=4,
                           label=f"{label}, the paper's sets")  # fmt: skip
            panel.set(xscale="log", yscale="log", xlabel=grows)
            panel.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
            panel.grid(color="0.9", linewidth=0.6)
        axes[0].set_ylabel("processor seconds")
        legend(figure, axes[0], 4)
        save(figure, "vertibayes_time.svg")


def main() -> None:
    """Print the table, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--seed", type=int, default=0, help="of the columns' sites")
    given = arguments(parser, data=True)
    print(f"seed {given.seed}")
    rows: list[list[object]] = []

    def measured() -> Iterable[list[object]]:
        for case in cases(given.data, given.sets, given.seed):
            rows.append(row(case, given.seed))
            yield rows[-1]

    print_table("vertibayes_time", HEADER, measured())
    draw(rows)


if __name__ == "__main__":
    main()
