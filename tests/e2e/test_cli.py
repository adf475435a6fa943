"""The command line, as a user types it; mistakes end with 2, one sentence, and no output."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from time import perf_counter

import numpy as np
import pytest

from vertibayes.bif import read_bif_file
from vertibayes.cli import main
from vertibayes.cli.app import several_values
from vertibayes.network import Structure

FILES = {"structure.json", "model.bif", "structure.svg", "summary.json", "ledger.json"}


def write(path, header, rows):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(data):
    texts = [np.array(v.states)[data.codes[n]] for n, v in data.variables.items()]
    return [list(row) for row in zip(*texts, strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, alarm_data):
    """Six of ALARM's columns as a file, and as one file a site in other orders."""
    path = tmp_path_factory.mktemp("data")
    data = alarm_data.take(["HISTORY", "LVFAILURE", "CVP", "PCWP", "LVEDVOLUME", "HYPOVOLEMIA"])
    names, rows = list(data.variables), rows_of(data)
    write(path / "all.csv", names, rows)
    numbered = [[f"p{i}", *row] for i, row in enumerate(rows)]
    write(path / "ids.csv.gz", ["id", *names], numbered)
    write(path / "a.csv", ["id", *names[:3]], [r[:4] for r in numbered])
    write(path / "b.csv", ["id", *names[3:]], [[r[0], *r[4:]] for r in numbered[::-1]])
    return path


def learn(capsys, out, *arguments):
    """Run learn; return (exit status, standard output, standard error)."""
    try:
        main(["learn", "--out", str(out), *map(str, arguments)])
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    found = capsys.readouterr()
    return code, found.out, found.err


def outputs(out):
    read = {name: json.loads((out / name).read_text()) for name in FILES if name.endswith("json")}
    return read["structure.json"], read["summary.json"], read["ledger.json"]


def test_one_file_over_sites(folder, tmp_path, capsys):
    code, told, warned = learn(capsys, tmp_path / "out", "--data", folder / "all.csv", "--sites", 3)
    assert code == 0 and {p.name for p in (tmp_path / "out").iterdir()} == FILES
    structure, summary, ledger = outputs(tmp_path / "out")
    assert structure["nodes"][:2] == ["HISTORY", "LVFAILURE"] and structure["edges"]
    assert set(summary["seconds"]) == {"commit", "structure", "parameters", "total"}
    assert summary["records"] == 2000 and len(summary["sites"]) == 3
    assert sum(summary["bytes"]["links"].values()) == summary["bytes"]["total"]
    assert summary["opened"]["cells"] == sum(table["cells"] for table in ledger["tables"])
    assert {table["to"] for table in ledger["tables"]} == {"analyst"}
    network = read_bif_file(tmp_path / "out" / "model.bif")
    assert set(network.structure.edges) == {tuple(edge) for edge in structure["edges"]}
    assert "<svg" in (tmp_path / "out" / "structure.svg").read_text()
    assert "records, 6 variables at 3 sites" in told and "\x1b" not in told + warned
    assert "singled out" in warned


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
        "--max-parents", 1, "--pseudo-count", 0.5, "--missing-codes", "LOW", "-9",
        "--missing", "state", "--structure-records", 1500, "--quiet",
    )  # fmt: skip
    assert code == 0 and told == ""
    structure, summary, ledger = outputs(tmp_path / "out")
    place = {name: i for i, name in enumerate(names)}
    assert structure["edges"] and all(place[p] < place[c] for p, c in structure["edges"])
    assert len({c for _, c in structure["edges"]}) == len(structure["edges"])
    assert summary["sites"]["x"] == names[:2] and summary["sites"]["y"] == names[2:]
    assert {table.get("rows", {}).get("last") for table in ledger["tables"]} == {1500, None}
    network = read_bif_file(tmp_path / "out" / "model.bif")
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
    assert code == 0 and outputs(tmp_path / "out")[0] == given
    assert len(outputs(tmp_path / "out")[2]["tables"]) == 6, "the families' tables and no other"


def test_numbers_are_binned_at_their_site(tmp_path, capsys):
    generator = np.random.default_rng(1)
    x = generator.normal(size=300).round(2)
    y = (x + generator.normal(size=300) > 0).astype(int)
    path = write(tmp_path / "n.csv", ["x", "y"], zip(x, y, strict=True))
    code, *_ = learn(capsys, tmp_path / "out", "--data", path, "--sites", 2, "--bins", 0.25)
    network = read_bif_file(tmp_path / "out" / "model.bif")
    assert code == 0 and 3 <= len(network.variables["x"].states) <= 4
    assert network.variables["x"].states[0].startswith("(-inf,")


GOOD = "a,b\n" + "0,x\n1,y\n" * 10


def bad_data():
    yield "empty", "", "the file is empty"
    yield "header only", "a,b\n", "a header and no records"
    yield "ragged", GOOD + "1\n", "line 22: 1 fields, the header has 2"
    yield "twice", "a,a\n0,1\n", "the column 'a' stands twice"
    yield "nameless", "a,\n0,1\n", "column 2 has no name"
    yield (
        "one state",
        "a,b\n" + "0,x\n1,x\n" * 10,
        "'b' has one state, 'x'; leave it out with --exclude b",
    )
    yield "no values", "a,b\n" + "0,\n1,\n" * 10, "'b' has no values; leave it out with --exclude b"
    yield "identifier", "a,b\n" + "".join(f"{i % 2},q{i}\n" for i in range(20)), "--id-column"
    yield (
        "integers",
        "a,b\n" + "".join(f"{i % 2},{i}\n" for i in range(20)),
        "'b' is different in every record",
    )
    yield (
        "states",
        "a,b\n" + "".join(f"{i % 2},t{i // 2}\n" for i in range(210)),
        "'b' has 105 states, at most 100",
    )
    yield "few", "a,b\n" + "0,x\n1,y\n" * 4, "tables over 8 records, at least 10 are wanted"


@pytest.mark.parametrize(("text", "reason"), [pytest.param(t, r, id=i) for i, t, r in bad_data()])
def test_bad_data(tmp_path, capsys, text, reason):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert_refused(capsys, tmp_path, reason, "--data", path, "--sites", 2)


def assert_refused(capsys, tmp_path, reason, *arguments):
    """One sentence, status 2, nothing written."""
    before = sorted(tmp_path.rglob("*"))
    code, told, error = learn(capsys, tmp_path / "results", *arguments)
    assert code == 2 and told == ""
    assert reason in " ".join(error.replace("│", " ").split())
    assert error.startswith("vertibayes: ") and error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def bad_options():
    """Options beside --data good.csv, files to write, and what is said."""
    yield ["--sites", "9"], {}, "9 sites: from 1 to 2"
    yield ["--sites", "0"], {}, "0 sites: from 1 to 2"
    yield [], {}, "--sites K or --partition FILE is wanted"
    yield ["--sites", "2", "--exclude", "zz"], {}, "no column 'zz' (--exclude); there are a, b"
    yield ["--sites", "2", "--id-column", "zz"], {}, "no column 'zz' (--id-column)"
    yield ["--sites", "2", "--id-column", "a"], {}, "'0' stands twice in 'a'"
    yield (
        ["--sites", "2", "--missing", "guess"],
        {},
        "--missing guess: one of em, synthetic, available, state is",
    )
    yield ["--sites", "2", "--max-parents", "-1"], {}, "max_parents of -1"
    yield ["--sites", "2", "--pseudo-count", "-1"], {}, "a pseudo-count of -1.0"
    yield ["--sites", "2", "--bins", "2"], {}, "bins of 2.0"
    yield ["--sites", "2", "--max-states", "1"], {}, "at most 1 states"
    yield (
        ["--sites", "2", "--structure-records", "99"],
        {},
        "a structure sample of 99 of 20 records",
    )
    yield ["--sites", "2", "--structure-records", "15"], {}, "leave out 5, and at least 10"
    yield ["--sites", "2", "--ordering", "o.json"], {"o.json": '["a"]'}, "lacking: b"
    yield ["--sites", "2", "--ordering", "o.json"], {"o.json": '["a", "b", "c"]'}, "unknown: c"
    yield ["--sites", "2", "--ordering", "o.json"], {"o.json": '{"a": 1}'}, "o.json: a JSON list"
    yield ["--sites", "2", "--ordering", "o.json"], {"o.json": "[\n1,"}, "o.json, line 2: no JSON"
    yield ["--sites", "2", "--ordering", "none.json"], {}, "none.json: no such file"
    structure = ["--sites", "2", "--structure", "s.json"]
    yield (
        structure,
        {"s.json": '{"nodes": ["a", "b"], "edges": [["a", "b"], ["b", "a"]]}'},
        "a cycle: ",
    )
    yield (
        structure,
        {"s.json": '{"nodes": ["a", "b"], "edges": [["a", "q"]]}'},
        "a -> q has an unknown",
    )
    yield structure, {"s.json": '{"nodes": ["a"], "edges": []}'}, "lacking: b"
    yield structure, {"s.json": '{"nodes": ["a", "b", "c"], "edges": []}'}, "unknown: c"
    yield structure, {"s.json": "[]"}, "s.json: {"
    partition = ["--partition", "p.json"]
    yield partition, {"p.json": '{"x": ["a"], "y": ["a", "b"]}'}, "'a' is at two sites, x and y"
    yield partition, {"p.json": '{"x": ["a"], "y": ["q"]}'}, "'q', which is no column"
    yield partition, {"p.json": '{"x": ["a"]}'}, "at no site: b"
    yield partition, {"p.json": '{"x": ["a", "b"], "y": []}'}, "'y' holds no column"
    yield partition, {"p.json": '{"dealer": ["a"], "y": ["b"]}'}, "'dealer' is the dealer: no site"
    yield [*partition, "--sites", "2"], {"p.json": '{"x": ["a", "b"]}'}, "one is wanted"


@pytest.mark.parametrize(("options", "files", "reason"), list(bad_options()))
def test_bad_options(tmp_path, capsys, monkeypatch, options, files, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert_refused(capsys, tmp_path, reason, "--data", "good.csv", *options)


def bad_sites():
    yield {"a": "id,x\n1,0\n", "b": "id,x\n1,0\n"}, "the column 'x' is at two sites, a and b"
    yield {"a": "id,x\n1,0\n2,1\n", "b": "id,y\n1,0\n"}, "different numbers of records: a 2, b 1"
    yield {"a": "id,x\n1,0\n2,1\n", "b": "id,y\n1,0\n3,1\n"}, "'2' and 0 more are at a and not at b"
    yield {"a": "id,x\n1,0\n1,1\n", "b": "id,y\n1,0\n3,1\n"}, "a.csv: '1' stands twice in 'id'"
    yield {"a": "id,x\n1,0\n,1\n", "b": "id,y\n1,0\n3,1\n"}, "a.csv, record 2: no identifier"
    yield {"a": "id,x\n1,0\n", "b": "y\n1\n"}, "b.csv: no column 'id'"


@pytest.mark.parametrize(("files", "reason"), list(bad_sites()))
def test_sites_that_do_not_fit(tmp_path, capsys, files, reason):
    data = []
    for site, text in files.items():
        (tmp_path / f"{site}.csv").write_text(text)
        data += ["--data", f"{site}={tmp_path / site}.csv"]
    assert_refused(capsys, tmp_path, reason, *data, "--id-column", "id")


def test_files_that_are_not_there(tmp_path, capsys):
    assert_refused(
        capsys, tmp_path, "none.csv: no such file", "--data", tmp_path / "none.csv", "--sites", 2
    )
    assert_refused(capsys, tmp_path, "a folder, not a file", "--data", tmp_path, "--sites", 2)


def test_a_folder_that_is_not_empty(folder, tmp_path, capsys):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine").write_text("kept")
    assert_refused(
        capsys, tmp_path, "a new or empty folder", "--data", folder / "all.csv", "--sites", 2
    )


def test_a_table_that_cannot_be_held(tmp_path, capsys):
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 70, (3000, 5)).astype(str)
    path = write(tmp_path / "wide.csv", list("abcde"), [[f"s{v}" for v in row] for row in rows])
    assert_refused(
        capsys, tmp_path, "cells, at most", "--data", path, "--sites", 2, "--structure",
        _chain(tmp_path, "abcde"),
    )  # fmt: skip


def _chain(folder, names):
    structure = Structure.of(list(names), [(p, names[-1]) for p in names[:-1]])
    (folder / "s.json").write_text(
        json.dumps({"nodes": list(structure.nodes), "edges": [list(e) for e in structure.edges]})
    )
    return folder / "s.json"


def test_a_site_refuses_wide_tables(tmp_path, capsys):
    generator = np.random.default_rng(1)
    names = "abcdefghij"
    path = write(tmp_path / "f.csv", list(names), generator.integers(0, 2, (60, 10)).tolist())
    assert_refused(
        capsys, tmp_path, "refuses: a table of 10 variables, at most 8 are allowed", "--data", path,
        "--sites", 2, "--structure", _chain(tmp_path, names),
    )  # fmt: skip


def test_options_with_several_values():
    assert several_values(["learn", "--exclude", "A", "B", "--sites", "2"]) == [
        "learn", "--exclude", "A", "--exclude", "B", "--sites", "2",
    ]  # fmt: skip
    assert several_values(["--missing-codes", "-9", "-99", "?", "--quiet"]) == [
        "--missing-codes", "-9", "--missing-codes", "-99", "--missing-codes", "?", "--quiet",
    ]  # fmt: skip


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
    assert "'NA' in b is taken as a value; if it says missing: --missing-codes NA" in warned
    code, _, warned = learn(capsys, tmp_path / "2", *data, "--missing-codes", "NA")
    assert "NA" not in warned
    assert outputs(tmp_path / "2")[1]["variables"]["b"] == {
        "states": ["no", "yes"],
        "missing": True,
    }


def test_files_without_identifiers_are_not_matched(folder, tmp_path, capsys):
    files = ["--data", f"a={folder / 'a.csv'}", "--data", f"b={folder / 'b.csv'}"]
    assert_refused(capsys, tmp_path, "--id-column is wanted", *files)


def test_other_separators_are_named(tmp_path, capsys):
    (tmp_path / "s.csv").write_text("a;b\n1;2\n")
    data = ["--data", tmp_path / "s.csv", "--sites", 2]
    assert_refused(capsys, tmp_path, "s.csv: separated by ';', commas are wanted", *data)


def test_the_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("vertibayes 0.")


def test_missing_cells_filled_by_em(tmp_path, capsys, gaps):
    header = list(gaps.variables)
    texts = [np.array([*v.states, ""])[gaps.codes[n]] for n, v in gaps.variables.items()]
    write(tmp_path / "gaps.csv", header, zip(*texts, strict=True))
    data = ["--data", tmp_path / "gaps.csv", "--sites", 3]
    assert learn(capsys, tmp_path / "em", *data)[0] == 0, "the default where cells are missing"
    assert learn(capsys, tmp_path / "available", *data, "--missing", "available")[0] == 0
    em, available = (read_bif_file(tmp_path / n / "model.bif") for n in ("em", "available"))
    assert em.structure == available.structure
    assert any(not np.allclose(em.cpts[n], available.cpts[n], atol=1e-4) for n in em.cpts)
    scores = [outputs(tmp_path / n)[1]["scores"] for n in ("em", "available")]
    assert scores[0] == scores[1], "both score the structure over available cases"


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def predict(capsys, folder, *arguments):
    try:
        main(["predict", *map(str, arguments)])
    except SystemExit as stop:
        return stop.code or 0, capsys.readouterr().err
    return 0, capsys.readouterr().err


def test_predict(folder, tmp_path, capsys):
    learn(capsys, tmp_path / "m", "--data", folder / "all.csv", "--sites", 2, "--pseudo-count", 1)
    model = ["--model", tmp_path / "m" / "model.bif", "--target", "LVFAILURE"]
    out = tmp_path / "p.csv"
    code, _ = predict(capsys, tmp_path, *model, "--data", folder / "all.csv", "--out", out)
    assert code == 0
    header, *rows = read_rows(out)
    states = read_bif_file(tmp_path / "m" / "model.bif").variables["LVFAILURE"].states
    assert header == ["LVFAILURE", *(f"P(LVFAILURE={state})" for state in states)]
    assert len(rows) == 2000
    assert all(sum(map(float, row[1:])) == pytest.approx(1) for row in rows)
    with (folder / "all.csv").open() as file:
        truth = [row["LVFAILURE"] for row in csv.DictReader(file)]
    right = sum(row[0] == state for row, state in zip(rows, truth, strict=True))
    assert right / 2000 > 0.9
    (tmp_path / "bad.csv").write_text("CVP\nLOW\nNOVEL\n")
    new = tmp_path / "new.csv"
    code, error = predict(capsys, tmp_path, *model, "--data", tmp_path / "bad.csv", "--out", new)
    assert code == 2 and "the column 'CVP', record 2: 'NOVEL' is none of its states" in error
    code, error = predict(
        capsys, tmp_path, *model[:2], "--target", "X", "--data", out, "--out", new
    )
    assert code == 2 and "--target X: the model has" in error
    code, error = predict(capsys, tmp_path, *model, "--data", out, "--out", out)
    assert code == 2 and "it exists" in error
    assert not new.exists()


def test_predict_finds_the_bins_of_numbers(tmp_path, capsys):
    generator = np.random.default_rng(1)
    x = generator.normal(size=400).round(2)
    y = np.where(x + generator.normal(size=400) / 4 > 0, "yes", "no")
    path = write(tmp_path / "n.csv", ["x", "y"], zip(x, y, strict=True))
    learn(capsys, tmp_path / "m", "--data", path, "--sites", 2)
    write(tmp_path / "new.csv", ["x"], [["-3"], ["2.5"], [""]])
    code, _ = predict(
        capsys, tmp_path, "--model", tmp_path / "m" / "model.bif", "--data", tmp_path / "new.csv",
        "--target", "y", "--out", tmp_path / "p.csv",
    )  # fmt: skip
    rows = read_rows(tmp_path / "p.csv")[1:]
    assert code == 0 and [row[0] for row in rows[:2]] == ["no", "yes"] and len(rows) == 3


def test_validation(tmp_path, capsys, gaps):
    header = list(gaps.variables)
    texts = [np.array([*v.states, ""])[gaps.codes[n]] for n, v in gaps.variables.items()]
    path = write(tmp_path / "gaps.csv", header, zip(*texts, strict=True))
    code, *_ = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 3, "--missing", "synthetic",
        "--synthetic-records", 1000, "--em-restarts", 1, "--target", header[0],
        "--validate", "public,scv,svdg", "--folds", 4, "--public", path, "--max-parents", 2,
    )  # fmt: skip
    assert code == 0
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    lost = int((gaps.codes[header[0]] == len(gaps.variables[header[0]].states)).sum())
    assert found["public"]["left_out"] == lost > 0 and found["public"]["scored"] == 2000 - lost
    for method, folds in (("public", 0), ("scv", 4), ("svdg", 4)):
        assert 0.5 < found[method]["auc"] <= 1 and len(found[method]["auc_by_fold"]) == folds
        assert found[method]["aic"] == outputs(tmp_path / "out")[1]["scores"]["aic"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--validate", "scv"], "--validate needs a --target"),
        (["--validate", "x", "--target", "a"], "--validate x: some of public,scv,svdg"),
        (["--validate", "public", "--target", "a"], "--public FILE belong together"),
        (["--validate", "scv", "--target", "z"], "--target z: there are a, b"),
        (["--validate", "svdg", "--target", "a", "--folds", "1"], "1 folds: from 2"),
        (["--validate", "svdg", "--target", "a", "--folds", "4"], "5 records, at least 10"),
    ],
)
def test_validations_that_cannot_be(tmp_path, capsys, monkeypatch, options, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    assert_refused(capsys, tmp_path, reason, "--data", "good.csv", "--sites", 2, *options)
