"""K2 on ALARM: all parties in one process, and each a process of its own with a relay.

    python benchmarks/federation.py [--sites 2 3] [--records 10000]

Between processes: loopback, TLS, and a relay; the analyst too is a process. Nothing is
delayed: to what is told here, a network adds its rounds times its latency, and bytes / bandwidth.
Memory is the peak resident set (Linux), in brackets that at the end of the start, when all modules
are imported and a site has its codes. One BLAS thread a process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))

from runs import arguments, seed_of
from side_by_side import on_one_thread, table

from tests.e2e.party import data_of, save_data
from tests.e2e.processes import Process, Processes
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.transports.mailbox import RELAY


class Measured(Processes):
    """Processes that say how many bytes they have sent."""

    def start(self, party, **changes):
        """Start a party's process."""
        path = self.folder / f"{party}.json"
        path.write_text(json.dumps({**self.settings, **changes}))
        self.running[party] = Process(party, path, "party" if party == RELAY else "measured")

    def memory(self, field):
        """Return a figure of each party's memory, in bytes."""
        pids = {party: process.process.pid for party, process in self.running.items()}
        return {party: memory(field, pid) for party, pid in {**pids, ANALYST: os.getpid()}.items()}


def memory(field: str, pid: int) -> int:
    """Return a figure of a process's memory, in bytes (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field}: Linux is wanted")


def timed(session, sites, order):
    """Commit and learn; return the figures that both ways have."""
    start = perf_counter()
    counter = SecureCounter(open_study(session, sites, DEALER, order=order))
    committed = perf_counter() - start
    parents = k2(counter, max_parents=3).parents
    found = {node: sorted(names) for node, names in parents.items()}
    return {"commit": committed, "seconds": perf_counter() - start, "found": found}


def together(data, sites):
    """Run all parties in this process."""
    parts = split_columns(data, sites)
    first = memory("VmRSS", os.getpid())
    start = perf_counter()
    with federate(parts) as federation:
        begun = perf_counter() - start
        figures = timed(federation.session, federation.sites, list(data.variables))
        rounds, sent = federation.traffic.rounds, federation.traffic.bytes
    peaks = {"all": (memory("VmHWM", os.getpid()), first)}
    return {**figures, "begin": begun, "rounds": rounds, "bytes": sent, "peaks": peaks}


def apart(data, sites):
    """Run each party in a process of its own; this one is the analyst's."""
    with TemporaryDirectory() as folder:
        parts = split_columns(data, sites)
        with Measured(Path(folder), parts, secure=True) as processes:
            first, start = processes.memory("VmRSS"), perf_counter()
            session = processes.session()
            begun = perf_counter() - start
            figures = timed(session, processes.sites, list(data.variables))
            session.close()
            parties = (*processes.sites, DEALER)
            told = [processes.running[party].wait_for("sent") for party in parties]
            traffic, last = session.transport.traffic, processes.memory("VmHWM")
    sent = traffic.bytes + sum(int(line.split()[1]) for line in told)
    peaks = {party: (last[party], first[party]) for party in last}
    return {**figures, "begin": begun, "rounds": traffic.rounds, "bytes": sent, "peaks": peaks}


WAYS = {"one process": together, "processes": apart}


def run(way: str, sites: int, path: Path) -> dict[str, object]:
    """Run a case in a process of its own; return its figures."""
    done = subprocess.run(
        [sys.executable, __file__, "--case", way, str(sites), str(path)],
        stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def row(way, sites, got):
    """Return a case's row of the table."""
    mib = lambda party: "{:.0f} ({:.0f})".format(*(n / 2**20 for n in got["peaks"][party]))  # noqa: E731
    parties = [party for party in got["peaks"] if party not in (ANALYST, DEALER, RELAY)]
    peaks = [mib(p) if p in got["peaks"] else "" for p in (ANALYST, DEALER, RELAY)]
    return [
        sites, way, f"{got['begin']:.2f}", f"{got['commit']:.2f}", f"{got['seconds']:.2f}",
        got["rounds"], f"{got['bytes'] / 1e6:.2f}", *peaks, ", ".join(map(mib, parties)),
    ]  # fmt: skip


def alarm_file(folder: str, records: int) -> Path:
    """Sample ALARM into a file."""
    from vertibayes.cli.demo import alarm
    from vertibayes.sampling import sample

    path = Path(folder) / "alarm.npz"
    save_data(path, sample(alarm(), records, seed=seed_of()))
    return path


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    given = arguments(parser)
    if given.case:
        way, sites, path = given.case
        print(json.dumps(WAYS[way](data_of(path), int(sites))))
        return
    rows = []
    with TemporaryDirectory() as folder:
        path = alarm_file(folder, given.records)
        for sites in given.sites:
            got = {way: run(way, sites, path) for way in WAYS}
            first, *others = (figures["found"] for figures in got.values())
            if any(other != first for other in others):
                raise SystemExit(f"{sites} sites: the structures differ")
            rows += [row(way, sites, figures) for way, figures in got.items()]
    header = ["sites", "as", "begin s", "commit s", "total s", "rounds", "MB sent",
              "analyst MiB", "dealer", "relay", "sites, or all in one"]  # fmt: skip
    print(table("federation", header, rows))


if __name__ == "__main__":
    on_one_thread()
    main()
