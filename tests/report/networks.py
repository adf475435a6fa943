"""Random networks and evidence, as the page's scripts and the package take them."""

from __future__ import annotations

import json

import numpy as np

from vertibayes.dag import Structure
from vertibayes.model_file import write_json
from vertibayes.network import Network
from vertibayes.report.page.embedded import tree_of
from vertibayes_protocols.variables import Variable

NAMES = "__proto__", "constructor", "toString", "", " ", "a=b", "<b>", "é", "hasOwnProperty", "0"


def random_network(generator, nodes, most_states=4, most_parents=3, zeros=0.0, names=NAMES):
    """Return a network whose names and states are words that mean something to JavaScript."""
    names = [*names, *(f"node {place}" for place in range(nodes))][:nodes]
    parents, variables, cpts = {}, {}, {}
    for place, name in enumerate(names):
        count = generator.integers(0, min(place, most_parents) + 1)
        chosen = generator.choice(place, count, replace=False) if place else []
        parents[name] = tuple(names[parent] for parent in sorted(chosen))
        states = tuple(generator.permutation(NAMES)[: generator.integers(1, most_states + 1)])
        variables[name] = Variable(name, tuple(map(str, states)))
        shape = [len(variables[member].states) for member in (name, *parents[name])]
        cpts[name] = _cpt(generator, shape, zeros)
    return Network(Structure(parents), variables, cpts)


def _cpt(generator, shape, zeros):
    """Return random distributions, some of which have zeros and some very small shares."""
    shares = generator.dirichlet(np.full(shape[0], 0.5), size=shape[1:])
    kept = shares * (generator.random(shares.shape) >= zeros)
    kept[~kept.any(axis=-1)] = 1.0
    return np.moveaxis(kept / kept.sum(axis=-1, keepdims=True), -1, 0)


def embedded(network, target=None):
    """Return a network as the page carries it, without places."""
    nodes = [
        {**node, "cpt": node["probabilities"], "number": None, "site": None}
        for node in json.loads(write_json(network))["nodes"]
    ]
    return {"nodes": nodes, "edges": [], "target": target, "tree": tree_of(nodes)}


def random_evidence(generator, network, most):
    """Return the states of a few random nodes, by the numbers of both."""
    nodes = list(network.structure.nodes)
    count = generator.integers(0, min(most, len(nodes)) + 1)
    chosen = generator.choice(len(nodes), count, replace=False)
    return [
        [int(node), int(generator.integers(len(network.variables[nodes[node]].states)))]
        for node in chosen
    ]
