import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.settings import REQUIRED, Setting

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
        ("a = 1\nb = \n", "line 2: not TOML"),
        ("a = 1\na = 2\n", "line 2: not TOML (Cannot overwrite a value)"),
        ("[a]\n[a]\n", "line 2: not TOML"),
        ("a = [\n1,\n", "line 2: not TOML"),
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
    with pytest.raises(ValueError, match=f"x, line {line}: not UTF-8 text; save it as UTF-8"):
        TomlFile.read(tmp_path / "x")


def test_lines_may_end_as_on_windows(tmp_path):
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa = 1\r\n\r\nb = 2\r\n")
    file = TomlFile.read(tmp_path / "x")
    assert file.values == {"a": 1, "b": 2} and file.line(("b",)) == 3


def taken(kind, name="k", **bounds):
    """Take a setting that must be given."""
    return lambda table: table.take(Setting(name, kind, "", REQUIRED, **bounds))


@pytest.mark.parametrize(
    ("value", "take", "reason"),
    [
        ("1", lambda t: t.text("k"), "must be a text, got 1"),
        ("' '", lambda t: t.text("k"), "empty"),
        ("'x'", taken("whole"), "must be a whole number, got x"),
        ("true", taken("whole"), "must be a whole number, got true"),
        ("0", taken("whole", least=1), "must be a whole number, at least 1, got 0"),
        ("2", taken("whole", least=0, most=1), "a whole number, at least 0 and at most 1, got 2"),
        ("true", taken("number"), "must be a number, got true"),
        ("nan", taken("number"), "must be a number, got nan"),
        ("'x'", taken("number"), "must be a number, got x"),
        ("0", taken("number", above=0), "must be a number, above 0, got 0"),
        ("1.0", taken("number", below=1), "must be a number, below 1, got 1"),
        ("1", taken("flag"), "must be true or false, got 1"),
        ("'x'", taken("texts"), "must be a list of different texts, got x"),
        ("[1]", taken("texts"), "must be a list of different texts, got 1"),
        ("['x', 'x']", taken("texts"), "must be a list of different texts, got x, x"),
        ("['x']", taken("texts", least=2), "at least 2 of them, got x"),
        ("['x', 'y']", taken("texts", choices=("x", "z")), "a list of x or z, got x, y"),
        ("'y'", taken("text", choices=("x", "z", "w")), "must be x, z or w, got y"),
        ("['x']", taken("edges"), "must be a list of ascending numbers, got x"),
        ("[true]", taken("edges"), "must be a list of ascending numbers, got True"),
        ("[2, 1]", taken("edges"), "must be a list of ascending numbers, got 2, 1"),
        ("'much'", taken("size"), "'much' is not an amount of memory"),
        ("1", taken("text", old="k", name="other"), "k is now called other"),
        ("1", taken("text", name="other"), "other: missing; expected a text that is not empty"),
        ("1", lambda t: t.table("k"), "must be a table, got 1"),
        ("1", lambda t: t.end(), "unknown key"),
        (
            "1",
            lambda t: ("a" in t, t.text("b", "x"), t.table("c"), t.end()),
            "one of a, b, c",
        ),
        (r'"C:\new\table.csv"', lambda t: t.path("k"), r"'C:\new\table.csv' has control"),
        (r'"C:\new\table.csv"', lambda t: t.path("k"), r"single quotes: 'C:\new\table.csv'"),
        ("1", lambda t: t.text("other"), "other: missing; expected a text"),
        ("'x'", lambda t: t.made("k", int), "invalid literal"),
    ],
)
def test_values_of_another_kind_are_named_with_their_line(read, value, take, reason):
    table = read(f"\n[t]\nk = {value}\n").table("t")
    with pytest.raises(ValueError, match=r"x\.toml, line") as caught:
        take(table)
    assert reason in str(caught.value)
    assert f"line {2 if 'other: ' in reason else 3}: t." in str(caught.value)


def test_what_is_there_is_taken(read):
    file = read("[t]\na = 'x'\nb = 1\nc = 2.5\nd = true\ne = ['p']\nf = 'q/r'\n")
    table = file.table("t")
    kinds = {"a": "text", "b": "whole", "c": "number", "d": "flag", "e": "texts", "f": "path"}
    values = table.take_all(Setting(name, kind, "") for name, kind in kinds.items())
    folder = file.path.parent
    assert list(values.values()) == ["x", 1, 2.5, True, ("p",), folder / "q/r"]
    assert (table.text("g", "y"), table.take(Setting("h", "whole", "", 3))) == ("y", 3)
    table.end()
