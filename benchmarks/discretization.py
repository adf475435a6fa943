"""MDLP on pre-bins beside WEKA's filter on the values, and beside other ways to cut a column.

    python benchmarks/discretization.py [--weka weka.jar] [--data FOLDER] [--only iris adult]

First table: the cut points of `mdlp_edges`, with every distinct value as a pre-bin, against those
of `weka.filters.supervised.attribute.Discretize` (Debian's package `weka` has the archive; Java
runs it). WEKA prints six decimals. Second table, summed over the numeric columns of a data set: how
much the bins tell about the class, in bits (information gain), as a share of what WEKA's bins tell,
and the number of bins. The gain is measured on the records that were cut: it grows with the number
of bins even where they mean nothing. "off" is the distance of a cut point of WEKA from the nearest
cut on pre-bins, in percent of the records that lie between them: median and largest.

The paper's rule makes a bin of successive values as soon as it has a tenth of the records.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from runs import arguments
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import PlainCounter
from vertibayes.discretization import discretize, edges_of, mdlp_edges
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.numerals import number
from vertibayes_protocols.site.text import read_columns
from vertibayes_protocols.site.text_column import TextColumn

FILTER = "weka.filters.supervised.attribute.Discretize"
_NUMBER = r"-?[0-9.]+(?:E-?[0-9]+)?"
LABEL = rf"\((?:-inf|{_NUMBER})-({_NUMBER})\]"  # of a bin; its upper edge is a cut point
PRE_BINS = (32, 64, 128)
SETS = {  # file, class, columns that are no numbers or no features
    "iris": ("iris/iris.csv", "label", ["record_id"]),
    "diabetes": ("diabetes/diabetes.csv", "Outcome", ["record_id"]),
    "adult": ("uci/adult_train.csv.gz", "income", []),
    "letter": ("uci/letter.csv.gz", "letter", []),
    "accelerometer": ("uci/accelerometer.csv.gz", "wconfid", ["pctid"]),
}


class Data(NamedTuple):
    """The numeric columns of a data set without missing values, and the class of each record."""

    columns: dict[str, TextColumn]
    values: dict[str, NDArray[np.float64]]
    label: TextColumn


def read(path: Path, target: str, without: Sequence[str]) -> Data:
    """Read a data set; columns with another text than numbers are left out."""
    columns = {n: c for n, c in read_columns(path).items() if n not in without}
    label = columns.pop(target)
    numeric = {n: c for n, c in columns.items() if all(number(t) is not None for t in c.texts)}
    values = {n: np.array([float(t) for t in c.texts])[c.places] for n, c in numeric.items()}
    return Data(numeric, values, label)


def weka_cuts(jar: Path, data: Data) -> dict[str, list[float]]:
    """Return the cut points of WEKA's filter."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "in.arff"), Path(folder, "out.arff")
        names = [f"@attribute c{i} numeric" for i in range(len(data.columns))]
        labels = ",".join(f"k{i}" for i in range(len(data.label.texts)))
        lines = ["@relation r", *names, f"@attribute class {{{labels}}}", "@data"]
        texts = [[c.texts[p] for p in c.places] for c in data.columns.values()]
        rows = zip(*texts, [f"k{p}" for p in data.label.places], strict=True)
        source.write_text("\n".join([*lines, *map(",".join, rows)]) + "\n")
        command = ["java", "-Xmx2g", "-cp", jar, FILTER, "-i", source, "-o", result, "-c", "last"]
        subprocess.run(list(map(str, command)), check=True)
        header = [line for line in result.read_text().splitlines() if line.startswith("@attribute")]
    return {
        name: [float(edge) for edge in re.findall(LABEL, line)]
        for name, line in zip(data.columns, header, strict=False)
    }


def cuts_on_values(data: Data) -> dict[str, list[float]]:
    """Return the cuts with a pre-bin for each distinct value; edges are midpoints, as WEKA's."""
    cuts = {}
    for name, column in data.values.items():
        values, places = np.unique(column, return_inverse=True)
        counts = np.zeros((len(data.label.texts), len(values)), np.int64)
        np.add.at(counts, (data.label.places, places), 1)
        edges = [Decimal(float(edge)) for edge in (values[:-1] + values[1:]) / 2]
        cuts[name] = [float(edge) for edge in mdlp_edges(counts, edges)]
    return cuts


def encoded(data: Data, **how: object) -> SiteData:
    """Encode the columns and the class; columns that cannot be cut are left out."""
    encoding = Encoding(max_states=65_000, **how)  # type: ignore[arg-type]
    return SiteData.from_text("all", {**data.columns, "class": data.label}, encoding, strict=False)


def cuts_on_pre_bins(data: Data, pre_bins: int) -> dict[str, list[float]]:
    """Return the cuts on pre-bins of equal frequency; columns of 16 values or fewer as values."""
    sites = encoded(data, binning="intervals", bins=1 / pre_bins)
    columns = [n for n in data.columns if n in sites.variables and edges_of(sites.variables[n])]
    few = {n: e for n, e in cuts_on_values(data).items() if n not in columns}
    cuts = discretize(PlainCounter(sites), columns, "class")
    return few | {name: [float(edge) for edge in own] for name, own in cuts.items()}


def paper_cuts(column: NDArray[np.float64]) -> list[float]:
    """Return the paper's cuts: a bin ends as soon as it has a tenth of the records."""
    values, counts = np.unique(column, return_counts=True)
    cuts, inside, left = [], 0, len(column)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        inside, left = inside + count, left - count
        if 10 * inside >= len(column) and 10 * left >= len(column):
            cuts.append(value)
            inside = 0
    return cuts


def codes_at(column: NDArray[np.float64], cuts: Sequence[float]) -> NDArray[np.intp]:
    """Return the bin of each value: up to the first cut, up to the next, above the last."""
    return np.searchsorted(np.asarray(cuts, float), column, side="left")


def gain(codes: NDArray[np.integer], label: NDArray[np.integer]) -> float:
    """Return the mutual information of bins and class, in bits."""
    joint = np.zeros((int(codes.max()) + 1, int(label.max()) + 1))
    np.add.at(joint, (codes, label), 1)
    joint /= joint.sum()
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    known = joint > 0
    return float((joint[known] * np.log2(joint[known] / product[known])).sum())


def same(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Return whether cut points are equal in six decimals."""
    return len(ours) == len(theirs) and np.allclose(ours, theirs, rtol=1e-12, atol=6e-7)


def off(column: NDArray[np.float64], ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return, for each cut point of WEKA, the share of records up to the nearest of ours."""
    ranks = [np.array([(column <= cut).mean() for cut in cuts]) for cuts in (ours, theirs)]
    return [float(np.abs(ranks[0] - rank).min()) if len(ours) else 1.0 for rank in ranks[1]]


def ways(data: Data) -> Iterator[tuple[str, dict[str, list[float]] | SiteData]]:
    """Yield the other ways to cut: cuts, or encoded columns."""
    for pre_bins in PRE_BINS:
        yield f"MDLP, {pre_bins} pre-bins", cuts_on_pre_bins(data, pre_bins)
    yield "equal frequency, 10", encoded(data, bins=0.1)
    yield "equal width, 10", encoded(data, bins=0.1, binning="equal-width")
    yield "the paper's rule", {name: paper_cuts(column) for name, column in data.values.items()}


def rows_of(name: str, data: Data, oracle: dict[str, list[float]]) -> Iterator[list[object]]:
    """Yield the lines of the second table of a data set."""
    label = data.label.places
    best = {n: codes_at(column, oracle[n]) for n, column in data.values.items()}
    whole = sum(gain(codes, label) for codes in best.values())
    bins = sum(len(edges) + 1 for edges in oracle.values())
    yield [name, "WEKA, all values", bins, f"{whole:.4f}", "", ""]
    for way, result in ways(data):
        if isinstance(result, SiteData):
            coded = {n: result.codes[n] for n in data.columns if n in result.codes}
            codes, distance = coded, ""
        else:
            codes = {n: codes_at(column, result[n]) for n, column in data.values.items()}
            shares = [s for n in codes for s in off(data.values[n], result[n], oracle[n])]
            distance = f"{np.median(shares):.2%} / {max(shares):.2%}" if "MDLP" in way else ""
        bins = sum(len(np.unique(own)) for own in codes.values())
        told = sum(gain(own, label) for own in codes.values())
        yield [name, way, bins, f"{told:.4f}", f"{told / whole:.1%}", distance]


def main() -> None:
    """Run both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weka", type=Path, default=Path("/usr/share/java/weka.jar"))
    parser.add_argument("--only", nargs="*", default=list(SETS), choices=list(SETS))
    given = arguments(parser, seeded=False, data=True)
    equal, lines = Rows(), []
    for name in given.only:
        path, target, without = SETS[name]
        data = read(given.data / path, target, without)
        oracle = weka_cuts(given.weka, data)
        start = perf_counter()
        ours = cuts_on_values(data)
        seconds = perf_counter() - start
        agree = [n for n in data.columns if same(ours[n], oracle[n])]
        differ = ", ".join(n for n in data.columns if n not in agree) or "none"
        points = sum(map(len, oracle.values()))
        equal.append([name, len(data.label), len(data.columns), points, len(agree), differ,
                      f"{seconds:.2f}"])  # fmt: skip
        lines += rows_of(name, data, oracle)
    header = ["data", "records", "columns", "cut points", "equal", "differ", "seconds"]
    print(table("discretization", header, equal))
    header = ["data", "way", "bins", "gain, bits", "of WEKA's", "off"]
    print(table("discretization_gain", header, lines))


if __name__ == "__main__":
    main()
