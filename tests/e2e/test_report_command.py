"""`vertibayes report` on folders that are wrong, incomplete, old or hostile."""

from __future__ import annotations

import json

import pytest

from tests.e2e.command import run
from tests.results_folders import Page

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202egnitirwer\u2066 \u200f",
    "x" * 10_000,
    "naïve – 患者 – مريض – 😀",
    "\"quoted\" & 'single' {{ 7 * 7 }} {% raw %} ]]> <!-- -->",
    "\x00\x1b[31m \u2028 line",
]


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def variables(names=("a", "b")):
    return {name: {"states": ["no", "yes"], "missing": False} for name in names}


def hostile_folder(folder):
    """Write a folder whose names and texts are all hostile."""
    first, *others = HOSTILE
    nodes = [
        {"name": name, "states": HOSTILE, "parents": [] if name == first else [first],
         "missing_state": False, "unseen": 0,
         "probabilities": [[1 / len(HOSTILE)] * len(HOSTILE)]
         * (1 if name == first else len(HOSTILE))}
        for name in HOSTILE
    ]  # fmt: skip
    write(
        folder,
        summary={
            "version": first, "written": first, "records": 9, "edges": len(others),
            "sites": {site: [name] for site, name in zip(HOSTILE, HOSTILE, strict=True)},
            "variables": {name: {"states": HOSTILE, "missing": True} for name in HOSTILE},
            "left_out": dict.fromkeys(HOSTILE, first), "warnings": HOSTILE, "algorithm": first,
            "options": dict.fromkeys(HOSTILE, HOSTILE), "auc": {first: 0.5},
            "study": {"file": first, "contract": first, "keys": dict.fromkeys(HOSTILE, first)},
            "seconds": dict.fromkeys(HOSTILE, 1.5), "bytes": {"links": {first: 7}, "total": 7},
            "release": {"rule": {"kind": first}, "verdicts": {first: 1}},
        },
        structure={"nodes": HOSTILE, "edges": [[first, name] for name in others]},
        model={"format": "vertibayes-network", "version": 1, "nodes": nodes},
        ledger={
            "format": 1,
            "revealed": [{"what": text, "about": text, "to": [text]} for text in HOSTILE],
            "tables": [{"variables": HOSTILE, "cells": 4, "to": first, "rule": first}],
        },
        counts={"format": 1, "kind": first, "fewest": None, "families": {}},
        validation={first: {"target": first, "test_records": first, "auc_by_class": {first: 0.5},
                            "confusion": {"states": [first],
                                          "records_by_true_and_predicted": [[4]]}}},
    )  # fmt: skip
    (folder / "validation-x.svg").write_text("<svg><script>alert(1)</script></svg>")
    (folder / "<b>file").write_text("")
    return folder


def test_hostile_names_are_text_and_never_markup(tmp_path, capsys):
    folder = hostile_folder(tmp_path / "hostile")
    assert run(capsys, "report", folder)[0] == 0
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)  # every element is closed where it was opened
    assert "alert(1)" in page.text and "<img src=x" in page.text and "{{ 7 * 7 }}" in page.text
    assert not any("alert" in script for script in page.scripts[1:])
    assert page.model["nodes"][0]["name"] == HOSTILE[0]
    assert text.count("<script") == len(page.scripts) and "<img src=x" not in text
    assert page.outside == [] and len(text) < 5_000_000


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "no such folder; specify a folder that a run has written"),
        (lambda path: path.write_text("x"), "a file; specify a folder"),
        (lambda path: path.mkdir(), "it has no summary.json"),
        (lambda path: write(path, summary=[1]), "not the summary of a run"),
        (lambda path: write(path, summary={"variables": 3}), "not the summary of a run"),
        (lambda path: (path.mkdir(), (path / "summary.json").write_text("{")), "line 1: not JSON"),
        (
            lambda path: write(path, summary={"variables": {}}, structure={
                "nodes": ["a"], "edges": [["a", "a"]]}),
            "structure.json: the structure must not have a cycle",
        ),
        (
            lambda path: write(path, summary={"variables": {}}, structure={
                "nodes": ["a", "b"], "edges": [["a", "b"]] * 10_001}),
            "structure.json: 10,001 arrows are too many to be drawn; at most 10,000",
        ),
        (
            lambda path: write(path, summary={"variables": {}}, structure={"nodes": ["a"]},
                               model={"nodes": [{"name": "a", "probabilities": [3]}]}),
            "its files are not those of a run (TypeError",
        ),
    ],
)  # fmt: skip
def test_a_folder_that_is_not_that_of_a_run_is_refused_in_one_sentence(
    tmp_path, capsys, make, reason
):
    make(tmp_path / "given")
    before = sorted(tmp_path.rglob("*"))
    code, told, error = run(capsys, "report", tmp_path / "given")
    assert code == 2 and told == "" and error.count("\n") == 1
    assert error.startswith(f"vertibayes: {tmp_path / 'given'}") or reason in error
    assert reason in error and sorted(tmp_path.rglob("*")) == before


def test_what_an_earlier_release_did_not_write_is_said_to_be_missing(tmp_path, capsys):
    folder = write(
        tmp_path / "old",
        summary={"records": 5, "sites": {"one": ["a"], "two": ["b"]}, "variables": variables()},
        structure={"nodes": ["a", "b"], "edges": [["a", "b"]]},
    )
    code, told, _ = run(capsys, "report", folder)
    assert code == 0 and told == f"Written: {folder / 'report.html'}\n"
    text = Page((folder / "report.html").read_text()).text
    for sentence in (
        "an earlier release wrote no version",
        "an earlier release printed them only",
        "The folder has no model.json.",
        "The folder has no ledger.json.",
        "has no options: an earlier release did not write them",
        "missing in summary.json",
    ):
        assert sentence in text, sentence


def test_out_replaces_a_file_whole_and_changes_nothing_else(tmp_path, capsys):
    folder = write(tmp_path / "run", summary={"variables": variables(), "records": 5})
    out = tmp_path / "page.html"
    out.write_text("old " * 100_000)
    assert run(capsys, "report", folder, "--out", out)[0] == 0
    assert out.read_text().startswith("<!DOCTYPE html>") and "old old" not in out.read_text()
    assert [path.name for path in folder.iterdir()] == ["summary.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "run"]


def test_a_page_replaces_no_results_and_needs_a_folder(tmp_path, capsys):
    folder = write(tmp_path / "run", summary={"variables": variables(), "records": 5})
    before = (folder / "summary.json").read_bytes()
    reasons = {
        folder: f"a folder; specify a file, such as {folder / 'report.html'}",
        folder / "summary.json": "the page is HTML; specify a name that ends in .html",
        tmp_path
        / "absent"
        / "page.html": f"there is no folder {tmp_path / 'absent'}; make it first",
    }
    for out, reason in reasons.items():
        code, _, error = run(capsys, "report", folder, "--out", out)
        assert code == 2 and error == f"vertibayes: --out {out}: {reason}\n"
    assert (folder / "summary.json").read_bytes() == before


def test_a_page_is_limited_whatever_its_files_have(tmp_path, capsys):
    names = [f"{place}-" + "n" * 4_000 for place in range(500)]
    folder = write(
        tmp_path / "huge",
        summary={"variables": variables(names), "records": 5, "options": dict.fromkeys(names, 1)},
        structure={"nodes": names, "edges": [[names[0], name] for name in names[1:]]},
    )
    assert run(capsys, "report", folder)[0] == 0
    page = Page((folder / "report.html").read_text())
    assert (folder / "report.html").stat().st_size < 5_000_000
    assert "and the page is limited to 4 MB" in page.text and len(page.headings) >= 10
    assert page.scripts == []


def test_large_tables_stay_in_their_file(tmp_path, capsys):
    rows, states = 3_000, [f"s{place}" for place in range(40)]
    nodes = [
        {"name": "a", "states": [f"p{i}" for i in range(rows)], "parents": [],
         "probabilities": [[1 / rows] * rows]},
        {"name": "b", "states": states, "parents": ["a"],
         "probabilities": [[0.025] * 40] * rows},
    ]  # fmt: skip
    folder = write(
        tmp_path / "wide",
        summary={"variables": variables(), "records": 5},
        structure={"nodes": ["a", "b"], "edges": [["a", "b"]]},
        model={"nodes": nodes},
    )
    assert run(capsys, "report", folder)[0] == 0
    text = (folder / "report.html").read_text()
    assert len(text) < 1_000_000
    assert "the table has 120,000 cells, and is in model.json" in Page(text).text
