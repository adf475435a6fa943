"""Small calibrations: records of nodes, what is agreed, and the simulation that parties equal."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from vertibayes.calibration.crc import collaborative_rc
from vertibayes.calibration.topologies import network_of
from vertibayes_protocols.calibration.agreed import Calibration, ClassifierSpec
from vertibayes_protocols.federation import RecordFederation
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Family, Variable

Y, A = Variable("y", ("no", "yes")), Variable("a", ("u", "v", "w"))
B, Z = Variable("b", ("k", "l")), Numeric("z", -2.0, 2.0)
MIXED = ClassifierSpec.of(Schema(Y, {"a": A, "z": Z}))
STATES = ClassifierSpec.of(Schema(Y, {"a": A, "b": B}))
NETWORK = ClassifierSpec(
    "y",
    {v.name: v for v in (Y, A, B)},
    {},
    (Family("y"), Family("a", ("y",)), Family("b", ("a", "y"))),
)


def records(count, seed=0, numbers=True):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, count)
    codes = {"y": y, "a": (y + draw.integers(0, 2, count)) % 3, "b": draw.integers(0, 2, count)}
    z = np.clip(draw.normal(y - 0.5, 1.0), -2, 2)
    return LocalData(
        {v.name: v for v in (Y, A, B)}, codes, *(({"z": Z}, {"z": z}) if numbers else ())
    )


def names_of(count):
    return [f"s{i}" for i in range(count)]


def chain(count):
    return network_of("chain", names_of(count), np.random.default_rng())


def ring(count):
    return network_of("ring", names_of(count), np.random.default_rng())


def parties(count, each=12, numbers=True):
    """Return the records of each party; no two have as many."""
    return {name: records(each + i, i, numbers) for i, name in enumerate(names_of(count))}


def agree(network, held, spec=MIXED, mixing="mean", start="data", rate=0.05, **given):
    total = sum(data.records for data in held.values())
    given = {"shown": True, "most_records": 100, **given}
    size = given.pop("size", total / (rate * len(held)))
    return Calibration(spec, network, mixing=mixing, start=start, rate=rate, size=size, **given)


def simulated(agreed, held, rounds, absent=None):
    """Return the rounds of all nodes at once, their statistics for one record."""
    examples = {name: agreed.classifier.examples(data) for name, data in held.items()}
    relay = agreed.mixing == "relay"
    steps = collaborative_rc(
        agreed.classifier, examples, agreed.network, rounds, rate=agreed.rate,
        size=None if relay else agreed.size, iterations=agreed.iterations, mixing=agreed.mixing,
        start=agreed.start, absent=absent,
    )  # fmt: skip
    scale = 1.0 if relay else agreed.size
    return [step._replace(statistics=step.statistics / scale) for step in steps]


def federation_of(held, policy=ALLOW_ALL):
    source = SeededRandomness(b"calibration")
    return RecordFederation(held, policy=policy, modulus=SMALL, randomness=source)


def opening(federation, absences=()):
    """Return what begins the sessions of a federation, each with those who are there.

    `absences` has who is absent in each session; a party that comes back was started again.
    """
    spans = iter(absences)

    @contextmanager
    def open_session():
        absent = frozenset(next(spans, ()))
        for party in absent:
            federation.roles[party].checkpoints.nodes.clear()
        with federation.session(absent) as session:
            yield session, absent

    return open_session
