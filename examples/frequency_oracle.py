"""Each person sends one perturbed answer; the aggregator estimates how many gave each answer.

python examples/frequency_oracle.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles import Tally, best_oracle

ANSWERS = ("never", "rarely", "monthly", "weekly", "daily", "often a day")
PEOPLE = (6000, 9000, 3000, 1500, 400, 100)


def ask() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Perturb 20,000 answers at eps = 1; return the estimates and their intervals."""
    oracle = best_oracle(eps=1.0, domain=len(ANSWERS))
    print(f"{oracle.name}: {oracle.report_bytes} bytes per report")

    # On each person's device: one call, with the person's own answer.
    reports = oracle.perturb(np.repeat(np.arange(len(ANSWERS)), PEOPLE))

    # At the aggregators, who know the oracle and receive the reports in any order.
    first, second = Tally(oracle), Tally(oracle)
    first.update(reports[::2])
    second.update(reports[1::2])
    first.merge(second)
    low, high = first.interval(0.95)
    for answer, count, about, least, most in zip(
        ANSWERS, PEOPLE, first.estimate(), low, high, strict=True
    ):
        print(f"{answer:12} {count:5}, estimated {about:7.0f}, from {least:5.0f} to {most:5.0f}")
    return first.estimate(), low, high


if __name__ == "__main__":
    ask()
