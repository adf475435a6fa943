"""Frequency oracles beside pure-ldp and multi-freq-ldpy; and variances, measured and stated.

    python benchmarks/oracles.py [--peers FOLDER] [--repeats 5] [--parts time,variance]
        [--oracles de,sue,oue,the,ss,she]

FOLDER has an environment for each peer, which must not be those of this project:

    python3.11 -m venv FOLDER/pure-ldp
    FOLDER/pure-ldp/bin/pip install pure-ldp scikit-learn statsmodels
    python3.11 -m venv FOLDER/multi-freq-ldpy
    FOLDER/multi-freq-ldpy/bin/pip install multi-freq-ldpy scipy

Both peers import libraries that they do not declare. A peer whose environment does not exist is
left out, with a message.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
from runs import arguments
from side_by_side import on_one_thread, seconds_of, table

on_one_thread()

from vertibayes_mpc.oracles import ORACLES, FrequencyOracle, Tally

USERS, DOMAINS, EPS = 50_000, (8, 100), 1.0
NAMES = ("de", "sue", "oue", "the", "ss", "she")
PEERS = ("pure-ldp", "multi-freq-ldpy")
SQUARES = 20_000  # squared errors that are averaged: a standard error of 1 %
PEER_SCRIPT = Path(__file__).parent / "peers" / "frequency_oracles.py"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=Path, help="the folder of the peers' environments")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--parts", default="time,variance")
    parser.add_argument("--oracles", default=",".join(NAMES))
    given = arguments(parser, seeded=False)
    names = given.oracles.split(",")
    if "time" in given.parts:
        header = ["oracle", "domain", "bytes per report", "ours s"]
        for peer in PEERS:
            header += [f"{peer} s", "ratio"]
        print(table("oracles", header, times(given.peers, given.repeats, names)), flush=True)
    if "variance" in given.parts:
        header = ["oracle", "domain", "eps", "stated sd", "measured / stated variance", "errors"]
        print("\n" + table("oracles_variance", header, list(variances(names))))


def times(folder: Path | None, repeats: int, names: list[str]) -> list[list[object]]:
    """Measure the way from values to estimates, ours and the peers'."""
    rows: list[list[object]] = []
    for domain in DOMAINS:
        peers = {peer: peer_times(folder, peer, domain, repeats) for peer in PEERS}
        for name in names:
            oracle = ORACLES[name](eps=EPS, domain=domain)
            values, runs = np.arange(USERS) % domain, 1 if name == "she" else repeats
            ours = seconds_of(lambda o=oracle, v=values: estimates(o, v), runs)
            row: list[object] = [name, domain, oracle.report_bytes, f"{ours:.4f}"]
            for peer in PEERS:
                theirs = peers[peer].get(name)
                row += [f"{theirs:.3f}", f"{theirs / ours:.3g}"] if theirs else ["-", "-"]
            rows.append(row)
    return rows


def estimates(oracle: FrequencyOracle, values: np.ndarray) -> np.ndarray:
    """Perturb the values of all people, add up the reports, and estimate."""
    tally = Tally(oracle)
    tally.update(oracle.perturb(values))
    return tally.estimate()


def peer_times(folder: Path | None, peer: str, domain: int, repeats: int) -> dict[str, float]:
    """Run a peer in its environment."""
    python = folder / peer / "bin" / "python" if folder else None
    if python is None or not python.exists():
        print(f"{peer}: not run, no environment at {python}; see --help")
        return {}
    command = [python, PEER_SCRIPT, peer, *map(str, (USERS, domain, EPS, repeats))]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def variances(names: list[str]):
    """Yield the mean squared error of estimates of all people, over cells and repetitions.

    SummationHistogram is slow: its errors are those of groups of twenty people.
    """
    for eps in (1.0, 4.0):
        for domain in DOMAINS:
            for name in names:
                if name == "she" and (eps, domain) != (1.0, 8):
                    continue
                oracle = ORACLES[name](eps=eps, domain=domain)
                users = 20 if name == "she" else USERS
                ratios = [squares(oracle, users) for _ in range(SQUARES // domain)]
                spread = np.std(ratios) / np.sqrt(len(ratios))
                ratio = f"{np.mean(ratios):.3f} +- {spread:.3f}"
                deviation = f"{np.sqrt(oracle.variance(USERS)):.0f}"
                yield [name, domain, eps, deviation, ratio, len(ratios) * domain]


def squares(oracle: FrequencyOracle, users: int) -> float:
    """Return the mean squared error of one repetition, divided by the stated variances."""
    values = np.arange(users) % oracle.domain
    counts = np.bincount(values, minlength=oracle.domain)
    errors = estimates(oracle, values) - counts
    return float(np.mean(errors**2 / oracle.variance(users, counts)))


if __name__ == "__main__":
    main()
