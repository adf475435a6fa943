"""The page of results is what its files draw, and a benchmark's new result replaces an old one."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from pathlib import Path

import pytest

from tests.documents import ROOT, scripts


@pytest.fixture
def results(tmp_path, monkeypatch):
    with scripts(ROOT / "benchmarks", "results") as [module]:
        monkeypatch.setattr(module.runs, "NEW", tmp_path / "new")
        yield module


def test_the_page_is_what_the_files_draw(results):
    assert (ROOT / "docs" / "results.md").read_text() == results.page()


def test_every_file_is_complete_and_written_as_a_record_is(results):
    for path in results.RECORDED.iterdir():
        result = results.read(path)
        assert path.read_text() == results.runs.text_of(result), path.name
        said = {"command", "commit", "date", "machine", "seeds", "spread"}
        assert {"title", "about", *said} <= set(result), path.name
        assert re.fullmatch(r"[0-9a-f]{8}\+?|-|not noted(; .*)?", result["commit"]), path.name
        assert {len(row) for row in result["rows"]} <= {len(result["columns"])}, path.name


def test_a_benchmark_writes_what_the_page_shows(results):
    source = "".join(path.read_text() for path in (ROOT / "benchmarks").glob("*.py"))
    for name in set(results.PAGE) - {"exactness"}:  # which is what tests find
        assert f'table("{name}", ' in source, name


# These take --seed in their own way.
OTHERS = {"crc_tables", "dp_naive_bayes", "ensembles", "least_variance"}


def test_each_benchmark_that_writes_results_says_its_seed_and_commit():
    for path in (ROOT / "benchmarks").glob("*.py"):
        source = path.read_text()
        is_run = 'if __name__ == "__main__"' in source and "from side_by_side" in source
        if is_run and path.stem not in OTHERS:
            assert "arguments(parser" in source, path.name
            uses = "seed_of(" in source or "given.seed" in source
            assert uses != ("seeded=False" in source), path.name


def test_only_shared_code_draws_into_the_documents():
    for path in set((ROOT / "benchmarks").glob("*.py")) - {ROOT / "benchmarks" / "runs.py"}:
        assert '"figures"' not in path.read_text(), path.name


def test_a_new_result_keeps_the_description_and_drops_the_findings(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RECORDED", tmp_path)
    monkeypatch.setattr("sys.argv", ["/here/em.py", "--data", "/secret/place", "--repeats", "3"])
    monkeypatch.delenv("VERTIBAYES_DATA", raising=False)
    old = {"title": "EM", "about": ["Seconds."], "columns": ["s"], "rows": [[9]], "findings": ["9"]}
    (tmp_path / "em.json").write_text(results.runs.text_of(old))
    results.runs.write("em", ["s", "what"], [["0.30", "5 %"], [1, "a | b"]])
    results.record("em")
    new = results.read(tmp_path / "em.json")
    assert new["rows"] == [["0.30", "5 %"], ["1", "a | b"]]
    assert json.loads((tmp_path / "em.json").read_text())["rows"][0][0] == 0.3
    assert (new["title"], new["about"]) == ("EM", ["Seconds."])
    assert new["command"] == "python benchmarks/em.py --data FOLDER --repeats 3"
    assert (new["seeds"], new["spread"]) == ("not noted", "not noted")  # without `arguments`
    assert "findings" not in new


@pytest.fixture
def run(results, tmp_path, monkeypatch):
    """Run a benchmark of seven repetitions, as far as its results go."""
    monkeypatch.setattr(results, "RECORDED", tmp_path / "recorded")
    for name in ("FIGURES", "NEW_FIGURES"):
        monkeypatch.setattr(results.runs, name, tmp_path / name)
    results.RECORDED.mkdir()

    def run(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["study.py", *words])
        parser = ArgumentParser()
        parser.add_argument("--parts", default="one,two")
        parser.add_argument("--repeats", type=int, default=7)
        parser.add_argument("--sets", default="adult,car")
        parser.add_argument("--only", nargs="*", default=[])
        parser.add_argument("--no-peers", dest="peers", action="store_false")
        results.runs.arguments(parser)
        results.runs.write(
            "study", ["s"], [[results.runs.seed_of(3)]], spread="SD over 7 repetitions"
        )
        return results.runs.figure_path("study.svg").parent.name

    return run


@pytest.mark.parametrize(("changed", "commit"), [(" M a.py", "0123abcd+"), ("", "0123abcd")])
def test_a_result_says_its_seed_its_spread_and_its_commit(
    run, results, monkeypatch, changed, commit
):
    printed = {"rev-parse": "0123abcd", "status": changed}
    monkeypatch.setattr(results.runs, "git", lambda word, *_: printed[word])
    run("--seed", "2")
    new = results.read(results.runs.NEW / "study.json")
    assert (new["commit"], new["seeds"], new["spread"]) == (commit, "2", "SD over 7 repetitions")
    assert new["rows"] == [["2000003"]]


def test_a_benchmark_on_data_has_a_folder_or_is_refused(results, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["study.py"])
    monkeypatch.setenv("VERTIBAYES_DATA", "")
    with pytest.raises(SystemExit):
        results.runs.arguments(ArgumentParser(), data=True)
    assert "required: --data" in capsys.readouterr().err
    monkeypatch.setenv("VERTIBAYES_DATA", "folder")
    assert results.runs.arguments(ArgumentParser(), data=True).data == Path("folder")


def test_a_copy_without_history_notes_no_commit(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results.runs, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert results.runs.commit() == "not noted"


@pytest.mark.parametrize(
    "words",
    [("--repeats", "3"), ("--sets", "car"), ("--only", "car"), ("--no-peers",), ("--seed", "1")],
)
def test_a_reduced_run_replaces_no_figure_and_no_result(run, results, words):
    assert run(*words) == "NEW_FIGURES"
    results.record("study")  # nothing is recorded yet
    assert run("--repeats", "8") == run("--parts", "one") == "FIGURES"
    results.record("study")
    kept = (results.RECORDED / "study.json").read_text()
    run(*words)
    with pytest.raises(SystemExit, match=r"reduced run \(\w+\)"):
        results.record("study")
    assert (results.RECORDED / "study.json").read_text() == kept
    run()
    results.record("study")
    assert (results.RECORDED / "study.json").read_text() != kept


def test_a_reduced_run_replaces_a_result_of_its_own_command(run, results):
    for seconds in (1, 2):
        run("--repeats", "3")
        results.record("study")
        assert "reduced" not in results.read(results.RECORDED / "study.json"), seconds


def test_a_section_shows_the_chosen_columns_and_rows(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RECORDED", tmp_path)
    result = {"title": "T", "about": ["What.", "More."], "command": "run", "date": "today"}
    result |= {"commit": "not noted", "seeds": "1 to 5", "spread": "-", "machine": "two cores"}
    result |= {
        "columns": ["a", "b", "c"],
        "rows": [[1, 2, 3], [4, "5.0", 6]],
        "findings": ["First.", "Second."],
    }
    (tmp_path / "t.json").write_text(results.runs.text_of(result))
    section = results.section("t", results.Shown(("c", "b"), {"a": ("4",)}, also=("t",)))
    assert section.split("\n\n") == [
        "## T",
        "What.",
        "    run",
        "Measured on today; seeds 1 to 5; two cores.",
        "| c | b |\n| --- | --- |\n| 6 | 5.0 |",
        "- First.\n- First. (`t.json`)",
    ]


def test_numbers_of_sites_are_beside_each_other_and_a_missing_one_is_empty(monkeypatch):
    with scripts(ROOT / "benchmarks", "side_by_side") as [side_by_side]:
        for name in side_by_side.THREADS:  # otherwise the script starts this process again
            monkeypatch.setenv(name, "1")
    with scripts(ROOT / "benchmarks", "real_data") as [real_data]:
        same = {"data": "skin", "records": 9, "variables": 4, "pooled s": 2, "pyAgrum s": "-"}
        rows = [
            {**same, "by": by, "sites": sites, "secure s": sites + 5, "MB sent": sites + 7}
            for by, sites in (("k2", 3), ("k2", 1), ("hybrid", 1))
        ]
        header, compared = real_data.by_sites(rows)
    assert header[6:] == ["1 site: s", "3 sites: s", "1 site: MB", "3 sites: MB"]
    assert compared == [
        ["skin", "k2", 9, 4, 2, "-", 6, 8, 8, 10],
        ["skin", "hybrid", 9, 4, 2, "-", 6, "", 8, ""],
    ]
