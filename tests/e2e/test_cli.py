"""The command line, as a user types it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from time import perf_counter

import numpy as np
import pytest

from tests.e2e.command import FILES, learn, outputs, predict, read_rows, run, write
from vertibayes.cli import main
from vertibayes.cli.options import separated, values_of
from vertibayes.network import read_model
from vertibayes.settings import LEARNING, READING


def alone_in_tables(path, ledger):
    """Count the records that have a combination of a revealed table's columns for themselves."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    alone = set()
    for table in ledger["tables"]:
        cells = {}
        for place, row in enumerate(rows):
            cells.setdefault(tuple(row[name] for name in table["variables"]), []).append(place)
        alone |= {places[0] for places in cells.values() if len(places) == 1}
    return len(alone)


def test_one_file_over_sites(folder, tmp_path, capsys):
    code, told, warned = learn(capsys, tmp_path / "out", "--data", folder / "all.csv", "--sites", 3)
    assert code == 0 and {p.name for p in (tmp_path / "out").iterdir()} == FILES
    structure, summary, ledger = outputs(tmp_path / "out")
    assert structure["nodes"][:2] == ["HISTORY", "LVFAILURE"] and structure["edges"]
    names = {"commit", "structure", "parameters", "strengths", "validation", "total"}
    assert set(summary["seconds"]) == names
    assert summary["records"] == 2000 and len(summary["sites"]) == 3
    assert sum(summary["bytes"]["links"].values()) == summary["bytes"]["total"]
    assert summary["opened"]["cells"] == sum(table["cells"] for table in ledger["tables"])
    assert {table["to"] for table in ledger["tables"]} == {"analyst"}
    network = read_model(tmp_path / "out" / "model.bif")
    assert set(network.structure.edges) == {tuple(edge) for edge in structure["edges"]}
    assert "<svg" in (tmp_path / "out" / "structure.svg").read_text()
    assert "records, 6 variables at 3 sites" in told and "\x1b" not in told + warned
    assert structure["algorithm"] == summary["algorithm"] and "arrows: " in told
    assert len(structure["gain"]) == len(structure["edges"])
    single = summary["opened"]["single_record"]
    assert single["exact"] and single["records"] == alone_in_tables(folder / "all.csv", ledger)
    assert f"{single['records']:,} of 2,000 records" in warned and warned.count("are alone in") == 1


def test_one_site_learns_what_several_learn(folder, tmp_path, capsys):
    for sites in (1, 3):
        data = "--data", folder / "all.csv", "--sites", sites
        code, told, _ = learn(capsys, tmp_path / str(sites), *data)
        assert code == 0 and "elapsed seconds: commit" in told
    one, several = (outputs(tmp_path / sites) for sites in "13")
    assert one[0]["edges"] == several[0]["edges"] and len(one[1]["sites"]) == 1
    assert (tmp_path / "1" / "model.bif").read_text() == (tmp_path / "3" / "model.bif").read_text()


def test_a_file_a_site_is_the_same_as_one_file(folder, tmp_path, capsys):
    one = learn(
        capsys, tmp_path / "1", "--data", folder / "ids.csv.gz", "--id-column", "id", "--sites", 2
    )
    files = ["--data", f"a={folder / 'a.csv'}", "--data", f"b={folder / 'b.csv'}"]
    two = learn(capsys, tmp_path / "2", *files, "--id-column", "id")
    assert one[0] == two[0] == 0
    assert (tmp_path / "1" / "model.bif").read_text() == (tmp_path / "2" / "model.bif").read_text()
    assert outputs(tmp_path / "2")[1]["sites"] == {
        "a": ["HISTORY", "LVFAILURE", "CVP"],
        "b": ["PCWP", "LVEDVOLUME", "HYPOVOLEMIA"],
    }


def test_options(folder, tmp_path, capsys):
    names = ["CVP", "PCWP", "LVEDVOLUME", "HISTORY", "HYPOVOLEMIA"]
    (tmp_path / "order.json").write_text(json.dumps(names))
    (tmp_path / "part.json").write_text(json.dumps({"x": names[:2], "y": names[2:]}))
    code, told, _ = learn(
        capsys, tmp_path / "out", "--data", folder / "all.csv", "--exclude", "LVFAILURE",
        "--ordering", tmp_path / "order.json", "--partition", tmp_path / "part.json",
        "--max-parents", 1, "--pseudo-count", 0.5, "--missing-codes", "LOW,-9",
        "--missing", "state", "--structure-records", 1500, "--quiet",
    )  # fmt: skip
    assert code == 0 and told == ""
    structure, summary, ledger = outputs(tmp_path / "out")
    place = {name: i for i, name in enumerate(names)}
    assert structure["edges"] and all(place[p] < place[c] for p, c in structure["edges"])
    assert len({c for _, c in structure["edges"]}) == len(structure["edges"])
    assert summary["sites"]["x"] == names[:2] and summary["sites"]["y"] == names[2:]
    assert {table.get("rows", {}).get("last") for table in ledger["tables"]} == {1500, None}
    network = read_model(tmp_path / "out" / "model.bif")
    assert "missing" in network.variables["CVP"].states
    assert all((cpt > 0).all() for cpt in network.cpts.values())


def test_a_given_structure(folder, tmp_path, capsys):
    given = {"nodes": ["HISTORY", "LVFAILURE", "CVP", "PCWP", "LVEDVOLUME", "HYPOVOLEMIA"],
             "edges": [["HISTORY", "CVP"], ["CVP", "PCWP"]]}  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(given))
    code, *_ = learn(
        capsys,
        tmp_path / "out",
        "--data",
        folder / "all.csv",
        "--sites",
        2,
        "--structure",
        tmp_path / "s.json",
    )
    assert code == 0 and outputs(tmp_path / "out")[0].items() >= given.items()
    assert len(outputs(tmp_path / "out")[2]["tables"]) == 5, "CVP's table has HISTORY's, too"


def test_numbers_are_binned_at_their_site(tmp_path, capsys):
    generator = np.random.default_rng(1)
    x = generator.normal(size=300).round(2)
    y = (x + generator.normal(size=300) > 0).astype(int)
    path = write(tmp_path / "n.csv", ["x", "y"], zip(x, y, strict=True))
    code, *_ = learn(capsys, tmp_path / "out", "--data", path, "--sites", 2, "--bins", 0.25)
    network = read_model(tmp_path / "out" / "model.bif")
    assert code == 0 and 3 <= len(network.variables["x"].states) <= 4
    assert network.variables["x"].states[0].startswith("le_")


def test_an_option_takes_several_values_with_commas_or_repeated():
    assert separated("A, B") == ["A", "B"]
    assert separated('A,"B, in kg"') == ["A", "B, in kg"]
    assert separated("-9,-99,?") == ["-9", "-99", "?"]
    (exclude,) = (setting for setting in READING if setting.name == "exclude")
    assert values_of([exclude], {"exclude": ["A,B", "C", "B"]}) == {"exclude": ("A", "B", "C")}
    assert values_of([exclude], {"exclude": None}) == {"exclude": ()}


@pytest.mark.parametrize("command", ["learn", "nb"])
def test_several_values_in_a_row_are_refused_with_the_accepted_forms(capsys, tmp_path, command):
    required = ["--method", "hdpnb", "--parties", 2, "--target", "x"] if command == "nb" else []
    code, _, error = run(
        capsys, command, "--data", "f.csv", "--out", tmp_path / "o", *required,
        "--exclude", "A", "B",
    )  # fmt: skip
    assert code == 2 and error.startswith("vertibayes: unexpected argument 'B': expected ")
    assert error.endswith(
        "; separate several values of an option by commas, as --exclude a,b, or repeat the option\n"
    )


def test_help_lists_the_choices_the_bounds_and_the_defaults(capsys):
    code, out, _ = run(capsys, "learn", "--help")
    parts = re.split(r"\n  (--[a-z-]+) ", out)
    shown = {name: " ".join(t.split()) for name, t in zip(parts[1::2], parts[2::2], strict=True)}
    assert code == 0
    for setting in (*READING, *LEARNING):
        text = shown[setting.option]
        assert "|".join(setting.choices) in text and setting.limits in text
        has_default = setting.kind != "flag" and setting.default not in (None, ())
        assert has_default == ("[default: " in text), text


def test_the_demo(capsys, tmp_path):
    main_ok = ["demo", "--records", "1500", "--out", str(tmp_path / "demo")]
    with pytest.raises(SystemExit) as stop:
        main(main_ok)
    told = capsys.readouterr().out
    assert not stop.value.code
    assert "identical, bit for bit" in told and "P(" in told and "to the analyst:" in told
    assert {p.name for p in (tmp_path / "demo").iterdir()} == FILES


def test_help_comes_at_once():
    """No heavy library is imported for it; the time is told, not tested."""
    start = perf_counter()
    code = (
        "import sys\nfrom vertibayes.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'pandas', 'pgmpy', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n") and "learn" in done.stdout
    print(f"help in {perf_counter() - start:.2f} s")  # noqa: T201


def test_doubts_are_told(folder, tmp_path, capsys):
    text = "a,b\n" + "0,yes\n1,NA\n0,no\n" * 10
    (tmp_path / "d.csv").write_text(text)
    data = ["--data", tmp_path / "d.csv", "--sites", 2]
    code, _, warned = learn(capsys, tmp_path / "1", *data, "--missing-codes", "99")
    assert code == 0
    assert "--missing-codes 99: no such value in the data" in warned
    assert "b: 'NA' is missing, as in pandas; --keep-na keeps it as a state\n" in warned
    code, _, warned = learn(capsys, tmp_path / "2", *data, "--missing-codes", "NA")
    assert "NA" not in warned
    assert outputs(tmp_path / "2")[1]["variables"]["b"] == {
        "states": ["no", "yes"],
        "missing": True,
    }
    learn(capsys, tmp_path / "3", *data, "--keep-na")
    assert outputs(tmp_path / "3")[1]["variables"]["b"]["states"] == ["NA", "no", "yes"]


def test_the_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("vertibayes 0.")


def test_predict(folder, tmp_path, capsys):
    learn(capsys, tmp_path / "m", "--data", folder / "all.csv", "--sites", 2, "--pseudo-count", 1)
    model = ["--model", tmp_path / "m" / "model.bif", "--target", "LVFAILURE"]
    out = tmp_path / "p.csv"
    code, _ = predict(capsys, *model, "--data", folder / "all.csv", "--out", out)
    assert code == 0
    header, *rows = read_rows(out)
    states = read_model(tmp_path / "m" / "model.bif").variables["LVFAILURE"].states
    assert header == ["LVFAILURE", *(f"P(LVFAILURE={state})" for state in states), "note"]
    assert len(rows) == 2000
    assert all(sum(map(float, row[1:-1])) == pytest.approx(1) and not row[-1] for row in rows)
    with (folder / "all.csv").open() as file:
        truth = [row["LVFAILURE"] for row in csv.DictReader(file)]
    right = sum(row[0] == state for row, state in zip(rows, truth, strict=True))
    assert right / 2000 > 0.9
    new = tmp_path / "new.csv"
    code, error = predict(capsys, *model[:2], "--target", "X", "--data", out, "--out", new)
    assert code == 2 and "--target X: the model has" in error
    code, error = predict(capsys, *model, "--data", out, "--out", out)
    assert code == 2 and "the file exists; specify a new one" in error
    nowhere = tmp_path / "nodir" / "new.csv"
    code, error = predict(capsys, *model, "--data", tmp_path / "none.csv", "--out", nowhere)
    assert code == 2 and f"{nowhere.parent} is not a folder that can be written to" in error
    code, error = predict(capsys, *model[:2], "--data", out, "--out", new)
    assert code == 2 and "specify --target NAME, the variable to predict" in error
    assert not new.exists()


@pytest.fixture
def bits(tmp_path, capsys):
    """A model of t = a = b, of the numbers 1 and 2, and its options."""
    path = write(tmp_path / "bits.csv", ["t", "a", "b"], [[1, 1, 1], [2, 2, 2]] * 30)
    assert learn(capsys, tmp_path / "bits", "--data", path, "--sites", 2)[0] == 0
    return [
        "--model",
        tmp_path / "bits" / "model.bif",
        "--target",
        "t",
        "--out",
        tmp_path / "p.csv",
    ]


def test_predict_takes_an_unseen_value_for_missing_and_lists_all(tmp_path, capsys, bits):
    rows = [
        ["x", "1", ""],
        ["y", "2", "7 kg"],
        ["z", "2.0", "7 kg"],
        ["u", "3", ""],
        ["v", "4", ""],
    ]
    data = write(tmp_path / "new.csv", ["id", "a", "b"], [*rows, ["w", "5", ""], ["w", "6", ""]])
    code, warned = predict(capsys, *bits, "--data", data, "--id-column", "id")
    assert code == 0 and warned == (
        f"warning: {data} has values that the model does not know, taken as missing: a: '3' "
        "(1 record), '4' (1 record), '5' (1 record), 1 other value (1 record); b: '7 kg' "
        "(2 records), no record has one of its states, 1, 2 (specify codes for missing "
        "values with --missing-codes)\n"
    )
    header, *found = read_rows(tmp_path / "p.csv")
    assert header == ["id", "t", "P(t=1)", "P(t=2)", "note"]
    assert [row[:2] for row in found[:3]] == [["x", "1"], ["y", "2"], ["z", "2"]]
    assert [row[0] for row in found[3:]] == ["u", "v", "w", "w"], "identifiers as they are"
    assert all(float(row[2]) == pytest.approx(0.5) for row in found[3:])


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("A,B\n1,1\n", [], "new.csv has no column of the model's variables: it has A, B; the model "
         "has t, a, b"),
        ("t\n1\n", [], "no column of the model's variables other than the target: it has t; the "
         "model has t, a, b"),
        ("a\nx\ny\n", [], "has no value that the model knows: a has 'x'; the model has 1, 2"),
        ("a\n1\n", ["--id-column", "key"], "--id-column key: not found; {data} has a"),
        ("a\n1\n", ["--id-column", "a"], "--id-column a: it is a variable of the model"),
    ],
)  # fmt: skip
def test_records_that_predict_refuses(tmp_path, capsys, bits, text, options, reason):
    data = tmp_path / "new.csv"
    data.write_text(text)
    code, error = predict(capsys, *bits, "--data", data, *options)
    assert code == 2 and reason.format(data=data) in error and error.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()


def test_predict_says_that_it_does_not_use_the_target(tmp_path, capsys, bits):
    data = write(tmp_path / "new.csv", ["t", "a", "b"], [["1", "2", "2"], ["9", "1", "1"]])
    code, warned = predict(capsys, *bits, "--data", data)
    assert code == 0
    assert warned == f"warning: {data} has a column of the target, t: it is not used\n"
    assert [row[0] for row in read_rows(tmp_path / "p.csv")[1:]] == ["2", "1"]


def test_the_pseudo_count_is_said_and_the_counts_stay_exact(folder, tmp_path, capsys):
    found = {}
    for name, options in (("default", []), ("none", ["--pseudo-count", 0])):
        data = ["--data", folder / "all.csv", "--sites", 2]
        code, told, _ = learn(capsys, tmp_path / name, *data, *options)
        found[name] = outputs(tmp_path / name)
        assert code == 0 and ("0.5 added to each (--pseudo-count)" in told) == (name == "default")
        assert ("maximum likelihood" in told) == (name == "none")
    structures, summaries = zip(*(each[:2] for each in found.values()), strict=True)
    assert structures[0] == structures[1] and summaries[0]["scores"] == summaries[1]["scores"]
    assert [summary["pseudo_count"] for summary in summaries] == [0.5, 0]


def test_predict_finds_the_bins_of_numbers(tmp_path, capsys):
    generator = np.random.default_rng(1)
    x = generator.normal(size=400).round(2)
    y = np.where(x + generator.normal(size=400) / 4 > 0, "yes", "no")
    path = write(tmp_path / "n.csv", ["x", "y"], zip(x, y, strict=True))
    learn(capsys, tmp_path / "m", "--data", path, "--sites", 2)
    write(tmp_path / "new.csv", ["x"], [["-3"], ["2.5"], [""]])
    code, _ = predict(
        capsys, "--model", tmp_path / "m" / "model.bif", "--data", tmp_path / "new.csv",
        "--target", "y", "--out", tmp_path / "p.csv",
    )  # fmt: skip
    rows = read_rows(tmp_path / "p.csv")[1:]
    assert code == 0 and [row[0] for row in rows[:2]] == ["no", "yes"] and len(rows) == 3


def test_a_number_that_is_new_counts_as_the_nearest_state(tmp_path, capsys):
    rows = [[place % 12, "bad" if place % 12 > 8 else "good"] for place in range(240)]
    data = write(tmp_path / "d.csv", ["visits", "result"], rows)
    learn(capsys, tmp_path / "1", "--data", data, "--sites", 2)
    new = write(tmp_path / "new.csv", ["visits"], [[11], [12], [99]])
    code, warned = predict(
        capsys, "--model", tmp_path / "1" / "model.json", "--data", new, "--target", "result",
        "--out", tmp_path / "p.csv",
    )  # fmt: skip
    assert code == 0
    assert "taken as the nearest state: visits: '12' as '11' (1 record)\n" in warned
    _, known, near, code = read_rows(tmp_path / "p.csv")
    assert known == near != code and float(known[1]) > 0.9 > 0.5 > float(code[1])
