import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.deployment.tables import TomlFile

TEXT = '''\
# a comment with = and [brackets]
first = 1

[a]
# b = 2 is not here
list = [
  "x",   # [c]
  "y",
]
long = """
[c]
d = 1
"""
b = 2

[a."dotted.name"]
e = 1
[c]
d = { f = 1 }
g.h = 2
'''


@pytest.fixture
def read(tmp_path):
    def read(text):
        (tmp_path / "x.toml").write_text(text)
        return TomlFile.read(tmp_path / "x.toml")

    return read


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("first",), 2), (("a",), 4), (("a", "list"), 6), (("a", "long"), 10), (("a", "b"), 14),
        (("a", "dotted.name"), 16), (("a", "dotted.name", "e"), 17), (("c",), 18),
        (("c", "d"), 19), (("c", "d", "f"), 19), (("c", "g", "h"), 20), (("c", "x"), None),
        (("first", "x"), None),
    ],
)  # fmt: skip
def test_the_line_of_a_key(read, keys, line):
    assert read(TEXT).line(keys) == line


@given(st.lists(st.sampled_from(["", "# x = 1", "y = [", "1,", "]", "z = 'x = 1'"]), max_size=4))
def test_whatever_stands_before_it_a_key_is_found_on_its_own_line(before):
    text = "\n".join([*before, "x = 1"]) + "\n"
    try:
        import tomllib

        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    from pathlib import Path

    if "x" in values:
        assert TomlFile(Path("f"), text, values).line(("x",)) == len(before) + 1


def test_errors_name_the_next_table_that_is_there(read):
    file = read(TEXT)
    assert str(file.error(("a", "b"), "wrong")).endswith("x.toml, line 14: a.b: wrong")
    assert str(file.error(("a", "q"), "lacking")).endswith("x.toml, line 4: a.q: lacking")
    assert str(file.error(("q",), "lacking")).endswith("x.toml: q: lacking")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1\nb = \n", "line 2: no TOML"),
        ("a = 1\na = 2\n", "line 2: no TOML (Cannot overwrite a value)"),
        ("[a]\n[a]\n", "line 2: no TOML"),
        ("a = [\n1,\n", "line 2: no TOML"),
        ('a = 1\nb = "C:\\Users\\x"\n', r"in single quotes: 'C:\new\table.csv'"),
        ('a = 1\nb = "C:\\data.csv"\n', r"in single quotes: 'C:\new\table.csv'"),
    ],
)
def test_what_is_no_toml_is_named_with_its_line(read, text, reason):
    with pytest.raises(ValueError, match=r"x\.toml") as caught:
        read(text)
    assert reason in str(caught.value)


def test_what_is_no_file_is_named(tmp_path):
    for path, reason in ((tmp_path / "none", "no such file"), (tmp_path, "a folder")):
        with pytest.raises(ValueError, match=reason):
            TomlFile.read(path)


@pytest.mark.parametrize(("code", "line"), [("latin-1", 2), ("utf-16", 1), ("utf-16-le", 2)])
def test_what_is_not_in_utf_8_is_named_with_its_line(tmp_path, code, line):
    (tmp_path / "x").write_bytes("b = 1\na = 'ä'".encode(code))
    with pytest.raises(ValueError, match=f"x, line {line}: not in UTF-8: save it as UTF-8"):
        TomlFile.read(tmp_path / "x")


def test_lines_may_end_as_on_windows(tmp_path):
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa = 1\r\n\r\nb = 2\r\n")
    file = TomlFile.read(tmp_path / "x")
    assert file.values == {"a": 1, "b": 2} and file.line(("b",)) == 3


@pytest.mark.parametrize(
    ("value", "take", "reason"),
    [
        ("1", lambda t: t.text("k"), "a text is wanted"),
        ("' '", lambda t: t.text("k"), "empty"),
        ("'x'", lambda t: t.whole("k"), "a whole number is wanted"),
        ("true", lambda t: t.whole("k"), "a whole number from 0 on"),
        ("0", lambda t: t.whole("k", least=1), "a whole number from 1 on"),
        ("true", lambda t: t.number("k"), "a number is wanted"),
        ("'x'", lambda t: t.number("k"), "a number is wanted"),
        ("1", lambda t: t.flag("k", False), "true or false is wanted"),
        ("'x'", lambda t: t.names("k"), "a list of texts is wanted"),
        ("[1]", lambda t: t.names("k"), "a list of texts is wanted"),
        ("['x', 'x']", lambda t: t.names("k"), "stands twice"),
        ("['x']", lambda t: t.numbers("k"), "a list of numbers"),
        ("[true]", lambda t: t.numbers("k"), "a list of numbers"),
        ("1", lambda t: t.table("k"), "a table is wanted"),
        ("1", lambda t: t.end(), "unknown here"),
        ("1", lambda t: ("a" in t, t.text("b", "x"), t.table("c"), t.end()), "known are a, b, c"),
        (r'"C:\new\table.csv"', lambda t: t.path("k"), r"'C:\new\table.csv' has control"),
        (r'"C:\new\table.csv"', lambda t: t.path("k"), r"single quotes: 'C:\new\table.csv'"),
        ("1", lambda t: t.text("other"), "other: lacking; a text is wanted"),
        ("'x'", lambda t: t.made("k", int), "invalid literal"),
    ],
)
def test_values_of_another_kind_are_named_with_their_line(read, value, take, reason):
    table = read(f"\n[t]\nk = {value}\n").table("t")
    with pytest.raises(ValueError, match=r"x\.toml, line") as caught:
        take(table)
    assert reason in str(caught.value)
    assert f"line {2 if 'other' in reason else 3}: t." in str(caught.value)


def test_what_is_there_is_taken(read):
    file = read("[t]\na = 'x'\nb = 1\nc = 2.5\nd = true\ne = ['p']\nf = 'q/r'\n")
    table = file.table("t")
    found = [table.text("a"), table.whole("b"), table.number("c"), table.flag("d", False)]
    found += [table.names("e"), table.path("f"), table.text("g", "y"), table.whole("h", 3)]
    folder = file.path.parent
    assert found == ["x", 1, 2.5, True, ("p",), folder / "q/r", "y", 3]
    table.end()
