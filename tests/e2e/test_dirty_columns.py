"""Dirty columns: each case is reported in full, with what to do about it, and the run goes on."""

from __future__ import annotations

import gzip
import json
from itertools import takewhile

import numpy as np
import pytest

from tests.e2e.command import learn, outputs, predict, read_rows, run, write

RECORDS = 300
PLACES = range(RECORDS)
Y = ["no" if place % 3 else "yes" for place in PLACES]


def file_of(folder, **columns):
    """Write columns beside a column y, which has two states."""
    rows = zip(*columns.values(), Y, strict=True)
    return write(folder / "d.csv", [*columns, "y"], rows)


def learned(capsys, folder, path, *options):
    """Learn; return what was warned of the file, and the variables."""
    code, _, error = learn(capsys, folder / "out", "--data", path, "--sites", 2, *options)
    assert code == 0, error
    first, *others = error.partition(f"warning: {path}: ")[2].splitlines() or [""]
    told = "\n".join([first, *takewhile(lambda line: line.startswith("  "), others)])
    return told, outputs(folder / "out")[1]["variables"]


AGES = [(place * 37) % 101 for place in PLACES]
AMOUNTS = [f"{1 + place * 0.37:.2f}" for place in PLACES]
CHECK = "1 column to check\n  x: "
OUT = "1 of 3 columns is left out\n  x: left out: "

KEPT = {  # name: values, options, the message in full, states
    "case": (
        ["yes", "YES", "no"] * 100,
        (),
        f"{CHECK}'yes' and 'YES' differ only in case and are different states; --ignore-case x "
        "makes them one",
        ["YES", "no", "yes"],
    ),
    "case ignored": (["yes", "yes", "YES", "no"] * 75, ("--ignore-case", "x"), "", ["no", "yes"]),
    "spaces": (["yes", "yes ", "\u00a0yes", "no"] * 75, (), "", ["no", "yes"]),
    "spaces kept": (["yes", "yes ", "no"] * 100, ("--keep-spaces",), "", ["no", "yes", "yes "]),
    "unit": (
        [f"{50 + place % 50} kg" for place in PLACES],
        ("--bins", 0.5),
        f"{CHECK}numbers with the unit 'kg' are read without it; --categorical x keeps them as "
        "they are",
        ["le_74", "gt_74"],
    ),
    "unit in most": (
        [f"{50 + place % 50}{' kg' * bool(place % 50)}" for place in PLACES],
        ("--bins", 0.5),
        f"{CHECK}numbers with the unit 'kg' are read without it; 1 without a unit are read in the "
        "same unit; --categorical x keeps them as they are",
        ["le_74", "gt_74"],
    ),
    "decimal comma": (
        [f"{place % 50},5" for place in PLACES],
        ("--bins", 0.5),
        f"{CHECK}numbers with a decimal comma: '0,5' is read as 0.5; --categorical x keeps them as "
        "they are",
        ["le_25", "gt_25"],
    ),
    "thousands": (
        [f"{900 + place % 50 * 10:,}" for place in PLACES],
        ("--bins", 0.5),
        f"{CHECK}numbers with a thousands separator: '1,000' is read as 1000; --categorical x "
        "keeps them as they are",
        ["le_1141", "gt_1141"],
    ),
    "999 and -1 among ages": (
        [999 if p % 30 == 0 else -1 if p % 50 == 1 else AGES[p] for p in PLACES],
        ("--bins", 0.5),
        f"{CHECK}'-1' (6 records) lies apart from the other numbers, 0 to 100; if it says missing: "
        "--missing-codes x=-1\n"
        "  x: '999' (10 records) lies apart from the other numbers, 0 to 100; if it says missing: "
        "--missing-codes x=999",
        None,
    ),
    "999 and -1 named": (
        [999 if p % 30 == 0 else -1 if p % 50 == 1 else AGES[p] for p in PLACES],
        ("--missing-codes", "x=-1,x=999", "--bins", 0.5),
        "",
        None,
    ),
    "-9 among amounts": (
        ["-9" if p % 20 == 0 else AMOUNTS[p] for p in PLACES],
        ("--bins", 0.5),
        f"{CHECK}'-9' (15 records) lies apart from the other numbers, 1.37 to 111.63; if it says "
        "missing: --missing-codes x=-9",
        None,
    ),
    "9 among few numbers": (
        ["9" if p % 20 == 0 else p % 3 for p in PLACES],
        (),
        f"{CHECK}'9' (15 records) lies apart from the other numbers, 0 to 2; if it says missing: "
        "--missing-codes x=9",
        ["0", "1", "2", "9"],
    ),
    "na among numbers": (
        ["na" if p % 20 == 0 else AMOUNTS[p] for p in PLACES],
        ("--bins", 0.5),
        f"{CHECK}'na' among numbers is taken as missing (15 records); --missing-codes na says so; "
        "--categorical x keeps all as states",
        None,
    ),
    "? as a state": (
        ["?", "a", "b"] * 100,
        (),
        f"{CHECK}'?' is taken as a state; if it says missing: --missing-codes '?'",
        ["?", "a", "b"],
    ),
    "dates kept": (
        [f"2024-01-{1 + p % 20:02}" for p in PLACES],
        ("--categorical", "x"),
        "",
        [f"2024-01-{day:02}" for day in range(1, 21)],
    ),
}

ORDINARY = {  # what no user wants to be warned of
    "zeros and amounts": [0 if p % 10 else 114 * p for p in PLACES],
    "below zero": [(p * 7) % 60 - 30 for p in PLACES],
    "likert": [p % 3 - 1 for p in PLACES],
    "powers": [10 ** (p % 4) for p in PLACES],
    "a long tail": [int(1.02**p) for p in PLACES],
    "one large value": [10_000 if p == 7 else p % 50 for p in PLACES],
    "whole numbers, nearly all different": [p * p + 1000 for p in range(299)] + [1000],
    "words": [f"w{p % 30}" for p in PLACES],
    "none as an answer": [("none", "mild", "severe")[p % 3] for p in PLACES],
    "codes of digits and letters": [f"{p % 40}{'abcd'[p % 4]}" for p in PLACES],
}

LEFT_OUT = {  # name: values, the message in full
    "constant": (["x"] * RECORDS, "one value, 'x', in all 300 records"),
    "constant where known": (
        ["x"] * 200 + [""] * 100,
        "one value, 'x', in all 300 records except 100 without a value",
    ),
    "no values": ([""] * RECORDS, "no values"),
    "identifiers": (
        [f"p{p}" for p in PLACES],
        "300 different values in 300 records, which identify them; if they match records, "
        "--id-column x; --categorical x --max-states 300 keeps it as a variable",
    ),
    "nearly unique": (
        [f"p{p % 280}" for p in PLACES],
        "280 different values in 300 records, which identify them; if they match records, "
        "--id-column x; --categorical x --max-states 280 keeps it as a variable",
    ),
    "numbered": (
        PLACES,
        "300 different values in 300 records, which identify them; if they match records, "
        "--id-column x; --cut x=EDGE,EDGE keeps it as a variable",
    ),
    "too many states": (
        [f"d{p % 150}" for p in PLACES],
        "150 states, more than 100; --max-states 150 keeps it",
    ),
    "a word among numbers": (
        [*AMOUNTS[2:], "refused", "refused"],
        "numbers, except 'refused' (2 records, first 299); if it says missing, --missing-codes "
        "refused; --categorical x keeps all as states",
    ),
    "another unit in a few": (
        [*AMOUNTS[1:], "3 months"],
        "numbers, except '3 months' (1 record, first 300); if it says missing, --missing-codes "
        "'3 months'; --categorical x keeps all as states",
    ),
    "several units": (
        [f"{50 + p % 40} {'kg' if p % 3 else 'lb'}" for p in PLACES],
        "numbers in several units, 'kg' and 'lb'; write them in one, or --categorical x takes them "
        "as names",
    ),
    "several notations": (
        [f"{p % 50},5" if p % 2 else f"{p % 50}.5" for p in PLACES],
        "numbers in several notations, as '1,5' and '0.5'; write them in one, or --categorical x "
        "takes them as names",
    ),
}

REMEDY = (
    "write what matters of them as a column, such as the year, the month or the days since; "
    "--categorical x keeps them as states"
)
DATES = {
    "ISO": "{2}-{1:02}-{0:02}",
    "day first": "{0}.{1}.{2}",
    "month first": "{1}/{0}/{2}",
    "with a time": "{2}-{1:02}-{0:02} 08:30:00",
    "with a zone": "{2}-{1:02}-{0:02}T08:30:00.5Z",
    "of two digits": "{1}/{0}/24 8:30 PM",
}


@pytest.mark.parametrize("case", KEPT)
def test_what_may_mean_something_else_is_reported(tmp_path, capsys, case):
    values, options, message, states = KEPT[case]
    told, variables = learned(capsys, tmp_path, file_of(tmp_path, x=values), *options)
    assert told == message
    assert states is None or variables["x"]["states"] == states


def test_a_code_that_is_named_is_missing_in_its_column_only(tmp_path, capsys):
    x = [999 if p % 30 == 0 else AGES[p] for p in PLACES]
    path = file_of(tmp_path, x=x, z=[(7, 8, 999)[p % 3] for p in PLACES])
    _, variables = learned(capsys, tmp_path, path, "--missing-codes", "x=999")
    assert variables["x"]["missing"] and variables["z"]["states"] == ["7", "8", "999"]


@pytest.mark.parametrize("case", ORDINARY)
def test_ordinary_columns_are_not_reported(tmp_path, capsys, case):
    assert learned(capsys, tmp_path, file_of(tmp_path, x=ORDINARY[case]))[0] == ""


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_tells_nothing_is_left_out(tmp_path, capsys, case):
    values, message = LEFT_OUT[case]
    path = file_of(tmp_path, x=values, z=Y[::-1])
    told, variables = learned(capsys, tmp_path, path)
    assert told == OUT + message and set(variables) == {"y", "z"}
    code, out, error = learn(
        capsys, tmp_path / "strict", "--data", path, "--sites", 2, "--strict", "--quiet"
    )
    assert (code, out) == (2, "") and not (tmp_path / "strict").exists()
    said = "1 column cannot be used; leave out with --exclude x"
    assert error == f"vertibayes: {path}: {said}\n  x: {message}\n"


@pytest.mark.parametrize("form", DATES)
def test_dates_are_left_out(tmp_path, capsys, form):
    dates = [DATES[form].format(1 + p % 18, 1 + p % 5, 2023) for p in PLACES]
    told, _ = learned(capsys, tmp_path, file_of(tmp_path, x=dates, z=Y[::-1]))
    assert told == f"{OUT}90 dates, as {dates[0]!r}; {REMEDY}"


def test_all_columns_are_in_one_message_and_equal_findings_in_one_line(tmp_path, capsys):
    path = file_of(
        tmp_path, k=["1"] * RECORDS, a=["?", "x", "z"] * 100, b=["u", "?", "v"] * 100, e=[""] * 300
    )
    message = (
        "2 of 5 columns are left out, 2 columns to check\n"
        "  k: left out: one value, '1', in all 300 records\n"
        "  e: left out: no values\n"
        "  a, b: '?' is taken as a state; if it says missing: --missing-codes '?'"
    )
    assert learned(capsys, tmp_path, path)[0] == message
    code, _, error = learn(capsys, tmp_path / "2", "--data", path, "--sites", 2, "--strict")
    assert code == 2 and error == (
        f"vertibayes: {path}: 2 columns cannot be used; leave out with --exclude k,e\n"
        "  k: one value, '1', in all 300 records\n"
        "  e: no values\n"
    )


def test_a_remedy_that_takes_one_column_names_none_of_several(tmp_path, capsys):
    names = [f"p{p}" for p in PLACES]
    path = file_of(tmp_path, **{"a,b": names, "c": names, "z": Y[::-1]})
    told, _ = learned(capsys, tmp_path, path)
    assert (
        "\n  a,b, c: left out: 300 different values in 300 records, which identify them; if they "
        "match records, --id-column COLUMN; --categorical '\"a,b\",c' --max-states 300 keeps"
        in told
    )
    code, _, error = learn(capsys, tmp_path / "2", "--data", path, "--sites", 2, "--exclude", "c")
    assert code == 0 and "--id-column a,b;" in error
    keyed = ("--data", path, "--sites", 2, "--exclude", "c", "--id-column", "a,b")
    assert learn(capsys, tmp_path / "3", *keyed)[0] == 0


# ---- a column that is left out is asked for ------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "file", "reason"),
    [
        (
            ["--sites", 2, "--target", "k", "--validate", "svdg"],
            "",
            "--target k: the column is left out: one value, '1', in all 300 records\n",
        ),
        (
            ["--sites", 2, "--structure", "f.json"],
            '{"nodes": ["k", "y"], "edges": []}',
            "--structure: the column 'k' is left out: one value, '1', in all 300 records\n",
        ),
        (
            ["--partition", "f.json"],
            '{"one": ["k"], "two": ["y", "z"]}',
            "all columns of the site 'one' are left out; d.csv: 1 of 3 columns is left out\n"
            "  k: left out: one value, '1', in all 300 records\n",
        ),
        (
            ["--sites", 1, "--exclude", "z"],
            "",
            "at least 2 columns are needed, got 1; left out: 1\n"
            "  k: one value, '1', in all 300 records\n",
        ),
        (
            ["--sites", 3],
            "",
            "--sites must be between 1 and 2 (the number of columns), got 3\n",
        ),
    ],
)
def test_a_run_that_needs_a_column_that_is_left_out_says_why(
    tmp_path, capsys, monkeypatch, options, file, reason
):
    monkeypatch.chdir(tmp_path)
    path = file_of(tmp_path, k=["1"] * RECORDS, z=Y[::-1])
    (tmp_path / "f.json").write_text(file)
    code, out, error = learn(capsys, "out", "--data", path.name, *options)
    assert (code, out) == (2, "") and error == f"vertibayes: {reason}"
    assert not (tmp_path / "out").exists()


def test_an_ordering_may_have_a_column_that_is_left_out(tmp_path, capsys):
    path = file_of(tmp_path, k=["1"] * RECORDS, z=Y[::-1])
    (tmp_path / "o.json").write_text('["z", "k", "y"]')
    _, variables = learned(capsys, tmp_path, path, "--ordering", tmp_path / "o.json")
    assert list(outputs(tmp_path / "out")[0]["nodes"]) == ["z", "y"] and "k" not in variables


def test_naive_bayes_leaves_out_features_and_refuses_a_target_that_tells_nothing(tmp_path, capsys):
    path = file_of(tmp_path, k=["1"] * RECORDS, z=Y[::-1])
    nb = ["nb", "--data", path, "--method", "hdpnb", "--parties", 3, "--noise", "none"]
    code, _, error = run(capsys, *nb, "--target", "y", "--out", tmp_path / "out")
    assert code == 0 and f"warning: {path}: 1 of 3 columns is left out\n  k: left out: " in error
    code, _, error = run(capsys, *nb, "--target", "k", "--out", tmp_path / "2")
    assert code == 2 and "--target k: the column is left out: one value, '1', in all" in error


# ---- bins ----------------------------------------------------------------------------------------


def test_bins_are_declared_on_the_command_line_and_found_when_predicting(tmp_path, capsys):
    y = np.array(["no", "yes"])[(np.array(AGES) > 65).astype(int)]
    path = write(tmp_path / "d.csv", ["age", "y"], zip(AGES, y, strict=True))
    _, variables = learned(capsys, tmp_path, path, "--cut", "age=18,65")
    assert variables["age"]["states"] == ["le_18", "from_18_to_65", "gt_65"]
    new = write(tmp_path / "new.csv", ["age"], [["18"], ["65.0"], ["120"], ["gt_65"]])
    model, out = tmp_path / "out" / "model.bif", tmp_path / "p.csv"
    code, error = predict(capsys, "--model", model, "--data", new, "--target", "y", "--out", out)
    assert code == 0, error
    assert [row[0] for row in read_rows(out)[1:]] == ["no", "no", "yes", "yes"]


def test_naive_bayes_takes_cut_points_and_equal_width(tmp_path, capsys):
    path = file_of(tmp_path, age=AGES, x=AMOUNTS)
    code, _, error = run(
        capsys, "nb", "--data", path, "--method", "hdpnb", "--parties", 3, "--noise", "none",
        "--target", "y", "--out", tmp_path / "out", "--cut", "age=18,65", "--binning",
        "equal-width", "--bins", 0.5,
    )  # fmt: skip
    assert code == 0, error
    variables = outputs(tmp_path / "out")[1]["variables"]
    assert variables["age"]["states"] == ["le_18", "from_18_to_65", "gt_65"]
    assert variables["x"]["states"] == ["le_56.3", "gt_56.3"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--cut", "age"], "--cut age: expected COLUMN=NUMBERS, ascending, as --cut age="),
        (["--cut", "age=65,18"], "--cut age=65,18: expected COLUMN=NUMBERS"),
        (["--cut", "age=x"], "--cut age=x: expected COLUMN=NUMBERS"),
        (["--cut", "=1"], "--cut =1: expected COLUMN=NUMBERS"),
        (
            ["--cut", "age=40", "--cut", "age=50"],
            "--cut age is given twice: give a column once, with all its values, as --cut age=18,",
        ),
        (["--cut", "b=1"], "--cut b: no such column; there are age, y"),
        (["--cut", "y=1"], "y has text, not numbers, as 'yes'; --cut is for numeric columns"),
        (["--ignore-case", "b"], "--ignore-case b: no such column; there are age, y"),
        (
            ["--binning", "even"],
            "equal-frequency, equal-width or intervals, got even",
        ),
    ],
)
def test_bins_that_cannot_be(tmp_path, capsys, options, reason):
    path = file_of(tmp_path, age=AGES)
    code, out, error = learn(capsys, tmp_path / "out", "--data", path, "--sites", 2, *options)
    assert (code, out) == (2, "") and reason in error and error.count("\n") == 1


def test_a_model_of_values_with_spaces_predicts_from_values_with_spaces(tmp_path, capsys):
    path = file_of(tmp_path, x=[f" {text}" for text in Y])
    learned(capsys, tmp_path, path, "--keep-spaces")
    model, out = tmp_path / "out" / "model.bif", tmp_path / "p.csv"
    code, error = predict(capsys, "--model", model, "--data", path, "--target", "y", "--out", out)
    assert code == 0, error
    assert [row[0] for row in read_rows(out)[1:]] == Y


def test_a_gzipped_file_is_read_whatever_its_name(tmp_path, capsys):
    path = file_of(tmp_path, x=Y[::-1])
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert learned(capsys, tmp_path, path)[0] == ""


@pytest.mark.parametrize("marks", ["\x1b[2J", "\x9b31m", "\u202e", "\x07\nforged"])
def test_names_of_columns_do_not_act_on_the_terminal(tmp_path, capsys, marks):
    """Of columns that are no variables nothing was checked, and warnings and drafts name them."""
    z = [f"{place % 2}" for place in PLACES]
    clean = file_of(tmp_path, z=z, x=z[1:] + z[:1])
    assert learn(capsys, tmp_path / "model", "--data", clean, "--sites", 2)[0] == 0
    name, model = f"k{marks}", tmp_path / "model" / "model.json"
    path = file_of(tmp_path, **{name: ["same"] * RECORDS, "z": z})
    refused = write(tmp_path / "r.csv", [name, "y"], [(p % 2, p % 3) for p in PLACES])
    for code, *arguments in (
        (0, "schema", "--data", path),
        (0, "schema", path),
        (0, "learn", "--data", path, "--sites", 2, "--out", tmp_path / "out"),
        (0, "predict", "--model", model, "--data", path, "--target", "y", "--out", tmp_path / "p"),
        (2, "learn", "--data", refused, "--sites", 2, "--out", tmp_path / "none"),
    ):
        found, text, error = run(capsys, *arguments)
        assert (found == code and "k?" in text + error) or "k\\u" in text, (arguments, error)
        assert not set(text + error) & {"\x1b", "\x9b", "\u202e", "\x07"}, arguments
        assert "\nforged" not in text + error, arguments
    draft = json.loads(run(capsys, "schema", "--data", path)[1])
    assert draft["columns"][name]["exclude"], "the draft has the name nevertheless"
