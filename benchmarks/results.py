"""The recorded results of the benchmarks, and the page that is drawn from them.

    python benchmarks/results.py [NAME ...]

A benchmark prints each table and writes it to build/results/NAME.json. With NAMEs, these new
results replace the recorded ones in benchmarks/results/: title and description stay, and findings,
which are about the old figures, go. Then docs/results.md is drawn; `PAGE` says what it shows.

Results of a reduced run (`runs.py`) replace only those of its own command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import runs

RECORDED = runs.ROOT / "benchmarks" / "results"


class Shown(NamedTuple):
    """What the page shows of a result, by default with its first finding."""

    columns: Sequence[str] = ()
    """Headings; all if there are none."""
    rows: Mapping[str, Sequence[str]] = {}
    """The values of a column whose rows are shown; all rows if there are none."""
    findings: int = 1
    also: Sequence[str] = ()
    """Other results, of which the first finding is shown."""


INTRO = """Each section says by which command, when and on what machine its table was measured, and
newer ones at which commit, with which seeds and with which spread; FOLDER is the folder of the data
sets. Unless a section says otherwise, each program runs once
without being measured, and a figure is the median of the runs after it, which differ by some 10 %.
`benchmarks/results/` has all columns and rows of these tables, {others} further results, and all
findings; [The papers](papers.md) has the figures that repeat those of papers. `python
benchmarks/results.py` draws this page."""

PAGE = {
    "price_of_privacy": Shown(
        ("K2, at most 3 parents", "secure s", "pyAgrum s", "our pooled s"),
        findings=0,
        also=("hybrid",),
    ),
    "real_data_sites": Shown(
        (
            "data",
            "by",
            "records",
            "variables",
            "pooled s",
            "pyAgrum s",
            "1 site: s",
            "3 sites: s",
            "5 sites: s",
            "3 sites: MB",
        ),
        {"data": ("adult_train", "alarm", "bank-full", "connect-4", "letter", "mushroom")},
        findings=2,
    ),
    "scale": Shown(
        (
            "records",
            "variables",
            "sites",
            "by",
            "result",
            "pooled s",
            "total s",
            "MB sent",
            "peak MiB beyond the codes",
        ),
        {
            "records": ("10,000", "1,000,000", "10,000,000"),
            "variables": ("37", "200"),
            "sites": ("3", "10"),
        },
        findings=2,
        also=("scale_seeds", "sources"),
    ),
    "wide": Shown(
        (
            "data",
            "variables",
            "records",
            "algorithm",
            "bits at most",
            "bits",
            "tables",
            "cells",
            "secure s",
            "MB",
            "rounds",
        )
    ),
    "sources_csv": Shown(findings=2),
    "exactness": Shown(rows={"missing values, %": ("0",)}),
    "structures": Shown(
        rows={
            "learner": (
                "hybrid",
                "hybrid, by choices",
                "tabu",
                "k2",
                "pyAgrum greedy, BIC",
                "pyAgrum MIIC",
                "pgmpy PC (.01, 2)",
            )
        },
        also=("structures_cost",),
    ),
    "pgmpy_search": Shown(
        ("table", "variables", "beside pooled", "calls", "one by one", "counts revealed", "ratio"),
        {"seed": ("0",)},
    ),
    "strengths": Shown(
        ("edges", "0.5 to 0.8", "0.8 to 0.95", "0.95 to 1"),
        {"edges": ("alarm, parametric: learned edges", "insurance, parametric: learned edges")},
    ),
    "answers_effects": Shown(
        rows={"studies": ("two states", "weak overlap"), "rule": ("exact", "Laplace noise")},
        also=("answers_effects_ranges",),
    ),
    "choices": Shown(
        ("sites", "tables s", "choices s", "tables MB", "choices MB", "structures"),
        also=("choices_search",),
    ),
    "missing": Shown(
        (
            "missing values",
            "mode imputation",
            "three steps",
            "EM from tables",
            "EM from wider tables",
            "exact EM, pooled",
        ),
        {
            "missing values": (
                "asia, 30 %, completely at random",
                "alarm, 30 %, completely at random",
                "alarm, 30 %, at random",
            )
        },
        also=("em",),
    ),
    "prediction": Shown(
        ("network", "missing values", "ours, ms per record", "pyAgrum", "pgmpy"),
        {"parents / children of the target": ("0 / 8", "0 / 11", "0 / 17")},
        findings=0,
        also=("prediction_over_sites",),
    ),
    "release_rules": Shown(
        ("rule", "K2's structure", "EM, 30 % missing"),
        {
            "rule": (
                "exact",
                "cut below 5",
                "cut below 10",
                "laplace, eps 1",
                "laplace, eps 10",
                "gaussian, eps 1",
                "gaussian, eps 10",
                "laplace, eps 1, no accomplice",
                "gaussian, eps 1, no accomplice",
            )
        },
        also=("release_rules_cut", "release_rules_tracing", "structure_leak"),
    ),
    "release_rules_programs": Shown(
        ("tables", "rule", "counts from 1 to 9 known", "log-likelihood", "AUC"),
        {
            "tables": (
                "ALARM, true structure",
                "ALARM, both studies",
                "Adult, hill_climbing",
                "Adult, native-country -> all",
                "Adult, both studies",
                "Adult, flags of 1 to 9 people",
            ),
            "rule": ("exact", "cut below 10", "rounded to multiples of 10"),
        },
        findings=2,
    ),
    "answers_holdout": Shown(
        ("table", "hold-outs", "AUC over folds", "AUC held out", "AUC inside"),
        {
            "table": (
                "adult_train",
                "bank-full",
                "car",
                "letter",
                "pima-diabetes",
                "share of all",
            )
        },
        findings=2,
        also=("answers_holdout_studies",),
    ),
    "estimators": Shown(
        ("data", "estimator", "accuracy", "log loss", "fit s"),
        {
            "data": ("adult", "letter", "diabetes"),
            "estimator": ("CategoricalNB, ten bins", "NaiveBayes", "network, hybrid"),
        },
        also=("estimators_sites",),
    ),
    "answers_calibration": Shown(),
    "discretization": Shown(
        ("data", "records", "columns", "cut points", "equal"), also=("discretization_gain",)
    ),
    "alignment": Shown(
        ("keys per list", "sites", "level", "CPU s per site", "bytes per key and list"),
        {"keys per list": ("10000",)},
        also=("alignment_tables",),
    ),
    "federation": Shown(
        ("sites", "as", "commit s", "total s", "MB sent"),
        {"sites": ("2", "8")},
        findings=2,
        also=("field", "soak", "simulation", "fuzz"),
    ),
    "count_by": Shown(
        ("network", "sites", "count_by", "seconds", "predicted s", "MB", "predicted MB", "rounds"),
        findings=2,
    ),
    "slow_relay": Shown(
        (
            "transport",
            "line",
            "rounds",
            "MB of all",
            "measured s",
            "relay MiB",
            "site MiB",
        ),
        {"phase": ("all",)},
    ),
}


def read(path: Path) -> dict[str, Any]:
    """Return a result; its numbers are texts, with the digits that they have in the file."""
    return dict(json.loads(path.read_text(encoding="utf-8"), parse_float=str, parse_int=str))


def record(name: str) -> None:
    """Let a new result replace the recorded one."""
    kept = RECORDED / f"{name}.json"
    old, new = read(kept) if kept.exists() else {}, read(runs.NEW / kept.name)
    less = new.pop("reduced", "")
    if less and old.get("command", new["command"]) != new["command"]:
        raise SystemExit(
            f"{name} is of a reduced run ({less}) and replaces nothing: {old['command']}"
        )
    described = {"title": old.get("title", name), "about": old.get("about", [])}
    kept.write_text(runs.text_of(described | new), encoding="utf-8")


def markdown(columns: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as Markdown."""
    lines = (columns, ["---"] * len(columns), *rows)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def section(name: str, shown: Shown) -> str:
    """Return the section of a result."""
    result = read(RECORDED / f"{name}.json")
    columns, rows = result["columns"], result["rows"]
    for column, values in shown.rows.items():
        rows = [row for row in rows if row[columns.index(column)] in values]
    places = [columns.index(column) for column in shown.columns or columns]
    table = markdown([columns[i] for i in places], [[row[i] for i in places] for row in rows])
    said = [
        f"{key} {result[key]}" for key in ("commit", "seeds", "spread") if is_noted(result[key])
    ]
    measured = f"Measured on {'; '.join([result['date'], *said, result['machine']])}."
    findings = result.get("findings", [])[: shown.findings]
    for other in shown.also:
        of_other = read(RECORDED / f"{other}.json").get("findings", [])
        findings += [f"{each} (`{other}.json`)" for each in of_other[:1]]
    texts = [*map(wrapped, result["about"][:1]), f"    {result['command']}", wrapped(measured)]
    texts += [table, "\n".join(wrapped(f"- {each}", "  ") for each in findings)]
    return "\n\n".join([f"## {result['title']}", *filter(None, texts)])


def is_noted(text: str) -> bool:
    """Return whether a result says something of its run."""
    return text != "-" and not text.startswith(runs.NOT_NOTED)


def wrapped(text: str, indent: str = "") -> str:
    """Return a text in lines of a page."""
    return fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def page() -> str:
    """Return the page docs/results.md."""
    others = len(list(RECORDED.glob("*.json"))) - len(PAGE)
    sections = (section(name, shown) for name, shown in PAGE.items())
    return "\n\n".join(["# Results", wrapped(INTRO.format(others=others)), *sections]) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(name)
    (runs.ROOT / "docs" / "results.md").write_text(page(), encoding="utf-8")
