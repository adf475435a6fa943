"""Workbooks of Excel (.xlsx, .xls) and OpenDocument (.ods), by the extra `excel`.

Cells become text by the rule of all sources (`vertibayes_protocols.site.sources.values`); a formula
has the value that the program stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vertibayes_mpc.extras import load
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.values import text_of
from vertibayes_protocols.site.text import Choice, builders_of, check_names, finished, is_workbook
from vertibayes_protocols.site.text_column import TextColumn

EXTRA = "excel"


def read_excel(
    path: Path, *, keep_spaces: bool, choose: Choice, keys: str | None
) -> dict[str, TextColumn] | None:
    """Read the only sheet of a workbook; None if it is another file, or the extra is missing."""
    if not is_workbook(path):
        return None
    try:
        calamine = load("python_calamine", EXTRA)
    except ImportError:
        return None
    try:
        with path.open("rb") as file:
            workbook = calamine.CalamineWorkbook.from_filelike(file)
            sheets = {
                sheet.name: rows
                for sheet in workbook.sheets_metadata
                if (rows := workbook.get_sheet_by_name(sheet.name).to_python())
            }
    except (calamine.CalamineError, OSError) as error:
        raise DataError(f"{path}: cannot be read as a workbook ({error})") from None
    if len(sheets) != 1:
        found = ", ".join(map(repr, sheets)) or "none"
        raise DataError(
            f"{path}: expected a workbook with one sheet that is not empty, found {found}; save "
            "the sheet alone"
        )
    (rows,) = sheets.values()
    return _columns(str(path), rows, keep_spaces, choose, keys)


def _columns(
    title: str, rows: Sequence[Sequence[Any]], keep_spaces: bool, choose: Choice, keys: str | None
) -> dict[str, TextColumn]:
    texts = [[text_of(cell) for cell in row] for row in rows]
    if not keep_spaces:
        texts = [[*map(str.strip, row)] for row in texts]
    while texts and not any(texts[-1]):  # formatted rows below the table
        texts.pop()
    header, *records = texts or [[]]
    check_names(title, header)
    if not records:
        raise DataError(f"{title}: the sheet has a header but no records")
    builders = builders_of(choose(header), keys)
    for name, column in zip(header, zip(*records, strict=True), strict=True):
        if name in builders:
            builders[name].add(column)
    return finished(builders)
