"""What if computes in the browser what `vertibayes.inference` computes."""

from importlib.resources import files

import numpy as np
import pytest

from tests.likelihoods import log_likelihoods
from tests.report.folders import read
from tests.report.networks import embedded, random_evidence, random_network
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.prediction import predicted
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.report.page.embedded import MOST_CELLS, embedded_of
from vertibayes.report.page.network import ShownNetwork
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

ASSETS = files("vertibayes.report.page") / "assets"
COMPUTE = """(cases) => cases.map(({model, evidence}) => {
    const posteriors = engineOf(readModel(JSON.stringify(model)));
    return evidence.map(({states, values}) => {
        const result = posteriors(new Map(states), new Map(values));
        return {...result, logarithm: String(result.logarithm)}; // JSON has no infinity
    });
})"""


@pytest.fixture(scope="module")
def compute(browser):
    """A function that computes posteriors with the page's scripts, of many cases in one call."""
    page = browser.new_page()
    for name in ("model.js", "inference.js", "advice.js"):
        page.add_script_tag(content=(ASSETS / name).read_text(encoding="utf-8"))
    yield lambda cases: page.evaluate(COMPUTE, cases)
    page.close()


def case(network, evidence, target=None):
    states = [{"states": each, "values": []} for each in evidence]
    return {"model": embedded(network, target), "evidence": states}


def record(network, evidence):
    """Return evidence as one record, with codes of missing values where nothing is set."""
    names, variables = network.structure.nodes, network.variables
    known = {names[node]: state for node, state in evidence}
    columns = {n: np.array([known.get(n, len(v.states))], np.uint8) for n, v in variables.items()}
    return SiteData({n: Variable(n, v.states, True) for n, v in variables.items()}, columns)


def check(network, evidence, result):
    """Compare the result of the scripts with that of the package; return whether it is possible."""
    data = record(network, evidence)
    (expected,) = log_likelihoods(network, data)
    if np.isneginf(expected):
        assert result["logarithm"] == "-Infinity" and result["marginals"] is None
        return False
    assert float(result["logarithm"]) == pytest.approx(expected, abs=1e-9)
    known = {node for node, _ in evidence}
    for node, name in enumerate(network.structure.nodes):
        if node in known:
            continue
        prediction = predicted(network, data, name)
        assert not prediction.impossible.any()
        np.testing.assert_allclose(
            result["marginals"][node], prediction.probabilities[0], rtol=0, atol=1e-9
        )
    return True


def test_posteriors_of_random_networks_are_those_of_the_package(compute):
    generator = np.random.default_rng(0)
    networks = [random_network(generator, int(n), zeros=0.15) for n in range(1, 13) for _ in "123"]
    evidence = [[random_evidence(generator, each, 4) for _ in range(3)] for each in networks]
    results = compute([case(*pair) for pair in zip(networks, evidence, strict=True)])
    possible = [
        check(network, each, result)
        for network, of_network, found in zip(networks, evidence, results, strict=True)
        for each, result in zip(of_network, found, strict=True)
    ]
    assert 10 < possible.count(False) < len(possible) - 50  # both kinds of evidence occur


@pytest.fixture(scope="module")
def learned_alarm(alarm_network, alarm_data):
    """ALARM with CPTs from records: those that pgmpy bundles do not add up to 1 within 1e-9."""
    return fit_cpts(PlainCounter(alarm_data), alarm_network.structure, pseudo_count=0.0)


def test_posteriors_of_alarm_are_those_of_predict_proba(compute, learned_alarm):
    generator = np.random.default_rng(1)
    evidence = [random_evidence(generator, learned_alarm, 8) for _ in range(6)]
    (found,) = compute([case(learned_alarm, evidence)])
    possible = [check(learned_alarm, *pair) for pair in zip(evidence, found, strict=True)]
    assert all(possible)


def test_evidence_less_probable_than_the_smallest_number_has_posteriors(compute):
    network = chain_of_rare_states(120)
    evidence = [[[node, 1] for node in range(1, 120)]]
    ((result,),) = compute([case(network, evidence)])
    assert float(result["logarithm"]) < np.log(np.finfo(float).tiny)
    assert check(network, evidence[0], result)


def chain_of_rare_states(length):
    """Return features of one class, each of which is rarely in its second state."""
    names = ["class", *(f"feature {place}" for place in range(1, length))]
    rare = np.array([[1 - 1e-4, 1 - 1.1e-4], [1e-4, 1.1e-4]])
    cpts = dict.fromkeys(names[1:], rare) | {"class": np.array([0.6, 0.4])}
    parents = dict.fromkeys(names[1:], ("class",)) | {"class": ()}
    variables = {name: Variable(name, ("no", "yes")) for name in names}
    return Network(Structure({name: parents[name] for name in names}), variables, cpts)


def test_posteriors_of_naive_bayes_with_numbers_are_those_of_its_predict_proba(compute, tmp_path):
    model, data = classifier_with_numbers()
    results = read(model, tmp_path / "nb")
    content = embedded_of(results, ShownNetwork.of(results))
    wanted = model.predict_proba(data)
    columns = data.codes["colour"], data.numbers["age"], data.numbers["dose"]
    evidence = [
        {
            "states": [[1, int(code)]] if code < 3 else [],
            "values": [
                [node, number] for node, number in ((2, age), (3, dose)) if number == number
            ],
        }
        for code, age, dose in zip(*(column.tolist() for column in columns), strict=True)
    ]
    (found,) = compute([{"model": content, "evidence": evidence}])
    shares = [result["marginals"][0] for result in found]
    np.testing.assert_allclose(shares, wanted, rtol=0, atol=1e-9)
    assert (wanted.max(axis=1) > 1 - 1e-12).any() and (wanted.max(axis=1) < 0.9).any()


def test_a_network_that_is_too_large_has_no_tree():
    generator = np.random.default_rng(3)
    network = random_network(generator, 9, most_states=2)
    parents = {f"p{place}": () for place in range(10)}
    variables = {n: Variable(n, tuple("abcd")) for n in parents}
    cpts = {name: np.full(4, 0.25) for name in parents}
    children = [(f"c{i}{j}", f"p{i}", f"p{j}") for i in range(10) for j in range(i)]
    for child, *of_child in children:
        parents[child], variables[child] = tuple(of_child), Variable(child, ("0", "1"))
        cpts[child] = np.full((2, 4, 4), 0.5)
    dense = Network(Structure(parents), variables, cpts)
    assert MOST_CELLS < 4**10
    assert embedded(dense)["tree"] is None and embedded(network)["tree"] is not None


def classifier_with_numbers():
    """Return naive Bayes of a category and two numbers, and records with missing values."""
    generator = np.random.default_rng(2)
    target = Variable("class", ("sick", "well", "__proto__"))
    features = [
        Variable("colour", ("constructor", "", "red"), True),
        Numeric("age", 0.0, 100.0),
        Numeric("dose", -10.0, 10.0),
    ]
    codes = {"class": generator.integers(0, 3, 60), "colour": generator.integers(0, 4, 60)}
    age = 40 + 10 * codes["class"] + generator.normal(0, 8, 60)
    dose = 2.0 * codes["class"] + generator.normal(0, 0.2, 60)
    dose[::7], age[::5] = np.nan, np.nan
    schema = Schema(target, {feature.name: feature for feature in features})
    data = LocalData(
        {"class": target, "colour": features[0]}, codes,
        {"age": features[1], "dose": features[2]}, {"age": age, "dose": dose},
    )  # fmt: skip
    return NaiveBayes(schema).fit(data), data
