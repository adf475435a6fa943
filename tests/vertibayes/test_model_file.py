import json
from dataclasses import replace

import numpy as np
import pytest

from vertibayes import Network, PlainCounter, Structure, fit_cpts, read_model
from vertibayes.model_file import parse_json, save_model, write_json
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.sampling import sample
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

ODD = ("", " ", "_", '"', "(-inf,5]", "日", "a\nb", "😀", "\u2028", "null")


def odd_network():
    generator = np.random.default_rng(3)
    states = {"x y": ODD, "é": ("0", "1"), "": ("a", "b", "missing")}
    parents = {"": ("é", "x y"), "x y": (), "é": ("x y",)}
    cpts = {}
    for node in parents:
        table = generator.random([len(states[n]) for n in (node, *parents[node])]) ** 9
        cpts[node] = table / table.sum(axis=0)
    variables = {n: Variable(n, s) for n, s in states.items()}
    return Network(Structure(parents), variables, cpts, {"": 3, "x y": 0, "é": 0}, frozenset([""]))


def assert_equal(one, other):
    assert one.structure == other.structure and dict(one.variables) == dict(other.variables)
    for node in other.structure.nodes:
        assert np.array_equal(one.cpts[node], other.cpts[node])


@pytest.mark.parametrize("name", ["m.json", "m.bif", "m.bifxml", "m.xmlbif", "M.JSON"])
def test_a_network_that_is_saved_is_loaded_as_it_was(tmp_path, name):
    network = odd_network()
    network.save(tmp_path / name)
    assert_equal(Network.load(tmp_path / name), network)
    assert_equal(read_model(str(tmp_path / name)), network)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_json_keeps_what_the_other_formats_cannot():
    network = odd_network()
    back = parse_json(write_json(network))
    assert dict(back.unseen) == dict(network.unseen)
    assert back.missing_states == {""}


def test_arrows_that_experts_fixed_are_version_2_and_other_networks_are_version_1():
    network = odd_network()
    assert '"version": 1' in write_json(network) and parse_json(write_json(network)).fixed == set()
    fixed = replace(network, fixed=frozenset([("é", "")]))
    text = write_json(fixed)
    assert '"version": 2' in text and '"fixed": ["é"]' in text
    assert parse_json(text).fixed == {("é", "")}
    assert parse_json(text.replace('"version": 2', '"version": 1')).fixed == set()
    with pytest.raises(ValueError, match="the fixed edge a ->  is no edge of the network"):
        parse_json(text.replace('"fixed": ["é"]', '"fixed": ["a"]'))


def test_json_has_names_and_numbers_as_they_are():
    text = write_json(odd_network())
    nodes = {node["name"]: node for node in json.loads(text)["nodes"]}
    assert nodes["x y"]["states"] == list(ODD) and "日" in text
    assert nodes[""]["parents"] == ["é", "x y"]
    cpt = odd_network().cpts[""]
    assert nodes[""]["probabilities"][1] == cpt[:, 0, 1].tolist()  # the last parent is fastest
    assert nodes[""]["probabilities"][len(ODD)] == cpt[:, 1, 0].tolist()


def test_a_network_learned_with_missing_as_a_state_says_which_states_these_are(gaps, tmp_path):
    names = list(gaps.variables)
    network = fit_cpts(PlainCounter(gaps), Structure(dict.fromkeys(names, ())), missing=True)
    assert network.missing_states == set(names[:8])
    save_model(network, tmp_path / "model.json")
    assert read_model(tmp_path / "model.json").missing_states == set(names[:8])
    plain = fit_cpts(PlainCounter(gaps), Structure(dict.fromkeys(names, ())))
    assert not plain.missing_states


def test_naive_bayes_is_saved_too(alarm_data, tmp_path):
    schema = Schema(
        alarm_data.variables["HR"], {n: alarm_data.variables[n] for n in ("CO", "BP", "TPR")}
    )
    network = NaiveBayes(schema).fit(alarm_data).to_network()
    network.save(tmp_path / "m.json")
    assert_equal(read_model(tmp_path / "m.json"), network)


def changed(**changes):
    """The text of a model, its first node changed."""
    model = json.loads(write_json(odd_network()))
    model["nodes"][0].update(changes)
    return json.dumps(model)


def without(key):
    model = json.loads(write_json(odd_network()))
    del model["nodes"][1][key]
    return json.dumps(model)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "recursion|Expecting value"),
        ("{}", '"format": "vertibayes-network"'),
        ("[]", '"format": "vertibayes-network"'),
        ('{"format": "vertibayes-network", "version": 3}', "its version is 3, expected 1 or 2"),
        ('{"format": "vertibayes-network", "version": 1}', "'nodes' is missing"),
        ('{"format": "vertibayes-network", "version": 1, "nodes": []}', "no nodes"),
        ('{"format": "vertibayes-network", "version": 1, "nodes": [7]}', "not subscriptable"),
        (without("probabilities"), "'probabilities' is missing"),
        (without("states"), "'states' is missing"),
        (changed(name="é"), "two of the same name"),
        (changed(name=["é"]), "unhashable|list of texts"),
        (changed(states="ab"), "states of '' must be a list of texts"),
        (changed(states=["a", "a", "b"]), "a state appears twice"),
        (changed(parents=["q"]), "q ->  has an unknown node"),
        (changed(parents=[""]), "must not have a cycle"),
        (changed(parents=[]), r"the probabilities of '' have the shape \(20, 3\)"),
        (changed(probabilities=[[0.5, 0.5, "x"]]), "could not convert"),
        (changed(probabilities=[[0.5], [0.5, 0.5]]), "inhomogeneous"),
        (changed(probabilities=[[0.5, 0.5, 0.5]] * 20), "not a distribution"),
        (changed(probabilities=[[float("nan")] * 3] * 20), "not a distribution"),
        (write_json(odd_network())[:-50], "Expecting|Unterminated"),
    ],
)
def test_a_malformed_json_file_is_refused(tmp_path, text, reason):
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(ValueError, match=rf"model\.json: not a valid model\.json: .*({reason})"):
        read_model(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.json", None, "none.json: no such file"),
        ("model.net", b"net {}", "must end in .json, .bif, .bifxml, .xmlbif"),
        ("model.json", b"\xff\xfe{", "it is not text in UTF-8"),
        ("model.bif", b"{}", "model.bif: not a valid BIF file"),
        ("model.bifxml", b"{}", "model.bifxml: not a valid XMLBIF file"),
    ],
)
def test_a_file_that_is_no_model_is_named(tmp_path, name, content, reason):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read_model(tmp_path / name)


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(ValueError, match=r"it is a folder; specify a file in it, as model\.json"):
        read_model(tmp_path)


def test_a_model_that_cannot_be_saved_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.json"):
        odd_network().save(tmp_path / "model.txt")
    with pytest.raises(ValueError, match="No such file or directory"):
        odd_network().save(tmp_path / "none" / "model.json")
    (tmp_path / "m.json").mkdir()
    with pytest.raises(ValueError, match="directory"):
        odd_network().save(tmp_path / "m.json")
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_a_saved_model_predicts_as_the_learned_one(alarm_network, tmp_path):
    data = sample(alarm_network, 20, seed=5)
    alarm_network.save(tmp_path / "alarm.json")
    columns = {n: v for n, v in data.variables.items() if n != "LVFAILURE"}
    some = SiteData(columns, {n: data.codes[n] for n in columns})
    loaded = read_model(tmp_path / "alarm.json")
    wanted = alarm_network.predict_proba(some, "LVFAILURE")
    assert loaded.predict_proba(some, "LVFAILURE").equals(wanted)
