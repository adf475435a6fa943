"""Time, rounds and memory of K2 on ALARM against records, variables and sites.

    python benchmarks/scale.py [--largest 7] [--budget 1024] [--seeds 1 2 ...]

Each case runs in a process of its own. Seconds are the processor's. Memory is the peak resident set
beyond that at its start, when the codes are there; all parties work in the one process. One BLAS
thread. Each structure is compared with that of the pooled records. With `--seeds`, the only cases
are K2 of the largest number of records (at most 10^6) at three sites, once for each seed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from runs import arguments, seed_of
from side_by_side import on_one_thread, table

if TYPE_CHECKING:
    from vertibayes_protocols.site.data import SiteData

MIB = 1 << 20


def memory(field: str) -> int:
    """Return a figure of this process's memory, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field}: Linux is wanted")


def one_case(records: int, variables: int, sites: int, budget: int, seed: int, what: str) -> None:
    """Run one case; print its figures as JSON."""
    from vertibayes.choosing.secret import SecretChooser
    from vertibayes.counting.plain import PlainCounter
    from vertibayes.counting.secure import SecureCounter
    from vertibayes.splitting import split_columns
    from vertibayes.structure.learners import k2
    from vertibayes_protocols.federation import federate
    from vertibayes_protocols.opening import open_study
    from vertibayes_protocols.variables import Family

    data = columns(records, variables, seed)
    parts, names = split_columns(data, sites), list(data.variables)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    resident, start = memory("VmRSS"), process_time()
    with federate(parts, memory_budget=budget * MIB) as federation:
        session, holders, dealer = federation.session, federation.sites, federation.dealer
        study = open_study(session, holders, dealer, order=names, choices=what == "choices")
        committed, counter = process_time() - start, SecureCounter(study)
        if what == "pairs":
            counter.tables([Family(a, (b,)) for a, b in combinations(names, 2)])
        else:
            learned = k2(SecretChooser(study) if what == "choices" else counter, max_parents=3)
        seconds, peak = process_time() - start, memory("VmHWM") - resident
        traffic = federation.traffic
    found, pooled = "all pairs", 0.0
    if what != "pairs":
        start = process_time()
        differ = len(set(k2(PlainCounter(data), max_parents=3).edges) ^ set(learned.edges))
        pooled = process_time() - start
        found = f"{len(learned.edges)} edges" + (f", {differ} differ" if differ else "")
    figures = {
        "commit": committed, "seconds": seconds, "pooled": pooled, "found": found,
        "rounds": traffic.rounds, "bytes": traffic.bytes,
        "queries": "" if what == "choices" else counter.queries, "peak": peak,
    }  # fmt: skip
    print(json.dumps(figures))


def columns(records: int, variables: int, seed: int) -> SiteData:
    """Sample ALARM, as often as it takes, each time with other records and names."""
    from vertibayes.cli.demo import alarm
    from vertibayes.sampling import sample
    from vertibayes_protocols.site.data import SiteData
    from vertibayes_protocols.variables import Variable

    network = alarm()
    found: dict[str, Variable] = {}
    codes = {}
    for copy in range(-(-variables // len(network.variables))):
        for name, column in sample(network, records, seed=seed + copy).codes.items():
            if len(found) < variables:
                states = network.variables[name].states
                found[f"{name}_{copy}"] = Variable(f"{name}_{copy}", states)
                codes[f"{name}_{copy}"] = column
    return SiteData(found, codes)


def run(
    records: int, variables: int, sites: int, budget: int, seed: int | None = None, what: str = "k2"
) -> list[object]:
    """Run a case in a process of its own; return its row."""
    seed = seed_of() if seed is None else seed
    case = [str(x) for x in (records, variables, sites, budget, seed, what)]
    done = subprocess.run(
        [sys.executable, __file__, "--case", *case], capture_output=True, text=True, check=False
    )
    by = "choices" if what == "choices" else "tables"
    if done.returncode:
        row = [f"{records:,}", variables, sites, by, "failed: " + done.stderr.strip()[-80:]]
    else:
        got = json.loads(done.stdout)
        row = [
            f"{records:,}", variables, sites, by, got["found"], f"{got['commit']:.2f}",
            f"{got['seconds']:.2f}", f"{got['pooled']:.2f}" if got["pooled"] else "",
            f"{got['seconds'] / records * 1e6:.1f}", got["rounds"], got["queries"],
            f"{got['bytes'] / 1e6:,.0f}", f"{got['peak'] / MIB:,.0f}",
        ]  # fmt: skip
    print(*row, flush=True)
    return row


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=7, help="records: 10 to this power")
    parser.add_argument("--budget", type=int, default=1024, help="MiB")
    parser.add_argument("--seeds", type=int, nargs="+", help="of the records")
    parser.add_argument("--case", nargs=6, help=argparse.SUPPRESS)
    given = arguments(parser)
    if given.case:
        *numbers, what = given.case
        one_case(*map(int, numbers), what)
        return
    header = ["records", "variables", "sites", "by", "result", "commit s", "total s", "pooled s",
              "us per record", "rounds", "queries", "MB sent",
              "peak MiB beyond the codes"]  # fmt: skip
    powers = range(4, min(given.largest, 6) + 1)
    if given.seeds:
        seeded = [run(10 ** powers[-1], 37, 3, given.budget, seed) for seed in given.seeds]
        print(table("scale_seeds", ["seed", *header], [
            [seed, *row] for seed, row in zip(given.seeds, seeded, strict=True)
        ], seeds=", ".join(map(str, given.seeds))))  # fmt: skip
        return
    cases = [(10**power, 37, 3) for power in powers]
    cases += [(10_000, variables, 3) for variables in (10, 50, 100, 200)]
    cases += [(10_000, 37, sites) for sites in (2, 5, 10)]
    rows = [run(*case, given.budget) for case in cases]
    rows += [run(10**power, 37, 3, given.budget, what="choices") for power in powers]
    if given.largest >= 7:
        rows.append(run(10**7, 37, 3, given.budget, what="pairs"))
    print(table("scale", header, rows))


if __name__ == "__main__":
    on_one_thread()
    main()
