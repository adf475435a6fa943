"""Recognize the kind of a file by its first bytes: CSV is read, other kinds are refused by name."""

from __future__ import annotations

import codecs
import gzip
import io
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TextIO, cast

from vertibayes_protocols.errors import DataError

GZIP = b"\x1f\x8b"
LOOKED_AT = 4096  # bytes
AS_CSV = "save the sheet as 'CSV UTF-8 (comma delimited)' and give that file"
KINDS = {
    b"PAR1": "a Parquet file that is gzipped; unpack it",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": f"an Excel workbook (.xls); {AS_CSV}",
}


def open_text(path: Path) -> TextIO:
    """Open a CSV file in UTF-8, gzipped or not, whatever its name."""
    binary = _open(path)
    try:
        _check_kind(path, binary.read(LOOKED_AT))
        binary.seek(0)
        return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
    except BaseException:
        binary.close()
        raise


def _open(path: Path) -> IO[bytes]:
    file = path.open("rb")
    if file.peek(2)[:2] != GZIP:
        return file
    file.close()
    return cast("IO[bytes]", gzip.open(path, "rb"))


def _check_kind(path: Path, first: bytes) -> None:
    if first.startswith(b"PK\x03\x04"):
        raise DataError(f"{path}: {_zipped(path)}")
    for magic, kind in KINDS.items():
        if first.startswith(magic):
            raise DataError(f"{path}: {kind}")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path}: {_utf_16(path)}")
    zeros = first.count(0)
    if zeros > len(first) // 4:
        even = first[::2].count(0) > zeros // 2
        raise DataError(f"{path}: {_utf_16(path, 'UTF-16BE' if even else 'UTF-16LE')}")


def _zipped(path: Path) -> str:
    names: list[str] = []
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.startswith("xl/") for name in names):
        return f"an Excel workbook (.xlsx); {AS_CSV}"
    if "content.xml" in names:
        return f"an OpenDocument file; {AS_CSV}"
    return "a ZIP archive; unpack it and give the CSV file in it"


def _utf_16(path: Path, name: str = "UTF-16") -> str:
    return (
        f"text in UTF-16; save it in UTF-8, as with: iconv -f {name} -t UTF-8 {path.name} > NEW.csv"
    )


def _recoded(name: str, marked: bool) -> str:
    """Return the command that saves Latin-1 in UTF-8, without a mark that says UTF-8 wrongly."""
    if marked:
        return f"tail -c +4 {name} | iconv -f WINDOWS-1252 -t UTF-8 > NEW.csv"
    return f"iconv -f WINDOWS-1252 -t UTF-8 {name} > NEW.csv"


def encoding_error(path: Path) -> DataError:
    """Return the error about a file that is not in UTF-8; it names the first such line."""
    with _open(path) as binary:
        for line, content in enumerate(binary, 1):
            try:
                content.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = error.object[error.start]  # without a byte order mark
                marked = line == 1 and content.startswith(codecs.BOM_UTF8)
                return DataError(
                    f"{path}, line {line}: not UTF-8 text (byte 0x{byte:02X}), probably Latin-1 "
                    f"(Windows-1252); save it in UTF-8, as with: {_recoded(path.name, marked)}"
                )
    return DataError(f"{path}: not UTF-8 text")
