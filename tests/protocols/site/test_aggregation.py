import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.aggregation import Aggregation
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text_column import TextColumn

IDS = ["a", "b", "a", "c", "a", "b"]
DAYS = ["2024-01-02", "2024-01-01", "2023-12-31", "2024-01-05", "2024-02-01", "2024-01-03 08:00"]


def made(rule, values, days=DAYS, ids=IDS, **encoding):
    """Return the value of each person, in the order of the first rows."""
    aggregation = Aggregation({"x": rule}, "day")
    people = aggregation.people(
        "t", TextColumn.of(ids), {"x": TextColumn.of(values)}, Encoding(**encoding),
        TextColumn.of(days),
    )  # fmt: skip
    assert list(people.ids.texts) == list(dict.fromkeys(ids))
    return [people.columns["x"].texts[place] for place in people.columns["x"].places]


@pytest.mark.parametrize(
    ("rule", "values", "result"),
    [
        ("first", ["1", "2", "3", "4", "5", "6"], ["3", "2", "4"]),
        ("last", ["1", "2", "3", "4", "5", "6"], ["5", "6", "4"]),
        ("last", ["1", "2", "3", "", "", "NA"], ["1", "2", ""]),  # rows without a value
        ("min", ["10", "2", "9", "", "11", "1.5"], ["9", "1.5", ""]),
        ("max", ["10", "2", "9", "NA", "unknown", "1.5"], ["10", "2", ""]),
        ("count", ["10", "2", "9", "", "", "1"], ["2", "2", "0"]),
        ("same", ["f", "m", "f", "NA", "", "m"], ["f", "m", ""]),
    ],
)
def test_rules(rule, values, result):
    assert made(rule, values, missing_codes=["NA"]) == result


def test_declared_states_have_an_order_and_numbers_order_rows():
    states = {"x": ("no", "maybe", "yes")}
    values = ["no", "maybe", "yes", "no", "no", "no"]
    assert made("max", values, states=states) == ["yes", "maybe", "no"]
    assert made("min", values, states=states) == ["no", "no", "no"]
    assert made("last", values, ["9", "2", "10", "1", "-1", "1"]) == ["yes", "maybe", "no"]


@pytest.mark.parametrize(
    ("rule", "values", "days", "reason"),
    [
        ("same", ["f", "m", "f", "f", "m", "m"], DAYS, "records 3 and 5 of one person have diff"),
        ("last", ["1", "2", "3", "4", "5", "6"], ["1"] * 6, "records 1 and 3 of one person have d"),
        (
            "last",
            ["1"] * 6,
            ["1", "", "1", "1", "1", "1"],
            "record 2: '' in 'day' .order_by. is no",
        ),
        ("last", ["1"] * 6, ["1", "x", "1", "1", "1", "1"], "record 2: 'x' in 'day'"),
        ("last", ["1"] * 6, ["31.1.2024"] * 6, "record 1: .* is not a number and not a date as 20"),
        ("max", ["1", "2", "high", "4", "5", "6"], DAYS, "record 3: 'high' is not a number, and"),
    ],
)
def test_rows_that_do_not_determine_a_value_are_named(rule, values, days, reason):
    with pytest.raises(DataError, match=reason):
        made(rule, values, days)


def test_equal_values_at_the_same_moment_are_one():
    assert made("last", ["1", "2", "1", "4", "1", "2"], ["1"] * 6) == ["1", "2", "4"]
    assert made("first", ["1", "2", "3", "4", "5", "6"], ["1", "1", "2", "1", "2", "2"])[0] == "1"


def test_unknown_rules_are_refused():
    with pytest.raises(ValueError, match="must be one of first, last, min"):
        Aggregation({"x": "mean"})
    with pytest.raises(ValueError, match="needs order_by"):
        Aggregation({"x": "last"})


rows = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(-5, 5)), min_size=1)


@settings(max_examples=25, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_rules_agree_with_pandas(listed, random):
    frame = pd.DataFrame(listed, columns=["id", "x"])
    frame["day"] = np.array(random.sample(range(len(frame)), len(frame)))
    ids, values = list(frame["id"]), [v if v is None else str(v) for _, v in listed]
    grouped = frame.sort_values("day").groupby("id")["x"]
    for rule in ("first", "last", "min", "max", "count"):
        expected = getattr(grouped, rule)()
        shown = made(rule, values, list(map(str, frame["day"])), ids)
        for person, text in zip(dict.fromkeys(ids), shown, strict=True):
            value = expected[person]
            assert text == ("" if pd.isna(value) else str(int(value))), rule
