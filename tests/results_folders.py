"""Folders of results, as runs write them, and pages as readers and programs see them."""

from __future__ import annotations

import gzip
import json
from html.parser import HTMLParser
from itertools import islice

import pytest

from tests.e2e.command import rows_of, write
from tests.e2e.studies import run_in_one_process
from tests.protocols.deployment.parties import SITES, deployment
from vertibayes.cli import main

NAMES = "alarm", "adult", "diabetes", "classifier", "study"
QUICK = ("--bootstrap", 2, "--quiet")
VOID = {"meta", "link", "img", "br", "hr", "input"}


def ran(*arguments):
    """Run a command that succeeds."""
    with pytest.raises(SystemExit) as stop:
        main([*map(str, arguments)])
    assert not stop.value.code, arguments


def made(name, folder, alarm_data, data_folder):
    """Run what makes the folder of a name, and return its path."""
    out = folder / name
    if name == "alarm":
        data = write(folder / "alarm.csv", alarm_data.variables, rows_of(alarm_data))
        learn = ("learn", "--data", data, "--sites", 3, "--algorithm", "hill_climbing")
        ran(*learn, "--target", "HR", "--validate", "scv", "--folds", 3, *QUICK, "--out", out)
    elif name == "adult":
        learn = ("learn", "--data", adult(folder, data_folder, 1000), "--sites", 3)
        ran(*learn, "--algorithm", "chow_liu", "--exclude", "fnlwgt", *QUICK, "--out", out)
    elif name == "diabetes":
        data = data_folder / "diabetes" / "diabetes_binned_missing10.csv"
        learn = ("learn", "--data", data, "--sites", 3, "--id-column", "record_id")
        ran(*learn, "--algorithm", "chow_liu", "--release", "cut", *QUICK, "--out", out)
    elif name == "classifier":
        nb = ("nb", "--data", adult(folder, data_folder, 2000), "--target", "income")
        method = ("--method", "federated", "--parties", 5, "--epsilon", 4, "--holdout", 0.2)
        ran(*nb, *method, "--bounds", "age=17,90", "--quiet", "--out", out)
    else:
        approved_study(folder / "parties", out)
    return out


def adult(folder, data_folder, records):
    """Write the first records of Adult."""
    path = folder / f"adult-{records}.csv"
    with gzip.open(data_folder / "uci" / "adult_train.csv.gz", "rt") as file:
        path.write_text("".join(islice(file, records + 1)))
    return path


def approved_study(parties, out):
    """Run a study with cuts that all sites have approved, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        run_in_one_process(patch, parties)
        folder = deployment(parties, free=False)
        study = folder / "analyst" / "study.toml"
        for site in SITES:
            own = folder / site / "site.toml"
            ran("approve", study, "--site", own, "--yes", "--by", "Owner")
        ran("learn", study, "--quiet", "--out", out)


class Page(HTMLParser):
    """What a page has: numbers with their places, ids, text, headings and links out of it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.numbers, self.ids, self.headings, self.outside = [], [], [], []
        self.tables, self.scripts, self.open, self.words = [], [], [], []
        self.model = None
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag not in VOID:
            self.open.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []
        if tag == "data":
            self.numbers.append([given["data-key"], given["value"], ""])
        if tag == "table":
            self.tables.append({"caption": "", "heads": 0})
        if tag == "th":
            assert given.get("scope") in ("row", "col")
            self.tables[-1]["heads"] += 1
        if tag == "script":
            self.scripts.append("")
        urls = [given.get(name, "") for name in ("src", "href", "action", "srcset", "xlink:href")]
        self.outside += [u for u in urls if u and not u.startswith(("#", "data:image/svg+xml"))]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            last, _ = self.open.pop()
            assert last == tag, f"</{tag}> closes <{last}>"

    def handle_data(self, text):
        tags = [tag for tag, _ in self.open]
        if "script" in tags or "style" in tags:
            if "script" in tags:
                self.scripts[-1] += text
                if self.open[-1][1].get("id") == "model":
                    self.model = json.loads(text)
            return
        self.words.append(text)
        if tags and tags[-1] == "data":
            self.numbers[-1][2] += text
        if "caption" in tags:
            self.tables[-1]["caption"] += text
        if tags and tags[-1] in ("h1", "h2", "h3"):
            self.headings.append((tags[-1], text))

    @property
    def text(self):
        return " ".join("".join(self.words).split())  # as a browser shows it
