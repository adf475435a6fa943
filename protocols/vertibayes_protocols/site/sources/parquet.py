"""Parquet files: one, or a folder with parts of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.arrow import ArrowTable, library

EXTRA = "parquet"
BATCH = 1 << 16  # records
CAST = "export the column as text or numbers"


@contextmanager
def open_parquet(path: Path) -> Iterator[ArrowTable]:
    """Open a Parquet file, or all ``*.parquet`` files of a folder in the order of their names."""
    arrow = library(str(path), "pyarrow", EXTRA)
    parquet = library(str(path), "pyarrow.parquet", EXTRA)
    with ExitStack() as stack:
        try:
            parts = [stack.enter_context(_opened(parquet, part)) for part in _parts(path)]
            names = parts[0].schema_arrow.names
            for part, file in zip(_parts(path), parts, strict=True):
                if sorted(file.schema_arrow.names) != sorted(names):
                    raise DataError(f"{part}: other columns than those of {_parts(path)[0].name}")
            yield ArrowTable(str(path), names, lambda chosen: _batches(parts, chosen), CAST)
        except (arrow.ArrowException, OSError) as error:
            raise DataError(f"{path}: cannot be read as Parquet ({_first_line(error)})") from None


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    parts = sorted(path.rglob("*.parquet"))
    if not parts:
        raise DataError(f"{path}: it is a folder without *.parquet files")
    return parts


def _opened(parquet: Any, path: Path) -> Any:
    """Open a file; its texts are read as codes, as the file has them."""
    import pyarrow as pa

    schema = parquet.read_schema(path)
    texts = [
        f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
    ]
    return parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False)


def _batches(parts: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    for part in parts:
        for batch in part.iter_batches(BATCH, columns=list(names), use_threads=False):
            yield batch.select(list(names))  # in this order, not in the file's


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
