"""pyarrow's blocks of a CSV file are the columns, and the errors, of Python's reader."""

from __future__ import annotations

import csv
import gzip
import io
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.test_text import BAD, GOOD, WORKBOOKS, told
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources import csv_blocks
from vertibayes_protocols.site.sources.reading import read_table
from vertibayes_protocols.site.text import read_columns

pytest.importorskip("pyarrow")


@pytest.fixture(params=[(8, 16, 16), (16, 16, 1 << 16), (64, 128, 64)], ids=str, autouse=True)
def sizes(request, monkeypatch):
    """Small pieces, so that each file has many."""
    set_sizes(monkeypatch, *request.param)
    return request.param


def set_sizes(patch, piece, block, long):
    for name, size in (("PIECE", piece), ("BLOCK", block), ("LONG", long)):
        patch.setattr(csv_blocks, name, size)


def content_of(columns):
    """Return all that later steps see of columns."""
    return [
        (name, type(c.texts), list(c.texts), c.places.dtype, c.places.tolist())
        for name, c in columns.items()
    ]


def outcome(reader, path, **how):
    try:
        return content_of(reader(path, **how))
    except DataError as error:
        return str(error)


def by_blocks(path, *, keep_spaces=False, choose=list, keys=None):
    return csv_blocks.read_csv(path, keep_spaces=keep_spaces, choose=choose, keys=keys)


def written(folder, content, name="d.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("content", [content for content, _ in GOOD])
@pytest.mark.parametrize("repeated", [1, 9])
def test_files_that_are_read(tmp_path, content, repeated):
    header, end, records = content.lstrip("\n").partition("\n")
    path = written(tmp_path, header + end + (records.rstrip() + "\n") * repeated)
    assert outcome(read_table, path) == outcome(read_columns, path)


@pytest.mark.parametrize(("name", "content", "reason"), BAD, ids=told)
def test_files_that_cannot_be_used_have_the_same_error(
    tmp_path, monkeypatch, name, content, reason
):
    path = written(tmp_path, content, name)
    assert by_blocks(path) is None
    if (name, content, reason) in WORKBOOKS:
        monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert outcome(read_table, path) == outcome(read_columns, path)
    reason = reason.replace("{path}", shlex.quote(str(path)))
    assert outcome(read_table, path).startswith(f"{path}{reason}")


def test_an_error_after_many_blocks_names_its_line(tmp_path):
    good = b"a,b\n" + b'1,"x,\ny"\n' * 200
    for bad, reason in (
        (b"1,2,3\n", "line 402: 3 fields"),
        (b"1,\xe8\n", "line 402: not UTF-8"),
        (b'1,"2"3\n', "line 402: "),
        (b'1,"2\n', "line 402: a quote"),
    ):
        path = written(tmp_path, good + bad)
        assert outcome(read_table, path) == outcome(read_columns, path)
        assert f"d.csv, {reason}" in outcome(read_table, path)


def test_an_error_in_a_column_that_is_not_read(tmp_path):
    path = written(tmp_path, b"a,b\n" + b"1,2\n" * 99 + b"1,\xe8\n")
    for reader in (read_table, read_columns):
        assert "line 101: not UTF-8" in outcome(reader, path, choose=lambda names: ["a"])


@pytest.mark.parametrize("record", ['1,a"b\n', "\ufeff1,2\n", '1, "2"\n'])
def test_what_pyarrow_could_read_otherwise_is_left_to_python(tmp_path, record):
    path = written(tmp_path, "a,b\n" + record * 99)
    assert by_blocks(path) is None
    assert outcome(read_table, path) == outcome(read_columns, path)


def test_a_file_of_one_column_is_left_to_python(tmp_path):
    """A blank line in it is a missing value."""
    assert by_blocks(written(tmp_path, "a\n" + "x\n\ny\n" * 99)) is None


def test_a_mark_of_byte_order_is_no_part_of_the_header(tmp_path):
    path = written(tmp_path, "\ufeffa,b\n" + "1,2\n" * 99)
    assert content_of(by_blocks(path)) == outcome(read_columns, path)


TEXTS = ["a", "b", "", "1", "2.5", " a ", "é", "NA", "x,y", "p\nq", 'a"b', '"', "\r\n", "\u2028"]


@st.composite
def files(draw):
    """Draw a table that is written as programs do, and how it is read."""
    width = draw(st.integers(2, 4))
    rows = draw(st.lists(st.lists(st.sampled_from(TEXTS), min_size=width, max_size=width),
                         min_size=8, max_size=20))  # fmt: skip
    end = draw(st.sampled_from(["\n", "\r\n"]))
    file = io.StringIO(newline="")
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    writer = csv.writer(file, quoting=quoting, lineterminator=end)
    for row in [[f" h{place}" for place in range(width)], *rows]:
        writer.writerow(row)
        file.write(end * draw(st.sampled_from([0] * 9 + [1])))
    text = draw(st.sampled_from(["", "\ufeff", "\n"])) + file.getvalue()
    return text[: -len(end)] if draw(st.booleans()) else text


hows = st.fixed_dictionaries(
    {},
    optional={
        "keep_spaces": st.booleans(),
        "keys": st.sampled_from(["h0", " h1"]),
        "choose": st.sampled_from([lambda names: names[::-1], lambda names: names[:1]]),
    },
)
small = st.sampled_from([(16, 16, 1 << 16), (16, 32, 64), (64, 64, 1 << 16)])


def compared(content, how, size):
    """Compare both readers; return what the quick one has read."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, *size)
        path = written(Path(folder), content)
        quick = by_blocks(path, **how)
        expected = outcome(read_columns, path, **how)
        assert quick is None or content_of(quick) == expected
        return quick


@given(files(), hows, small, st.booleans())
def test_a_table_that_programs_write_is_read_by_blocks(text, how, size, zipped):
    encoded = text.encode()
    quick = compared(gzip.compress(encoded) if zipped else encoded, how, size)
    longest = max(map(len, encoded.splitlines(keepends=True)))
    assert quick is not None or len(encoded) < 6 * size[1] or longest > size[1] / 2


tokens = st.sampled_from(
    [
        *("ab1,,,,\n\n"),
        '"',
        '""',
        ',"',
        '",',
        "\r",
        "\r\n",
        " ",
        "é",
        "\ufeff",
        "\0",
        "\u2028",
        "a" * 9,
    ]
)


@given(files(), st.lists(st.tuples(st.integers(0, 400), tokens), max_size=3), hows, small)
def test_a_damaged_table_is_read_alike_or_left_to_the_other_reader(text, damages, how, size):
    for place, token in damages:
        text = text[:place] + token + text[place:]
    compared(text.encode(), how, size)


@given(st.lists(tokens, min_size=20, max_size=150), hows, small)
def test_any_text_is_read_alike_or_left_to_the_other_reader(parts, how, size):
    compared(("a,b\n" + "".join(parts)).encode(), how, size)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("quoted", ["x", '"x"', '"x,"'])
def test_a_field_of_the_most_characters(tmp_path, monkeypatch, quoted, more):
    """Python refuses longer ones."""
    set_sizes(monkeypatch, 1 << 18, 1 << 18, 1 << 16)
    text = quoted.strip('"')
    length = csv.field_size_limit() + more
    characters = (text * length)[:length]
    long = quoted.replace(text, characters)
    path = written(tmp_path, "a,b\n" + "1,2\n" * 200_000 + f"{long},1\n")
    assert outcome(read_table, path) == outcome(read_columns, path)
    assert isinstance(outcome(read_table, path), str) == bool(more)


def test_codes_widen_with_the_number_of_texts(tmp_path, monkeypatch):
    set_sizes(monkeypatch, 1 << 12, 1 << 14, 1 << 16)
    rows = "".join(f"{n},{n % 300},{n % 7}\n" for n in range(70_000))
    path = written(tmp_path, "a,b,c\n" + rows)
    quick = by_blocks(path)
    assert content_of(quick) == outcome(read_columns, path)
    assert [column.places.dtype.itemsize for column in quick.values()] == [4, 2, 1]


def test_without_pyarrow_python_reads(tmp_path, monkeypatch):
    path = written(tmp_path, "a,b\n" + "1,2\n" * 99)
    assert by_blocks(path) is not None
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert by_blocks(path) is None
    assert outcome(read_table, path) == outcome(read_columns, path)


def test_small_files_load_no_pyarrow_and_large_ones_no_pandas(tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from vertibayes_protocols.site.sources.reading import read_table\n"
        "read_table(Path(sys.argv[1]), keys='a')\n"
        "print(*sorted({'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    for records, loaded in ((9, "\n"), (700_000, "pyarrow\n")):
        path = written(tmp_path, "a,b\n" + "1,2\n" * records)
        command = [sys.executable, "-c", code, str(path)]
        assert subprocess.run(command, capture_output=True, text=True).stdout == loaded


@pytest.mark.laws
def test_real_files_are_read_alike(data_folder, monkeypatch):
    set_sizes(monkeypatch, 1 << 12, 1 << 14, 1 << 16)
    paths = sorted(data_folder.rglob("*.csv*"))
    quick = {path.name: by_blocks(path) for path in paths}
    for path in paths:
        assert quick[path.name] is None or content_of(quick[path.name]) == outcome(
            read_columns, path
        )
    assert {"adult_train.csv.gz", "connect-4.csv.gz", "bank-full.csv.gz"} <= {
        name for name, columns in quick.items() if columns
    }
