"""Workbooks; made here, part by part, so that no package has to write them."""

import zipfile
from xml.sax.saxutils import escape

import pytest

from tests.protocols.test_text import values_of
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.reading import read_names, read_table

pytest.importorskip("python_calamine")
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DATES = (
    f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    "</styleSheet>"
)


class Day(int):
    """A date as Excel stores it: 1 is 1900-01-01."""


def cell(value):
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return (
            f'<c s="{int(isinstance(value, Day))}"><v>{value:d}</v></c>'
            if isinstance(value, int)
            else f"<c><v>{value!r}</v></c>"
        )
    if value.startswith("#"):
        return f'<c t="e"><v>{value}</v></c>'
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def workbook(path, **sheets):
    """Write a workbook of some sheets, each a list of rows."""
    names = list(sheets)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{place}" r:id="r{place}"/>'
        for place, name in enumerate(names, 1)
    )
    links = "".join(
        f'<Relationship Id="r{place}" Type="{OFFICE}/worksheet" Target="worksheets/s{place}.xml"/>'
        for place in range(1, len(names) + 1)
    )
    links += f'<Relationship Id="r0" Type="{OFFICE}/styles" Target="styles.xml"/>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr("xl/styles.xml", DATES)
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        )
        for place, name in enumerate(names, 1):
            rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in sheets[name])
            archive.writestr(
                f"xl/worksheets/s{place}.xml",
                f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>',
            )
    return path  # fmt: skip


ROWS = [
    ["größe, cm", "gewicht; kg", "geboren", "raucht", "note"],
    [180, 75.5, Day(45322), True, " a\nb "],
    [165, 60, Day(1), False, "#N/A"],
    [None, 0.125, None, None, "NA"],
]


def test_a_workbook_is_read_as_the_csv_file_of_its_sheet(tmp_path):
    path = workbook(tmp_path / "d.xlsx", Tabelle1=ROWS, Tabelle2=[])
    columns = read_table(path)
    assert {name: values_of(column) for name, column in columns.items()} == {
        "größe, cm": ["180", "165", ""],
        "gewicht; kg": ["75.5", "60", "0.125"],
        "geboren": ["2024-01-31", "1900-01-01", ""],
        "raucht": ["True", "False", ""],
        "note": ["a\nb", "", "NA"],
    }
    assert read_names(path) == ROWS[0]
    assert values_of(read_table(path, keep_spaces=True)["note"])[0] == " a\nb "
    assert list(read_table(path, choose=lambda names: names[2:0:-1])) == ["geboren", "gewicht; kg"]


def test_formatted_rows_below_the_table_are_no_records(tmp_path):
    rows = [*ROWS, [None, " ", None, None, ""], [None, " ", None, None, ""]]
    assert len(read_table(workbook(tmp_path / "d", t=rows))["note"]) == 3


@pytest.mark.parametrize(
    ("sheets", "reason"),
    [
        ({"one": ROWS, "two": ROWS}, "one sheet that is not empty, found 'one', 'two'; save the"),
        ({"one": []}, "one sheet that is not empty, found none"),
        ({"one": ROWS[:1]}, "the sheet has a header but no records"),
        ({"one": [["a", "a"], [1, 2]]}, "the column 'a' appears twice"),
        ({"one": [["Export", None], ["a", "b"], [1, 2]]}, "column 2 has no name"),
    ],
)
def test_an_unclear_workbook_is_refused(tmp_path, sheets, reason):
    with pytest.raises(DataError) as caught:
        read_table(workbook(tmp_path / "d.xlsx", **sheets))
    assert str(caught.value).startswith(f"{tmp_path / 'd.xlsx'}: ") and reason in str(caught.value)


def test_a_damaged_workbook_is_named(tmp_path):
    path = tmp_path / "d.xls"
    path.write_bytes(bytes.fromhex("D0CF11E0A1B11AE1") + bytes(600))
    with pytest.raises(DataError, match=r"d\.xls: cannot be read as a workbook"):
        read_table(path)


def test_without_the_extra_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    path = workbook(tmp_path / "d.xlsx", t=ROWS)
    with pytest.raises(DataError, match=r"an Excel workbook .* 'vertibayes\[excel\]'"):
        read_table(path)
