"""Alignment of 10^3 to 10^6 people at two to five sites: seconds, bytes, memory, beside a peer.

    python benchmarks/alignment.py [--keys 1000 10000] [--sites 2 3] [--level 1] [--peer PYTHON]

All parties run in this process, and two worker processes multiply points for all of them. PYTHON
is an interpreter with the package `openmined-psi`, which also checks the number of common people;
without it the columns of the peer are empty. At level 2, each row has five codes.
"""

from __future__ import annotations

import argparse
import json
import resource
import secrets
import subprocess
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from alignment_lists import lists_of
from runs import arguments
from side_by_side import on_one_thread, table

from vertibayes_mpc.alignment import (
    AlignmentPlan,
    Member,
    deal_people,
    match_people,
    place_people,
    share_people,
)
from vertibayes_mpc.randomness import StreamKey, SystemRandomness
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.scheduler import ByHand, Scheduler, Sent

CODES, RING = 5, Ring(24)
WORKERS = 2
HEADER = (
    "keys per list", "sites", "level", "wall s", "CPU s", "CPU s per site",
    "bytes per key and list", "largest link MB", "rounds", "peak MB of all parties", "common",
    "peer CPU s", "peer bytes per key", "peer / ours",
)  # fmt: skip


class Meter(ByHand):
    """Counts bytes and rounds; keeps no message."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[tuple[Party, Party]] = Counter()
        self.rounds = 0

    def pack(self, sent: Sent) -> Sent:
        """Count a message."""
        self.bytes[sent.sender, sent.receiver] += sent.message.values.nbytes + 32
        self.rounds = max(self.rounds, sent.depth)
        return sent


def programs(lists: dict[Party, list[bytes]], level: int, spread: Any) -> dict[Party, Any]:
    """Return the programs of all parties."""
    sites = tuple(lists)
    sizes = {site: len(people) for site, people in lists.items()}
    hidden = {"dealer": "dealer", "rows": dict.fromkeys(sites, (RING,) * CODES)}
    run = secrets.token_bytes(16)
    plan = AlignmentPlan(run, sites, sizes, "analyst", sites, **(hidden if level == 2 else {}))
    common, keys = StreamKey(secrets.token_bytes(32)), {}
    steps: dict[Party, Any] = {"analyst": match_people(plan, SystemRandomness())}
    for site, people in lists.items():
        keys[site] = StreamKey(secrets.token_bytes(32))
        member = Member(site, common, SystemRandomness(), keys[site], spread)
        rows = [np.zeros(len(people), RING.dtype)] * CODES
        steps[site] = (
            place_people(member, plan, people)
            if level == 1
            else share_people(member, plan, people, rows)
        )
    return steps | ({"dealer": deal_people(keys, plan)} if level == 2 else {})


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of workers that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def measured(keys: int, sites: int, level: int) -> list[float]:
    """Run an alignment; return the columns of the table without those of the peer."""
    lists = dict(zip("abcde", lists_of(keys, sites), strict=False))
    start, cpu, meter = perf_counter(), cpu_seconds(), Meter()
    with ProcessPoolExecutor(WORKERS) as pool:
        scheduler = Scheduler(meter)
        steps = programs(lists, level, pool.map)
        for party, program in steps.items():
            scheduler.start(party, program)
        outputs = {party: scheduler.finish(party) for party in steps}
    wall, used = perf_counter() - start, cpu_seconds() - cpu
    people = outputs["analyst"].people
    assert people == len(set.intersection(*map(set, lists.values())))
    traffic = meter.bytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    per_key = traffic.total() / keys / sites
    largest = max(traffic.values()) / 1e6
    return [wall, used, used / sites, per_key, largest, meter.rounds, peak, people]


def peer_columns(python: str, keys: int, sites: int, ours: float, people: float) -> list[str]:
    """Return the columns of the peer, which must have the same common people."""
    script = Path(__file__).parent / "peers" / "psi.py"
    command = [python, str(script), str(keys), str(sites)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, traffic, common = json.loads(ran.stdout)
    assert common == people
    return [f"{seconds:.3g}", f"{traffic / keys / sites:.1f}", f"{seconds / ours:.2f}"]


def main() -> None:
    """Print a row for each number of keys, of sites, and level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--sites", type=int, nargs="*", default=[2, 3, 5])
    parser.add_argument("--level", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--peer", default="", help="an interpreter with openmined-psi")
    given = arguments(parser, seeded=False)
    rows = []
    for keys in given.keys:
        for sites in given.sites:
            for level in given.level:
                ours = measured(keys, sites, level)
                peer = given.peer and level == 1
                theirs = (
                    peer_columns(given.peer, keys, sites, ours[1], ours[-1]) if peer else [""] * 3
                )
                shown = [f"{value:.4g}" for value in ours[:-1]] + [str(ours[-1])]
                rows.append([keys, sites, level, *shown, *theirs])
                print(*rows[-1], flush=True)
    print(table("alignment", HEADER, rows))


if __name__ == "__main__":
    on_one_thread()
    main()
