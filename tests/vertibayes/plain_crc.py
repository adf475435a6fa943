"""CRC node by node and message by message, as its definition reads: slow, and an oracle."""

from __future__ import annotations

import numpy as np

from protocols.calibration.local import statistics_of, update


def averaging(classifier, examples, network, rounds, size, start, weights_of, absent, iterations=1):
    """Yield each node's statistics after each round."""
    first = {}
    for node, part in examples.items():
        first[node] = classifier.uniform(size)
        if start == "data" and len(part.classes):
            sums = statistics_of(classifier, part) * size / len(part.classes)
            first[node] = 0.9 * sums + 0.1 * first[node]
    states, before = dict(first), set()
    for number in range(1, rounds + 1):
        away = set(absent(number))
        back = before - away
        there = [node for node in examples if node not in away]
        weights = weights_of(network.without(away | back)) if len(away | back) < len(first) else {}
        mixed = {}
        for node in there:
            if node in back:
                heard = [states[p] for p in network.neighbours[node] if p not in away | back]
                mixed[node] = np.mean(heard, axis=0) if heard else first[node]
            else:
                mixed[node] = sum(w * states[peer] for peer, w in weights[node].items())
        for node in there:
            states[node] = mixed[node]
            for _ in range(iterations):
                step = update(classifier, states[node], examples[node])
                states[node] = states[node] + step.difference
        before = away
        yield np.array([states[node] for node in examples])


def relay(classifier, examples, network, rounds, rate, start, absent, iterations=1):
    """Yield each node's model after each round."""
    tree = network.tree

    def contribution(node):
        sums = statistics_of(classifier, examples[node])
        zeros = np.zeros_like(sums)
        return [sums if start == "data" else zeros, len(examples[node].classes), zeros]

    def add(parts):
        return [sum(values) for values in zip(*parts, strict=True)]

    def model(node):
        sums, records, differences = add([own[node], *arrived[node].values()])
        base = classifier.uniform(1.0)
        if start == "data" and records:
            base = 0.9 * sums / records + 0.1 * base
        return base + rate * differences / max(records, 1), rate / max(records, 1)

    nothing = [np.zeros_like(classifier.uniform(1.0)), 0, np.zeros_like(classifier.uniform(1.0))]
    own = {node: contribution(node) for node in examples}
    arrived = {node: dict.fromkeys(tree.neighbours[node], nothing) for node in examples}
    models, before = {node: model(node)[0] for node in examples}, set()
    for number in range(1, rounds + 1):
        away = set(absent(number))
        back, there = before - away, [node for node in examples if node not in away]
        sent = {
            (v, u): add([own[v], *(m for w, m in arrived[v].items() if w != u)])
            for v in there
            for u in tree.neighbours[v]
            if v not in back and u not in away
        }
        for node in back:
            own[node] = contribution(node)
            arrived[node] = dict.fromkeys(tree.neighbours[node], nothing)
        for (v, u), message in sent.items():
            arrived[u][v] = message
        for node in there:
            current, step = model(node)
            for _ in range(iterations):
                change = update(classifier, current, examples[node]).difference
                current = current + step * change
                own[node] = [*own[node][:2], own[node][2] + change]
        models |= {node: model(node)[0] for node in there}
        before = away
        yield np.array([models[node] for node in examples])
