"""Shown numbers keep their file, their place and their exact value; texts are escaped."""

import json
from decimal import Decimal
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.e2e.test_report import content_at, is_rounded
from tests.results_folders import Page
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.shown import FORMS, Seen, anything, listed, name, number, row, table

numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
keys = st.lists(st.text(min_size=1) | st.integers(0, 3), max_size=4)
TAGS = {*["bdi", "data", "tr", "th", "td", "div", "table", "caption", "thead", "tbody"]}
ROUNDED = {*FORMS, ".2%", ",.1f", ",.3f"} - {"probability", "share", "area"}


def context():
    return {"seen": Seen()}


def inside(value, path):
    """Return a value inside of objects and lists, and the entry at its place."""
    for key in reversed(path):
        value = {key: value} if isinstance(key, str) else [None] * key + [value]
    entry = Entry("a<b.json", value)
    for key in path:
        entry = entry[key]
    return value, entry


@given(numbers, keys, st.sampled_from(sorted({*FORMS, *ROUNDED})))
def test_a_shown_number_is_the_one_at_its_place_in_the_file(value, path, form):
    content, entry = inside(value, path)
    page = context()
    [[key, exact, shown]] = Page(number(page, entry, form)).numbers
    assert json.loads(exact) == value == content_at({"a<b.json": content}, key)
    assert shown and page["seen"].numbers == {key}


@example(5e-324, "brief")
@given(st.floats(-1e6, 1e6), st.sampled_from(sorted(ROUNDED)))
def test_a_shown_number_is_the_exact_one_rounded(value, form):
    if form == "bytes" or (form == "seconds" and value < 0):
        value = abs(round(value))
    [[_, _, shown]] = Page(number(context(), Entry("f", value), form)).numbers
    assert is_rounded(shown, Decimal(value)), (value, form, shown)


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (0.0004, "share", "under 0.1%"), (0.9996, "probability", "over 99.9%"),
        (1, "probability", "100.0%"), (0.99996, "area", "0.99996"), (1.0, "area", "1.000"),
        (10**16, "plain", "1e+16"),
    ],
)  # fmt: skip
def test_a_rounded_number_is_not_shown_as_certain(value, form, shown):
    assert Page(number(context(), Entry("f", value), form)).text == shown


def test_what_is_no_number_is_shown_as_it_is_or_said_to_be_missing():
    entry = Entry("f.json", {"list": [1, 2], "text": "<b>", "none": None, "yes": True})
    page = context()
    assert 'value="2" data-key="f.json#/list"' in number(page, entry["list"])
    assert number(page, entry["text"]) == '<bdi class="name">&lt;b&gt;</bdi>'
    assert number(page, entry["none"]) == number(page, entry["else"]) == "missing in f.json"
    assert anything(page, entry["yes"]) == "yes" and anything(page, entry["none"]) == "not set"


@given(st.text())
def test_no_text_of_the_data_is_markup(text):
    entry = Entry(text, {text: {text: [text, 1.5]}})
    page = context()
    whole = table(page, text, [text], lambda: row(name(text), anything(page, entry), text))
    for html in (name(text), listed([text]), anything(page, entry), row(text, text), whole):
        assert {tag.split()[0].strip("/") for tag in tags_of(html)} <= TAGS
    assert not text.isalnum() or text in unescape(whole)


def tags_of(html):
    """Return what stands between < and >, which no text of the data has."""
    assert html.count("<") == html.count(">")
    return [part.partition(">")[0] for part in html.split("<")[1:]]
