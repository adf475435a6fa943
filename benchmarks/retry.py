"""What a kill costs: ALARM over three sites, each party a process; one is killed and started again.

    python benchmarks/retry.py [--kinds free,approved] [--victims site,dealer,relay,analyst]
                               [--repeats 3] [--records 10000]

A run without a kill is measured first, several times. Then a party is killed by SIGKILL at a random
time while tables are counted, and started again at once. The wait ends when the party that was
killed is connected again and the analyst begins its next session, whichever is later. The cost is
what the run takes beside the wait and a run without a kill.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from runs import arguments, seed_of
from side_by_side import table

from vertibayes_protocols.deployment.templates import Names, init

SITES, READY = ("one", "two", "three"), {"relay": "listening"}
COMMAND = [sys.executable, "-m", "vertibayes"]
BEGINS = re.compile(r"the next try is in ([0-9.]+) s")
GENEROUS = """\
most_failed_runs = 100_000
most_released_tables = 1_000_000
most_released_cells = 100_000_000
most_choice_bits = 100_000_000
"""


class Process:
    """A process whose lines are kept with the time at which they came."""

    def __init__(self, *arguments: str | Path, cwd: Path) -> None:
        self.lines: list[tuple[float, str]] = []
        self._new: queue.Queue[None] = queue.Queue()
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))
            self._new.put(None)

    def when(self, part: str, seconds: float = 120.0) -> float:
        """Return the time of the first line that has a part; wait for it."""
        end = time.monotonic() + seconds
        while True:
            for at, line in self.lines:
                if part in line:
                    return at
            if self.process.poll() is not None and self._new.empty():
                time.sleep(0.2)
                if not any(part in line for _, line in self.lines):
                    raise RuntimeError(f"{part!r} did not come: {self.lines[-5:]}")
            try:
                self._new.get(timeout=max(0.01, min(1.0, end - time.monotonic())))
            except queue.Empty:
                if time.monotonic() > end:
                    raise RuntimeError(f"{part!r} did not come: {self.lines[-5:]}") from None

    def kill(self) -> None:
        """End the process by SIGKILL."""
        self.process.kill()
        self.process.wait()


class World:
    """The folders and processes of all parties."""

    def __init__(self, folder: Path, records: int, *, approved: bool) -> None:
        self.folder, self.approved = folder, approved
        names, rows = alarm(records)
        held = {site: names[place::3] for place, site in enumerate(SITES)}
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        init(folder, Names(SITES), practice=True, relay_address=f"127.0.0.1:{port}", variables=held)
        for site, own in held.items():
            write(folder / site / "records.csv", names, rows, own)
            toml = folder / site / "site.toml"
            text = re.sub(r"most_released_\w+ = .*\n|most_choice_bits = .*\n", "", toml.read_text())
            free = "" if approved else "free_tables = true\n"
            toml.write_text(text.replace("[policy]", f"[policy]\n{free}{GENEROUS}", 1))
        self.study = folder / "analyst" / "study.toml"
        text = re.sub(
            r"(?m)^variables = .*$", f"variables = {list(names)!r}", self.study.read_text()
        )
        text = text.replace("runs = 1 ", "runs = 1000 ")
        if not approved:
            text = text[: text.index("[release]")] + text[text.index("# Without [release]") :]
        self.study.write_text(text)
        if approved:
            for site in SITES:
                own = folder / site / "site.toml"
                subprocess.run(
                    [*COMMAND, "approve", self.study, "--site", own, "--yes", "--by", "benchmark"],
                    check=True, stdout=subprocess.DEVNULL,
                )  # fmt: skip
        self.running: dict[str, Process] = {}
        for party in ("relay", "dealer", *SITES):
            self.start(party)
        for party in self.running:
            self.running[party].when(READY.get(party, "connected"))

    def start(self, party: str) -> Process:
        """Start a party, or start it again."""
        kind = party if party in ("relay", "dealer") else "site"
        process = Process(kind, self.folder / party / f"{kind}.toml", cwd=self.folder / party)
        self.running[party] = process
        return process

    def learn(self) -> Process:
        """Start the analyst."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        return Process("learn", self.study, "--out", out, cwd=self.folder / "analyst")

    def fresh(self) -> None:
        """Forget the tables that the analyst has; the next run begins another study."""
        if not self.approved:
            shutil.rmtree(self.folder / "analyst" / "study", ignore_errors=True)

    def close(self) -> None:
        """End all parties."""
        for process in self.running.values():
            process.kill()


def alarm(records: int) -> tuple[list[str], list[list[str]]]:
    """Return ALARM's columns and records; more records than it has are drawn from it."""
    path = Path(os.environ["VERTIBAYES_DATA"]) / "alarm" / "alarm.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        names, *rows = csv.reader(file)
    rows = [row[1:] for row in rows]
    if records > len(rows):
        rows = [rows[at] for at in np.random.default_rng(seed_of()).integers(0, len(rows), records)]
    return names[1:], rows[:records]


def write(path: Path, names: list[str], rows: list[list[str]], own: list[str]) -> None:
    places = [names.index(name) for name in own]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *own])
        writer.writerows([f"p{at}", *(row[p] for p in places)] for at, row in enumerate(rows))


class Run(NamedTuple):
    """A run: all its seconds, when its study was committed, and the seconds of the wait."""

    seconds: float
    committed: float
    wait: float = 0.0


def plain_run(world: World) -> Run:
    """Run a study without a kill."""
    world.fresh()
    begun = len(world.running["one"].lines)
    start, analyst = time.monotonic(), world.learn()
    end = finished(analyst)
    lines = world.running["one"].lines[begun:]
    committed = next(at for at, line in lines if "agreed" in line and "commit" in line)
    return Run(end - start, committed - start)


def finished(analyst: Process) -> float:
    code = analyst.process.wait(600)
    end = time.monotonic()
    if code:
        raise RuntimeError(f"the run ended with {code}: {analyst.lines[-8:]}")
    return end


def killed_run(world: World, victim: str, at: float) -> Run:
    """Run a study, kill a party after some seconds, and start it again at once."""
    world.fresh()
    party = {"site": "two"}.get(victim, victim)
    start, analyst = time.monotonic(), world.learn()
    time.sleep(max(0.0, start + at - time.monotonic()))
    killed = time.monotonic()
    if analyst.process.poll() is not None:
        raise RuntimeError("the run had ended before the kill")
    if victim == "analyst":
        analyst.kill()
        analyst = world.learn()
        back = analyst.when("resuming the ")
        end = finished(analyst)
    else:
        world.running[party].kill()
        back = world.start(party).when(READY.get(party, "connected"))
        end = finished(analyst)
    begins = [at + float(m[1]) for at, line in analyst.lines if (m := BEGINS.search(line))]
    return Run(end - start, at, max([back, *begins]) - killed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default="free,approved")
    parser.add_argument("--victims", default="site,dealer,relay,analyst")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--records", type=int, default=10_000)
    given = arguments(parser)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    draw, rows = np.random.default_rng(seed_of(1)), []
    for kind in given.kinds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder), given.records, approved=kind == "approved")
            try:
                plain = [plain_run(world) for _ in range(given.repeats)]
                base, begin = median(r.seconds for r in plain), median(r.committed for r in plain)
                sys.stdout.write(f"{kind}: {[round(r.seconds, 1) for r in plain]}, {begin:.1f}\n")
                for victim in given.victims.split(","):
                    runs = []
                    for _ in range(given.repeats):
                        at = begin + draw.random() * 0.9 * (base - begin)
                        try:
                            runs.append(killed_run(world, victim, at))
                            sys.stdout.write(f"  {victim} at {at:.1f}: {runs[-1]}\n")
                        except RuntimeError as error:
                            sys.stdout.write(f"  {victim} at {at:.1f}: failed, {error}\n")
                        sys.stdout.flush()
                    if runs:
                        wait = median(run.wait for run in runs)
                        cost = median(run.seconds - run.wait - base for run in runs)
                        whole = median(run.seconds for run in runs)
                        share = f"{100 * cost / base:.0f}%"
                        shown = [f"{seconds:.1f}" for seconds in (base, whole, wait, cost)]
                        rows.append((kind, victim, *shown, share, f"{len(runs)}/{given.repeats}"))
            finally:
                world.close()
    columns = "tables", "killed", "s without", "s with", "wait s", "cost s", "share", "finished"
    sys.stdout.write(table("retry", columns, rows) + "\n")


if __name__ == "__main__":
    main()
