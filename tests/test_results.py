"""The page of results is what its files draw, and a benchmark's new result replaces an old one."""

from __future__ import annotations

import json

import pytest

from tests.documents import ROOT, scripts


@pytest.fixture
def results(tmp_path, monkeypatch):
    with scripts(ROOT / "benchmarks", "results") as [module]:
        monkeypatch.setattr(module, "NEW", tmp_path / "new")
        yield module


def test_the_page_is_what_the_files_draw(results):
    assert (ROOT / "docs" / "results.md").read_text() == results.page()


def test_every_file_is_complete_and_written_as_a_record_is(results):
    for path in results.RECORDED.iterdir():
        result = results.read(path)
        assert path.read_text() == results.text_of(result), path.name
        assert {"title", "about", "command", "date", "machine"} <= set(result), path.name
        assert {len(row) for row in result["rows"]} <= {len(result["columns"])}, path.name


def test_a_benchmark_writes_what_the_page_shows(results):
    source = "".join(path.read_text() for path in (ROOT / "benchmarks").glob("*.py"))
    for name in set(results.PAGE) - {"exactness"}:  # which is what tests find
        assert f'table("{name}", ' in source, name


def test_a_new_result_keeps_the_description_and_drops_the_findings(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RECORDED", tmp_path)
    monkeypatch.setattr("sys.argv", ["/here/em.py", "--data", "/secret/place", "--repeats", "3"])
    monkeypatch.delenv("VERTIBAYES_DATA", raising=False)
    old = {"title": "EM", "about": ["Seconds."], "columns": ["s"], "rows": [[9]], "findings": ["9"]}
    (tmp_path / "em.json").write_text(results.text_of(old))
    results.write("em", ["s", "what"], [["0.30", "5 %"], [1, "a | b"]])
    results.record("em")
    new = results.read(tmp_path / "em.json")
    assert new["rows"] == [["0.30", "5 %"], ["1", "a | b"]]
    assert json.loads((tmp_path / "em.json").read_text())["rows"][0][0] == 0.3
    assert (new["title"], new["about"]) == ("EM", ["Seconds."])
    assert new["command"] == "python benchmarks/em.py --data FOLDER --repeats 3"
    assert "findings" not in new


def test_a_section_shows_the_chosen_columns_and_rows(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RECORDED", tmp_path)
    result = {"title": "T", "about": ["What.", "More."], "command": "run", "date": "today"}
    result |= {"machine": "two cores", "columns": ["a", "b", "c"]}
    result |= {"rows": [[1, 2, 3], [4, "5.0", 6]], "findings": ["First.", "Second."]}
    (tmp_path / "t.json").write_text(results.text_of(result))
    section = results.section("t", results.Shown(("c", "b"), {"a": ("4",)}, also=("t",)))
    assert section.split("\n\n") == [
        "## T",
        "What.",
        "    run",
        "Measured on today; two cores.",
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
