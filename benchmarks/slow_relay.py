"""K2 on ALARM by way of a relay on a slow network: seconds beside what rounds and bytes explain.

    python benchmarks/slow_relay.py [--records 10000] [--latency 0.1] [--megabits 10]
        [--beside RESULT]

Every party is a process, connected to the relay by TLS and through a proxy that lets so
many Mbit/s pass, each way, and holds every byte back by half of `latency`: from a party to the
relay and on to another it takes `latency` seconds, and a receipt takes as long again. What is
explained is the time without delay + rounds x latency + bytes / bandwidth, where a round is a
message of the longest chain and the bytes are those of the busiest way; rounds in which another is
the busiest make it longer. Memory is the peak resident set (Linux) of the relay, and of the largest
site. `--beside` adds the rows of an earlier release, which its own benchmark has measured on the
same machine. The proxies run in the analyst's process; they count TLS's bytes too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))

from federation import RELAY, Measured, alarm_file
from runs import arguments
from scale import MIB
from side_by_side import on_one_thread, table

from tests.e2e.party import data_of
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.opening import open_study

PHASES = ("begin", "commit", "K2")
TRANSPORT = "WebSocket"
CHUNK = 1 << 14
QUEUED = 16  # chunks that a line holds before it takes no more in


class Way:
    """One way of a party's line: bytes leave it one after another, and come later."""

    def __init__(self, delay: float, bandwidth: float) -> None:
        self.delay, self.bandwidth = delay, bandwidth
        self.free, self.passed = 0.0, 0

    async def carry(self, reader, writer):
        """Carry a connection's bytes until it ends."""
        flying: asyncio.Queue = asyncio.Queue()
        arrive = asyncio.ensure_future(self._arrive(flying, writer))
        while data := await reader.read(CHUNK):
            now = perf_counter()
            self.free = max(self.free, now) + len(data) / self.bandwidth
            self.passed += len(data)
            flying.put_nowait((self.free + self.delay, data))
            await asyncio.sleep(self.free - now - QUEUED * CHUNK / self.bandwidth)
        flying.put_nowait((0.0, b""))
        await arrive

    async def _arrive(self, flying, writer):
        while (due := await flying.get())[1]:
            await asyncio.sleep(due[0] - perf_counter())
            writer.write(due[1])
            await writer.drain()
        writer.close()


class Line:
    """A party's line to the relay: a proxy on a port of its own."""

    def __init__(self, delay: float, bandwidth: float) -> None:
        self.up, self.down = Way(delay, bandwidth), Way(delay, bandwidth)

    async def listen(self, target: str) -> None:
        """Listen, and carry what comes to the target and back."""
        host, port = target.rsplit(":", 1)

        async def carry(reader, writer):
            try:
                far, near = await asyncio.open_connection(host, int(port))
                ways = self.up.carry(reader, near), self.down.carry(far, writer)
                await asyncio.gather(*ways)
            except OSError:
                writer.close()

        server = await asyncio.start_server(carry, "127.0.0.1", 0)
        self.address = "{}:{}".format(*server.sockets[0].getsockname())


class Slow(Measured):
    """Parties as processes, each connected to the relay through a slow line."""

    def __init__(self, folder, data, *, latency: float, bandwidth: float) -> None:
        self.lines = {p: Line(latency / 2, bandwidth) for p in (*data, DEALER, ANALYST)}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        super().__init__(folder, data, secure=True)

    def start(self, party, **changes):
        """Start a party's process, behind its line."""
        if party != RELAY:
            changes["address"] = self.lines[party].address
        super().start(party, **changes)
        if party == RELAY:
            for line in self.lines.values():
                asyncio.run_coroutine_threadsafe(line.listen(self.address), self.loop).result()
            self.address = self.lines[ANALYST].address

    def passed(self) -> dict[tuple[str, str], int]:
        """Return the bytes that have passed each way of each line."""
        ways = {(p, w): getattr(line, w) for p, line in self.lines.items() for w in ("up", "down")}
        return {name: way.passed for name, way in ways.items()}


def run(data, sites: int, latency: float, bandwidth: float):
    """Learn over lines; return the structure, and at the start and end of each phase a mark."""
    parts, order = split_columns(data, sites), list(data.variables)
    with (
        TemporaryDirectory() as folder,
        Slow(Path(folder), parts, latency=latency, bandwidth=bandwidth) as parties,
    ):
        marks = [(perf_counter(), 0, parties.passed())]
        session = parties.session()

        def mark():
            rounds = session.transport.traffic.rounds
            marks.append((perf_counter(), rounds, parties.passed()))

        mark()
        counter = SecureCounter(open_study(session, parties.sites, DEALER, order=order))
        mark()
        found = k2(counter, max_parents=3)
        mark()
        session.close()
        peaks = parties.memory("VmHWM")
    sites = max(peaks[site] for site in parts)
    return found, marks, (peaks[RELAY] / MIB, sites / MIB)


def figures(marks):
    """Return of each phase (seconds, rounds, bytes of all lines up, of the busiest way, which)."""
    found = {}
    spans = [*pairwise(marks), (marks[0], marks[-1])]
    for name, (first, last) in zip((*PHASES, "all"), spans, strict=True):
        passed = {way: last[2][way] - first[2][way] for way in last[2]}
        busiest = max(passed, key=passed.__getitem__)
        up = sum(size for (_, way), size in passed.items() if way == "up")
        # A session begins with hellos there and back, before any message is counted.
        rounds = last[1] - first[1] + (2 if name in (PHASES[0], "all") else 0)
        found[name] = last[0] - first[0], rounds, up, passed[busiest], " ".join(busiest)
    return found


def rows_of(name, latency, bandwidth, got, bare, peaks):
    """Return a case's rows of the table."""
    rows = []
    for phase, (seconds, rounds, up, most, busiest) in got.items():
        waiting, sending, without = rounds * latency, most / bandwidth, bare[phase][0]
        rows.append([
            TRANSPORT, name, phase, rounds, f"{up / 1e6:.2f}", f"{most / 1e6:.2f} ({busiest})",
            f"{without:.2f}", f"{waiting:.2f}", f"{sending:.2f}",
            f"{without + waiting + sending:.2f}", f"{seconds:.2f}",
            *(f"{peak:.0f}" if phase == "all" else "" for peak in peaks),
        ])  # fmt: skip
    return rows


def main() -> None:
    """Run without delay, with latency alone, and with both; print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds, one way")
    parser.add_argument("--megabits", type=float, default=10.0, help="a second, each way of a line")
    parser.add_argument("--beside", type=Path, help="result of an earlier release")
    given = arguments(parser, seeded=False)
    with TemporaryDirectory() as folder:
        data = data_of(alarm_file(folder, given.records))
    wanted = k2(PlainCounter(data), max_parents=3)
    bandwidth = given.megabits * 1e6 / 8
    cases = {
        "no delay": (0.0, float("inf")),
        f"{given.latency * 1e3:.0f} ms": (given.latency, float("inf")),
        f"{given.latency * 1e3:.0f} ms, {given.megabits:g} Mbit/s": (given.latency, bandwidth),
    }
    rows = json.loads(given.beside.read_text())["rows"] if given.beside else []
    bare = None
    for name, (latency, speed) in cases.items():
        found, marks, peaks = run(data, given.sites, latency, speed)
        if found != wanted:
            raise SystemExit(f"{name}: not the structure of pooled data")
        got = figures(marks)
        bare = bare or got
        rows += rows_of(name, latency, speed, got, bare, peaks)
    print(f"{given.records:,} records, {given.sites} sites, {len(wanted.edges)} edges each time\n")
    header = ["transport", "line", "phase", "rounds", "MB of all", "MB of the busiest way",
              "without delay s", "rounds x latency s", "bytes / bandwidth s", "predicted s",
              "measured s", "relay MiB", "site MiB"]  # fmt: skip
    print(table("slow_relay", header, rows))


if __name__ == "__main__":
    on_one_thread()
    main()
