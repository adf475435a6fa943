"""Which columns of a dirty file stay numbers, and between which bounds."""

from __future__ import annotations

import pytest

from vertibayes.cli.number_columns import ALL, with_bounds
from vertibayes.cli.source import Source
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.text_column import TextColumn

SPREAD = range(3, 63, 2)
COLUMNS = {
    "class": [str(place % 3) for place in range(30)],
    "id": [str(place) for place in range(30)],
    "plain": [f"{value / 8}" for value in SPREAD],
    "gaps": ["" if value % 3 else str(value) for value in SPREAD],
    "words": ["NA" if value % 5 == 0 else f"{value % 19}" for value in SPREAD],
    "few": [str(value % 4) for value in range(30)],
    "yes or no": [str(value % 2) for value in range(30)],
    "euros": [f"{value % 18 + 1}.{value + 100},5 €" for value in SPREAD],
    "text": [f"t{value % 3}" for value in SPREAD],
    "date": [f"2024-01-{value % 28 + 1:02}" for value in SPREAD],
    "mixed": ["high" if value < 9 else str(value % 19) for value in SPREAD],
    "units": ["3 kg" if value % 2 else "5 lb" for value in range(30)],
    "constant": ["7"] * 30,
}
TEXTS = {name: TextColumn.of(values) for name, values in COLUMNS.items()}


def bounds(names, **given):
    source = with_bounds(Source(("d.csv",), numbers=names, target="class", **given), TEXTS)
    return dict(text.split("=") for text in source.bounds)


def test_all_are_the_columns_of_numbers_that_nothing_else_names():
    assert bounds(ALL) == {
        "plain": "0.375,7.625",
        "gaps": "3,57",
        "words": "0,18",
        "few": "0,3",
        "euros": "2119.5,18153.5",
    }


def test_bounds_and_other_readings_by_hand_win():
    chosen = bounds(ALL, bounds=("plain=0,9",), categorical=("few",), cut=("gaps=9,20",))
    assert chosen["plain"] == "0,9" and not {"few", "gaps", "class"} & set(chosen)
    assert bounds(["plain"], bounds=("plain=0,9",)) == {"plain": "0,9"}


def test_named_columns_stay_numbers_though_they_have_few():
    assert bounds(["yes or no", "few"]) == {"yes or no": "0,1", "few": "0,3"}
    assert bounds(["mixed"], missing_codes=("mixed=high",))["mixed"].split(",")[0] == "0"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("text", "--numbers text: the column has 't"),
        ("mixed", "if it says missing, specify --missing-codes 'mixed=high'"),
        ("units", "--numbers units: numbers in several units, 'kg' and 'lb'"),
        ("constant", "needs two different numbers, got 1; leave it out with --exclude constant"),
        ("nothing", "--numbers nothing: no such column; there are class, id"),
    ],
)
def test_columns_that_cannot_are_refused(name, reason):
    with pytest.raises(DataError) as refusal:
        bounds([name])
    assert reason in str(refusal.value)
