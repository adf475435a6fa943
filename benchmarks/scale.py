"""Time, rounds and memory of K2 on ALARM against records, variables and sites.

    python benchmarks/scale.py [--largest 7] [--budget 1024]

Each case runs in a process of its own. Memory is the peak resident set beyond that at its start,
when the codes are there; all parties work in the one process. One BLAS thread.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from side_by_side import on_one_thread, table

MIB = 1 << 20


def memory(field: str) -> int:
    """Return a figure of this process's memory, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field}: Linux is wanted")


def one_case(records: int, variables: int, sites: int, budget: int, what: str) -> None:
    """Run one case; print its figures as JSON."""
    from vertibayes.counting.secure import SecureCounter
    from vertibayes.splitting import split_columns
    from vertibayes_protocols.federation import federate

    data = columns(records, variables)
    parts = split_columns(data, sites)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    resident, start = memory("VmRSS"), perf_counter()
    with federate(parts, memory_budget=budget * MIB) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        committed = perf_counter() - start
        found = search(counter, what)
        seconds = perf_counter() - start
        rounds, sent = federation.traffic.rounds, federation.traffic.bytes
    figures = {
        "commit": committed, "seconds": seconds, "found": found, "rounds": rounds, "bytes": sent,
        "queries": counter.queries, "peak": memory("VmHWM") - resident,
    }  # fmt: skip
    print(json.dumps(figures))


def search(counter: object, what: str) -> str:
    """Learn the structure; or, of very many records, ask all pairs and one extension."""
    from vertibayes.counting.secure import SecureCounter
    from vertibayes.structure.learners import k2
    from vertibayes_protocols.variables import Family

    assert isinstance(counter, SecureCounter)
    if what == "k2":
        return f"{len(k2(counter, max_parents=3).edges)} edges"
    names = list(counter.variables)
    counter.tables([Family(a, (b,)) for i, a in enumerate(names) for b in names[:i]])
    counter.tables([Family(names[2], (names[0], names[1]))])
    return "pairs, one extension"


def columns(records: int, variables: int) -> object:
    """Sample ALARM, as often as it takes, each time with other records and names."""
    from vertibayes.cli.demo import alarm
    from vertibayes.sampling import sample
    from vertibayes_protocols.site.data import SiteData
    from vertibayes_protocols.variables import Variable

    network = alarm()
    found: dict[str, Variable] = {}
    codes = {}
    for copy in range(-(-variables // len(network.variables))):
        for name, column in sample(network, records, seed=copy).codes.items():
            if len(found) < variables:
                states = network.variables[name].states
                found[f"{name}_{copy}"] = Variable(f"{name}_{copy}", states)
                codes[f"{name}_{copy}"] = column
    return SiteData(found, codes)


def run(records: int, variables: int, sites: int, budget: int, what: str = "k2") -> list[object]:
    """Run a case in a process of its own; return its row."""
    case = [str(x) for x in (records, variables, sites, budget, what)]
    done = subprocess.run(
        [sys.executable, __file__, "--case", *case], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return [f"{records:,}", variables, sites, "failed: " + done.stderr.strip()[-80:]]
    got = json.loads(done.stdout)
    return [
        f"{records:,}", variables, sites, got["found"],
        f"{got['commit']:.2f}", f"{got['seconds']:.2f}",
        f"{got['seconds'] / records * 1e6:.1f}", got["rounds"], got["queries"],
        f"{got['bytes'] / 1e6:,.0f}", f"{got['peak'] / MIB:,.0f}",
    ]  # fmt: skip


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=7, help="records: 10 to this power")
    parser.add_argument("--budget", type=int, default=1024, help="MiB")
    parser.add_argument("--case", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        *numbers, what = given.case
        one_case(*map(int, numbers), what)
        return
    cases = [(10**power, 37, 3) for power in range(4, min(given.largest, 6) + 1)]
    cases += [(10_000, variables, 3) for variables in (10, 50, 100, 200)]
    cases += [(10_000, 37, sites) for sites in (2, 5, 10)]
    rows = [run(*case, given.budget) for case in cases]
    if given.largest >= 7:
        rows.append(run(10**7, 37, 3, given.budget, "pairs"))
    header = ["records", "variables", "sites", "result", "commit s", "total s", "us per record",
              "rounds", "queries", "MB sent", "peak MiB beyond the codes"]  # fmt: skip
    print(table("scale", header, rows))


if __name__ == "__main__":
    on_one_thread()
    main()
