import datetime

import numpy as np
import pandas as pd
import pytest

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding

GAP = np.nan


def encoded(values, **more):
    """Encode one column; return its states and the state of each record, None where missing."""
    data = SiteData.from_frame(pd.DataFrame({"a": values}), **more)
    states = data.variables["a"].states
    return states, [(*states, None)[code] for code in data.codes["a"]]


@pytest.mark.parametrize(
    ("values", "states", "records"),
    [
        (["x", "y", None, "x"], ("x", "y"), ["x", "y", None, "x"]),
        (pd.array(["x", pd.NA, "y"], "string"), ("x", "y"), ["x", None, "y"]),
        ([True, False, True], ("False", "True"), ["True", "False", "True"]),
        (pd.array([True, None, False], "boolean"), ("False", "True"), ["True", None, "False"]),
        ([3, 1, 1], ("1", "3"), ["3", "1", "1"]),
        (np.array([3, 1, 1], np.uint8), ("1", "3"), ["3", "1", "1"]),
        (pd.array([3, None, 10], "Int64"), ("3", "10"), ["3", None, "10"]),
        ([3.0, GAP, 10.0], ("3", "10"), ["3", None, "10"]),  # as pandas reads 3, nothing, 10
        ([0.5, -1.0, GAP], ("-1", "0.5"), ["0.5", "-1", None]),
        (np.array([0.1, 0.25], np.float32), ("0.1", "0.25"), ["0.1", "0.25"]),
        (pd.array([0.1, None, 2], "Float64"), ("0.1", "2"), ["0.1", None, "2"]),
        (["x", 1, None, 1.0], ("1", "x"), ["x", "1", None, "1"]),
        (
            [datetime.date(2024, 1, 31), None, datetime.date(2023, 1, 1)],
            ("2023-01-01", "2024-01-31"),
            ["2024-01-31", None, "2023-01-01"],
        ),
        (
            pd.to_datetime(["2024-01-31 10:05:00.5", "2023-01-01"], format="ISO8601"),
            ("2023-01-01 00:00:00", "2024-01-31 10:05:00.5"),
            ["2024-01-31 10:05:00.5", "2023-01-01 00:00:00"],
        ),
        ([None, pd.NA, GAP, "x", "y"], ("x", "y"), [None, None, None, "x", "y"]),
    ],
)
def test_values_of_every_kind(values, states, records):
    assert encoded(values) == (states, records)


def test_categories_are_states_in_their_order():
    sizes = pd.Categorical(["big", None, "small"], ["small", "middle", "big"], ordered=True)
    assert encoded(sizes) == (("small", "middle", "big"), ["big", None, "small"])
    numbers = pd.Categorical([2, 1, 2], [2, 1])
    assert encoded(numbers) == (("2", "1"), ["2", "1", "2"])
    cut = pd.cut(pd.Series([1, 5, 9]), [0, 4, 10])
    assert encoded(cut)[0] == ("(0, 4]", "(4, 10]")


def test_declared_states_go_before_categories_and_missing_codes_are_no_states():
    values = pd.Categorical(["b", "?", "a"])
    assert encoded(values, encoding=Encoding(["?"])) == (("a", "b"), ["b", None, "a"])
    declared = Encoding(["?"], {"a": ("b", "a")})
    assert encoded(values, encoding=declared)[0] == ("b", "a")


def test_many_numbers_are_binned_and_a_frame_reads_as_its_csv_file(tmp_path):
    from vertibayes_protocols.site.text import read_columns

    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"n": generator.normal(size=200), "i": generator.integers(0, 90, 200)})
    frame.loc[::7, "i"] = np.nan
    frame["b"] = frame["n"] > 0
    frame.to_csv(tmp_path / "f.csv", index=False)
    by_file = SiteData.from_text("f", read_columns(tmp_path / "f.csv"))
    by_frame = SiteData.from_frame(frame)
    assert by_frame.variables == by_file.variables
    for name in frame:
        assert np.array_equal(by_frame.codes[name], by_file.codes[name])


def test_the_index_is_ignored_unless_it_has_the_identifiers():
    frame = pd.DataFrame({"a": ["x", "y"]}, pd.Index(["p7", "p9"], name="patient"))
    assert SiteData.from_frame(frame).ids is None
    ids = SiteData.from_frame(frame, ids="patient").ids
    assert [ids.texts[place] for place in ids.places] == ["p7", "p9"]
    by_column = SiteData.from_frame(frame.reset_index(), ids="patient")
    assert list(by_column.variables) == ["a"] and by_column.ids.texts == ids.texts
    with pytest.raises(DataError, match="no column or index named 'person'"):
        SiteData.from_frame(frame, ids="person")


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pd.DataFrame([["x", "y"]] * 2, columns=["a", "a"]), "ward: the column 'a' "),
        (pd.DataFrame([["x", "y"]] * 2, columns=[1, "1"]), "ward: the column '1' "),
        (pd.DataFrame([["x", "y"]], columns=["a", " "]), "ward: column 2 has no name"),
        (pd.DataFrame({("a", "b"): ["x", "y"]}), r"must be a text or a number, got \('a', 'b'\)"),
        (pd.DataFrame({"a": []}), "ward: the data frame has no records"),
        (pd.DataFrame(index=[1, 2]), "ward: the data frame has no columns"),
        (pd.DataFrame({"a": pd.to_timedelta(["1h", "2h"])}), "'a' has periods or durations"),
        (pd.DataFrame({"a": pd.period_range("2024", periods=2)}), "'a' has periods or durations"),
        (pd.DataFrame({"a": pd.date_range("2024", periods=30)}), "30 dates, as '2024-01-01 00:00"),
        (pd.DataFrame({"a": [1j, 2]}), "'a' has complex numbers"),
        (pd.DataFrame({"a": [[1], [2]]}), "'a' has values that are not texts"),
        (pd.DataFrame({"a": [None, None]}), "ward: no column can be used\n  a: no values"),
    ],
)
def test_a_frame_that_cannot_be_read_is_refused_by_name(frame, reason):
    with pytest.raises(DataError, match=reason):
        SiteData.from_frame(frame, site="ward")
