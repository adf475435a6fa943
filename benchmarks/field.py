"""K2 over sites that are processes: seconds, peak memory and disk of every party.

    python benchmarks/field.py [--records 1000000] [--variables 20] [--sites 5] [--parents 2]

A relay, the sites and the dealer are processes that speak by way of the relay, sealed and with
certificates, on this machine; this process is the analyst. The
records are those of ALARM, resampled. Memory is the largest resident set (VmHWM) of each process,
the columns of a site included; disk is the largest sum of its folder and of its temporary files
that have no name. One BLAS thread each.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter

from runs import arguments
from scale import columns, memory
from side_by_side import on_one_thread, table

sys.path.insert(0, str(Path(__file__).parents[1]))  # the harness of the tests
POLL_SECONDS = 0.2
READY_SECONDS, SECONDS = 300, 3600  # until a party is ready, and until it ends by itself
MB = 1e6


def peak_of(process: int) -> int:
    """Return the largest resident set of a process, in bytes (Linux)."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def stored_by(process: int, own: list[Path]) -> int:
    """Return the bytes of a party's files, and of the files that it holds open without a name."""
    total = sum(path.stat().st_size for path in own if path.is_file())
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            if "(deleted)" in str(link.readlink()):
                total += link.stat().st_size
    return total


@contextmanager
def watched(running: dict[str, int], folder: Path) -> Iterator[dict[str, list[int]]]:
    """Measure processes until the block ends: the largest memory and disk of each party."""
    most = {party: [0, 0] for party in running}
    over = threading.Event()

    def measure() -> None:
        for party, process in running.items():
            with suppress(OSError):
                files = list(folder.glob(f"{party}*"))
                figures = peak_of(process), stored_by(process, files)
                most[party] = list(map(max, most[party], figures))

    def poll() -> None:
        while not over.wait(POLL_SECONDS):
            measure()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()
        measure()


def run(records: int, variables: int, sites: int, parents: int, folder: Path) -> None:
    """Run the case, and print the figures of every party."""
    from tests.e2e.processes import Processes
    from vertibayes.counting.secure import SecureCounter
    from vertibayes.splitting import split_columns
    from vertibayes.structure.learners import k2
    from vertibayes_protocols.opening import open_study

    data = columns(records, variables)
    order = list(data.variables)  # type: ignore[attr-defined]
    parts = split_columns(data, sites)  # type: ignore[arg-type]

    class Lasting(Processes):  # type: ignore[misc]
        def _start_all(self) -> None:
            self.settings |= {"connect": READY_SECONDS, "seconds": SECONDS}
            super()._start_all()

    with Lasting(folder, parts, secure=True, memory=True) as processes:
        running = {party: p.process.pid for party, p in processes.running.items()}
        del data, parts
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # this process's peak begins here
        with watched(running, folder) as most:
            start = perf_counter()
            with processes.session() as session:
                study = open_study(session, processes.sites, "dealer", order=order)
                committed = perf_counter() - start
                counter = SecureCounter(study)
                structure = k2(counter, max_parents=parents)
                seconds = perf_counter() - start
    most["analyst"] = [memory("VmHWM"), 0]
    rows = [
        [party, f"{held / MB:,.0f}", f"{disk / MB:,.0f}"] for party, (held, disk) in most.items()
    ]
    held, disk = (sum(each) for each in zip(*most.values(), strict=True))
    rows.append(["all", f"{held / MB:,.0f}", f"{disk / MB:,.0f}"])
    print(f"{records:,} records, {variables} variables, {sites} sites, K2 with {parents} parents")
    print(
        f"{seconds:.1f} s, of which {committed:.1f} s to commit; {len(structure.edges)} edges, "
        f"{counter.queries} queries"
    )
    print(table("field", ["party", "memory, MB", "disk, MB"], rows))


def main() -> None:
    """Run the case of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--variables", type=int, default=20)
    parser.add_argument("--sites", type=int, default=5)
    parser.add_argument("--parents", type=int, default=2)
    given = arguments(parser, seeded=False)
    with tempfile.TemporaryDirectory() as folder:
        run(given.records, given.variables, given.sites, given.parents, Path(folder))


if __name__ == "__main__":
    on_one_thread()
    main()
