"""Compare commands with those of another commit: CPU seconds of whole processes, and their ratios.

python benchmarks/against_a_commit.py COMMIT [--repeats 5] [--data FOLDER]

Both versions run the same commands on the same tables in turn; the median of each is printed.
`--data` is a folder with alarm/alarm.csv.gz and asia/asia.csv.gz: first 10,000 records, 3 sites.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from runs import arguments, seed_of
from side_by_side import table

ROOT = Path(__file__).parents[1]
RECORDS, VARIABLES, STATES = 10_000, 30, 3


def write_table(path: Path, missing: float) -> None:
    """Write records in which each variable depends on two before it."""
    draw = np.random.default_rng(seed_of(1))
    columns: list[np.ndarray] = []
    for place in range(VARIABLES):
        parents = columns[max(0, place - 2) : place]
        codes = (sum(parents, np.zeros(RECORDS, int)) + (draw.random(RECORDS) < 0.2)) % STATES
        columns.append(codes if parents else draw.integers(0, STATES, RECORDS))
    texts = np.char.add("s", np.array(columns).T.astype(str)).astype(object)
    texts[draw.random(texts.shape) < missing] = ""
    rows = [",".join(row) for row in texts]
    path.write_text("\n".join([",".join(f"v{i}" for i in range(VARIABLES)), *rows]) + "\n")


COMMANDS = {
    "K2 and CPTs, 3 sites": "learn --data {whole} --sites 3",
    "EM on tables, 3 sites": "learn --data {missing} --sites 3 --max-parents 2",
    "naive Bayes, 100 parties, additive": "nb --data {small} --target v9 --method hdpnb "
    "--parties 100 --epsilon 5",
    "naive Bayes, 100 parties, masked": "nb --data {small} --target v9 --method hdpnb "
    "--parties 100 --epsilon 5 --via masked",
    "naive Bayes over columns, predicted": "nb --data {small} --target v9 --method vdpnb "
    "--parties 5 --epsilon 5 --holdout 0.2",
}


KNOWN = {
    "K2, ALARM": "learn --data {alarm} --sites 3 --algorithm k2",
    "default learner, ALARM": "learn --data {alarm} --sites 3",
    "choices and release, Asia": "learn --data {asia} --sites 3 --release exact",
    "EM on tables, ALARM, 10 % missing": "learn --data {alarm_missing10} --sites 3 --max-parents 2",
}


def copy_known(data: Path, folder: Path) -> dict[str, Path]:
    """Write the first records of known tables, without the column that numbers them."""
    files = {}
    for name in ("alarm/alarm", "asia/asia", "alarm/alarm_missing10"):
        records = pd.read_csv(data / f"{name}.csv.gz", dtype=str, nrows=RECORDS)
        files[Path(name).name] = folder / f"{Path(name).name}.csv"
        kept = records.drop(columns="record_id", errors="ignore")
        kept.to_csv(files[Path(name).name], index=False)
    return files


def cpu_seconds(tree: Path, command: str, files: dict[str, Path], out: Path) -> float:
    """Run a command of one version; return what its processes took."""
    words = [word.format(**files) for word in command.split()]
    places = os.pathsep.join(map(str, (tree, tree / "mpc", tree / "protocols")))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "vertibayes", *words, "--out", str(out), "--quiet"],
        check=True, cwd=out.parent, env={**os.environ, "PYTHONPATH": places},
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure both versions in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    given = arguments(parser)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {kind: folder / f"{kind}.csv" for kind in ("whole", "missing", "small")}
        write_table(files["whole"], 0.0)
        write_table(files["missing"], 0.05)
        lines = files["whole"].read_text().splitlines()
        small = [",".join(line.split(",")[:10]) for line in lines[:1001]]
        files["small"].write_text("\n".join(small) + "\n")
        commands = COMMANDS
        if given.data:
            files |= copy_known(Path(given.data), folder)
            commands = KNOWN | COMMANDS
        other = folder / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(other), given.commit], check=True)
        try:
            rows = []
            for title, command in commands.items():
                seconds: dict[Path, list[float]] = {other: [], ROOT: []}
                for run in range(given.repeats):
                    for tree, taken in seconds.items():
                        out = folder / f"{tree.name} {title} {run}"
                        taken.append(cpu_seconds(tree, command, files, out))
                before, now = (statistics.median(taken) for taken in seconds.values())
                rows.append([title, f"{before:.2f}", f"{now:.2f}", f"{now / before:.2f}"])
                print(*rows[-1], flush=True)
            header = ["command", f"{given.commit[:8]}, CPU s", "now, CPU s", "ratio"]
            print(table("against_a_commit", header, rows))
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)


if __name__ == "__main__":
    main()
