import codecs
import csv
import gzip
import io
import shlex
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.text import check_names, read_columns, same_length
from vertibayes_protocols.site.text_column import TextColumn


def values_of(column):
    return [column.texts[place] for place in column.places]


def read(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return {name: values_of(column) for name, column in read_columns(path).items()}


GOOD = [
    ("a,b\n1,2\n3,4\n", {"a": ["1", "3"], "b": ["2", "4"]}),
    ("a,b\r\n1,2\r\n3,4", {"a": ["1", "3"], "b": ["2", "4"]}),
    ("\ufeffa,b\n1,2\n", {"a": ["1"], "b": ["2"]}),
    ("\na,b\n\n1,2\n\n\n3,4\n\n", {"a": ["1", "3"], "b": ["2", "4"]}),
    ('"a,1","b""2"\n"x\ny",""\n', {"a,1": ["x\ny"], 'b"2': [""]}),
    ("a,b\n,\n 1 , \n", {"a": ["", "1"], "b": ["", ""]}),
    (" a,b\u00a0\nyes ,\u00a01\n", {"a": ["yes"], "b": ["1"]}),
    ("ä\n€\n", {"ä": ["€"]}),
    ("a\n1\n01\n1.0\n1\n", {"a": ["1", "01", "1.0", "1"]}),
]


@pytest.mark.parametrize(("content", "columns"), GOOD)
def test_files_that_are_read(tmp_path, content, columns):
    assert read(tmp_path, content) == columns
    zipped = gzip.compress(content.encode())
    assert read(tmp_path, zipped, "data.csv.gz") == columns
    assert read(tmp_path, zipped, "zipped.csv") == columns
    assert read(tmp_path, content, "unzipped.csv.gz") == columns


def test_outer_spaces_are_kept_on_demand(tmp_path):
    (tmp_path / "s.csv").write_text(" a,b\n yes,no \n")
    columns = read_columns(tmp_path / "s.csv", keep_spaces=True)
    assert {name: values_of(column) for name, column in columns.items()} == {
        " a": [" yes"],
        "b": ["no "],
    }


fields = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)


@given(st.lists(st.lists(fields, min_size=2, max_size=2), min_size=1, max_size=6))
def test_what_csv_writes_is_read_again(records):
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["a", "b"], *records])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "vertibayes_protocols.site.text.open_text", lambda *_: io.StringIO(file.getvalue(), "")
        )
        columns = read_columns("data.csv", keep_spaces=True)
    assert [list(r) for r in zip(*map(values_of, columns.values()), strict=True)] == records
    assert all(len(set(column.texts)) == len(column.texts) for column in columns.values())


def told(part):
    """Name bytes by their number: zipped ones hold the time, and ids must not change with it."""
    return f"{len(part)} bytes" if isinstance(part, bytes) or len(part) > 60 else part


def zipped(name):
    """Return a ZIP archive with one file, as workbooks are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "x")
    return file.getvalue()


E_GRAVE = "'è' with --encoding cp1252, 'č' with --encoding cp1250"
AS_CSV = (
    "save the sheet as 'CSV UTF-8 (comma delimited)' and give that file, or install a reader: "
    "pip install 'vertibayes[excel]'"
)
OLD_EXCEL = bytes.fromhex("D0CF11E0A1B11AE1") + bytes(600)
ZIPPED = gzip.compress(b"a,b\n1,2\n" * 50)


BAD = [
    ("d.csv", "", ": the file is empty"),
    ("d.csv", "\n\n", ": the file is empty"),
    ("d.csv", "a,b\n", ": the file has a header but no records"),
    ("d.csv", "a,b\n1,2\n3\n", ", line 3: 1 field, but the header has 2"),
    ("d.csv", "a,b\n\n1,2\n\n3,4,5\n", ", line 5: 3 fields, but the header has 2"),
    ("d.csv", 'a,b\n"1\n1",2\n3\n', ", line 4: 1 field"),
    ("d.csv", "a,b\n1,2\n   \n", ", line 3: 1 field"),
    ("d.csv", "a,b,a\n1,2,3\n", ": the column 'a' appears twice"),
    ("d.csv", "a, a\n1,2\n", ": the column 'a' appears twice"),
    ("d.csv", "a,,b\n1,2,3\n", ": column 2 has no name"),
    ("d.csv", "a, \n1,2\n", ": column 2 has no name"),
    ("d.csv", b"a,b\n1,\xe8\n", f", line 2: not UTF-8 text: the byte 0xE8 is {E_GRAVE}"),
    ("d.csv", b"a,b\n\xc3\xa4,\xe4\n", ": a mixture of encodings: line 2 has 'ä' in UTF-8"),
    (
        "d.csv",
        b"\xef\xbb\xbfa,gr\xf6\xdfe\n1,2\n",
        ": not UTF-8 text, although it begins with the mark of UTF-8",
    ),
    ("d.csv", codecs.BOM_UTF16_LE + b"a,b\n1", ": not text in UTF-16"),
    ("d.csv", "a;b,c\nx;y,z\n", ": the separator is unclear: the header 'a;b,c' has ';' and ','"),
    ("d.csv", "a;b,c\nx,z\n", ": the separator is unclear: the header 'a;b,c' has ',' and ';'"),
    ("d.csv", "Export\na;b\n1;2\n", ": the first line, 'Export', has one field"),
    ("d.csv", "a;b\nx;1,234\n", ": the column 'b': '1,234' may be 1.234 or 1234; specify"),
    ("d.csv", "a;b\n2,5;1.234\n", ": the column 'b': '1.234' may be 1234 or 1.234; specify"),
    ("d.csv", zipped("xl/workbook.xml"), f": an Excel workbook (.xlsx); {AS_CSV}"),
    ("d.csv", zipped("content.xml"), f": an OpenDocument file; {AS_CSV}"),
    ("d.csv", zipped("d.csv"), ": a ZIP archive; unpack it and give the CSV file in it"),
    ("d.csv", OLD_EXCEL, f": an Excel workbook (.xls); {AS_CSV}"),
    ("d.csv.gz", gzip.compress(b"PAR1"), ": a Parquet file that is gzipped; unpack it"),
    ("d.csv", 'a,b\n1,"2"3\n', ", line 2: "),
    ("d.csv", 'a,b\n1,2\n3,"4\n', ", line 3: a quote that is not closed"),
    ("d.csv", f"a\n{'x' * 140_000}\n", ", line 2: field larger"),
    ("d.csv.gz", ZIPPED[:-12], ": cannot be read (Compressed file ended"),
    ("d.csv.gz", ZIPPED[:-8] + bytes(8), ": cannot be read (CRC check failed"),
    ("d.csv.gz", gzip.compress(b"a\n\x84\n"), ", line 2: not UTF-8 text"),
    ("d.csv.gz", b"", ": the file is empty"),
]


WORKBOOKS = [one for one in BAD if "vertibayes[excel]" in one[2]]  # another reader's, if there


@pytest.mark.parametrize(("name", "content", "reason"), BAD, ids=told)
def test_a_file_that_cannot_be_used_is_named_with_its_line(tmp_path, name, content, reason):
    with pytest.raises(DataError) as caught:
        read(tmp_path, content, name)
    path = str(tmp_path / name)
    assert str(caught.value).startswith(f"{path}{reason.replace('{path}', shlex.quote(path))}")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separator_and_encoding_are_recognized(tmp_path, encoding, pack, separator):
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator)
    writer.writerows([["größe", f"a{separator} b"], ["1 °C", "ü"], ["", f"x\n{separator}."]])
    assert read(tmp_path, pack(file.getvalue().encode(encoding))) == {
        "größe": ["1 °C", ""],
        f"a{separator} b": ["ü", f"x\n{separator}."],
    }


@pytest.mark.parametrize(("name", "reason"), [("none.csv", "no such file"), ("", "a folder")])
def test_what_is_no_file_is_named(tmp_path, name, reason):
    with pytest.raises(DataError, match=reason) as caught:
        read_columns(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_values_of_any_kind_become_text():
    column = TextColumn.of([1, "1", None, float("nan"), 2.5, True, np.float64("nan"), np.int64(1)])
    assert values_of(column) == ["1", "1", "", "", "2.5", "True", "", "1"]
    assert column.texts == ("1", "", "2.5", "True") and len(column) == 8
    assert len(TextColumn.of([])) == 0


@given(st.lists(st.sampled_from("abc"), max_size=9), st.data())
def test_some_records_in_another_order(values, data):
    places = st.lists(st.integers(0, len(values) - 1)) if values else st.just([])
    order = data.draw(places)
    taken = TextColumn.of(values).take(np.array(order, int))
    assert values_of(taken) == [values[place] for place in order]


def test_names_are_wanted_once_each():
    check_names("s", ["a", "b"])
    with pytest.raises(DataError, match="s: the column 'a' appears twice"):
        check_names("s", ["a", "b", "a"])


def test_columns_of_one_length_are_wanted():
    two, three = TextColumn.of("ab"), TextColumn.of("abc")
    assert same_length("s", {"x": two, "y": two}) == 2
    for columns in ({}, {"x": two, "y": three}):
        with pytest.raises(DataError, match="s: expected at least one column"):
            same_length("s", columns)


def test_a_damaged_gzip_body_is_named(tmp_path):
    path = tmp_path / "bad.csv.gz"
    whole = bytearray(gzip.compress(b"a,b\n" + b"0,1\n" * 500))
    whole[15:25] = bytes(10)
    path.write_bytes(bytes(whole))
    with pytest.raises(DataError, match=r"bad\.csv\.gz"):
        read_columns(path)


def test_gaps_of_data_frames_are_empty_texts():
    import pandas as pd

    assert TextColumn.of([pd.NA, None, float("nan"), "x", 1]).texts == ("", "x", "1")


def test_a_blank_line_of_one_column_is_a_missing_value(tmp_path):
    (tmp_path / "one.csv").write_text("a\nx\n\ny\n")
    column = read_columns(tmp_path / "one.csv")["a"]
    assert column.texts == ("x", "", "y") and len(column) == 3
