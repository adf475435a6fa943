"""Why the AUCs of van Daalen et al. (2024), table 2, fall with missing values: whom they score.

    python benchmarks/missing_class.py --data FOLDER [--only asia ...]

Exact EM on the pooled records of nine folds, scored on the tenth: over the records whose class is
known, as here; with the records without a class as of any other class; and with "missing" as a
class, too, of which nothing is known: its area is .5, and its weight the share of its records.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np
from vertibayes_tables import FILES, FOLDS, TABLE_2, central, load

from vertibayes.inference.prediction import predict_proba
from vertibayes.validation.measures import auc


def areas(folder: Path, name: str, missing: int) -> Iterator[list[float]]:
    """Yield the three areas of each fold."""
    data, structure = load(folder, name, missing)
    target = FILES[name][1]
    states = data.variables[target].states
    order = np.random.default_rng(seed_of()).permutation(data.records)
    for part in np.array_split(order, FOLDS):
        network = central(data.rows(np.setdiff1d(order, part)), structure)
        tested = data.rows(part)
        classes, scores = tested.codes[target], predict_proba(network, tested, target)
        with_others = []
        for code in range(len(states)):
            one = np.where(classes == code, 0, 1)
            found = auc(one, np.column_stack([scores[:, code], 1 - scores[:, code]]), ["0", "1"])
            with_others.append((found.by_class.get("0", 0.0), np.count_nonzero(classes == code)))
        values, weights = np.array(with_others).T
        others, share = (values * weights).sum() / weights.sum(), (classes == len(states)).mean()
        known = auc(classes, scores, states).auc
        assert known is not None
        yield [known, others, others * (1 - share) + share / 2]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--only", nargs="*", default=[*FILES], choices=[*FILES])
    given = arguments(parser)
    if not given.data:
        parser.error("--data FOLDER is required")
    rows = Rows()
    for (name, missing), paper in TABLE_2.items():
        if name in given.only:
            found = np.array(list(areas(Path(given.data), name, missing)))
            cells = zip(found.mean(axis=0), found.std(axis=0, ddof=1), strict=True)
            rows.append([name, missing, *(f"{m:.3f} ± {sd:.3f}" for m, sd in cells), paper[0]])
        header = ["data", "missing %", "records with a class", "the others as of another class",
              "missing as a class", "the paper"]  # fmt: skip
    print("\n" + table("missing_class", header, rows, spread=f"SD over {FOLDS} folds"))


if __name__ == "__main__":
    main()
