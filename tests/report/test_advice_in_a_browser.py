"""What to ask next and what to check: the page's numbers are those of the joint distribution."""

from importlib.resources import files
from string import ascii_letters

import numpy as np
import pytest

from tests.report.networks import embedded, random_evidence, random_network
from tests.structure_worlds import known_network

ASSETS = files("vertibayes.report.page") / "assets"
ADVISE = """(cases) => cases.map(({model, states, outcome, state}) => {
    const read = readModel(JSON.stringify(model));
    const posteriors = engineOf(read);
    const known = new Map(states);
    if (!posteriors(known, new Map()).marginals) return null;
    return {
        ...informationOf(read, posteriors, known, new Map(), outcome),
        slopes: slopesOf(read, posteriors, known, new Map(), outcome, state),
    };
})"""
STEP = 1e-5  # of a probability, for the slope by differences


@pytest.fixture(scope="module")
def advise(browser):
    """A function that computes advice with the page's scripts, of many cases in one call."""
    page = browser.new_page()
    for name in ("model.js", "inference.js", "advice.js"):
        page.add_script_tag(content=(ASSETS / name).read_text(encoding="utf-8"))
    yield lambda cases: page.evaluate(ADVISE, cases)
    page.close()


def joint_of(network, cpts, evidence):
    """Return the joint distribution of all nodes, zero where it contradicts the evidence."""
    nodes = list(network.structure.nodes)
    letter = dict(zip(nodes, ascii_letters, strict=False))
    families = [(name, *network.structure.parents[name]) for name in nodes]
    terms = ",".join("".join(letter[each] for each in family) for family in families)
    joint = np.einsum(f"{terms}->{''.join(letter.values())}", *(cpts[name] for name in nodes))
    for node, state in evidence:
        keep = np.zeros(joint.shape[node])
        keep[state] = 1
        joint = joint * keep.reshape([-1 if axis == node else 1 for axis in range(joint.ndim)])
    return joint


def over(joint, *nodes):
    """Return the joint distribution of two nodes or one, in their order."""
    table = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in nodes))
    return (table.T if list(nodes) != sorted(nodes) else table) / joint.sum()


def information(joint, one, other):
    pairs = over(joint, one, other)
    apart = np.outer(pairs.sum(axis=1), pairs.sum(axis=0))
    return (pairs[pairs > 0] * np.log2(pairs[pairs > 0] / apart[pairs > 0])).sum()


def answer(network, cpts, evidence, outcome, state):
    return over(joint_of(network, cpts, evidence), outcome)[state]


def changed(cpt, row, state, step):
    """Return a CPT with a larger probability, of whose row the others shrink in proportion."""
    rows = cpt.reshape(len(cpt), -1).copy()
    own = rows[state, row]
    rows[:, row] *= (1 - own - step) / (1 - own)
    rows[state, row] = own + step
    return rows.reshape(cpt.shape)


def slope(network, evidence, outcome, state, name, row, place):
    """Return by central differences how fast the answer changes with a probability."""
    own = network.cpts[name].reshape(len(network.cpts[name]), -1)[place, row]
    step = min(STEP, own / 2, (1 - own) / 2)
    high, low = (
        answer(network, {**network.cpts, name: changed(network.cpts[name], row, place, by)},
               evidence, outcome, state) for by in (step, -step)
    )  # fmt: skip
    return (high - low) / (2 * step)


def cases_of(networks, generator):
    """Return a case per network: random evidence, and an outcome that is not set."""
    for network in networks:
        evidence = random_evidence(generator, network, 3)
        free = [n for n in range(len(network.structure.nodes)) if n not in dict(evidence)]
        if not free:
            continue
        outcome = int(generator.choice(free))
        states = len(network.variables[network.structure.nodes[outcome]].states)
        yield network, evidence, outcome, int(generator.integers(states))


def case(network, evidence, outcome, state):
    return {
        "model": embedded(network), "states": evidence, "outcome": outcome, "state": state,
    }  # fmt: skip


@pytest.fixture(scope="module")
def answered(advise):
    generator = np.random.default_rng(7)
    networks = [random_network(generator, n, zeros=0.1) for n in range(1, 8) for _ in "abcd"]
    cases = list(cases_of(networks, generator))
    found = advise([case(*each) for each in cases])
    return [pair for pair in zip(cases, found, strict=True) if pair[1] is not None]


def test_information_is_that_of_the_joint_distribution(answered):
    for (network, evidence, outcome, _), found in answered:
        joint = joint_of(network, network.cpts, evidence)
        others = {*range(joint.ndim)} - {outcome, *dict(evidence)}
        expected = {node: information(joint, outcome, node) for node in others}
        bits = {each["index"]: each["bits"] for each in found["told"]}
        assert bits == pytest.approx(expected, abs=1e-9)
        assert [*bits.values()] == sorted(bits.values(), reverse=True)
        assert found["entropy"] == pytest.approx(entropy(over(joint, outcome)), abs=1e-9)
    assert sum(len(found["told"]) for _, found in answered) > 20


def entropy(shares):
    return -(shares[shares > 0] * np.log2(shares[shares > 0])).sum()


def test_slopes_are_those_of_small_changes_of_each_probability(answered):
    compared = 0
    for (network, evidence, outcome, state), found in answered:
        names = list(network.structure.nodes)
        slopes = {each["index"]: each for each in found["slopes"]}
        if not answer(network, network.cpts, evidence, outcome, state):
            assert not slopes
            continue
        for place, name in enumerate(names):
            rows = network.cpts[name].reshape(len(network.cpts[name]), -1)
            inside = [(r, s) for s, r in zip(*np.nonzero((rows > 1e-3) & (rows < 1)), strict=True)]
            by = [slope(network, evidence, outcome, state, name, *at) for at in inside]
            steepest = max(map(abs, by), default=0.0)
            if place in slopes:
                each = slopes[place]
                own = slope(network, evidence, outcome, state, name, each["row"], each["state"])
                assert each["slope"] == pytest.approx(own, rel=1e-4, abs=1e-6)
                assert abs(each["slope"]) >= steepest * (1 - 1e-4) - 1e-6
                compared += 1
            else:
                assert steepest < 1e-6
    assert compared > 25


def test_pgmpy_gives_the_same_information_about_asia(advise):
    from pgmpy.inference import VariableElimination

    network = known_network("asia")
    nodes = list(network.structure.nodes)
    known = {"xray": network.variables["xray"].states[0]}
    evidence = [[nodes.index("xray"), 0]]
    [found] = advise([case(network, evidence, nodes.index("lung"), 0)])
    elimination = VariableElimination(network.to_pgmpy())
    for each in found["told"]:
        names = ["lung", nodes[each["index"]]]
        factor = elimination.query(names, known, show_progress=False)
        pairs = factor.values if factor.variables == names else factor.values.T
        expected = information(pairs, 0, 1)
        assert each["bits"] == pytest.approx(expected, abs=1e-7)
    assert nodes[found["told"][0]["index"]] == "either" and len(found["told"]) == 6
