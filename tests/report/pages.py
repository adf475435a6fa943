"""Runs and networks of which the tests of the page make pages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vertibayes.cli import main
from vertibayes.dag import Structure
from vertibayes.network import Network
from vertibayes_protocols.variables import Variable


def pages_of_runs(folder):
    """Return the pages that commands wrote: a release that cuts counts, and classifiers."""
    records = folder / "records.csv"
    mixed_records().to_csv(records, index=False)
    data = ["--data", str(records), "--target", "outcome", "--out"]
    by_parties = ["nb", "--method", "federated", "--parties", "3", "--epsilon", "1"]
    runs = {
        "cut": ["learn", "--sites", "2", "--release", "cut", "--validate", "scv", "--quiet"],
        "numbers": [*by_parties, "--bounds", "age=0,100"],
        "calibrated": ["calibrate", "--nodes", "4", "--rounds", "3", "--exclude", "grade"],
    }
    for name, options in runs.items():
        with pytest.raises(SystemExit) as stop:
            main([*options, *data, str(folder / name)])
        assert stop.value.code == 0
    return {name: (folder / name / "report.html").as_uri() for name in runs}


def mixed_records(count=400):
    """Return records of a number, two categories with missing cells, and an outcome."""
    generator = np.random.default_rng(5)
    outcome = generator.integers(0, 2, count)
    smoker = (generator.random(count) < 0.2 + 0.5 * outcome).astype(int)
    grade = np.clip(generator.poisson(1 + 2 * outcome), 0, 5)
    frame = pd.DataFrame({
        "age": generator.integers(20, 60, count) + 10 * outcome,
        "smoker": np.array(["no", "yes"])[smoker],
        "grade": grade.astype(str),
        "outcome": np.array(["well", "sick"])[outcome],
    })  # fmt: skip
    frame.loc[generator.random(count) < 0.05, "grade"] = None
    return frame


def hostile():
    """Return a network whose names would do harm if they were read as HTML or as JavaScript."""
    names = "__proto__", "<img src=x onerror=\"document.title='harm'\">", "constructor", ""
    parents = {names[0]: (), names[1]: (names[0],), names[2]: (names[0], names[1]), names[3]: ()}
    variables = {name: Variable(name, ("</script><b>", "toString", "")) for name in names}
    cpts = {n: np.full([3] * (1 + len(of)), 1 / 3) for n, of in parents.items()}
    return Network(Structure(parents), variables, cpts)


def wide():
    """Return a network with a table of 60 rows and 26 columns."""
    letters = Variable("letter", tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    parents = [Variable("rows", tuple(map(str, range(12)))), Variable("shade", tuple("abcde"))]
    variables = {v.name: v for v in (*parents, letters)}
    shares = np.random.default_rng(6).dirichlet(np.ones(26), (12, 5))
    cpts = {
        "rows": np.full(12, 1 / 12),
        "shade": np.full(5, 0.2),
        "letter": np.moveaxis(shares, -1, 0),
    }
    return Network(
        Structure({"rows": (), "shade": (), "letter": ("rows", "shade")}), variables, cpts
    )
