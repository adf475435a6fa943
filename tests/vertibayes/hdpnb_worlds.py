"""Small worlds of HDPNB: a schema, parties with records, studies with a short modulus."""

from __future__ import annotations

import numpy as np

from protocols.federation import RecordFederation
from protocols.queries.terms import Terms
from protocols.site.statistics import LocalData
from protocols.variables import Variable
from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from vertibayes.naive_bayes.base import Schema
from vertibayes.naive_bayes.distributed import HDPNB, OWN_RULES

WAYS = ("additive", "masked")


def states(count):
    return tuple(f"s{i}" for i in range(count))


SCHEMA = Schema(
    Variable("y", states(3)), {"a": Variable("a", states(4)), "b": Variable("b", states(2))}
)


def records(count, seed=0, schema=SCHEMA):
    generator = np.random.default_rng(seed)
    draw = {n: generator.integers(0, len(v.states), count) for n, v in schema.variables.items()}
    return LocalData(schema.variables, draw)


def parties(count, each=5, schema=SCHEMA):
    return {f"p{i:02}": records(each, i, schema) for i in range(count)}


def join_all(found):
    """Return the records of all in one place."""
    found = list(found)
    names = found[0].variables
    return LocalData(names, {n: np.concatenate([d.codes[n] for d in found]) for n in names})


def federation_of(held, randomness=None, policy=OWN_RULES):
    """Start parties with a short modulus, which nobody may use."""
    source = randomness or SeededRandomness(b"hdpnb")
    return RecordFederation(held, policy=policy, modulus=SMALL, randomness=source)


def study(held, via, privacy=None, most_parties=20, most_records=100, **given):
    terms = {"dishonest": given.pop("dishonest", 0.0), "dropouts": given.pop("dropouts", 0.0)}
    agreed = Terms(given.pop("schema", SCHEMA), most_parties, most_records, privacy, **terms)
    federation = federation_of(held, given.pop("randomness", None), given.pop("policy", OWN_RULES))
    return HDPNB(agreed, held, via=via, federation=federation, **given)
