"""Schedules of faults that follow from their seeds: how many end how, and which fail.

    python benchmarks/simulation.py [--schedules 100000] [--jobs 2] [--seed FIRST]
    python benchmarks/simulation.py --seed N --trace

A schedule is a world of its own (`tests/simulation`): a consortium in one process, a study that is
run until it ends, and faults at the points that the seed draws. Counts are added to
build/simulation/FIRST-COMMIT.jsonl as they come, so that a run that was stopped goes on there. With
`--trace` one schedule is printed, event by event. The exit status is 1 if a schedule fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from time import process_time

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from runs import arguments, run
from side_by_side import table

from tests.simulation import schedule
from tests.simulation.faults import KINDS

A_PART = 100  # schedules that one process runs before it says what came of them
OUTCOMES = "identical", "refused", "error", "failure"
REPLAY = "python benchmarks/simulation.py --seed {} --trace"


def part(seeds: range) -> dict:
    """Run some schedules; return the counts of faults and outcomes, and what failed."""
    began, outcomes, beside, failed = process_time(), Counter(), Counter(), {}
    for seed in seeds:
        try:
            outcome = schedule.run(seed)
            kind, faults = outcome.kind, outcome.faults
        except Exception as error:
            kind, faults, failed[seed] = "failure", {}, f"{type(error).__name__}: {error}"
        outcomes[kind] += 1
        beside.update(f"{fault} {kind}" for fault in faults or ["none"])
        beside.update({f"{fault} struck": count for fault, count in faults.items()})
    seconds = process_time() - began
    return {"first": seeds[0], "schedules": len(seeds), "outcomes": outcomes, "faults": beside,
            "failed": failed, "seconds": seconds}  # fmt: skip


def parts(first: int, schedules: int, jobs: int) -> Iterator[dict]:
    """Yield what came of all parts; those that a file has are not run again."""
    file = ROOT / "build" / "simulation" / f"{first}-{run['commit']}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    known = {one["first"]: one for one in map(json.loads, (x for x in lines if x[-1] == "\n"))}
    left, ends = [], first + schedules
    for at in range(first, ends, A_PART):
        seeds = range(at, min(at + A_PART, ends))
        if at in known and known[at]["schedules"] == len(seeds):
            yield known[at]
        else:
            left.append(seeds)
    with get_context("spawn").Pool(jobs) as pool, file.open("a") as added:
        for one in pool.imap_unordered(part, left):
            added.write(json.dumps(one) + "\n")
            added.flush()
            yield one


def trace(seed: int) -> int:
    """Print a schedule, event by event; return the exit status."""
    lines: list[str] = []
    try:
        outcome, status = schedule.run(seed, trace=lines), 0
    except Exception as error:
        outcome, status = f"FAILURE: {error}", 1
    print("\n".join(lines))
    print(outcome)
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--trace", action="store_true", help="print the schedule of --seed")
    given = arguments(parser)
    if given.trace:
        return trace(given.seed)
    outcomes, faults, failed, seconds, done = Counter(), Counter(), {}, 0.0, 0
    for one in parts(given.seed, given.schedules, given.jobs):
        outcomes.update(one["outcomes"])
        faults.update(one["faults"])
        failed |= one["failed"]
        seconds, done = seconds + one["seconds"], done + one["schedules"]
        print(f"{done:,} of {given.schedules:,}: {dict(outcomes)}", flush=True)
        for seed, reason in one["failed"].items():
            print(f"FAILURE {reason}; replay: {REPLAY.format(seed)}", flush=True)
    rows = [
        [kind, faults[f"{kind} struck"] if kind != "none" else "",
         *(faults[f"{kind} {end}"] for end in OUTCOMES)]
        for kind in ("none", *KINDS)
    ]  # fmt: skip
    rows.append(["all", sum(faults[f"{kind} struck"] for kind in KINDS),
                 *(outcomes[end] for end in OUTCOMES)])  # fmt: skip
    print(f"\n{1000 * seconds / max(done, 1):.0f} ms of processor time a schedule\n")
    print(table("simulation", ["fault", "times", *OUTCOMES], rows))
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
