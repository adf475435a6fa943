"""A page that compares two runs: arrows, tables and figures, and who may read it."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.e2e.command import run
from tests.report.folders import folder_of, read
from tests.report.networks import random_network
from tests.results_folders import Page
from vertibayes.dag import Structure
from vertibayes.network import Network
from vertibayes.report.page.beside import Compared
from vertibayes.report.page.render import render, write_report
from vertibayes_protocols.variables import Variable


def two_networks(generator, nodes=6):
    """Return two networks of the same variables, whose states stand in other orders."""
    one = random_network(generator, nodes)
    two = random_network(generator, nodes)
    variables = {
        name: Variable(name, tuple(map(str, generator.permutation(v.states))))
        for name, v in one.variables.items()
    }
    cpts = {}
    for name, parents in two.structure.parents.items():
        shape = [len(variables[n].states) for n in (name, *parents)]
        cpts[name] = np.moveaxis(generator.dirichlet(np.ones(shape[0]), shape[1:]), -1, 0)
    return one, Network(two.structure, variables, cpts)


def probability(network, name, state, states):
    members = (name, *network.structure.parents[name])
    given = states | {name: state}
    return network.cpts[name][tuple(network.variables[n].states.index(given[n]) for n in members)]


def largest(one, two, name):
    """Return the largest total variation of a variable's rows, over all states of the parents."""
    parents = {*one.structure.parents[name], *two.structure.parents[name]}
    distances = []
    for states in product(*(one.variables[n].states for n in parents)):
        given = dict(zip(parents, states, strict=True))
        shares = [
            (probability(one, name, s, given), probability(two, name, s, given))
            for s in one.variables[name].states
        ]
        distances.append(sum(abs(a - b) for a, b in shares) / 2)
    return max(distances)


def test_distances_are_the_largest_over_the_parents_of_both_runs(tmp_path):
    generator = np.random.default_rng(3)
    for at in range(8):
        one, two = two_networks(generator)
        compared = Compared.of(read(one, tmp_path / f"a{at}"), read(two, tmp_path / f"b{at}"))
        found = {each.name: each.distance for each in compared.tables}
        expected = {name: largest(one, two, name) for name in one.structure.nodes}
        assert found == pytest.approx(expected) and not compared.unlike
        assert [*found.values()] == sorted(found.values(), reverse=True)
        for each in compared.tables:
            given = dict(each.given)
            for state, mine, its in each.shares:
                assert mine == pytest.approx(probability(one, each.name, state, given))
                assert its == pytest.approx(probability(two, each.name, state, given))
            parents = ({*of.structure.parents[each.name]} for of in (one, two))
            assert each.same_parents == (next(parents) == next(parents))


def network_of(parents, states=("0", "1")):
    variables = {name: Variable(name, states) for name in parents}
    shape = {name: [len(states)] * (1 + len(of)) for name, of in parents.items()}
    cpts = {name: np.full(size, 1 / len(states)) for name, size in shape.items()}
    return Network(Structure(parents), variables, cpts)


def test_arrows_are_the_same_added_removed_or_turned(tmp_path):
    one = network_of({"a": (), "b": ("a",), "c": ("b",), "d": ("c",), "x": ("a",)})
    two = network_of({"b": (), "a": ("b",), "c": ("b",), "d": ("b",), "y": ("a",)})
    two = replace(two, variables={**two.variables, "d": Variable("d", ("0", "2"))})
    compared = Compared.of(read(one, tmp_path / "a"), read(two, tmp_path / "b"))
    assert compared.both == 1  # b to c
    assert compared.turned == [("a", "b")]
    assert compared.added == [("c", "d")] and compared.removed == [("b", "d")]
    assert compared.here == ["x"] and compared.there == ["y"] and compared.unlike == ["d"]
    assert {each.name for each in compared.tables} == {"a", "b", "c"}
    assert {each.distance for each in compared.tables} == {0.0}


@pytest.fixture
def folders(tmp_path):
    one, two = two_networks(np.random.default_rng(5))
    return folder_of(one, tmp_path / "one"), folder_of(two, tmp_path / "two")


def test_the_command_writes_a_page_of_two_runs_beside_the_runs_own(folders, capsys):
    one, two = folders
    write_report(one)
    own = (one / "report.html").read_bytes()
    code, output, _ = run(capsys, "report", one, "--beside", two)
    assert code == 0 and str(one / "beside.html") in output
    assert (one / "report.html").read_bytes() == own and b"Beside another run" not in own
    page = Page((one / "beside.html").read_text(encoding="utf-8"))
    assert "Beside another run" in page.text and "The rows that differ most" in page.text
    keys = {key for key, _, _ in page.numbers}
    assert {"summary.json#/records", "other/summary.json#/records"} <= keys
    code, _, errors = run(capsys, "report", one, "--beside", one / "none")
    assert code == 2 and "no such folder" in errors


def protect(folder):
    """Say in a folder's summary that a rule cut its counts."""
    summary = json.loads((folder / "summary.json").read_text())
    summary["release"] = {"rule": {"kind": "cut", "fewest": 10}, "verdicts": {}}
    (folder / "summary.json").write_text(json.dumps(summary))


@pytest.mark.parametrize("of_other", [True, False])
def test_a_protected_run_beside_exact_numbers_is_for_the_analyst_alone(folders, of_other):
    from vertibayes.report.page.results import Results

    one, two = folders
    protect(one)
    if of_other:
        protect(two)
    page = Page(render(Results.read(one), Results.read(two, "other/")))
    assert ("Only the analyst may read this page" in page.text) != of_other
    assert ("The difference of two releases" in " ".join(page.text.split())) == of_other
