from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoded import encode, encode_known
from vertibayes_protocols.site.encoding import NA, Encoding
from vertibayes_protocols.site.findings import UnsuitableColumnError
from vertibayes_protocols.site.inspection import MOST_NUMBERS
from vertibayes_protocols.site.numerals import number
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable


def encoded(values, **options):
    """Encode a column; return its states, and each record's state (None if missing)."""
    variable, codes, _ = encode("site", "x", TextColumn.of(values), Encoding(**options))
    assert len(codes) == len(values)
    names = [*variable.states, *[None] * variable.missing]
    return variable.states, [names[code] for code in codes]


@pytest.mark.parametrize(
    ("values", "states"),
    [
        (["b", "a", "b", "c"], ("a", "b", "c")),
        (["10", "9", "-1", "9"], ("-1", "9", "10")),
        (["10", "9", "x", "9"], ("10", "9", "x")),
        (["2", "1e1", "0.5", "2"], ("0.5", "2", "1e1")),
        (["nana", "inf", "1", "1"], ("1", "inf", "nana")),
        ([True, False, True], ("False", "True")),
        (["b", "a"], ("a", "b")),
        ([str(i % 16) for i in range(40)], tuple(map(str, range(16)))),
    ],
)
def test_states_are_found_in_their_order(values, states):
    assert encoded(values) == (states, [str(value) for value in values])


@pytest.mark.parametrize(
    ("records", "states"),
    [
        ({"a": 5, "b": 4, "c": 5, "d": 1}, ("a", "c", "other")),  # 4 and 1 are 5
        ({"a": 6, "b": 4, "c": 5}, ("a", "other")),  # 4 are too few: the next rarest joins
        ({"a": 9, "other": 6, "b": 1}, ("a", "other")),  # also a state that has this name
        ({"a": 9, "other": 2, "b": 3}, ("a", "other")),
        ({"a": 5, "b": 5}, ("a", "b")),
        ({"1": 5, "2.5": 1, "30": 4}, ("1", "other")),
        ({"a": 1}, None),
        ({"a": 9, "b": 4}, None),
        ({"a": 2, "b": 2, "c": 2}, None),
    ],
)
def test_states_of_few_records_are_one_state(records, states):
    values = [text for text, count in records.items() for _ in range(count)]
    if states is None:
        kind = "constant" if len(records) == 1 else "in fewer than 5 records"
        with pytest.raises(
            UnsuitableColumnError, match="one value" if kind == "constant" else kind
        ):
            encoded(values, fewest=5)
        return
    found, codes = encoded(values, fewest=5)
    assert found == states
    assert codes == [text if text in states else "other" for text in values]
    assert "other" not in states or codes.count("other") >= 5


@pytest.mark.parametrize(
    ("earlier", "states"),
    [
        (["a", "b", "other"], ("a", "b", "other", "new")),  # b is rare now, and has left before
        (["b", "a"], ("b", "a", "new", "other")),
        (["other", "a", "b"], ("other", "a", "b", "new")),
    ],
)
def test_states_that_have_left_before_stay_and_new_ones_of_few_records_are_one(earlier, states):
    values = [*"aaaaaab", *["new"] * 5, *"vwxyz"]
    found, codes = encoded(values, fewest=5, earlier={"x": earlier})
    assert found == states
    assert codes == [*"aaaaaab", *["new"] * 5, *["other"] * 5]


def test_declared_states_edges_and_bins_are_not_merged():
    values = [*"1122", "3"] * 4
    assert encoded(values, fewest=5, states={"x": ["1", "2", "3"]})[0] == ("1", "2", "3")
    assert len(encoded(values, fewest=5, cuts={"x": [Decimal(2)]})[0]) == 2
    numbers = [str(number) for number in range(40)] * 2
    assert encoded(numbers, fewest=30)[0] == encoded(numbers)[0]


def test_spellings_of_a_state_count_together():
    values = ["yes"] * 3 + ["YES"] * 2 + ["no"] * 5
    assert encoded(values, fewest=5, ignore_case=["x"])[0] == ("no", "yes")
    assert encoded(values, fewest=5)[0] == ("no", "other")


def test_a_number_is_one_state_however_it_is_written():
    assert encoded(["1", "1.0", " 2", "1", "2"]) == (("1", " 2"), ["1", "1", " 2", "1", " 2"])


@pytest.mark.parametrize(
    ("values", "codes", "found"),
    [
        (["a", "", "b", "  "], (), ["a", None, "b", None]),
        (["a", "?", "b", "?"], (), ["a", "?", "b", "?"]),
        (["a", "?", "b", "NA"], ("?", "NA"), ["a", None, "b", None]),
        (["1", "?", "2", "99"], ("?", "99"), ["1", None, "2", None]),
        (["a", None, "b", float("nan")], (), ["a", None, "b", None]),
    ],
)
def test_missing_values_have_the_last_code(values, codes, found):
    states, records = encoded(values, missing_codes=codes)
    assert records == found and states == tuple(sorted({v for v in found if v}))


def test_declared_states_keep_their_order_and_may_be_unused():
    states, found = encoded(["low", "high", "low", ""], states={"x": ("low", "mid", "high")})
    assert states == ("low", "mid", "high") and found == ["low", "high", "low", None]


def test_declared_numbers_are_not_binned():
    states = tuple(str(i) for i in range(MOST_NUMBERS + 4))
    assert encoded(list(states) * 3, states={"x": states}) == (states, list(states) * 3)


@pytest.mark.parametrize(("declared", "dtype"), [(255, np.uint8), (256, np.uint16)])
def test_codes_take_two_bytes_where_one_is_too_few(declared, dtype):
    states = tuple(str(i) for i in range(declared))
    encoding = Encoding(states={"x": states}, max_states=300)
    variable, codes, _ = encode("site", "x", TextColumn.of([*states, ""]), encoding)
    assert codes.dtype == dtype and codes.tolist() == list(range(declared + 1))
    assert variable == Variable("x", states, missing=True)


@given(
    st.lists(st.integers(-99, 99), min_size=MOST_NUMBERS + 1, max_size=60, unique=True),
    st.sampled_from([0.1, 0.25, 0.4]),
)
def test_more_numbers_are_binned_in_their_order(values, share):
    records = [value / 4 for value in values] * 3 + [""]
    states, found = encoded(records, bins=share)
    assert len(states) >= 2 and found[-1] is None
    places = [states.index(state) for _, state in sorted(zip(records[:-1], found, strict=False))]
    assert places == sorted(places)
    sizes = np.bincount(places, minlength=len(states))
    assert sizes.min() >= 10 and sizes.max() - sizes.min() <= 3, "the records of one value"


def test_numbers_that_are_written_differently_share_a_bin():
    texts = [str(i) for i in range(20)] * 2 + [f"{i}.0" for i in range(20)]
    _, found = encoded(texts, bins=0.2)
    assert found[:20] == found[20:40] == found[40:]


IDS = [str(i) for i in range(50)]


@pytest.mark.parametrize(
    ("values", "options", "reason"),
    [
        (["", " ", "?"], {"missing_codes": ["?"]}, ": no values"),
        ([], {}, ": no values"),
        (["a", "a", ""], {}, ": one value, 'a', in all 3 records except 1 without a value"),
        (["a", "a"], {"states": {"x": ("a",)}}, ": one value, 'a', in all 2 records"),
        (["a"], {"states": {"x": ("a",)}}, ": one value, 'a', in 1 record"),
        ([""] * 3, {"states": {"x": ("a", "b")}}, ": no values"),
        (list("abca"), {"max_states": 2}, ": 3 states, more than 2; --max-states 3 keeps it"),
        (list("ab"), {"states": {"x": "abc"}, "max_states": 2}, ": 3 states, more than 2"),
        (
            ["a", "b", "a", "d"],
            {"states": {"x": "ab"}},
            ", record 4: 'd' is not one of its states, a, b",
        ),
        (["?", "A"], {"states": {"x": "ab"}, "missing_codes": ["?"]}, ", record 2: 'A' is not one"),
        (["p1", "p2", "p3"], {}, ": 3 different values in 3 records, which identify them"),
        (IDS, {}, ": 50 different values in 50 records, which identify them"),
        ([*IDS, *IDS[:5]], {}, ": 50 different values in 55 records, which identify them"),
        ([str(i) for i in range(17)] + ["0", "0"], {}, ": 17 numbers in 19 records, too few for"),
    ],
)
def test_a_column_that_cannot_be_encoded_is_named_with_its_site(values, options, reason):
    with pytest.raises(DataError) as caught:
        encoded(values, **options)
    assert str(caught.value).startswith(f"site: the column 'x'{reason}")


@pytest.mark.parametrize(
    "values", [[f"{i}.5" for i in range(50)], [f"{i}000" for i in range(50)] + ["0"], ["a", "b"]]
)
def test_what_is_no_identifier(values):
    assert len(encoded(values)[0]) >= 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bins": 0}, "above 0 and at most 0.5, or a number of bins, as 10, got 0"),
        ({"bins": 0.51}, "at most 0.5"),
        ({"bins": 1}, "got 1"),
        ({"bins": 10.5}, "got 10.5"),
        ({"own_bins": {"x": 0.6}}, "got 0.6"),
        (
            {"binning": "even"},
            "equal-frequency, equal-width or intervals, got 'even'",
        ),
        ({"cuts": {"x": [2, 1]}}, "the edges of 'x' must be one number or more, ascending"),
        ({"cuts": {"x": []}}, "the edges of 'x' must be one number"),
        ({"bins": float("nan")}, "got nan"),
        ({"max_states": 1}, "from 2 to 65000"),
        ({"max_states": 65_001}, "from 2 to 65000"),
    ],
)
def test_an_encoding_out_of_range_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        Encoding(**options)


@pytest.mark.parametrize("text", ["1", "-1.5", " 2 ", "1e3", "+4", ".5"])
def test_texts_that_are_numbers(text):
    assert float(number(text)) == float(text)


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-Infinity", "1,5", "0x1", "1 2"])
def test_texts_that_are_none(text):
    assert number(text) is None


def test_what_is_missing():
    encoding = Encoding(missing_codes=["-", "x=0"])
    texts = "", " \t", "-", "--", "0"
    assert [encoding.says_missing(text, "x") for text in texts] == [True, True, True, False, True]
    assert not encoding.says_missing("0", "y"), "a code of one column is none of another"


# ---- a site's data -------------------------------------------------------------------------------


def test_a_sites_columns_of_text_become_its_data():
    columns = {"x": TextColumn.of("aba"), "y": TextColumn.of(["1", "", "2"])}
    data = SiteData.from_text("site", columns, Encoding(), TextColumn.of("pqr"))
    assert data.variables == {"x": Variable("x", ("a", "b")), "y": Variable("y", ("1", "2"), True)}
    assert {name: codes.tolist() for name, codes in data.codes.items()} == {
        "x": [0, 1, 0],
        "y": [0, 2, 1],
    }
    assert data.records == 3 and "array" not in repr(data) and "pqr" not in repr(data)


@pytest.mark.parametrize(
    ("codes", "ids", "reason"),
    [
        ({}, None, "and codes of each variable"),
        ({"y": [0]}, None, "and codes of each variable"),
        ({"x": [0, 1], "y": [0]}, None, "the same length, got"),
        ({"x": [0, 1], "y": [0, 1]}, "abc", "the same length, got"),
        ({"x": [0, 1], "y": [0, 2]}, None, "y: codes must be below 2, got 2"),
    ],
)
def test_codes_that_are_none_of_their_variables_are_refused(codes, ids, reason):
    variables = {name: Variable(name, ("a", "b")) for name in "xy"}
    with pytest.raises(DataError, match=reason):
        SiteData(
            variables,
            {name: np.array(column, np.uint8) for name, column in codes.items()},
            ids and TextColumn.of(ids),
        )


def test_a_site_without_variables_is_refused():
    with pytest.raises(DataError, match="at least one variable"):
        SiteData({}, {})


@pytest.mark.parametrize("text", ["1e30", "9" * 30, "1e-40", "1e300"])
def test_numbers_beyond_the_usual_are_no_surprise(text):
    texts = [text, *map(str, range(1, 40))] * 3
    encoded = encode("site", "x", TextColumn.of(texts), Encoding())
    assert len(encoded.codes) == len(texts)


def test_a_declared_state_that_stands_twice_is_named():
    with pytest.raises(DataError, match="'x': a declared state appears twice"):
        encode("site", "x", TextColumn.of(["a", "b"]), Encoding(states={"x": ("a", "b", "a")}))


NUMBERS = [str(i % 40) for i in range(200)]


@pytest.mark.parametrize("word", ["refused", "1e400", "> 90", "3 months"])
def test_a_word_among_numbers_is_named(word):
    column = TextColumn.of([*NUMBERS, word, word])
    with pytest.raises(UnsuitableColumnError) as caught:
        encode("site", "x", column, Encoding())
    assert f"'x': numbers, except {word!r} (2 records, first 201); if it" in str(caught.value)
    named = encode("site", "x", column, Encoding(missing_codes=[word]))
    assert named.variable.missing and named.variable.states[0].startswith("le_")
    categorical = encode("site", "x", column, Encoding(categorical=["x"]))
    assert len(categorical.variable.states) == 41


def test_a_control_character_among_numbers_is_named_and_is_no_state():
    column = TextColumn.of([*NUMBERS, "\x00", "\x00"])
    with pytest.raises(UnsuitableColumnError, match=r"numbers, except '.x00' \(2 records"):
        encode("site", "x", column, Encoding())
    with pytest.raises(DataError, match="has control characters"):
        encode("site", "x", column, Encoding(categorical=["x"]))


@pytest.mark.parametrize("word", ["na", "?", "none", "-", "missing"])
def test_a_word_for_missing_among_numbers_is_missing_and_reported(word):
    found = encode("site", "x", TextColumn.of([*NUMBERS, word]), Encoding())
    assert found.variable.missing and found.codes[-1] == len(found.variable.states)
    assert found.findings[0].what == f"{word!r} among numbers is taken as missing (1 record)"
    few = encode("site", "x", TextColumn.of(["1", "0", word, "1"]), Encoding())
    assert few.variable.states == ("0", "1") and few.codes.tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize("others", [NUMBERS, ["a", "b", "b"]])
def test_the_texts_that_pandas_takes_as_missing_are_missing(tmp_path, others):
    from pandas import read_csv

    texts = [*NA, "na", "none", "?", "-", *others]
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{text},\n" for text in texts))
    gone = read_csv(tmp_path / "d.csv")["x"].isna()
    assert gone.sum() == len(NA)
    found = encode(
        "site", "x", TextColumn.of(texts), Encoding(missing_codes=["na", "none", "?", "-"])
    )
    assert (found.codes == len(found.variable.states)).tolist() == [
        is_gone or text in ("na", "none", "?", "-")
        for is_gone, text in zip(gone, texts, strict=True)
    ]


def test_texts_for_missing_are_states_on_demand():
    column = TextColumn.of(["NA", "DE", "DE"])
    assert encode("site", "x", TextColumn.of(["NA", "DE", "FR"]), Encoding()).variable == Variable(
        "x", ("DE", "FR"), missing=True
    )
    for how in (Encoding(keep_na=True), Encoding(states={"x": ["DE", "NA"]})):
        assert encode("site", "x", column, how).variable == Variable("x", ("DE", "NA"))
    told = encode("site", "x", TextColumn.of(["NA", "DE", "FR"]), Encoding()).findings[0]
    assert told.what == "'NA' is missing, as in pandas"
    assert told.remedy == "--keep-na keeps it as a state"


def test_numbers_that_are_names_are_not_binned():
    found = encode("site", "x", TextColumn.of(NUMBERS), Encoding(categorical=["x"]))
    assert found.variable.states == tuple(map(str, range(40)))


def test_unseen_values_are_missing_if_they_may_be_and_listed():
    column, unseen = TextColumn.of(["a", "z", "?", "", "z", "b"]), []
    how = Encoding(missing_codes=["?"], states={"x": "ab"})
    found = encode_known("here", "x", column, how, unseen)
    assert found.codes.tolist() == [0, 2, 2, 2, 2, 1] and unseen == [("x", "z", 2)]
    with pytest.raises(DataError, match="record 2: 'z' is not one of its states"):
        encode_known("here", "x", column, how)


@pytest.mark.parametrize(
    ("states", "texts", "codes"),
    [
        (map(str, range(12)), ["12", "16", "17", "-1", "99", "5.4"], [11, 11, 12, 12, 12, 5]),
        ("12345", ["6", "7", "9", "8.0", "0", "2.5", "many"], [4, 5, 5, 5, 0, 1, 5]),
        ("12", ["3", "9", "1.4"], [2, 2, 2]),
        ("12a", ["3", "1.4"], [3, 3]),
        (("eq_0", "eq_5", "gt_5"), ["1", "4", "9", "-3"], [0, 1, 2, 3]),
        (("lt_0", "eq_0", "eq_5"), ["-7", "2", "6", "9", "6 kg"], [0, 1, 2, 3, 3]),
    ],
)
def test_a_new_number_counts_as_the_nearest_state_unless_it_may_say_missing(states, texts, codes):
    how, new = Encoding(states={"x": tuple(states)}), []
    found = encode_known("here", "x", TextColumn.of(texts), how, new)
    assert found.codes.tolist() == codes
    names = [*how.states["x"], None]
    bins = ("gt_5", "lt_0")  # that these are in is no guess
    told = {one.text: getattr(one, "state", None) for one in new}
    assert {t: names[c] for t, c in zip(texts, codes, strict=True) if names[c] not in bins} == told


def test_a_known_number_may_be_written_otherwise():
    how = Encoding(states={"x": ("1", "2.50"), "y": ("1", "one")})
    column = TextColumn.of(["1.0", "2.5", "01", "1"])
    assert encode_known("here", "x", column, how).codes.tolist() == [0, 1, 0, 0]
    with pytest.raises(DataError, match=r"record 1: '1\.0' is not one of its states, 1, one"):
        encode_known("here", "y", column, how)


@pytest.mark.parametrize(
    ("texts", "codes"),
    [
        (["61", "70", "160 lb"], [0, 1, 2]),
        (["61", "160 lb"], [0, 2]),
        (["61", "61,5", "70.5"], [0, 0, 1]),
        (["61", "70.5", "1,234"], [0, 1, 2]),
        (["61", "1,234", "61,5", "70.5", "3 4"], [0, 2, 0, 1, 2]),
        (["61 kg", "70 KG", "72", "160 lb"], [2, 2, 1, 2]),
        (["61 kg", "70 KG", "72 kg", "160 lb"], [0, 1, 1, 2]),
        (["61", "70 kg", "160 lb", "$8", "unknown"], [0, 2, 2, 2, 2]),
        (["1,234", "12,345.6", "61"], [1, 1, 0]),
    ],
)
def test_an_odd_value_among_known_bins_leaves_the_others_theirs(texts, codes):
    how, unseen = Encoding(states={"x": ("le_65", "gt_65")}), []
    found = encode_known("here", "x", TextColumn.of(texts), how, unseen)
    assert found.codes.tolist() == codes
    odd = [text for text, code in zip(texts, codes, strict=True) if code == 2]
    assert [one.text for one in unseen] == odd


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        (["1,234", "2,5", "1.5"], "'2,5' and '1.5'"),
        (["1,234", "1234"], "'1,234' and '1234'"),
        (["1,234", "2,5", "1,234,567"], "'2,5' and '1,234,567'"),
        (["1,234", "1 234", "2,5"], "'2,5' and '1 234'"),
    ],
)
def test_numbers_in_several_notations_are_named_by_two_that_differ(odd, named):
    column = TextColumn.of([*odd, *map(str, range(40))])
    with pytest.raises(DataError, match=f"in several notations, as {named}"):
        encode("site", "x", column, Encoding())


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"bins": 0.2},
        {"own_bins": {"x": 0.2}},
        {"binning": "equal-width"},
        {"cuts": {"x": (Decimal(18), Decimal(65))}},
        {"cuts": {"x": (Decimal(-500), Decimal(30))}},
    ],
)
def test_a_code_among_numbers_is_reported_however_they_are_binned(how):
    column = TextColumn.of([*[str(place % 80) for place in range(300)], *["-999"] * 30])
    findings = encode("site", "x", column, Encoding(**how)).findings
    assert [one.kind for one in findings] == ["a code among numbers"]
    assert "(30 records) lies apart from the other numbers, 0 to 79" in findings[0].what


@pytest.mark.parametrize(
    ("edges", "what"),
    [
        (("500",), ["no record is above 500: the numbers are 0 to 39"]),
        (("39", "50"), ["no record is above 39: the numbers are 0 to 39"]),
        (("-5", "-1"), ["no record is up to -1: the numbers are 0 to 39"]),
        (("0", "500"), []),
        (("38",), []),
    ],
)
def test_edges_beside_all_numbers_are_reported(edges, what):
    column = TextColumn.of([*NUMBERS, ""])
    how = Encoding(cuts={"x": tuple(map(Decimal, edges))})
    assert [one.what for one in encode("site", "x", column, how).findings] == what


def test_edges_are_for_numbers():
    how = Encoding(cuts={"Sex": (Decimal(1),)})
    with pytest.raises(DataError) as error:
        encode("site", "Sex", TextColumn.of(["", "male", "female"]), how)
    expected = "site: Sex has text, not numbers, as 'male'; --cut is for numeric columns"
    assert str(error.value) == expected
    with pytest.raises(DataError, match="record 2: 'male' is not one of its states, le_1, gt_1"):
        encode("site", "Sex", TextColumn.of(["1", "male", "2"]), how)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (["", "", ""], "f.csv: the last 3 rows are empty in every column, and counted as records"),
        ([" "], "f.csv: the last row is empty in every column, and counted as records"),
        (["", "a"], None),
        ([], None),
    ],
)
def test_empty_rows_at_the_end_are_reported(end, message):
    filled = TextColumn.of(["a", "b", "", "a", *end])
    data = SiteData.from_text("f.csv", {"x": filled, "y": filled})
    assert data.report.message() == message
    beside = TextColumn.of(["a", "b", "a", "b", *("b" for _ in end)])
    assert SiteData.from_text("f.csv", {"x": filled, "y": beside}).report.message() is None
    keys = TextColumn.of(range(len(filled)))
    assert SiteData.from_text("f", {"x": filled, "y": filled}, ids=keys).report.message() is None
