"""Theorem 1 of Huai et al. (2015), computed exactly for n = 10 .. 10,000 and gamma = 0.1 .. 1.

    python benchmarks/theorem_1.py [--eps 0.5] [--delta 1e-5]

The noise of the gamma n honest parties, each a copy of Geom(alpha) with probability beta:
- `copies` that all n add in expectation, `sd` of their sum, beside that of one copy;
- `none`: the chance that no honest party adds one; the theorem asks that it is at most delta;
- `given one`: the largest ratio of masses of neighbouring counts, over e^eps; at most 1 is asked;
- `delta of the sum`: the least delta of the sum's law against who does not know the coins;
- `enough`: the least part of beta for which that stays within delta.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from runs import arguments
from side_by_side import table

from tests.noise_law import delta_at, diluted_law, largest_ratio, point
from vertibayes_mpc.noise import DilutedGeometric, DiscreteLaplace

HEADER = (
    "n", "gamma", "beta", "copies", "sd", "none", "given one", "delta of the sum", "enough",
)  # fmt: skip


def one(n: int, gamma: float, eps: float, delta: float) -> list[str]:
    """Compute one row, or fail where the theorem does."""
    noise = DilutedGeometric(eps=eps, delta=delta, gamma=gamma, n=n)
    honest = math.ceil(gamma * n - 1e-9)
    none, law = diluted_law(eps, noise.beta, honest)
    ratio = largest_ratio(law, 1) / math.exp(eps)
    attained = delta_of_the_sum(noise.beta, honest, eps)
    assert none <= delta and ratio <= 1 + 1e-9 and attained <= delta
    figures = noise.beta, n * noise.copies, math.sqrt(n * noise.variance)
    least = least_part(noise.beta, honest, eps, delta)
    return [
        f"{n:,}", f"{gamma:g}", *(f"{x:.4g}" for x in figures), f"{none:.1e}", f"{ratio:.4f}",
        f"{attained:.1e}", f"{least:.2f}",
    ]  # fmt: skip


def delta_of_the_sum(beta: float, honest: int, eps: float) -> float:
    none, law = diluted_law(eps, beta, honest)
    return delta_at(none * point(eps) + (1 - none) * law, eps, 1)


def least_part(beta: float, honest: int, eps: float, delta: float) -> float:
    """Bisect for the part of beta at which the sum's delta passes `delta`."""
    low, high = 0.0, 1.0
    for _ in range(8):
        middle = (low + high) / 2
        enough = delta_of_the_sum(beta * middle, honest, eps) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--eps", type=float, default=0.5)
    parser.add_argument("--delta", type=float, default=1e-5)
    given = arguments(parser, seeded=False)
    rows = [
        one(n, gamma, given.eps, given.delta)
        for n in (10, 30, 100, 300, 1000, 3000, 10_000)
        for gamma in (0.1, 0.2, 0.5, 0.8, 1.0)
    ]
    one_copy = math.sqrt(DiscreteLaplace(eps=given.eps).variance)
    print(f"eps = {given.eps:g}, delta = {given.delta:g}; one copy has sd {one_copy:.3g}\n")
    print(table("theorem_1", HEADER, rows))


if __name__ == "__main__":
    main()
