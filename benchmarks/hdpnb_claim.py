"""The claim of Huai et al. (2015) that HDPNB is "comparable or even better" than naive Bayes.

    python benchmarks/hdpnb_claim.py --data FOLDER [--repeats 100] [--seed 0]

Car Evaluation, one record a party, ten-fold, gamma = 1, eps for each count, as their Fig. 1 a. They
print neither delta nor pseudo-counts: each table row is a reading of both. HDPNB and naive Bayes of
a repetition have the same records and folds; a gap is the mean of accuracy(HDPNB) - accuracy(naive
Bayes) and its standard deviation over repetitions, of which the share with a gap of -.01 or more
("comparable") is shown, and that with a gap above 0 ("better").
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from hdpnb import EPS, load, matrix
from noise_of_sums import noise_of_sum
from runs import arguments

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.accounting import Accounting, Privacy

PARTIES = (200, 600, 1000, 1728)
NOISES = {
    "diluted, delta 1e-5: 11.5 copies": {"noise": "diluted", "delta": 1e-5},
    "diluted, delta .1: 2.3 copies": {"noise": "diluted", "delta": 0.1},
    "diluted, delta 1/e: 1 copy": {"noise": "diluted", "delta": float(np.exp(-1))},
    "Polya shares: 1 copy": {"noise": "polya"},
}
PSEUDO = ((1.0, 1.0), (0.0, 0.0), (1.0, 0.0))  # of HDPNB, of naive Bayes


class Repetitions:
    """Accuracies of HDPNB and naive Bayes on the same folds."""

    def __init__(self, path: Path, seed: int) -> None:
        self.schema, self.data = load(path)
        self.counts, self.seed = matrix(self.schema, self.data), seed
        self.noises = {
            (name, eps): Accounting(self.schema, Privacy(eps=eps, accounting="count", **kind), 1)
            for name, kind in NOISES.items()
            for eps in EPS
        }

    def accuracies(self, n: int, place: int) -> dict[tuple, float]:
        """Return the ten-fold accuracy of each noise, eps and pseudo-count; () is no noise."""
        generator = np.random.default_rng([self.seed, n, place])
        chosen, right = generator.permutation(self.data.records)[:n], defaultdict(float)
        for fold in np.array_split(np.arange(n), 10):
            train, test = np.delete(chosen, fold), self.data.rows(chosen[fold])
            sums = {(): self.counts[train].sum(axis=0)}
            for key, accounting in self.noises.items():
                noise = accounting.noise(len(train), SystemRandomness())
                drawn = noise_of_sum(noise, len(train), len(sums[()]), generator)
                sums[key] = sums[()] + drawn
            for key, values in sums.items():
                for alpha in (0.0, 1.0):
                    model = NaiveBayes(self.schema, alpha=alpha).fit_sums(values)
                    right[*key, alpha] += model.score(test) * len(fold) / n
        return dict(right)


def line(found: dict, name: str, eps: float, own: float, others: float) -> list[object]:
    """Return a row of the table: the gaps by number of parties, and how often the claim holds."""
    gaps = {n: np.array([run[name, eps, own] - run[others,] for run in found[n]]) for n in PARTIES}
    shown = (f"{gap.mean():+.3f} ± {gap.std(ddof=1):.3f}" for gap in gaps.values())
    last = gaps[PARTIES[-1]]
    often = (f"{share.mean():.2f}" for share in (last >= -0.01, last > 0))
    return [f"{own:.0f} / {others:.0f}", name, eps, *shown, *often]


def main() -> None:
    """Judge the claim."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=100)
    given = arguments(parser, data=True)
    study, found = Repetitions(given.data / "uci" / "car.csv", given.seed), {}
    for n in PARTIES:
        found[n] = [study.accuracies(n, place) for place in range(given.repeats)]
        print(f"{n} parties: done", flush=True)
    rows = [line(found, name, eps, *alphas) for alphas in PSEUDO for name in NOISES for eps in EPS]
    last = PARTIES[-1]
    header = ["pseudo-counts: HDPNB / naive Bayes", "noise", "eps", *(f"gap, {n}" for n in PARTIES),
              f"comparable, {last}", f"better, {last}"]  # fmt: skip
    for alpha in (1.0, 0.0):
        means = (np.mean([run[alpha,] for run in found[n]]) for n in PARTIES)
        print(f"naive Bayes, pseudo-count {alpha:.0f}:", *(f"{mean:.3f}" for mean in means))
    print(f"\n{given.repeats} repetitions\n")
    print(table("hdpnb_claim", header, rows, spread=f"SD over {given.repeats} repetitions"))


if __name__ == "__main__":
    main()
