"""``vertibayes learn --release`` as a user types it, on a federation in this process."""

import json

import numpy as np
import pytest

from tests.e2e.command import FILES, assert_refused, learn, outputs, write
from vertibayes.cli import main
from vertibayes.network import read_model

RELEASE = FILES | {"release"}
BY_K2 = ["--algorithm", "k2"]


def test_exact_tables_by_choices_give_the_model_of_all_tables(folder, tmp_path, capsys):
    data = ["--data", folder / "all.csv", "--sites", 3, *BY_K2]
    assert learn(capsys, tmp_path / "1", *data)[0] == 0
    code, shown, _ = learn(capsys, tmp_path / "2", *data, "--release", "exact")
    assert code == 0 and {p.name for p in (tmp_path / "2").iterdir()} == RELEASE
    assert (tmp_path / "1/model.bif").read_text() == (tmp_path / "2/model.bif").read_text()
    structure, summary, ledger = outputs(tmp_path / "2")
    families = {tuple(table["variables"]) for table in ledger["tables"]}
    assert {members[0] for members in families} == set(structure["nodes"]) and len(families) == 6
    assert len(outputs(tmp_path / "1")[2]["tables"]) > 6
    assert summary["scores"] == outputs(tmp_path / "1")[1]["scores"]
    choices = summary["choices"]
    assert choices["decisions"] >= 5 and 0 < choices["resolution_in_nats"] < 0.1
    assert f"choices: {choices['decisions']} between {choices['candidates']} candidates" in shown
    assert f"all {choices['decisions']} choices are those of exact scores" in shown
    assert choices["undecided"] == 0 and "cost of the rule: none" in shown


def test_the_report_says_how_many_choices_are_not_decided(tmp_path, capsys):
    """Column b is a copy of a: as parents of c they have one score, and no bound tells them apart.

    So the choices of b and c are undecided: where one copy is a parent, the other adds nothing,
    exactly as no further parent does.
    """
    rows = [[i % 2, i % 2, (i % 2) ^ (i % 9 == 0)] for i in range(90)]
    path = write(tmp_path / "copies.csv", ["a", "b", "c"], rows)
    code, shown, _ = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 3, *BY_K2, "--release", "exact"
    )
    choices = outputs(tmp_path / "out")[1]["choices"]
    assert code == 0 and choices["undecided"] > 0
    said = f"{choices['undecided']} of {choices['decisions']} choices were closer than"
    assert said in shown and "by exact scores another candidate may win there" in shown


def test_a_rounded_release_has_multiples_and_its_report_says_so(folder, tmp_path, capsys):
    data = ["--data", folder / "all.csv", "--sites", 2, *BY_K2]
    options = ["--release", "rounded", "--fewest", 25]
    code, shown, _ = learn(capsys, tmp_path / "out", *data, *options)
    assert code == 0 and "released as multiples of 25" in shown
    tables = sorted((tmp_path / "out" / "release").glob("output_*_count_table.csv"))
    counts = [
        int(cell) for path in tables for cell in path.read_text().split(",") if cell.isdigit()
    ]
    assert len(set(counts)) > 3 and not any(count % 25 for count in counts)
    summary = outputs(tmp_path / "out")[1]
    assert summary["release"]["rule"] == {"kind": "rounded", "fewest": 25}
    assert summary["release"]["verdicts"] == {"pass": len(tables)} and summary["cost"] is None
    page = (tmp_path / "out" / "report.html").read_text()
    assert "counts are released as multiples of 25" in page and "It is rounded." in page
    assert "the nearest multiple of 25" in (tmp_path / "out/release/README.txt").read_text()


def test_a_cut_release_has_no_small_count(folder, tmp_path, capsys):
    data = ["--data", folder / "all.csv", "--sites", 2, *BY_K2]
    options = [
        "--release",
        "cut",
        "--fewest",
        25,
        "--validate",
        "scv",
        "--target",
        "CVP",
        "--folds",
        2,
    ]
    code, shown, _ = learn(capsys, tmp_path / "out", *data, *options)
    assert code == 0 and "released with counts below 25 as 0" in shown
    assert "(how well the network predicts records of its own kind): AUC" in shown
    assert "the released counts, 0.5 added to each" in shown
    tables = sorted((tmp_path / "out" / "release").glob("output_*_count_table.csv"))
    counts = [
        int(cell) for path in tables for cell in path.read_text().split(",") if cell.isdigit()
    ]
    assert counts and not any(0 < count < 25 for count in counts)
    summary = outputs(tmp_path / "out")[1]
    assert summary["release"]["rule"] == {"kind": "cut", "fewest": 25}
    assert 0 < summary["cost"]["share"] < summary["cost"]["most"] and summary["auc"]["scv"] > 0.5
    network = read_model(tmp_path / "out" / "model.bif")
    again = read_model(tmp_path / "out" / "model.json")
    assert network.structure == again.structure


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["laplace", "--epsilon", 20], "laplace noise, epsilon 20 for all of them together"),
        (["gaussian", "--epsilon", 9, "--delta", "1e-5"], "gaussian noise, epsilon 9 and delta 1e"),
    ],
)
def test_noise_is_added_and_its_cost_estimated(folder, tmp_path, capsys, options, said):
    data = ["--data", folder / "all.csv", "--sites", 3, *BY_K2, "--release", *options]
    validated = ["--target", "HISTORY", "--validate", "scv"]
    code, shown, error = learn(capsys, tmp_path / "out", *data, *validated)
    assert code == 0 and said in shown
    assert "has no such promise: one person can change an edge (docs/results.md)\ncost of" in shown
    assert "drawn from noisy tables" in error
    cost = outputs(tmp_path / "out")[1]["cost"]
    assert cost["deviation"] > 0.2 and 0 < cost["nats_about"] < 2
    assert "nats per record (KL), estimated by applying the rule again" in shown


def test_a_structure_is_released_without_choices(folder, tmp_path, capsys):
    names = ["HISTORY", "LVFAILURE", "CVP", "PCWP", "LVEDVOLUME", "HYPOVOLEMIA"]
    structure = {"nodes": names, "edges": [["LVFAILURE", "HISTORY"]]}
    (tmp_path / "s.json").write_text(json.dumps(structure))
    data = ["--data", folder / "all.csv", "--sites", 2, "--structure", tmp_path / "s.json"]
    code, shown, _ = learn(capsys, tmp_path / "out", *data, "--release", "cut")
    assert code == 0 and outputs(tmp_path / "out")[0].items() >= structure.items()
    assert "the structure is given: no choice was asked" in shown


def test_wide_columns_and_missing_values(tmp_path, capsys):
    """A column of 30 states, beside one that depends on it and misses values."""
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 30, 900)
    near = np.where(rng.random(900) < 0.1, "", (wide < 15).astype(int).astype(str))
    rows = zip((f"s{code:02}" for code in wide), near, rng.integers(0, 2, 900), strict=True)
    write(tmp_path / "d.csv", ["wide", "near", "other"], rows)
    data = ["--data", tmp_path / "d.csv", "--sites", 2, *BY_K2]
    for name, options in (("1", []), ("2", ["--release", "exact"]), ("3", ["--release", "cut"])):
        assert learn(capsys, tmp_path / name, *data, *options)[0] == 0
    one, two, three = (outputs(tmp_path / name)[0] for name in "123")
    assert one == two and one["edges"] == three["edges"]
    assert ["wide", "near"] in outputs(tmp_path / "2")[0]["edges"]
    ours, pooled = (read_model(tmp_path / name / "model.json") for name in ("2", "1"))
    assert all(np.array_equal(ours.cpts[node], pooled.cpts[node]) for node in ours.cpts)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--release", "round"],
            "--release must be exact, cut, rounded, laplace or gaussian, got round",
        ),
        (
            ["--release", "cut", "--fewest", "0"],
            "--fewest must be a whole number, at least 1, got 0",
        ),
        (["--fewest", "5"], "--fewest needs --release cut or rounded, got no rule"),
        (["--pre-bins", "5"], "--pre-bins needs --mdlp"),
        (["--release", "cut", "--epsilon", "1"], "--epsilon needs --release laplace or gaussian"),
        (["--release", "cut", "--epsilon", "2"], "--epsilon needs --release laplace or gaussian"),
        (
            ["--release", "laplace", "--dishonest", "1.1"],
            "--dishonest must be a number, at least 0 and at most 1, got 1.1",
        ),
        (["--release", "cut", "--wider-cells", "9"], "--wider-cells needs tables that are not"),
        (
            ["--release", "cut", "--validate", "svdg", "--target", "CVP"],
            "--validate svdg needs the tables of each fold",
        ),
        (["--release", "cut", "--max-parents", "21"], "--max-parents must be a whole number"),
    ],
)
def test_mistakes_are_refused_before_anything_is_asked(folder, tmp_path, capsys, options, reason):
    data = ["--data", folder / "all.csv", "--sites", 2, *BY_K2]
    assert_refused(capsys, tmp_path, reason, *data, *options)


def test_help_describes_each_option(capsys):
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for option in (
        "--release exact|cut|rounded|laplace|gaussian",
        "--fewest",
        "--delta",
        "--dishonest",
    ):
        assert option in shown
