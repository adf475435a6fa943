"""Attacks on `report.html`: what it tells beside what was released, and folders made by others."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest

from tests.e2e.command import run, write
from tests.results_folders import Page, ran
from vertibayes.report.page import render
from vertibayes.report.page.render import without_values

SECRET = "only the owner of this file may read it"
CELLS = {("no", "low"): 60, ("no", "high"): 40, ("yes", "low"): 30}
TIMES = re.compile(r'<data [^>]*data-key="summary\.json#/(seconds|calls)[^>]*>[^<]*</data>')
WRITTEN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Run two data sets that the same tables are released of: cut counts and rare values differ."""
    rare = [[3, 6, "HIV", 7], [6, 3, "flu", 9]]
    return [cut_run(tmp_path_factory.mktemp("cut"), *given) for given in rare]


def cut_run(folder, medium, high, value, odd):
    """Run data with two cut counts, a value of one record, and a number apart from the others."""
    counts = CELLS | {("no", "medium"): 30, ("yes", "medium"): medium, ("yes", "high"): high}
    rows = [[*cell, "", place % 30] for cell, n in counts.items() for place in range(n)]
    rows[0][2], rows[1][3] = value, 90_000 + odd
    write(folder / "records.csv", ["smoker", "dose", "note", "number"], rows)
    structure = {"nodes": ["smoker", "dose", "number"], "edges": [["smoker", "dose"]]}
    (folder / "structure.json").write_text(json.dumps(structure))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # paths are the same in both runs
        ran("learn", "--data", "records.csv", "--sites", 2, "--structure", "structure.json",
            "--release", "cut", "--bins", 0.25, "--quiet", "--out", "out")  # fmt: skip
    return folder / "out"


def page_of(folder, capsys):
    """Make the page of a folder again, and return it without times."""
    assert run(capsys, "report", folder, "--out", folder / "again.html")[0] == 0
    text = (folder / "again.html").read_text(encoding="utf-8")
    return WRITTEN.sub("", TIMES.sub("", text))


def test_the_page_of_a_release_is_the_same_whatever_the_cut_counts_are(two_runs, capsys):
    first, second = (json.loads((run / "summary.json").read_text()) for run in two_runs)
    assert "'HIV'" in first["left_out"]["note"] and "'flu'" in second["left_out"]["note"]
    one, other = (Page(page_of(folder, capsys)) for folder in two_runs)
    assert one.text == other.text and one.model == other.model
    assert one.model["nodes"][1]["counts"] is not None and "(fewer than 10)" in one.text
    assert "HIV" not in one.text and "shown without their numbers" in one.text


def test_reasons_in_full_would_tell_the_two_data_sets_apart(two_runs, capsys, monkeypatch):
    monkeypatch.setattr(render, "without_values", lambda text: text)
    one, other = (Page(page_of(folder, capsys)).text for folder in two_runs)
    assert one != other and "HIV" in one


@pytest.mark.parametrize(
    "text",
    ["one value, 'SECRET', here", 'one value, "it\'s SECRET", here', "'it's SECRET', 'b'",
     "'SECRET", "from 17 to 90,000.5 at 2020-01-02"],
)  # fmt: skip
def test_values_and_numbers_of_warnings_are_left_out(text):
    shown = without_values(text)
    assert "SECRET" not in shown and not re.search(r"\d", shown)


def summary(**more):
    return {"records": 5, "variables": {"a": {"states": ["no", "yes"], "missing": False}}, **more}


def folder_of(path, **more):
    path.mkdir()
    (path / "summary.json").write_text(json.dumps(summary(**more)))
    return path


@pytest.mark.parametrize(
    ("rule", "protects"),
    [
        ({"kind": "cut", "fewest": 10}, True),
        ({"kind": "laplace", "epsilon": 1.0}, True),
        ({"kind": "cut", "fewest": 1}, False),
        ({"kind": "cut"}, False),
        ({"kind": "exact"}, False),
        ({"kind": "a rule of a later release"}, False),
        (None, False),
    ],
)
def test_only_rules_that_hide_small_counts_let_others_read_the_page(
    tmp_path, capsys, rule, protects
):
    folder = folder_of(tmp_path / "run", release={"rule": rule}, warnings=["3 records"])
    assert run(capsys, "report", folder)[0] == 0
    text = Page((folder / "report.html").read_text()).text
    assert ("Only the analyst may read this page" in text) != protects
    assert ("3 records" in text) != protects


def test_an_approval_names_no_other_reader(tmp_path, capsys):
    study = {"contract": "ab" * 32, "keys": {}}
    release = {"rule": {"kind": "cut", "fewest": 10}}
    folder = folder_of(tmp_path / "run", release=release, study=study)
    assert run(capsys, "report", folder)[0] == 0
    assert "They did not approve other readers." in (folder / "report.html").read_text()


def test_counts_that_a_rule_cuts_are_not_in_the_scripts_data_either(tmp_path, capsys):
    folder = folder_of(tmp_path / "run")
    node = {"name": "a", "states": ["no", "yes"], "parents": [], "probabilities": [[0.9, 0.1]]}
    counts = {"parents": [], "counts": [[47, 3]]}
    for name, content in {
        "structure": {"nodes": ["a"], "edges": []},
        "model": {"nodes": [node]},
        "counts": {"kind": "cut", "fewest": 10, "families": {"a": counts}},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    assert run(capsys, "report", folder)[0] == 0
    page = Page((folder / "report.html").read_text())
    assert page.model["nodes"][0]["counts"] == [[47, 0]] and "(47)" in page.text


PLACES = {
    "summary.json": json.dumps(summary(data=SECRET)),
    "network.svg": f"<svg>{SECRET}</svg>",
    "release/tables.csv": f"table,{SECRET}\n1,2\n",
}


def filled(folder, place, put):
    """Make a folder of a calibration with a release, and put a file of another user into it."""
    folder_of(folder, command="calibrate", release={"rule": {"kind": "cut", "fewest": 10}})
    (folder / "release").mkdir()
    (folder / "calibration.json").write_text("{}")
    (folder / "network.json").write_text('{"neighbours": {}}')
    precious = folder.parent / "precious"
    precious.write_text(PLACES[place])
    (folder / place).unlink(missing_ok=True)
    put(folder / place, precious)
    return folder


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_with_a_link_to_a_file_of_mine_is_refused(tmp_path, capsys, place):
    folder = filled(tmp_path / "run", place, lambda path, precious: path.symlink_to(precious))
    code, _, error = run(capsys, "report", folder)
    assert code == 2 and f"{folder / place}: a symbolic link; put the file itself" in error
    assert not (folder / "report.html").exists()


def test_a_link_in_place_of_the_folder_of_the_release_is_refused(tmp_path, capsys):
    folder = folder_of(tmp_path / "run")
    (folder / "release").symlink_to(tmp_path)
    code, _, error = run(capsys, "report", folder)
    assert code == 2 and "release: a symbolic link" in error


def test_a_planted_link_does_not_lead_the_page_into_another_file(tmp_path, capsys):
    folder, precious = folder_of(tmp_path / "run"), tmp_path / "precious"
    precious.write_text(SECRET)
    for name in ("report.html", "report.html.part"):
        (folder / name).symlink_to(precious)
    assert run(capsys, "report", folder)[0] == 0
    assert precious.read_text() == SECRET
    page = folder / "report.html"
    assert not page.is_symlink() and page.read_text().startswith("<!DOCTYPE html>")
    page.with_suffix(".control").symlink_to(precious)
    page.with_suffix(".control").write_text("a path that is opened to write follows the link")
    assert precious.read_text() != SECRET


def test_its_owner_alone_can_read_the_page(tmp_path, capsys):
    folder, out = folder_of(tmp_path / "run"), tmp_path / "page.html"
    out.write_text("old")
    out.chmod(0o644)
    assert run(capsys, "report", folder, "--out", out)[0] == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_pipes_and_files_without_end_do_not_hold_the_command_up(tmp_path, capsys):
    folder = folder_of(tmp_path / "run")
    for name in ("model.json", "validation-scv.svg"):
        os.mkfifo(folder / name)
    assert run(capsys, "report", folder)[0] == 0
    with (folder / "ledger.json").open("wb") as file:
        file.truncate(1 << 40)
    code, _, error = run(capsys, "report", folder)
    assert code == 2 and "ledger.json: a file of 1,099,511,627,776 bytes; expected" in error


@pytest.mark.parametrize("number", ["9" * 5000, "[" * 100_000])
def test_what_is_wrong_with_a_hostile_file_is_said_with_its_name(tmp_path, capsys, number):
    folder = folder_of(tmp_path / "run")
    (folder / "counts.json").write_text(number)
    code, _, error = run(capsys, "report", folder)
    assert code == 2 and str(folder / "counts.json") in error and error.count("\n") == 1
