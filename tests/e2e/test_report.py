"""The page of a run: its numbers are those of the files, and it stands alone."""

from __future__ import annotations

import csv
import json
import re
from decimal import Decimal

import numpy as np
import pytest

from tests.e2e.command import write
from tests.results_folders import NAMES, QUICK, Page, ran
from vertibayes.cli.report import add_report
from vertibayes.report.page.render import render
from vertibayes.report.page.results import Results

every_folder = pytest.mark.parametrize("results_folder", NAMES, indirect=True)
UNITS = {"%": Decimal("0.01"), "kB": Decimal(1000), "MB": Decimal(10**6), "s": Decimal(1)}
SHOWN = re.compile(r"(-?[\d,]+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(%|kB|MB|s)?")


def page_of(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def rows_of_gaps(data):
    texts = [np.array([*v.states, ""])[data.codes[name]] for name, v in data.variables.items()]
    return [list(row) for row in zip(*texts, strict=True)]


def content_at(files, key):
    """Return the value at a key of the page: a file, and a JSON pointer in it."""
    name, pointer = key.split("#", 1)
    value = files[name]
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def leaves(value, pointer=""):
    if isinstance(value, dict):
        for name, inside in value.items():
            yield from leaves(inside, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for place, inside in enumerate(value):
            yield from leaves(inside, f"{pointer}/{place}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield pointer


def is_rounded(shown, exact):
    """Whether a shown number is the exact one, rounded to the digits that it has."""
    if shown == "under 0.1%":
        return 0 < exact < Decimal("0.001")
    if shown == "over 99.9%":
        return Decimal("0.9995") < exact < 1
    match = SHOWN.fullmatch(shown)
    digits, unit = match[1].replace(",", ""), UNITS.get(match[2], Decimal(1))
    step = Decimal(1).scaleb(Decimal(digits).as_tuple().exponent)
    return abs(Decimal(digits) * unit - exact) <= step * unit / 2 * Decimal("1.000001")


@every_folder
def test_each_number_of_the_page_is_that_of_the_file_which_it_names(results_folder):
    page = page_of(results_folder)
    files = {path.name: json.loads(path.read_text()) for path in results_folder.glob("*.json")}
    assert len(page.numbers) > 40
    for key, value, shown in page.numbers:
        content = content_at(files, key)
        number = len(content) if isinstance(content, dict | list) else content
        assert json.loads(value) == number, key
        assert is_rounded(shown, Decimal(str(number))), (key, value, shown)


def test_the_comparison_of_shown_numbers_rejects_other_numbers():
    assert is_rounded("1,234.5", Decimal("1234.46")) and is_rounded("12.3%", Decimal("0.1234"))
    assert not is_rounded("1,234.5", Decimal("1234.56")) and not is_rounded("1", Decimal("1.6"))
    assert is_rounded("over 99.9%", Decimal("0.9996")) and not is_rounded("over 99.9%", Decimal(1))
    assert not is_rounded("12.3%", Decimal("0.1236")) and is_rounded("1.5 kB", Decimal(1460))


@every_folder
def test_the_page_has_each_number_of_the_summary(results_folder):
    page = page_of(results_folder)
    keys = {key for key, _, _ in page.numbers}
    summary = json.loads((results_folder / "summary.json").read_text())
    absent = [place for place in leaves(summary) if f"summary.json#{place}" not in keys]
    assert not absent


@every_folder
def test_sections_have_all_numbers_of_the_summary(results_folder):
    """A number that only the list at the end has is one that nobody explains."""
    text = (results_folder / "report.html").read_text(encoding="utf-8")
    assert "Other numbers of summary.json" not in text


def test_a_number_that_no_section_knows_is_listed_at_the_end(tmp_path):
    content = {"variables": {}, "edges": 0, "new": {"measure": 12.5}}
    (tmp_path / "summary.json").write_text(json.dumps(content))
    page = Page(render(Results.read(tmp_path)))
    assert ["summary.json#/new/measure", "12.5", "12.5"] in page.numbers
    assert "Other numbers of summary.json" in page.text


@pytest.mark.parametrize(
    ("cells", "said"),
    [(1, "1 count in 1 table equals 1; it identifies at least 1 record ("),
     (2, "2 counts in 1 table equal 1; they identify at least 1 record (")],
)  # fmt: skip
def test_counts_of_one_record_are_one_or_several(tmp_path, cells, said):
    single = {"cells": cells, "tables": 1, "records": 1, "share": 0.01}
    opened = {"tables": 1, "cells": 4, "single_record": single}
    (tmp_path / "summary.json").write_text(json.dumps({"variables": {}, "opened": opened}))
    text = re.sub("<[^>]*>", "", render(Results.read(tmp_path)))
    assert said in " ".join(text.split())


@every_folder
def test_the_page_stands_alone_and_is_small(results_folder):
    text = (results_folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.outside == [] and "default-src 'none'" in text
    assert "http-equiv" in text and "@import" not in text and "url(" not in text
    assert len(text.encode()) < 1_000_000
    assert len(set(page.ids)) == len(page.ids)


@every_folder
def test_readers_of_screens_find_headings_captions_and_heads(results_folder):
    page = page_of(results_folder)
    kinds = [kind for kind, _ in page.headings]
    assert kinds.count("h1") == 1 and kinds[0] == "h1" and kinds.count("h2") == 10
    assert page.tables and all(table["caption"] and table["heads"] for table in page.tables)
    text = (results_folder / "report.html").read_text(encoding="utf-8")
    assert '<html lang="en">' in text and '<main id="content"' in text and 'class="skip"' in text
    regions = re.findall(r'role="region" aria-label="([^"]*)"', text)
    assert regions and len(set(regions)) == len(regions)
    assert len(re.findall(r"<img[^>]* alt=\"[^\"]{40,}\"", text)) == text.count("<img")


@every_folder
def test_words_that_the_page_links_are_explained_in_it_and_no_others(results_folder):
    text = (results_folder / "report.html").read_text(encoding="utf-8")
    linked = {*re.findall(r'href="#(word-\w+)"', text)}
    explained = re.findall(
        r'<div id="(word-\w+)"><dt><dfn>[^<]+</dfn></dt><dd>[^<]{20,}</dd>', text
    )
    assert linked == {*explained} and len(explained) == len(linked) > 0
    assert set(re.findall(r'href="#([\w-]+)"', text)) <= {*page_of(results_folder).ids}


@every_folder
def test_key_figures_come_before_the_network_and_scores_do_not(results_folder):
    text = (results_folder / "report.html").read_text(encoding="utf-8")
    overview = text[text.index('<section id="overview"') : text.index('<section id="network"')]
    assert 'data-key="summary.json#/records"' in overview and "<table" not in overview
    assert "protection of persons" in overview and "/scores/" not in overview


@pytest.mark.parametrize("results_folder", ["diabetes"], indirect=True)
def test_counts_that_the_rule_cut_are_marked_and_not_shown(results_folder):
    page = page_of(results_folder)
    counts = json.loads((results_folder / "counts.json").read_text())
    assert counts["kind"] == "cut" and counts["fewest"] == 10
    cells = [c for f in counts["families"].values() for row in f["counts"] for c in row]
    assert all(cell == 0 or cell >= 10 for cell in cells) and 0 in cells
    assert page.text.count("(fewer than 10)") >= cells.count(0)
    assert "below 10 is released as 0" in page.text


@pytest.mark.parametrize("results_folder", ["alarm"], indirect=True)
def test_exact_counts_are_for_the_analyst_alone(results_folder):
    page = page_of(results_folder)
    assert "Only the analyst may read this page" in page.text
    counts = json.loads((results_folder / "counts.json").read_text())
    model = json.loads((results_folder / "model.json").read_text())
    for node in model["nodes"]:
        rows = counts["families"][node["name"]]["counts"]
        assert sum(map(sum, rows)) == 2000
        for row, probabilities in zip(rows, node["probabilities"], strict=True):
            expected = [(count + 0.5) / (sum(row) + 0.5 * len(row)) for count in row]
            assert expected == pytest.approx(probabilities, abs=1e-12)


def test_counts_beside_probabilities_of_em_are_those_of_complete_records(gaps, tmp_path):
    names = list(gaps.variables)[6:10]
    rows = [[*cells[6:10]] for cells in rows_of_gaps(gaps)]
    data = write(tmp_path / "gaps.csv", names, rows)
    ran("learn", "--data", data, "--sites", 2, "--algorithm", "chow_liu", "--bootstrap", 0,
        "--quiet", "--out", tmp_path / "out")  # fmt: skip
    counts = json.loads((tmp_path / "out" / "counts.json").read_text())
    complete = sum("" not in row[:1] for row in rows)
    assert counts["kind"] == "complete"
    assert sum(map(sum, counts["families"][names[0]]["counts"])) <= complete < len(rows)
    assert "EM estimates of all records" in page_of(tmp_path / "out").text


@pytest.mark.parametrize("results_folder", ["study"], indirect=True)
def test_the_page_of_a_study_has_the_digest_that_the_owners_compared(results_folder):
    page = page_of(results_folder)
    study = json.loads((results_folder / "summary.json").read_text())["study"]
    assert study["contract"][:4] in page.text and "All sites approved this study." in page.text
    for question in ("What left", "To whom", "Under which approval", "What is not protected"):
        assert page.text.count(question) == 1


@pytest.mark.parametrize("results_folder", ["diabetes"], indirect=True)
def test_tables_that_need_a_decision_come_before_those_to_which_no_check_objects(results_folder):
    with (results_folder / "release" / "tables.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    verdicts = {row["verdict"] for row in rows}
    assert verdicts == {"review", "pass"}
    text = page_of(results_folder).text
    part = text[text.index("Tables that need a decision") : text.index("What the verdicts mean")]
    decide, passed = part.split("Tables to which no check objects", 1)
    assert decide.count("review") == sum(row["verdict"] == "review" for row in rows)
    assert "pass" not in decide and "review" not in passed


@pytest.mark.parametrize("results_folder", ["classifier"], indirect=True)
def test_the_page_of_a_classifier_has_its_promise_and_its_scores(results_folder):
    page = page_of(results_folder)
    summary = json.loads((results_folder / "summary.json").read_text())
    assert summary["promise"]["sentence"] in page.text
    assert f"{summary['test']['accuracy']:.2%}" in page.text
    assert "counts with noise" in page.text and "exact counts" not in page.text


@pytest.mark.parametrize("results_folder", ["alarm"], indirect=True)
def test_the_embedded_model_is_that_of_the_folder(results_folder):
    page = page_of(results_folder)
    nodes = json.loads((results_folder / "model.json").read_text())["nodes"]
    assert [node["cpt"] for node in page.model["nodes"]] == [n["probabilities"] for n in nodes]
    assert [node["parents"] for node in page.model["nodes"]] == [n["parents"] for n in nodes]


@pytest.mark.parametrize("results_folder", ["alarm"], indirect=True)
def test_a_page_that_cannot_be_made_costs_no_result(results_folder, tmp_path, monkeypatch, capsys):
    for path in results_folder.iterdir():
        if path.is_file() and path.name != "report.html":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr("vertibayes.report.page.render.sections_of", lambda *_: 1 / 0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    add_report(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert "warning: report.html: not written (ZeroDivisionError" in capsys.readouterr().err


def test_a_target_without_a_validation_is_the_outcome_of_the_page(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("a,b\n" + "0,x\n1,y\n" * 20)
    ran("learn", "--data", data, "--sites", 2, "--target", "b", *QUICK, "--out", tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert page.model["target"] == "b" and "The outcome is b." in " ".join(page.text.split())
    assert not (tmp_path / "out" / "validation.json").exists()
