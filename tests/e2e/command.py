"""The command line as tests type it."""

from __future__ import annotations

import csv
import gzip
import io
import json

import numpy as np

from vertibayes.cli import main

FILES = {
    "structure.json", "model.json", "model.bif", "model.bifxml", "structure.svg", "summary.json",
    "ledger.json", "counts.json", "report.html",
}  # fmt: skip
GOOD = "a,b\n" + "0,x\n1,y\n" * 10  # records


class Typed(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self):
        return True


def write(path, header, rows):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(data):
    texts = [np.array(v.states)[data.codes[n]] for n, v in data.variables.items()]
    return [list(row) for row in zip(*texts, strict=True)]


def run(capsys, *arguments):
    """Run a command; return (exit status, standard output, standard error)."""
    try:
        main([*map(str, arguments)])
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    found = capsys.readouterr()
    return code, found.out, found.err


def learn(capsys, out, *arguments):
    """Run learn; return (exit status, standard output, standard error).

    Arc strengths, which learn from samples again and again, are left out unless a test asks.
    """
    given = set(map(str, arguments))
    samples = "--data" in given and not given & {"--bootstrap", "--structure"}
    quick = ("--bootstrap", 0) if samples else ()
    return run(capsys, "learn", "--out", out, *arguments, *quick)


def outputs(out):
    read = {name: json.loads((out / name).read_text()) for name in FILES if name.endswith("json")}
    return read["structure.json"], read["summary.json"], read["ledger.json"]


def assert_refused(capsys, tmp_path, reason, *arguments):
    """One sentence, status 2, nothing written."""
    before = sorted(tmp_path.rglob("*"))
    code, told, error = learn(capsys, tmp_path / "results", *arguments)
    assert code == 2 and told == ""
    assert reason in " ".join(error.replace("│", " ").split())
    assert error.startswith("vertibayes: ") and error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def predict(capsys, *arguments):
    """Run predict; return (exit status, standard error)."""
    code, _, error = run(capsys, "predict", *arguments)
    return code, error
