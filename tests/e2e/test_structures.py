"""``vertibayes learn`` without an order: algorithms, constraints and what is said of edges."""

import json

import numpy as np
import pandas as pd
import pytest
from pgmpy.readwrite import XMLBIFWriter

from tests.e2e.command import assert_refused, learn, outputs, write
from tests.protocols.deployment.parties import change, deployment
from vertibayes import PlainCounter, SiteData, Structure, fit_cpts
from vertibayes.cli.contracts import contract_of
from vertibayes.cli.study_settings import options_of
from vertibayes.cli.what_leaves import what_leaves
from vertibayes_protocols.deployment.approvals import Approval
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.storage.memory import SiteMemory

NAMES = ["c", "a", "b", "d"]


@pytest.fixture
def table(tmp_path):
    """Columns a, b and d, on which c depends; a further column is left out."""
    a, b, d, noise = np.random.default_rng(5).integers(0, 2, (4, 400))
    c = np.where(noise & d, 1 - (a | b), a | b)
    rows = zip(c, a, b, d, ["same"] * 400, strict=True)
    return write(tmp_path / "t.csv", [*NAMES, "constant"], rows)


def learned(capsys, tmp_path, table, *options):
    out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
    code, shown, error = learn(capsys, out, "--data", table, "--sites", 2, *options)
    assert code == 0, error
    return outputs(out)[0], shown, error


def constraints(tmp_path, **content):
    path = tmp_path / "experts.json"
    path.write_text(json.dumps(content))
    return ["--constraints", path]


def test_the_order_of_the_columns_makes_no_difference(capsys, tmp_path, table):
    lines = [line.split(",") for line in table.read_text().splitlines()]
    turned = write(tmp_path / "turned.csv", lines[0][::-1], [line[::-1] for line in lines[1:]])
    one, two = (learned(capsys, tmp_path, data)[0] for data in (table, turned))
    assert sorted(one["edges"]) == sorted(two["edges"]) and one["algorithm"] == "hybrid"
    assert one["nodes"] == two["nodes"][::-1] == NAMES, "in the order of the columns"
    assert sorted(one["compelled"]) == [["a", "c"], ["b", "c"], ["d", "c"]]
    assert min(one["gain"]) > 10


@pytest.mark.parametrize("algorithm", ["hill_climbing", "tabu", "pc", "chow_liu", "exact", "k2"])
def test_each_algorithm_keeps_the_constraints(capsys, tmp_path, table, algorithm):
    options = constraints(tmp_path, required=[["d", "a"]], forbidden=[["a", "c"], ["c", "a"]])
    (tmp_path / "order.json").write_text('["d", "a", "b", "c", "constant"]')
    options += ["--ordering", tmp_path / "order.json"] if algorithm == "k2" else []
    options += ["--algorithm", algorithm]
    edges = learned(capsys, tmp_path, table, *options)[0]["edges"]
    assert ["d", "a"] in edges and ["a", "c"] not in edges and ["c", "a"] not in edges


def test_constraints_that_forbid_every_edge_give_the_empty_structure(capsys, tmp_path, table):
    structure, _, error = learned(capsys, tmp_path, table, *constraints(tmp_path, roots=NAMES))
    assert not structure["edges"] and not structure["gain"]
    assert "warning: the constraints forbid every edge: the structure has none" in error


def test_constraints_of_a_column_that_is_left_out_are_left_out(capsys, tmp_path, table):
    options = constraints(tmp_path, tiers=[["constant"], NAMES], forbidden=[["constant", "a"]])
    assert learned(capsys, tmp_path, table, *options)[0]["edges"]


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ({"required": [["a", "q"]]}, [], "--constraints: the constraints name unknown variables: "
         "q in required; remove or correct the names"),
        ({"required": [["a", "constant"]]}, [], "--constraints: the required edge a -> constant "
         "needs constant, which is left out: remove the edge, or keep the column"),
        ({"required": [["a", "b"], ["b", "a"]]}, [], "experts.json: the required edges have a "
         "cycle"),
        ({"required": [["a", "b"]], "roots": ["b"]}, [], "experts.json: the required edge a -> b "
         "contradicts the root b"),
        ({"required": [["a", "c"], ["b", "c"]]}, ["--max-parents", 1], "--constraints: c has 2 "
         "required parents, at most 1 are allowed; require fewer, or raise --max-parents"),
        ({"order": []}, [], "experts.json: unknown keys of the constraints: order; the keys are"),
    ],
)  # fmt: skip
def test_wrong_constraints_are_named(capsys, tmp_path, table, content, options, reason):
    data = ["--data", table, "--sites", 2, *constraints(tmp_path, **content), *options]
    assert_refused(capsys, tmp_path, reason, *data)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--algorithm", "tan"], "--algorithm tan needs --class-variable"),
        (["--class-variable", "a"], "--class-variable needs --algorithm tan, got hybrid"),
        (["--ordering", "o.json", "--algorithm", "pc"], "--ordering needs --algorithm k2, got pc"),
        (["--max-seconds", 9, "--release", "cut"], "--max-seconds cannot end a search by choices"),
        (["--algorithm", "exact", "--release", "cut"], "--algorithm exact needs tables that are"),
    ],
)
def test_options_that_exclude_each_other_are_named(
    capsys, tmp_path, monkeypatch, table, options, reason
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o.json").write_text('["a", "b", "c", "d"]')
    assert_refused(capsys, tmp_path, reason, "--data", table, "--sites", 2, *options)


def test_a_structure_excludes_what_a_search_needs(capsys, tmp_path, table):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"nodes": NAMES, "edges": []}))
    data = ["--data", table, "--sites", 2, "--exclude", "constant", "--structure", path]
    for given, name in (
        (constraints(tmp_path, roots=["a"]), "constraints"),
        (["--algorithm", "pc"], "algorithm"),
        (["--max-seconds", 9], "max-seconds"),
    ):
        reason = f"--structure excludes --{name}: only the CPTs are learned"
        assert_refused(capsys, tmp_path, reason, *data, *given)


@pytest.mark.parametrize("ending", ["bifxml", "bif", "json"])
def test_the_structure_of_a_model_is_read_and_a_search_starts_from_it(
    capsys, tmp_path, table, ending
):
    path = tmp_path / f"model.{ending}"
    known = Structure.of(NAMES, [("b", "a"), ("c", "d")])
    model = fit_cpts(PlainCounter(SiteData.from_frame(pd.read_csv(table, dtype=str)[NAMES])), known)
    if ending == "bifxml":
        XMLBIFWriter(model.to_pgmpy()).write(str(path))  # as pgmpy's users have it
    else:
        model.save(path)
    columns = ["--exclude", "constant"]
    given = learned(capsys, tmp_path, table, *columns, "--structure", path)[0]
    assert given["edges"] == [["b", "a"], ["c", "d"]]
    search = [*columns, "--algorithm", "hill_climbing", "--start", path]
    one = learned(capsys, tmp_path, table, *search)[0]
    two = learned(capsys, tmp_path, table, *search, "--release", "exact")[0]
    assert one["edges"] == two["edges"]
    alone = learned(capsys, tmp_path, table, *columns, "--algorithm", "hill_climbing")[0]
    assert ["c", "d"] in one["edges"] and ["d", "c"] in alone["edges"]


def test_a_start_is_refused_before_a_record_is_read(capsys, tmp_path, table):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"nodes": [*NAMES, "q"], "edges": []}))
    data = ["--data", table, "--sites", 2, "--start", path]
    tabu = ["--algorithm", "tabu"]
    assert_refused(capsys, tmp_path, "--start q: no such column; there are", *data, *tabu)
    assert_refused(capsys, tmp_path, "--start needs --algorithm hill_climbing or tabu", *data)
    path.write_text(json.dumps({"nodes": [*NAMES, "constant"], "edges": []}))
    assert_refused(capsys, tmp_path, "--start: the column 'constant' is left out", *data, *tabu)
    path.write_text(json.dumps({"nodes": NAMES[:3], "edges": []}))
    reason = "--start: the structure lacks variables: d"
    assert_refused(capsys, tmp_path, reason, *data, *tabu, "--exclude", "constant")


def test_the_expected_cost_of_a_search_is_no_bound(capsys, tmp_path, table):
    said = learned(capsys, tmp_path, table)[2]
    assert said.count("typical, not an upper bound") == said.count("now expected: about ") == 1
    assert "upper bound: the data" in learned(capsys, tmp_path, table, "--algorithm", "pc")[2]
    assert "typical" not in learned(capsys, tmp_path, table, "--algorithm", "k2")[2]


@pytest.mark.parametrize("algorithm", ["hybrid", "hill_climbing", "pc", "chow_liu"])
def test_an_owner_reads_what_the_winners_of_each_algorithm_say(tmp_path, algorithm):
    folder = deployment(tmp_path / "all", free=False)
    study = folder / "analyst" / "study.toml"
    known = {"required": [["age", "drug"], ["pulse", "drug"]]}
    (folder / "analyst" / "experts.json").write_text(json.dumps(known))
    constraint = 'constraints = "experts.json"' if algorithm != "chow_liu" else ""
    change(study, 'algorithm = "k2"', f'{constraint}\nalgorithm = "{algorithm}" #')
    file = StudyFile.read(study)
    assert options_of(file).by == algorithm
    approval = Approval(contract_of(file), "A. Owner", "2026-11-01")
    shown = what_leaves(approval, SiteFile.read(folder / "north/site.toml"), SiteMemory())
    assert f"- by {algorithm}: " in shown and "which of these win narrowly" in shown
    assert "what is compared next, and how often, depends on the winners" in shown
    required = "  required by the study, whatever the data show: age -> drug"
    assert (required in shown) == bool(constraint) and "pulse -> drug" not in shown
