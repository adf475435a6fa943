"""ALARM between parties on a slow network: seconds beside what rounds and bytes explain.

    python benchmarks/slow_link.py [--algorithm k2] [--records 10000] [--latency 0.1]
        [--megabits 10]

Every party is a thread with its own mail box; packets are sealed as between machines and carried in
memory. A party's packets leave one after another at so many Mbit/s, and each comes `latency`
seconds after it has left: the latency is one way, there and back takes twice as long. What is
explained is the time without any delay + rounds x latency + bytes / bandwidth, where a round is a
message of the longest chain. All send at the same time, so the bytes are at least those of the
party that sends most; at most, if no round overlaps another, the sum over the rounds of what the
busiest in each sends. With receipts, who sends waits, MiB by MiB, until it is known to have come,
as by way of a relay, whose second way is not in it. All parties share one interpreter. Memory is
the peak of all parties together beyond what was there at the start (Linux). One BLAS thread.
"""

from __future__ import annotations

import argparse
import heapq
import threading
from collections import Counter
from itertools import count, pairwise
from pathlib import Path
from time import monotonic, perf_counter, sleep
from unittest import mock

from runs import arguments, seed_of
from scale import MIB, memory
from side_by_side import on_one_thread, table

from vertibayes.cli.demo import alarm
from vertibayes.counting.secure import SecureCounter
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.learners import learn_structure
from vertibayes_mpc.randomness import KeyPair, SystemRandomness
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.seal import Identity
from vertibayes_protocols.session import Session
from vertibayes_protocols.transports.local import EnvelopedPackets
from vertibayes_protocols.transports.mailbox import Mailbox
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.transports.serving import answer

PHASES = ("begin", "commit", "structure")
PIECE = 1 << 20  # bytes


class Box:
    """Packets that have come, or will have at their time."""

    def __init__(self):
        self.changed = threading.Condition()
        self.waiting, self.number = [], count()

    def put(self, due, sender, packet):
        """Put in a packet that comes at its time."""
        with self.changed:
            heapq.heappush(self.waiting, (due, next(self.number), sender, packet))
            self.changed.notify()

    def get(self, timeout):
        """Take out what has come first; None after `timeout` seconds."""
        end = None if timeout is None else monotonic() + timeout
        with self.changed:
            while True:
                now = monotonic()
                if self.waiting and self.waiting[0][0] <= now:
                    return heapq.heappop(self.waiting)[2:]
                if end is not None and now >= end:
                    return None
                times = [t for t in (end, self.waiting[0][0] if self.waiting else None) if t]
                self.changed.wait(min(times) - now if times else None)


WOKEN, ENDED = "woken", "ended"  # in place of a sender


class SlowLink:
    """A party's link: what it sends queues for its line, and then travels.

    Parameters
    ----------
    party : str
    boxes : dict of str to Box
    latency : float
        Seconds, one way.
    bandwidth : float
        Bytes a second.
    receipts : bool
        Whether it waits for them, after each piece of a packet.
    """

    def __init__(self, party, boxes, latency, bandwidth, receipts):
        self.party, self.boxes, self.latency, self.bandwidth = party, boxes, latency, bandwidth
        self.piece = PIECE if receipts else None
        self.sent, self.free, self.lock = 0, 0.0, threading.Lock()

    def deliver(self, packets, patience):
        """Send packets; nobody goes, so all are reached."""
        del patience  # nobody goes
        longest = max(map(len, packets.values()))
        size = self.piece or longest
        for start in range(0, longest, size):
            for receiver, packet in packets.items():
                if start < len(packet):
                    self._send(receiver, packet, start, min(start + size, len(packet)))
            if self.piece:
                sleep(max(0.0, self.free + 2 * self.latency - monotonic()))
        return {}

    def _send(self, receiver, packet, start, end):
        with self.lock:  # packets to several receivers leave in several threads, over one line
            self.sent += end - start
            self.free = max(self.free, monotonic()) + (end - start) / self.bandwidth
        if end == len(packet):
            self.boxes[receiver].put(self.free + self.latency, self.party, packet)

    def receive(self, timeout):
        """Return the next packet and its sender."""
        found = self.boxes[self.party].get(timeout)
        if found is not None and found[0] == ENDED:
            raise SystemExit  # of the party's thread
        return None if found is None or found[0] == WOKEN else found

    def wake(self):
        """Let `receive` return None."""
        self.boxes[self.party].put(monotonic(), WOKEN, b"")

    def is_away(self, _):
        """Nobody goes."""
        return False

    def close(self):
        """Leave; nothing is held."""


def run(parts, order, algorithm, latency, bandwidth, receipts):
    """Learn over links; return the structure and the marks."""
    parties = (*parts, DEALER, ANALYST)
    keys = {party: KeyPair.generate(SystemRandomness()) for party in parties}
    boxes = {party: Box() for party in parties}
    links = {party: SlowLink(party, boxes, latency, bandwidth, receipts) for party in parties}
    boxed = {party: Mailbox(links[party], identity(party, keys)) for party in parties}
    threads = [
        threading.Thread(
            target=answer,
            args=(
                boxed[party],
                role_of(party, parts, keys),
                {ANALYST: keys[ANALYST].public},
                KINDS,
            ),
            daemon=True,
        )
        for party in (*parts, DEALER)
    ]
    for thread in threads:
        thread.start()
    marks = [(perf_counter(), 0, dict.fromkeys(parties, 0))]
    transport = NetworkTransport(boxed[ANALYST], (*parts, DEALER))

    def mark():
        sent = {party: link.sent for party, link in links.items()}
        marks.append((perf_counter(), transport.traffic.rounds, sent))

    mark()
    analyst = AnalystRole(public_keys=boxed[ANALYST].identity.peers)
    with Session(analyst, transport) as session:
        counter = SecureCounter(open_study(session, tuple(parts), DEALER, order=order))
        mark()
        found = learn_structure(counter, algorithm)
        mark()
    for box, thread in zip(boxes.values(), threads, strict=False):
        box.put(monotonic(), ENDED, b"")
        thread.join(60)
    if any(thread.is_alive() for thread in threads):
        raise SystemExit("a party did not end")
    return found, marks


def identity(party, keys):
    others = {peer: pair.public for peer, pair in keys.items() if peer != party}
    return Identity(party, keys[party], others)


def role_of(party, parts, keys):
    known = {p: k.public for p, k in keys.items() if p not in (party, ANALYST)}
    if party == DEALER:
        return DealerRole(party, keys[party], known)
    return SiteRole(party, parts[party], keys[party], known, policy=FREE)


def in_one_process(parts, order, algorithm):
    """Learn without links; return the structure, and what the busiest sent in each round."""
    sent = {}

    class Noted(EnvelopedPackets):
        def pack(self, message):
            packet = super().pack(message)
            round_ = sent.setdefault(message.depth, Counter())
            round_[message.sender] += sum(map(len, packet))
            return packet

    with mock.patch("vertibayes_protocols.transports.local.EnvelopedPackets", Noted):
        federation = federate(parts)
    with federation:
        found = learn_structure(SecureCounter.of(federation, order=order), algorithm)
    return found, {depth: max(counts.values()) for depth, counts in sent.items()}


def figures(marks, busiest):
    """Return of each phase (seconds, rounds, bytes: all, of who sends most, in turn)."""
    found = {}
    spans = [*pairwise(marks), (marks[0], marks[-1])]
    for name, (first, last) in zip((*PHASES, "all"), spans, strict=True):
        (start, rounds, before), (end, later, after) = first, last
        sent = [after[party] - before[party] for party in after]
        turns = sum(busiest[depth] for depth in range(rounds + 1, later + 1)) or max(sent)
        # A session begins with hellos there and back, before any message is counted.
        hellos = 2 if name in (PHASES[0], "all") else 0
        found[name] = (end - start, later - rounds + hellos, sum(sent), max(sent), turns)
    return found


def rows_of(name, latency, bandwidth, got, bare, peak):
    """Return a case's rows of the table."""
    rows = []
    for phase, (seconds, rounds, sent, least, most) in got.items():
        waiting, without = rounds * latency, bare[phase][0]
        sending = least / bandwidth, most / bandwidth
        explained = (without + waiting + part for part in sending)
        rows.append([
            name, phase, rounds, f"{sent / 1e6:.2f}", f"{least / 1e6:.2f}-{most / 1e6:.2f}",
            f"{without:.2f}", f"{waiting:.2f}", "-".join(f"{part:.2f}" for part in sending),
            "-".join(f"{part:.2f}" for part in explained), f"{seconds:.2f}",
            f"{peak / MIB:.0f}" if phase == "all" else "",
        ])  # fmt: skip
    return rows


def main():
    """Run with no delay, with latency alone, with both, with receipts; print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="k2")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds, one way")
    parser.add_argument("--megabits", type=float, default=10.0, help="a second, of each party")
    given = arguments(parser)
    data = sample(alarm(), given.records, seed=seed_of())
    order, parts = list(data.variables), split_columns(data, given.sites)
    wanted, busiest = in_one_process(parts, order, given.algorithm)
    latency, bandwidth = given.latency, given.megabits * 1e6 / 8
    cases = {
        "no delay": (0.0, float("inf"), False),
        f"{latency * 1e3:.0f} ms": (latency, float("inf"), False),
        f"{latency * 1e3:.0f} ms, {given.megabits:g} Mbit/s": (latency, bandwidth, False),
        "the same, receipts": (latency, bandwidth, True),
    }
    rows, bare = [], None
    for name, (delay, speed, receipts) in cases.items():
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        resident = memory("VmRSS")
        found, marks = run(parts, order, given.algorithm, delay, speed, receipts)
        if found != wanted:
            raise SystemExit(f"{name}: not the structure of one process")
        got = figures(marks, busiest)
        bare = bare or got
        rows += rows_of(name, delay, speed, got, bare, memory("VmHWM") - resident)
    print(f"{given.records:,} records, {given.sites} sites, {len(wanted.edges)} edges each time\n")
    header = ["link", "phase", "rounds", "MB of all", "MB of the busiest", "without delay s",
              "rounds x latency s", "bytes / bandwidth s", "predicted s", "measured s",
              "peak MiB"]  # fmt: skip
    print(table("slow_link", header, rows))


if __name__ == "__main__":
    on_one_thread()
    main()
