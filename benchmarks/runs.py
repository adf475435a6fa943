"""What a run of a benchmark says of itself, and where its results and figures go.

A benchmark reads its options by `arguments`. By default they are those of the whole run. A run with
less is reduced: its figures go to build/figures, not docs/figures, and its results replace recorded
ones (`results.py`) only if these are of the same command.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NEW = ROOT / "build" / "results"
FIGURES, NEW_FIGURES = ROOT / "docs" / "figures", ROOT / "build" / "figures"
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?(e[-+]?\d+)?")
CODE = ("vertibayes", "protocols", "mpc", "benchmarks/*.py")
PARTS = {"parts", "tables", "figures"}
"""Options that choose among results, each of which is whole."""
NOT_NOTED = "not noted"

run: dict[str, str] = {}
"""What the results of this run say of it, beside command, date and machine: see `arguments`."""


def arguments(parser: ArgumentParser, *, seeded: bool = True, data: bool = False) -> Namespace:
    """Return the options of this run, with `--seed`; its results say the seed and the commit.

    With `data` there is `--data` too, the folder of the data sets, and none is an error.
    """
    if data:
        folder = os.environ.get("VERTIBAYES_DATA")
        said = "of the data sets; by default VERTIBAYES_DATA"
        parser.add_argument("--data", type=Path, default=folder, required=not folder, help=said)
    if seeded and parser.get_default("seed") is None:
        said = "of what is drawn, except the protocols' masks and noise"
        parser.add_argument("--seed", type=int, default=0, help=said)
    given = parser.parse_args()
    if seeded and given.seed < 0:
        parser.error(f"--seed must be at least 0, got {given.seed}")
    seeds = str(given.seed) if seeded else "-"
    run.update(commit=commit(), seeds=seeds, spread="-", reduced=reduced(parser, given))
    return given


def seed_of(place: int = 0) -> int:
    """Return a seed for a place of the benchmark; no place of another run has the same."""
    seed = run.get("seeds", "-")
    return place if seed == "-" else place + 1_000_000 * int(seed)


def reduced(parser: ArgumentParser, given: Namespace) -> str:
    """Return the options with less than their default: a number, what is listed, another seed."""
    options = []
    for name, value in vars(given).items():
        default = parser.get_default(name)
        if name == "seed":
            is_less = value != default
        elif name == "only":
            is_less = bool(value)
        elif name in PARTS or default is None:
            is_less = False
        elif isinstance(default, str):
            is_less = str(value).count(",") < default.count(",")
        elif isinstance(default, list | tuple):
            is_less = len(value) < len(default) or bool(value and not default)
        else:
            is_less = isinstance(default, int | float) and value < default
        options += [name] * is_less
    return ", ".join(options)


def commit() -> str:
    """Return the commit of the code that runs, with + if files differ from it."""
    try:
        found = git("rev-parse", "--short=8", "HEAD")
        return found + "+" * bool(git("status", "--porcelain", "--", *CODE))
    except (OSError, subprocess.CalledProcessError):  # a copy without its history
        return NOT_NOTED


def git(*words: str) -> str:
    """Return what git prints."""
    return subprocess.check_output(
        ["git", *words], cwd=ROOT, text=True, stderr=subprocess.DEVNULL
    ).strip()


def write(
    name: str,
    columns: Sequence[object],
    rows: Sequence[Sequence[object]],
    seeds: str | None = None,
    spread: str | None = None,
) -> None:
    """Write a table of this run to build/results/NAME.json.

    Its `seeds` are by default the seed of the run; `spread` says what the table has of the spread
    over seeds or repetitions, such as "SD over 10 seeds": by default "-", nothing.
    """
    result: dict[str, Any] = {
        "command": command(),
        "date": date.today().isoformat(),
        "machine": machine(),
        **(run or {"commit": commit(), "seeds": NOT_NOTED, "spread": NOT_NOTED}),
        **{key: value for key, value in (("seeds", seeds), ("spread", spread)) if value},
    }
    NEW.mkdir(parents=True, exist_ok=True)
    result |= {"columns": columns, "rows": rows}
    (NEW / f"{name}.json").write_text(text_of(result), encoding="utf-8")


def figure_path(name: str) -> Path:
    """Return where this run draws a figure: in the documents only if the run is whole."""
    folder = FIGURES if run.get("reduced") == "" else NEW_FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def command() -> str:
    """Return the command of this run, without the folders of this machine."""
    words = ["FOLDER" if Path(word).is_absolute() else word for word in sys.argv[1:]]
    script = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])
    by_environment = "VERTIBAYES_DATA" in os.environ and "--data" not in words
    return f"VERTIBAYES_DATA=FOLDER {script}" if by_environment else script


def machine() -> str:
    """Return what the figures depend on: processor, load and versions."""
    cpu = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpu.read_text() if cpu.exists() else "")
    cores = f"{os.cpu_count()} cores ({model[1] if model else platform.machine()})"
    return f"{cores}, a load of {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"


def text_of(result: Mapping[str, Any]) -> str:
    """Return a result as JSON, with a line for each row, whose numbers keep their digits."""
    parts = []
    for key, value in result.items():
        if key == "rows":
            lines = ["[" + ", ".join(map(cell, row)) + "]" for row in value]
        elif isinstance(value, str) or key == "columns":
            parts.append(f"{cell(key)}: {json.dumps(value, ensure_ascii=False)}")
            continue
        else:
            lines = [cell(line) for line in value]
        parts.append(f"{cell(key)}: [" + ",".join(f"\n  {line}" for line in lines) + "\n ]")
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def cell(value: object) -> str:
    """Return a cell as JSON: 0.30 is a number that keeps its 0."""
    text = str(value)
    return text if NUMBER.fullmatch(text) else json.dumps(text, ensure_ascii=False)
