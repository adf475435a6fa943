"""Data and constraints for tests of structure learners."""

from __future__ import annotations

import gzip
from importlib.resources import files
from itertools import combinations, product

import numpy as np
import pandas as pd

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.network import Network, read_bif
from vertibayes.sampling import sample
from vertibayes.structure.constraints import Constraints
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable


def all_structures(names):
    """Yield all DAGs of some nodes."""
    pairs = list(combinations(names, 2))
    for ends in product((None, 0, 1), repeat=len(pairs)):
        chosen = zip(pairs, ends, strict=True)
        edges = [pair if end else pair[::-1] for pair, end in chosen if end is not None]
        try:
            yield Structure.of(names, edges)
        except ValueError:
            continue


def random_constraints(generator, names):
    """Draw constraints that do not contradict each other."""
    names = list(names)
    edges = [(a, b) for a in names for b in names if a != b]

    def some(most):
        most = min(most, len(edges))
        places = generator.choice(len(edges), generator.integers(0, most + 1), replace=False)
        return tuple(edges[i] for i in places)

    tier_of = generator.integers(0, 3, len(names))
    tiers = tuple(tuple(n for i, n in enumerate(names) if tier_of[i] == t) for t in range(2))
    roots = tuple(name for name in names if generator.random() < 0.1)
    leaves = tuple(name for name in names if generator.random() < 0.1)
    try:
        return Constraints(
            some(2), some(len(edges) // 3), tiers * (generator.random() < 0.4), roots, leaves
        )
    except ValueError:
        return random_constraints(generator, names)


def random_data(seed, nodes, records, states=3, density=0.4, concentration=5.0):
    """Sample from a network with as many states for all nodes, and no rare ones."""
    generator = np.random.default_rng(seed)
    names = [f"n{i}" for i in generator.permutation(nodes)]
    parents = {
        name: tuple(p for p in names[:i] if generator.random() < density)[:3]
        for i, name in enumerate(names)
    }
    variables = {name: Variable(name, tuple(map(str, range(states)))) for name in names}
    cpts = {
        name: np.moveaxis(
            generator.dirichlet([concentration] * states, (states,) * len(parents[name])), -1, 0
        )
        for name in names
    }
    return sample(Network(Structure(parents), variables, cpts), records, seed=seed)


def binary(codes):
    """Return data of columns of 0 and 1."""
    return SiteData({name: Variable(name, ("0", "1")) for name in codes}, codes)


def known_network(name):
    """Return a network from the files that pgmpy has; its own reader takes seconds."""
    path = files("pgmpy") / "utils" / "example_models" / f"{name}.bif.gz"
    return read_bif(gzip.decompress(path.read_bytes()).decode())


def example(name, records, seed=1):
    """Return a network of pgmpy, and data sampled from it."""
    network = known_network(name)
    return network, sample(network, records, seed=seed)


def shuffled(data, seed):
    """Return the data with its columns in another order."""
    return data.take(list(np.random.default_rng(seed).permutation(list(data.variables))))


def with_gaps(data, share=0.1, seed=0):
    """Return the data with missing cells in every second column."""
    generator, variables, codes = np.random.default_rng(seed), {}, {}
    for place, (name, variable) in enumerate(data.variables.items()):
        column, gaps = data.codes[name].copy(), place % 2 == 0
        if gaps:
            column[generator.random(len(column)) < share] = len(variable.states)
        variables[name], codes[name] = Variable(name, variable.states, gaps), column
    return SiteData(variables, codes)


def firm_cases():
    """Return counters at the limits: few variables, few records, a constant column."""
    bits = np.array([0, 1] * 30, np.uint8)
    cases = {
        "one variable": {"a": bits},
        "two variables": {"b": bits, "a": bits},
        "a constant column": {"a": bits, "b": bits, "c": bits * 0},
        "one record": dict.fromkeys("abcd", bits[:1]),
        "no record": dict.fromkeys("abcd", bits[:0]),
    }
    return {name: PlainCounter(binary(codes)) for name, codes in cases.items()}


def one_state():
    """Return a counter with a variable that has a single state."""
    bits = np.array([0, 1] * 30, np.uint8)
    variables = {"a": Variable("a", ("0", "1")), "b": Variable("b", ("only",))}
    variables["c"] = Variable("c", ("0", "1"))
    return PlainCounter(SiteData(variables, {"a": bits, "b": bits * 0, "c": bits}))


def frame_of(data):
    """Return data as a frame, for the learners of other libraries."""
    return pd.DataFrame(
        {name: np.array(v.states)[data.codes[name]] for name, v in data.variables.items()}
    )
