"""Three studies of two analysts, again and again, while everything that can fails at random.

    python benchmarks/soak.py [--minutes 60] [--seed 0] [--faults-every 6] [--folder FOLDER]

Relay, dealer and three sites are processes with certificates, each behind a proxy, and a service
starts each again when it has ended. Processes of two analysts run three studies by the command
line: an approved one whose tables are cut, an approved one with a limited number of runs, and one
with exact tables outside approved studies. Meanwhile parties are killed and stopped, disks fill,
clocks step, connections are cut or fall silent.

The soak prints each run that is neither equal to the pooled records nor ends with an error that
names a party with a fault; how many runs each site has released, which may not exceed what was
approved; and memory and open files of each party in the first and the last third of its longest
process. The exit status is 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import sleep, time

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from runs import arguments
from side_by_side import table
from soak_analyst import digests
from soak_faults import Fault, Faults, small_disk
from soak_parties import (
    ANALYSTS,
    COLUMNS,
    SITES,
    Party,
    command,
    make_clock,
    write_columns,
    write_parties,
)

from tests.e2e.processes import free_address
from tests.e2e.proxy import Proxy

NINE = [name for names in COLUMNS.values() for name in names]
MOST_RUNS = 60
STUDIES = {
    "cut": {"analyst": ANALYSTS[0], "variables": NINE,
            "release": '[release]\nrule = "cut"\nfewest = 10\nruns = 1_000'},
    "limited": {"analyst": ANALYSTS[0], "variables": ["age", "ill", "rural", "drug"],
                "release": f'[release]\nrule = "exact"\nruns = {MOST_RUNS}'},
    "free": {"analyst": ANALYSTS[1], "variables": NINE, "release": ""},
}  # fmt: skip
AFTER = 60.0  # seconds for which a fault explains an error
MIB = 1 << 20


def expected_of(folder: Path) -> dict[str, dict[str, str]]:
    """Return the digests of structure and model of each study, learned in one process."""
    expected = {}
    rules = {"cut": ["--release", "cut", "--fewest", 10], "limited": ["--release", "exact"]}
    for name, study in STUDIES.items():
        data = folder / f"expected-{name}"
        files = write_columns(data, study["variables"])
        words = [word for file in files for word in ("--data", f"{file.stem}={file}")]
        order = data / "order.json"
        order.write_text(json.dumps(study["variables"]))
        command("learn", *words, "--id-column", "id", "--ordering", order,
                *rules.get(name, []), "--out", data / "out")  # fmt: skip
        expected[name] = digests(data / "out")
    return expected


def start_all(folder: Path, address: str, parties: dict, proxies: dict) -> None:
    """Start relay, dealer and sites, and approve the studies."""
    steps = make_clock(folder)
    if not steps:
        print("the clocks do not step: there is no C compiler")
    kinds = {"relay": "relay", "dealer": "dealer", **dict.fromkeys(SITES, "site")}
    for name, kind in kinds.items():
        path = folder / name / f"{kind}.toml"
        if name != "relay":
            proxies[name] = Proxy(address)
            path.write_text(path.read_text().replace(address, proxies[name].address))
        words = [sys.executable, "-P", "-m", "vertibayes", kind, str(path)]
        parties[name] = Party(
            name, words, folder / name, folder / f"{name}.clock" if steps else None
        )
        parties[name].wait_for("listening" if name == "relay" else "connected")
    for name, study in STUDIES.items():
        file = folder / study["analyst"] / f"{name}.toml"
        for site in SITES if study["release"] else ():
            command("approve", file, "--site", folder / site / "site.toml", "--yes")


def start_analysts(folder: Path, until: float) -> dict[str, Party]:
    """Start a process for each study."""
    runner, started = str(Path(__file__).parent / "soak_analyst.py"), {}
    for name, study in STUDIES.items():
        own = folder / study["analyst"]
        words = [sys.executable, runner, str(folder / f"{name}.jsonl"), str(until)]
        started[f"run-{name}"] = Party(f"run-{name}", [*words, str(own / f"{name}.toml")], own)
    return started


def soak(folder: Path, minutes: float, every: float, seed: int) -> bool:
    """Run the soak; print what came of it; return whether all is well."""
    address = free_address()
    write_parties(folder, address, STUDIES)
    expected = expected_of(folder)
    disks = {site: folder / site for site in SITES if small_disk(folder / site)}
    try:
        return _soak(folder, address, expected, disks, minutes, every, seed)
    finally:
        for disk in disks.values():
            subprocess.run(["umount", "-l", disk], check=False)


def _soak(
    folder: Path, address: str, expected: dict, disks: dict, minutes: float, every: float, seed: int
) -> bool:
    parties: dict[str, Party] = {}
    proxies: dict[str, Proxy] = {}
    analysts: dict[str, Party] = {}
    try:
        start_all(folder, address, parties, proxies)
        analysts |= start_analysts(folder, until := time() + 60 * minutes)
        faults = Faults({**parties, **analysts}, disks, proxies, seed)
        trouble(faults, {**parties, **analysts}, until, every)
        for party in analysts.values():
            party.process.wait(240)
    finally:
        for party in (*analysts.values(), *parties.values()):
            party.end()
        for proxy in proxies.values():
            proxy.close()
    used = {site: runs_of(folder / site, folder) for site in SITES}
    return report(folder, expected, faults.done, used, {**parties, **analysts})


def trouble(faults: Faults, parties: dict[str, Party], until: float, every: float) -> None:
    """Carry out faults until the time is up, start what has ended, and take samples."""
    begin = time()
    while time() < until:
        sleep(float(faults.draw.exponential(every)) if every else 5.0)
        if every:
            fault = faults.strike()
            at = f"{fault.begin - begin:7.0f} s"
            print(f"{at}  {fault.what} {fault.party} {fault.end - fault.begin:.1f} s", flush=True)
        for party in parties.values():
            if not party.name.startswith("run-") or party.process.poll() not in (None, 0):
                party.keep()
            party.sample(time() - begin)


def runs_of(site: Path, folder: Path) -> dict[str, tuple[int, int]]:
    """Return, of each approved study, how many runs a site has begun and released."""
    from vertibayes.cli.contracts import contract_of
    from vertibayes_protocols.deployment.files import StudyFile
    from vertibayes_protocols.storage.memory import SiteMemory

    memory, runs = SiteMemory(site / "memory" / "memory"), {}
    for name, study in STUDIES.items():
        if study["release"]:
            file = StudyFile.read(folder / study["analyst"] / f"{name}.toml")
            runs[name] = memory.runs.count(contract_of(file).digest)
    memory.close()
    return runs


def results_of(folder: Path) -> dict[str, list[dict]]:
    """Return the runs of each study."""
    files = {name: folder / f"{name}.jsonl" for name in STUDIES}
    return {
        name: [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
        for name, file in files.items()
        if file.exists()
    }


def judged(run: dict, expected: dict[str, str], faults: list[Fault]) -> str:
    """Return what a run is: equal, different, named, used up, or unexplained."""
    if run["status"] == 0:
        return "equal" if run["made"] == expected else "DIFFERENT"
    if "used up" in run["error"]:
        return "used up"
    end = run["begin"] + run["seconds"]
    last = run["error"].strip().splitlines()[-1:] or [""]
    near = {f.party for f in faults if f.begin - 1 <= end and f.end + AFTER >= run["begin"]}
    named = {party for party in (*SITES, "dealer", "relay") if party in last[0]}
    lost = any(f.what in ("loss", "silence") for f in faults if f.party in near)
    if "Traceback" in run["error"] or not named:
        return "UNEXPLAINED"
    return "named" if named & near or ("relay" in named and lost) else "UNEXPLAINED"


def report(folder: Path, expected: dict, faults: list[Fault], used: dict, parties: dict) -> bool:
    """Print the figures; return whether all is well."""
    rows, wrong = [], []
    for name, runs in results_of(folder).items():
        kinds = [judged(run, expected[name], faults) for run in runs]
        wrong += [(name, kind, run["error"]) for kind, run in zip(kinds, runs, strict=True)
                  if kind.isupper()]  # fmt: skip
        counts, seconds = Counter(kinds), [run["seconds"] for run in runs if run["status"] == 0]
        median = f"{statistics.median(seconds):.1f}" if seconds else "-"
        rows.append([name, len(runs), counts["equal"], counts["named"], counts["used up"],
                     len(runs) - sum(counts[kind] for kind in ("equal", "named", "used up")),
                     median])  # fmt: skip
    print("\nruns of each study\n")
    header = ["study", "runs", "equal", "named error", "used up", "wrong", "median s"]
    print(table("soak", header, rows))
    print(f"\nfaults: {dict(Counter(fault.what for fault in faults))}\n")
    print("runs that sites have begun and released\n")
    rows = [[site, *runs.values()] for site, runs in used.items()]
    print(table("soak_sites", ["site", *used[SITES[0]]], rows))
    print("\nmemory in MiB and open files, first and last third of each party's longest process\n")
    header = ["party", "starts", "minutes", "MiB first", "MiB last", "files first", "files last"]
    print(table("soak_memory", header, [resources(party) for party in parties.values()]))
    for name, kind, error in wrong:
        print(f"\n{kind} {name}: {error.strip()}")
    beyond = [site for site, runs in used.items() if runs["limited"][1] > MOST_RUNS]
    if beyond:
        print(f"\nBEYOND APPROVAL at {beyond}")
    return not wrong and not beyond


def resources(party: Party) -> list:
    """Return a party's row of the table of resources."""
    longest = Counter(process for _, process, _, _ in party.samples).most_common(1)
    own = [sample for sample in party.samples if longest and sample[1] == longest[0][0]]
    if len(own) < 3:
        return [party.name, party.starts, *["-"] * 5]
    third = len(own) // 3
    first, last = own[:third], own[-third:]
    medians = [statistics.median(s[at] for s in part) for at in (2, 3) for part in (first, last)]
    sizes = [f"{size / MIB:.0f}" for size in medians[:2]]
    files = [f"{count:.0f}" for count in medians[2:]]
    return [party.name, party.starts, f"{(own[-1][0] - own[0][0]) / 60:.0f}", *sizes, *files]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--faults-every", type=float, default=6.0, help="seconds; 0: no faults")
    parser.add_argument("--folder", type=Path, help="is kept; a temporary one otherwise")
    given = arguments(parser)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)) / "soak"
        is_well = soak(folder, given.minutes, given.faults_every, given.seed)
    print("all is well" if is_well else "\nSOMETHING IS WRONG")
    return 0 if is_well else 1


if __name__ == "__main__":
    raise SystemExit(main())
