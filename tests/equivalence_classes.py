"""Equivalent DAGs by enumeration, and the effects under each of them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from vertibayes.dag import Structure
from vertibayes.network import Network
from vertibayes.parameters.cpt import conditional
from vertibayes_protocols.variables import Variable


def random_structure(generator, names, density):
    order = generator.permutation(names).tolist()
    edges = [pair for pair in combinations(order, 2) if generator.random() < density]
    return Structure.of(names, edges)


def random_network(generator, structure):
    variables = {name: Variable(name, ("no", "yes")) for name in structure.nodes}
    cpts = {}
    for child, parents in structure.families:
        yes = generator.uniform(0.1, 0.9, [2] * len(parents))
        cpts[child] = np.array([1 - yes, yes])
    return Network(structure, variables, cpts)


def colliders(structure):
    near = {frozenset(edge) for edge in structure.edges}
    return {
        (child, frozenset(pair))
        for child, parents in structure.parents.items()
        for pair in combinations(parents, 2)
        if frozenset(pair) not in near
    }


def equivalent(structure, fixed=()):
    """All DAGs with the neighbours and unshielded colliders of one, and with fixed edges."""
    for turns in product((False, True), repeat=len(structure.edges)):
        edges = [e[::-1] if t else e for e, t in zip(structure.edges, turns, strict=True)]
        try:
            other = Structure.of(structure.nodes, edges)
        except ValueError:
            continue
        if colliders(other) == colliders(structure) and set(fixed) <= set(edges):
            yield other


def joint_of(network):
    """The joint distribution, an axis for each node in order."""
    nodes = list(network.structure.nodes)
    operands = []
    for child, parents in network.structure.families:
        operands += [network.cpts[child], [nodes.index(name) for name in (child, *parents)]]
    return np.einsum(*operands, list(range(len(nodes))))


def effect_by_truncation(joint, structure, x, y):
    """P(y | do(x)): the product of the CPTs that the joint has in a DAG, without that of x."""
    nodes = list(structure.nodes)
    operands = []
    for child, parents in structure.families:
        if child != x:
            family = [nodes.index(name) for name in (child, *parents)]
            operands += [conditional(np.einsum(joint, list(range(len(nodes))), family), 0), family]
    ones = np.ones(joint.shape[nodes.index(x)])
    return np.einsum(*operands, ones, [nodes.index(x)], [nodes.index(x), nodes.index(y)])
