"""Each row of docs/papers.md has a verdict, and each command that it names exists."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from tests.documents import ROOT
from tests.test_links import wrong_options
from tests.test_status import unknown, values
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

HEADING = ["item", "done", "command", "ours", "theirs", "equal"]
VERDICT = re.compile(r"(?:yes|near)(?:[ ;:,(].+)?|(?:no|-)[ :;,].{4,}")
PARTS = {"--parts", "--tables", "--sets", "--figures", "--only"}


class Row(NamedTuple):
    """An artefact of a paper: whether it is done, by which command, and how it compares."""

    paper: str
    item: str
    done: str
    command: str
    ours: str
    theirs: str
    equal: str


def rows():
    found, paper = [], ""
    for line in (ROOT / "docs" / "papers.md").read_text().splitlines():
        if line.startswith("## "):
            paper = line
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if cells != HEADING and set("".join(cells)) != {"-"}:
                found.append(Row(paper, *cells))
    return found


def missing(row):
    """Return what a row does not say; nothing if it is complete."""
    found = [name for name, cell in zip(row._fields, row, strict=True) if not cell]
    if row.done not in {"yes", "part", "no"}:
        found.append("whether it is done")
    if (row.done == "no") != (row.command == "-"):
        found.append("a command, if and only if it is done")
    if not VERDICT.fullmatch(row.equal):
        found.append("a verdict with its reason")
    return found


def test_each_row_has_a_verdict():
    assert len(rows()) > 60
    assert len({row.paper for row in rows()}) == 5
    for row in rows():
        assert not missing(row), row


# What the papers number.
NUMBERED = {
    "VertiBayes": "equation 1-2, table 1-3, figure 1-3",
    "Privacy-preserving": "definition 2-3, theorem 1-2, algorithm 1-1, figure 1a-1b",
    "Decentralized": "algorithm 1-5, table 1-2, figure 1-7, equation 28-28",
    "Local": "approach 1-3, table 1-4, figure 1-4",
    "Probabilistic": "algorithm 1-3, theorem 1-1, equation 5-5, table 1-12, figure 1-2",
}
ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]


def numbered(text, is_roman):
    """Yield what the papers number, as the rows name it."""
    for part in text.split(", "):
        kind, numbers = part.split()
        first, last = numbers.split("-")
        between = map(str, range(int(first), int(last) + 1)) if last.isdigit() else (first, last)
        for number in between:
            of_table = is_roman and kind == "table"
            yield f"{kind} {ROMAN[int(number) - 1] if of_table else number}"


@pytest.mark.parametrize("paper", NUMBERED)
def test_nothing_that_a_paper_numbers_is_left_out(paper):
    items = " ".join(f"{row.item} ." for row in rows() if paper in row.paper)
    named = list(numbered(NUMBERED[paper], paper == "Probabilistic"))
    assert named
    for name in named:
        assert re.search(rf"(?i:{name.split()[0]}) {name.split()[1]}(?!\d|[IVX])", items), name


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("p|Table I|yes|`a.py`|.1|.2|no", "a verdict with its reason"),
        ("p|Table I|yes|`a.py`|.1|.2|", "equal"),
        ("p|Table I|yes|-|.1|.2|yes", "a command, if and only if it is done"),
        ("p|Table I|perhaps|`a.py`|.1|.2|yes", "whether it is done"),
        ("p|Table I|yes|`a.py`|.1|.2|no: other data", None),
    ],
)
def test_a_row_that_says_too_little_is_found(row, said):
    found = missing(Row(*row.split("|")))
    assert (said in found) if said else not found


# ---- commands ------------------------------------------------------------------------------------


@cache
def source(script):
    """Return a benchmark with the modules that it imports: all its options and names of parts."""
    folder = ROOT / "benchmarks"
    if not (folder / script).is_file():
        return None
    text = (folder / script).read_text()
    modules = {*re.findall(r"(?m)^from (\w+) import", text), "runs"}
    return text + "".join(p.read_text() for n in modules if (p := folder / f"{n}.py").is_file())


def wrong(command):
    """Return what is wrong with a command; None if it exists."""
    words = shlex.split(command)
    if "::" in command:
        return unknown(command)
    if words[0] == "vertibayes":
        chosen = re.findall(r"--[a-z-]+ [a-z]\w*", command)
        closed = {value.split()[0] for value in values()}
        others = [
            pair for pair in chosen if pair.split()[0] in closed and pair not in set(values())
        ]
        return [*wrong_options(words[1:]), *others] or None
    text = source(words[0])
    if text is None:
        return f"{words[0]} is not in benchmarks/"
    for place, word in enumerate(words[1:], 1):
        if word.startswith("--"):
            known = f'"{word}"' in text
        else:
            is_part = not words[place - 1].startswith("--") or words[place - 1] in PARTS
            names = word.split(",") if is_part else []
            known = all(re.search(rf"[\"',]{re.escape(name)}[\"',]", text) for name in names)
        if not known:
            return f"{words[0]} does not know {word}"
    return None


def test_each_command_exists():
    named = [command for row in rows() for command in re.findall(r"`([^`]+)`", row.command)]
    cells = " ".join(cell for row in rows() for cell in (row.ours, row.theirs, row.equal))
    others = [name for name in re.findall(r"`([^`]+)`", cells) if ".py" in name]
    assert len(named) > 60
    assert len(others) > 10
    found = {command: wrong(command) for command in [*named, *others]}
    assert not {command: why for command, why in found.items() if why is not None}


@pytest.mark.parametrize(
    "command",
    [
        "no_such.py",
        "hdpnb.py --no-such",
        "hdpnb.py --parts nothing",
        "primitives.py nothing",
        "mpc/test_noise.py::test_nothing",
        "vertibayes nb --no-such",
        "vertibayes nb --method nothing",
    ],
)
def test_a_command_that_does_not_exist_is_found(command):
    assert wrong(command) is not None


# ---- what the pages say of the papers themselves -------------------------------------------------


def test_the_worked_example_of_local_naive_bayes_is_of_the_other_class():
    # Table 1 of Yilmaz et al. (2019): age, income, gender, and whether a payment was missed.
    table = """Young Low Male Yes, Young High Female Yes, Medium High Male No, Old Medium Male No,
        Old High Male No, Old Low Female Yes, Medium Low Female No, Medium Medium Male Yes,
        Young Low Male No, Old High Female No"""
    records = np.array([record.split() for record in table.split(",")])
    names = ("age", "income", "gender", "missed")
    variables = {n: Variable(n, tuple(sorted({*c}))) for n, c in zip(names, records.T, strict=True)}
    codes = {
        n: np.array([variables[n].states.index(value) for value in column])
        for n, column in zip(names, records.T, strict=True)
    }
    target = variables.pop("missed")
    schema = Schema(target, variables)
    model = NaiveBayes(schema, alpha=0.0).fit(LocalData(schema.variables, codes))
    asked = {"age": "Young", "income": "Medium", "gender": "Female"}
    new = {n: np.array([variables[n].states.index(value)]) for n, value in asked.items()}
    new["missed"] = np.array([0])
    joint = np.exp(model.predict_joint_log_proba(LocalData(schema.variables, new)))[0]
    of = dict(zip(target.states, joint, strict=True))
    assert of["Yes"] == pytest.approx(0.025)  # as printed
    assert of["No"] == pytest.approx(0.6 / 6 / 6 / 3)  # .0056, printed as .055


def test_the_aics_of_alarm_in_vertibayes_table_2_are_below_that_without_edges(data_folder):
    # A maximum-likelihood network of ALARM's 509 parameters is likelier, at a cost of 441 more.
    frame = pd.read_csv(data_folder / "alarm/alarm.csv.gz", dtype=str).drop(columns="record_id")
    counts = [column.value_counts().to_numpy() for _, column in frame.items()]
    likelihood = sum((n * np.log(n / n.sum())).sum() for n in counts)
    assert likelihood - sum(len(n) - 1 for n in counts) == pytest.approx(-204_503, abs=0.5)
    assert likelihood - 509 > -318_469 > -340_571
