"""The examples, and the README's Python, as they stand."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd

from vertibayes import PlainCounter, Structure, fit_cpts, read_model

ROOT = Path(__file__).parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_hospitals(capsys):
    network, counter = load("two_hospitals").learn()
    told = capsys.readouterr().out
    assert counter.records == 569 and len(network.variables) == 21
    assert network.variables["diagnosis"].states == ("benign", "malignant")
    held = counter.study.holders
    assert any(held[p] != held[c] for p, c in network.structure.edges), "edges between hospitals"
    assert "569 patients" in told
    network.to_pgmpy()


def test_a_data_frame(capsys, tmp_path):
    network = load("data_frame").learn(tmp_path / "iris.json")
    assert set(read_model(tmp_path / "iris.json").structure.edges) == set(network.structure.edges)
    assert int(capsys.readouterr().out.partition("%")[0]) > 90
    assert "sepal length (cm)" in network.variables


def test_a_network_is_handed_over(capsys, tmp_path):
    example = load("hand_over")
    example.show(tmp_path)
    assert "nothing more once the blanket is known: ['mean radius']" in capsys.readouterr().out
    assert (tmp_path / "posteriors.png").read_bytes()[:4] == b"\x89PNG"
    network, _ = example.learn()
    cpt = example.cpt_of(network, "worst area")
    assert cpt.index.names == ["diagnosis"] and tuple(cpt) == network.variables["worst area"].states
    np.testing.assert_array_equal(cpt.loc["malignant"], network.cpts["worst area"][:, 1])
    assert (example.cpt_of(network, "diagnosis").to_numpy() == network.cpts["diagnosis"]).all()


def test_pgmpy_and_pyagrum_have_the_same_posteriors(alarm_network, alarm_data):
    example = load("hand_over")
    network, _ = example.learn()
    compare(example, network, "diagnosis", ["worst area", "mean texture"])
    compare(example, alarm_network, "BP", ["HR", "CO", "PRESS"])
    naive = Structure({"HR": ("CO", "BP"), "BP": (), "CO": ()})  # parents in another order
    small = fit_cpts(PlainCounter(alarm_data.take(naive.nodes)), naive)
    compare(example, small, "CO", ["HR"])


def compare(example, network, target, known):
    """Compare the posteriors of a target for the last states of known variables."""
    evidence = {name: network.variables[name].states[-1] for name in known}
    ours = network.predict_proba(pd.DataFrame([evidence]), target).to_numpy()[0]
    for theirs in (example.by_pgmpy, example.by_pyagrum):
        np.testing.assert_allclose(theirs(network, evidence, target), ours, rtol=0, atol=1e-9)
    assert abs(ours - example.by_pgmpy(network, {}, target)).max() > 1e-3, "the evidence matters"


def test_pgmpy_searches_over_sites(capsys):
    found, pooled = load("pgmpy_search").compare()
    assert found.edges and set(found.edges) == set(pooled.edges)
    shown = capsys.readouterr().out
    assert "pooled records: the same edges" in shown
    assert re.search(r"\n\d calls revealed \d{3} counts\n", shown)
    assert 0.9 < float(shown.partition("largest area) = ")[2].split()[0]) < 0.95


def test_an_own_learner():
    secure, pooled = load("own_learner").compare()
    assert secure == pooled and len(secure.edges) == 36


def test_sums(capsys):
    sums = load("additive_scheme").add_up()
    told = capsys.readouterr().out
    assert len(sums) == 60 and (sums < 0).any()
    assert f"total of the sums {sums.sum()};" in told


def test_products(capsys):
    assert load("product_scheme").multiply() == [420, 97 * 89 * 83, 60**3]
    told = capsys.readouterr().out
    assert "of 171700 multisets, a product leaves 6 (median)" in told
    assert f"product {97 * 89 * 83}: 1 multisets" in told


def test_vdpnb(capsys):
    accuracies = load("vdpnb").classify()
    assert accuracies["exact"] == accuracies["pooled"] > 0.7
    told = capsys.readouterr().out
    assert "The model is (1, 0)-differentially private for whether the attributes" in told
    assert "standard deviation 4.223" in told, "of eps = 1/3 a count"


def test_membership():
    example = load("membership")
    assert example.sum_without("e") == 500
    assert example.keys_per_join(10) == 11
    assert example.keys_per_join(1000) < 160


def test_noise(capsys):
    found = load("noise").compare()
    assert found["shares of ten"] < found["shares, five may leak"] < found["half of ten may lie"]
    assert math.isclose(found["one trusted party"], found["shares of ten"], rel_tol=0.2)
    assert "at most" in capsys.readouterr().out


def test_a_frequency_oracle(capsys):
    example = load("frequency_oracle")
    estimates, low, high = example.ask()
    assert abs(estimates - example.PEOPLE).max() < 6 * 250, "250 is the standard deviation"
    assert (low <= high).all() and (high - low).max() < 1200
    assert "weekly" in capsys.readouterr().out


def test_federated_naive_bayes(capsys):
    accuracies = load("federated_naive_bayes").learn()
    told = capsys.readouterr().out
    assert min(accuracies.values()) > 0.77, "the least of 120 runs is .81, of sd .006"
    assert "(1, 5.4e-20)-differentially private for adding or removing one record" in told


def test_local_reports(capsys):
    assert load("local_reports").learn() > 0.65, "the least of 60 runs is .758"
    told = capsys.readouterr().out
    assert "(2, 0)-differentially private" in told and "4001 people reported" in told


def test_each_way_of_counting(capsys):
    module = load("count_by")
    codes = [held.codes[name] for held in module.sites().values() for name in held.variables]
    pooled = np.zeros((3, 2, 2), int)
    np.add.at(pooled, tuple(codes), 1)
    tables = module.count()
    assert all((table == pooled).all() for table in tables.values()) and len(tables) > 1
    assert capsys.readouterr().out.count("equal") == len(tables)


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def test_the_python_of_the_readme_and_its_page(tmp_path, monkeypatch, capsys, alarm_data):
    [short] = python_blocks("README.md")
    code, searched, released, estimator, *machines = python_blocks("docs/python.md")
    names = list(alarm_data.variables)[:6]
    rows = [",".join([*names[:5], "outcome"])]
    states = [np.array(alarm_data.variables[n].states)[alarm_data.codes[n]] for n in names]
    rows += [",".join(row) for row in zip(*states, strict=True)]
    (tmp_path / "patients.csv").write_text("\n".join(rows))
    monkeypatch.chdir(tmp_path)
    exec(compile(short, "README.md", "exec"), {})
    exec(compile(code, "docs/python.md", "exec"), here := {})
    assert "('" in capsys.readouterr().out
    exec(compile(searched, "docs/python.md", "exec"), here)
    assert {cpd.variable for cpd in here["cpds"]} == {*names[:5], "outcome"}
    assert here["better"].edges and here["search"].causal_graph_.edges
    exec(compile(released, "docs/python.md", "exec"), here)
    assert "('" in capsys.readouterr().out
    assert len([line for line in code.splitlines() if line.strip()]) <= 11
    names = frame_names()
    columns = ["age", "job"]
    exec(
        compile(estimator, "docs/python.md", "exec"),
        names | {"X": names["X"][columns], "X_new": names["X_new"][columns]},
    )
    assert "The model is (1, " in capsys.readouterr().out
    assert all(compile(block, "docs/python.md", "exec") for block in machines)


def frame_names():
    """Return the names that the pages on estimators use: invented people and what is declared."""
    example = load("private_naive_bayes")
    (X, y), (X_new, y_new) = (example.people(n, np.random.default_rng(n)) for n in (2000, 500))
    given = {"X": X, "y": y, "X_new": X_new, "y_new": y_new, "hospital": np.arange(2000) % 3}
    return vars(example) | given


def test_private_naive_bayes(capsys):
    accuracies = load("private_naive_bayes").compare()
    assert accuracies["without noise"] > 0.85
    for name in ("federated", "federated, one copy of noise", "gossip"):
        assert accuracies[name] > 0.84, "16 standard deviations (0.0016) less than 0.864"
    assert 0.6 < accuracies["local"] < accuracies["without noise"]
    printed = capsys.readouterr().out
    assert printed.count("-differentially private") == 4
    assert printed.count("Not protected: how many people report.") == 1


def test_the_python_of_the_page_on_estimators(capsys):
    names = frame_names()
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "sklearn.md").read_text(), flags=re.DOTALL
    )
    for code in blocks:
        exec(compile(code, "docs/sklearn.md", "exec"), names)
    assert len(blocks) == 8 and len(names["model"].updates_) == 4
    assert names["local"].aggregator_.people == 2500
    for apart in (names["parties"], names["columns"]):
        assert (apart.model_.sums_ == names["pooled"].model_.sums_).all()
    printed = capsys.readouterr().out
    assert "counts were revealed\nTrue\n" in printed and "The model is (1, " in printed


def test_the_python_of_the_page_on_models(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "models.md").read_text().partition("## Hand a network to other")[2]
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    network, records = load("hand_over").learn()
    evidence = {"worst area": network.variables["worst area"].states[1]}
    names = {"network": network, "target": "diagnosis", "node": "worst area"}
    names |= {"records": records.head(), "evidence": evidence}
    monkeypatch.chdir(tmp_path)
    for code in blocks:
        exec(compile(code, "docs/models.md", "exec"), names)
    ours = network.predict_proba(pd.DataFrame([evidence]), "diagnosis").to_numpy()[0]
    np.testing.assert_allclose(names["by_pyagrum"].toarray(), ours, atol=1e-9)
    np.testing.assert_allclose(names["by_pgmpy"].values, ours, atol=1e-9)
    assert names["screened_off"] == {"mean radius"} and names["cpt"].shape == (2, 4)
    assert (tmp_path / "posteriors.png").exists() and len(blocks) == 5
