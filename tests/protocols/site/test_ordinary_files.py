"""Files as offices export them: read as pandas reads them when told everything, or refused.

A refusal names the setting that decides; with it, the file is read as pandas reads it. Both readers
of CSV files are tested.
"""

import csv
import gzip
import io
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from tests.protocols.site.test_csv_blocks import set_sizes
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.binning import plain
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.dialect import Dialect
from vertibayes_protocols.site.numerals import number
from vertibayes_protocols.site.sources import csv_blocks
from vertibayes_protocols.site.sources.reading import read_table
from vertibayes_protocols.site.text import read_columns

HEADER = ["größe, cm", "gewicht", "dosis", "anzahl", "ort", "antwort"]
ROWS = [
    [
        1.5 + i % 20,
        50.25 + i % 23,
        (i % 3) / 8,
        i % 5,
        ("Köln", "Aachen")[i % 2],
        "no" if i % 3 else "",
    ]
    for i in range(60)
]


def written(separator=",", decimal=".", end="\n", *, quoting=csv.QUOTE_MINIMAL, header=HEADER,
            rows=ROWS, na="", form=str):  # fmt: skip
    """Return a table as text, as a program with these settings writes it."""

    def shown(value):
        if isinstance(value, float):
            return form(value).replace(".", "\0").replace(",", ".").replace("\0", decimal)
        return na if value == "" else value

    def typed(text):  # quoting of all that is not a number, as R and SAS do
        is_text = not isinstance(text, str) or quoting != csv.QUOTE_NONNUMERIC
        return text if is_text or not text.replace(decimal, "").isdigit() else _Bare(text)

    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writerows([header, *([typed(shown(value)) for value in row] for row in rows)])
    return file.getvalue()


class _Bare(float):
    """A number that is written as it was given."""

    def __new__(cls, text):
        made = super().__new__(cls, text.replace(",", "."))
        made.text = text
        return made

    def __repr__(self):
        return self.text

    __str__ = __repr__


class Ordinary(NamedTuple):
    """A file; what pandas is told; what the error says and the dialect that it asks for."""

    content: bytes
    told: dict
    refused: str = ""
    mend: Dialect = Dialect()


def comma(text=None, encoding="utf-8", **told):
    return Ordinary((text or written()).encode(encoding), {"encoding": encoding, **told})


def semicolon(text=None, encoding="utf-8", **told):
    text = text if text is not None else written(";", ",")
    return Ordinary(
        text.encode(encoding), {"sep": ";", "decimal": ",", "encoding": encoding, **told}
    )


def thousands(value):
    return f"{value * 1000:,.2f}"


FRENCH = [[*row[:4], ("Genève", "Orléans")[i % 2], row[5]] for i, row in enumerate(ROWS)]
POLISH = [[*row[:4], ("Łódź", "Kraków")[i % 2], row[5]] for i, row in enumerate(ROWS)]
LINES = [[*row[:4], f"{row[4]};\r\nRhein, {i % 2}", row[5]] for i, row in enumerate(ROWS)]
SINGLE = [[f"{one:.3f}".replace(".", ",") if i else one for i, one in enumerate(row)]
          for row in [["x", 1.125], ["y", 2.25], ["x", 3.5]] * 9]  # fmt: skip
FRENCH_TOLD = {"encoding": "cp1252", "sep": ";", "decimal": ","}
POLISH_TOLD = {"encoding": "cp1250", "sep": ";", "decimal": ","}

FILES = {
    "commas": comma(),
    "commas, bom": comma(encoding="utf-8-sig"),
    "commas, crlf": comma(written(end="\r\n")),
    "commas, cr": comma(written(end="\r")),
    "commas, cp1252": comma(encoding="cp1252"),
    "commas, utf-16": comma(encoding="utf-16"),
    "commas, utf-16-be": comma(encoding="utf-16-be"),
    "commas, quoted": comma(written(quoting=csv.QUOTE_ALL)),
    "commas, texts quoted": comma(written(quoting=csv.QUOTE_NONNUMERIC)),
    "commas, NA": comma(written(na="NA")),
    "commas, quoted NA": comma(written(na="NA", quoting=csv.QUOTE_NONNUMERIC)),
    "commas, NULL": comma(written(na="NULL")),
    "commas, n/a": comma(written(na="n/a")),
    "commas, breaks in fields": comma(written(rows=LINES)),
    "commas, blank lines": comma(written().replace("\n", "\n\n", 9)),
    "commas, gzip": Ordinary(gzip.compress(written().encode()), {"compression": "gzip"}),
    "commas, thousands": comma(written(form=thousands), thousands=","),
    "commas, name with semicolon": comma(written(header=["a; b", *HEADER[1:]],
                                                 quoting=csv.QUOTE_ALL)),
    "commas, quoted decimal commas": comma(written(decimal=","), decimal=","),
    "semicolons": semicolon(),
    "semicolons, bom": semicolon(encoding="utf-8-sig"),
    "semicolons, crlf, cp1252": semicolon(written(";", ",", "\r\n"), "cp1252"),
    "semicolons, utf-16": semicolon(encoding="utf-16"),
    "semicolons, utf-16-le": semicolon(encoding="utf-16-le"),
    "semicolons, quoted": semicolon(written(";", ",", quoting=csv.QUOTE_ALL)),
    "semicolons, texts quoted": semicolon(written(";", ",", quoting=csv.QUOTE_NONNUMERIC)),
    "semicolons, points": semicolon(written(";"), decimal="."),
    "semicolons, thousands": semicolon(written(";", ",", form=thousands), thousands="."),
    "semicolons, commas as thousands": semicolon(written(";", form=thousands), decimal=".",
                                                 thousands=","),
    "semicolons, breaks in fields": semicolon(written(";", ",", rows=LINES)),
    "semicolons, NA": semicolon(written(";", ",", na="NA")),
    "semicolons, gzip, cp1252": Ordinary(gzip.compress(written(";", ",").encode("cp1252")),
                                         {**FRENCH_TOLD, "compression": "gzip"}),
    "semicolons, two columns": semicolon(
        "gewicht, kg;typ\n" + "".join(f"{i % 9},5;{'xy'[i % 2]}\n" for i in range(40))),
    "semicolons, comma in the name": semicolon(
        "gewicht,kg;typ\n" + "".join(f"{i % 9},5;{'xy'[i % 2]}\n" for i in range(40))),
    "sep=": semicolon("sep=;\n" + written(";", ","), skiprows=1),
    "sep=, crlf": semicolon("sep=;\r\n" + written(";", ",", "\r\n"), skiprows=1),
    "tabs": comma(written("\t"), sep="\t"),
    "tabs, decimal commas": comma(written("\t", ","), sep="\t", decimal=","),
    "tabs, utf-16": comma(written("\t", ","), "utf-16", sep="\t", decimal=","),
    "pipes": comma(written("|"), sep="|"),
    "pipes, cp1252, quoted": comma(written("|", quoting=csv.QUOTE_ALL), "cp1252", sep="|"),
    "french": Ordinary(written(";", ",", rows=FRENCH).encode("cp1252"), FRENCH_TOLD,
                       "'è' with --encoding cp1252", Dialect(encoding="cp1252")),
    "polish": Ordinary(written(";", ",", rows=POLISH).encode("cp1250"), POLISH_TOLD,
                       "'Ł' with --encoding cp1250", Dialect(encoding="cp1250")),
    "dos": Ordinary(written(";", ",").encode("cp850"), {**FRENCH_TOLD, "encoding": "cp850"},
                    "'ö' with --encoding cp850", Dialect(encoding="cp850")),
    "three decimals": Ordinary(written(";", header=["a", "b"], rows=SINGLE).encode(),
                               {"sep": ";", "decimal": ","}, "--decimal ','", Dialect(decimal=",")),
    "two separators": Ordinary(("a;b,c\n" + "x;u,v\ny;u,w\nz;t,v\n" * 9).encode(), {"sep": ";"},
                               "--separator ';'", Dialect(separator=";")),
    "a semicolon in a name": Ordinary(("a;b,c\n" + "x,u\ny,u\nz,w\n" * 9).encode(), {},
                                      "--separator ','", Dialect(separator=",")),
}  # fmt: skip


def content(read):
    """Return states, of which 0 is 0.0, and codes; or why the values are refused."""
    try:
        data = read()
    except DataError as error:
        return str(error)
    values = {n: [(s, number(s)) for s in v.states] for n, v in data.variables.items()}
    named = {n: [s if v is None else plain(v) for s, v in pairs] for n, pairs in values.items()}
    return {n: (states, data.codes[n].tolist()) for n, states in named.items()}


def test_there_are_forty_of_them():
    assert len(FILES) >= 40


@pytest.fixture(params=["standard library", "pyarrow"])
def reader(request, monkeypatch):
    """Read a file by one of both readers; small blocks, so that pyarrow reads small files."""
    if request.param == "standard library":
        return read_columns
    pytest.importorskip("pyarrow")
    set_sizes(monkeypatch, 256, 512, 1 << 16)
    return read_table


@pytest.mark.parametrize("name", FILES)
def test_an_ordinary_file_is_read_as_pandas_reads_it_or_refused(tmp_path, reader, name):
    ordinary, path = FILES[name], tmp_path / "file"
    path.write_bytes(ordinary.content)
    if ordinary.refused:
        with pytest.raises(DataError) as caught:
            reader(path)
        assert ordinary.refused in str(caught.value)
    columns = reader(path, dialect=ordinary.mend)
    found = content(lambda: SiteData.from_text("f", columns, strict=False))
    frame = pd.read_csv(path, skipinitialspace=True, **ordinary.told)
    assert found == content(lambda: SiteData.from_frame(frame, site="f", strict=False))
    if "breaks" in name:
        assert "'Köln;\\r\\nRhein, 0' has control characters; replace line breaks" in found


def test_pyarrow_reads_files_with_other_separators(tmp_path, monkeypatch):
    set_sizes(monkeypatch, 256, 512, 1 << 16)
    for name in ("commas", "semicolons", "semicolons, breaks in fields", "tabs", "pipes"):
        (tmp_path / "f").write_bytes(FILES[name].content)
        read = csv_blocks.read_csv(tmp_path / "f", keep_spaces=False, choose=list, keys=None)
        assert read is not None
        plain = read_columns(tmp_path / "f")
        assert all(np.array_equal(read[n].places, plain[n].places) for n in plain)
