"""Columns that stay numbers in `site.toml` and `study.toml`."""

import numpy as np
import pytest

from tests.protocols.deployment.parties import change, deployment
from vertibayes_protocols.deployment.checks import Findings, _check_data
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.site.statistics import Numeric


@pytest.fixture
def folder(tmp_path):
    found = deployment(tmp_path / "all")
    change(found / "north" / "site.toml", "age = { cut = [30, 50, 70] }", "age = BOUNDS")
    return found


def bounded(folder, how):
    path = folder / "north" / "site.toml"
    change(path, "age = BOUNDS", f"age = {how}")
    return path


def test_a_column_with_bounds_stays_a_number_in_the_order_of_the_identifiers(folder):
    site = SiteFile.read(bounded(folder, "{ bounds = [0, 50.5] }"))
    rows = ["id,age,sex", "b,30,f", "a,51,m", "c,,m", "d,80.5,f"]
    (folder / "north" / "records.csv").write_text("\n".join(rows) + "\n")
    data = read_data(site)
    assert list(data.variables) == ["sex"]
    assert data.numerics == {"age": Numeric("age", 0.0, 50.5)}
    assert data.numbers["age"].tolist() == pytest.approx([51, 30, np.nan, 80.5], nan_ok=True)
    assert "2 of 3 numbers lie beyond the bounds, 0 to 50.5" in data.report.message()
    assert "check bounds" in data.report.message()
    findings = Findings([[]], "north")
    _check_data(findings, site, data)
    assert ("ok", "north: age: 3 numbers, 1 missing, 2 beyond 0 to 50.5") in findings.lines


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("{ bounds = [120] }", "age.bounds: must be two ascending numbers, as [0, 120], got 120"),
        ("{ bounds = [1, 2, 3] }", "must be two ascending numbers"),
        ("{ bounds = [120, 0] }", "must be two ascending numbers, as [0, 120], got 120, 0"),
        ("{ bounds = [nan, 1] }", "must be two ascending numbers"),
        ("{ bounds = [0, inf] }", "must be two ascending numbers"),
        ("{ bounds = 3 }", "must be two ascending numbers, as [0, 120], got 3"),
        ("{ bounds = [0, 1], states = ['0', '1'] }", "states and bounds exclude each other"),
        ("{ bounds = [0, 1], cut = [0.5] }", "cut and bounds exclude each other"),
        ("{ bounds = [0, 1], bins = 0.2 }", "bins and bounds exclude each other"),
        ("{ bounds = [0, 1], categorical = true }", "categorical and bounds exclude each other"),
    ],
)
def test_mistakes_about_bounds_are_named_with_their_line(folder, how, reason):
    with pytest.raises(ValueError, match=r"site\.toml, line \d+: variables\.age") as caught:
        SiteFile.read(bounded(folder, how))
    assert reason in str(caught.value)


def test_words_among_numbers_are_refused_in_the_words_of_the_file(folder):
    site = SiteFile.read(bounded(folder, "{ bounds = [0, 120] }"))
    (folder / "north" / "records.csv").write_text("id,age,sex\na,1,f\nb,old,m\n")
    with pytest.raises(ValueError, match="record 2: 'old' is not a number") as caught:
        read_data(site)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ("[numbers]\nage = [17]\n", "numbers.age: must be two ascending numbers, as [0, 120]"),
        ("[numbers]\nage = []\n", "numbers.age: must be two ascending numbers"),
        ("[numbers]\nage = [90, 17]\n", "numbers.age: must be two ascending numbers"),
        ("[numbers]\nage = [nan, 17]\n", "numbers.age: must be two ascending numbers"),
        (
            "[states]\nage = ['a', 'b']\n[numbers]\nage = [0, 1]\n",
            "numbers.age: it is also in [states]: declare states or bounds",
        ),
    ],
)
def test_mistakes_about_the_numbers_of_a_study_are_named_with_their_line(folder, tables, reason):
    study = folder / "analyst" / "study.toml"
    change(study, "\n[learning]", f"\n{tables}\n[learning]")
    with pytest.raises(ValueError, match=r"study\.toml, line \d+: numbers\.age") as caught:
        StudyFile.read(study)
    assert reason in str(caught.value)


def test_a_study_has_the_bounds_of_its_numbers(folder):
    study = folder / "analyst" / "study.toml"
    change(study, "\n[learning]", "\n[numbers]\nage = [17, 90.5]\n\n[learning]")
    assert StudyFile.read(study).numbers == {"age": (17.0, 90.5)}
