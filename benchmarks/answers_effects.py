"""Effects: how often intervals cover the truth, and ranges beside an enumeration of all DAGs.

    python benchmarks/answers_effects.py [--studies 1000] [--graphs 500] [--parts coverage ranges]

coverage: simulated studies of a known network, in which two confounders cause the exposure and the
outcome. Each study draws its records, releases their table by a rule (noise as of three sites), and
asks for the effect: how often the interval has the true risk, difference and ratio, in percent of
the studies that have an interval. "range" asks without directions: how often the interval of the
range has the true difference. "Weak overlap": 2 to 6 % of some strata are exposed.

ranges: random graphs of 4 to 6 variables, every exposure and outcome, half of them with some arrows
given. The range of `effects_in` beside the effects under all DAGs with the same neighbours and
unshielded colliders, by truncating the factorization of the joint distribution.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import permutations
from math import sqrt
from typing import Any, NamedTuple

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np
from numpy.typing import NDArray

from tests.equivalence_classes import (
    effect_by_truncation,
    equivalent,
    joint_of,
    random_network,
    random_structure,
)
from vertibayes.counting.released import ReleasedCounter
from vertibayes.dag import Structure
from vertibayes.inference.effects import effect_in, standardized
from vertibayes.network import Network
from vertibayes.structure.possible_effects import Directions, effects_in, standardized_range
from vertibayes_protocols.queries.releases.plan import ReleaseNoise, function_of
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family, Variable

SITES = 3
RULES = (
    Rule("exact"),
    Rule("cut", fewest=10),
    Rule("rounded", fewest=10),
    Rule("laplace", epsilon=1),
    Rule("gaussian", epsilon=1),
)
STRUCTURE = Structure.of("abxy", [*("ax", "bx"), *("ay", "by"), "xy"])


class World(NamedTuple):
    """Studies of one kind."""

    name: str
    states: int  # of the exposure and of one confounder
    exposed: tuple[float, float]  # the log odds of an exposure: without and by confounders
    ill: tuple[float, float, float]  # of the outcome: without, by confounders, by the exposure

    @property
    def network(self) -> Network:
        """The network from which records are drawn."""
        labels = {
            name: tuple(map(str, range(self.states if name in "ax" else 2))) for name in "abxy"
        }
        variables = {name: Variable(name, states) for name, states in labels.items()}
        a, b = np.indices((self.states, 2))
        base, slope = self.exposed
        odds = np.array([x * (base + slope * (a + b) / 2) for x in range(self.states)])
        by_x = np.exp(odds) / np.exp(odds).sum(axis=0)
        a, b, x = np.indices((self.states, 2, self.states))
        base, slope, effect = self.ill
        ill = 1 / (1 + np.exp(-(base + slope * (a + b) / 2 + effect * x)))
        cpts = {
            "a": np.full(self.states, 1 / self.states),
            "b": np.array([0.7, 0.3]),
            "x": by_x,
            "y": np.array([1 - ill, ill]),
        }
        return Network(STRUCTURE, variables, cpts)


WORLDS = (
    World("two states", 2, (-0.5, 1.0), (-1.5, 1.0, 0.8)),
    World("three states", 3, (-0.3, 0.5), (-1.5, 0.8, 0.4)),
    World("rare outcome", 2, (-0.5, 1.0), (-3.5, 0.8, 0.8)),
    World("weak overlap", 2, (-4.0, 3.0), (-1.0, 1.0, 0.8)),
    World("no effect", 2, (-0.5, 1.0), (-1.5, 1.0, 0.0)),
)


def released(counts: NDArray[Any], network: Network, rule: Rule) -> tuple[ReleasedCounter, float]:
    """Return a table as a rule releases it, and the deviation of its noise."""
    request, records = FamilyTables((Family("y", tuple("xab")),), False, rule), int(counts.sum())
    deviation = 0.0
    if function := function_of(rule, records):
        counts = function(counts)
    if rule.is_noisy:
        draw = ReleaseNoise(request, SITES).of_a_site()
        noise = sum(draw(counts.size) for _ in range(SITES))
        counts, deviation = counts + noise.reshape(counts.shape), sqrt(SITES * draw.variance)
    return ReleasedCounter(network.variables, records, request, [counts]), deviation


def covered(studies: int, world: World, records: int, rule: Rule) -> list[object]:
    """Return a row: the share of studies with an interval, and how often it has the truth."""
    network, generator = world.network, np.random.default_rng(seed_of(records))
    joint = joint_of(network).transpose([3, 2, 0, 1])  # y, x, a, b
    truth, last = effect_in(network, "x", "y"), str(world.states - 1)
    directions = Directions.of(STRUCTURE, "x", "y")
    hits: Counter[str] = Counter()
    for _ in range(studies):
        counts = generator.multinomial(records, joint.ravel()).reshape(joint.shape)
        counter, deviation = released(counts, network, rule)
        try:
            effect = standardized(counter, "x", "y", "ab", deviation=deviation)
            over = standardized_range(counter, directions, deviation=deviation)
        except ValueError:
            continue
        if effect.unsure:
            continue
        hits["given"] += 1
        hits["all strata"] += effect.used == 1
        pair = "1", last, "0"
        asked = {
            "risk": (effect.risk_interval("1", last), truth.risk("1", last)),
            "difference": (effect.difference_interval(*pair), truth.difference(*pair)),
            "ratio": (effect.ratio_interval(*pair), truth.ratio(*pair)),
            "range": (over.difference_interval(*pair), truth.difference(*pair)),
        }
        for name, (interval, value) in asked.items():
            if interval is not None:
                hits[f"{name}s"] += 1
                hits[name] += interval[0] <= value <= interval[1]
    names = "risk", "difference", "ratio", "range"
    shares = [percent(hits[name], hits[f"{name}s"]) for name in names]
    more = percent(hits["given"], studies), percent(hits["all strata"], hits["given"])
    return [world.name, f"{records:,}", rule.words.split(",")[0], *more, *shares]


def percent(part: int, whole: int) -> str:
    """Return a share in percent; nothing of nothing."""
    return f"{100 * part / whole:.1f}" if whole else ""


def coverage(studies: int) -> None:
    """Print how often intervals have the truth."""
    rows = Rows(
        covered(studies, world, records, rule)
        for world in WORLDS
        for records in (200, 1000, 10_000)
        for rule in RULES
    )
    header = [
        *("studies", "records", "rule", "with an interval, %", "of all strata, %"),
        *("risk", "difference", "ratio", "range"),
    ]
    print(table("answers_effects", header, rows))


def ranges(graphs: int) -> None:
    """Print how far ranges are from those of an enumeration."""
    rows = Rows()
    for nodes in (4, 5, 6):
        found: Counter[str] = Counter()
        worst, generator = 0.0, np.random.default_rng(seed_of(nodes))
        for number in range(graphs):
            names = [f"v{i}" for i in range(nodes)]
            structure = random_structure(generator, names, generator.uniform(0.3, 0.8))
            given = [e for e in structure.edges if number % 2 and generator.random() < 0.25]
            network = random_network(generator, structure)
            joint, dags = joint_of(network), list(equivalent(structure, given))
            found["dags"] += len(dags)
            for x, y in permutations(names, 2):
                expected = np.array([effect_by_truncation(joint, dag, x, y) for dag in dags])
                directions = Directions.of(structure, x, y, given)
                effects = effects_in(network, x, y, directions).effects
                ours = np.array([effect.risks for effect in effects])
                apart = [ours.min(0) - expected.min(0), ours.max(0) - expected.max(0)]
                worst = max(worst, float(np.abs(apart).max()))
                found["pairs"] += 1
                is_one = bool(np.ptp(expected, axis=0).max() < 1e-9)
                found["determined"] += is_one
                found["as determined"] += is_one == directions.is_determined
        shown = [nodes, graphs, f"{found['dags'] / graphs:.1f}", found["pairs"]]
        rows.append([*shown, found["determined"], found["as determined"], f"{worst:.0e}"])
    header = [
        *("variables", "graphs", "DAGs of a class", "effects", "determined"),
        *("recognized", "largest error of a range"),
    ]
    print(table("answers_effects_ranges", header, rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--parts", nargs="+", default=["coverage", "ranges"])
    given = arguments(parser)
    if "coverage" in given.parts:
        coverage(given.studies)
    if "ranges" in given.parts:
        ranges(given.graphs)
