"""Columns of text from Arrow's record batches, which Parquet files and databases give.

Each batch has its own dictionary of values, so that a value becomes text once in a batch and the
texts of all records are never in memory together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from vertibayes_mpc.extras import load
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.column_builder import KeyBuilder, packed_ascii
from vertibayes_protocols.site.sources.values import text_of
from vertibayes_protocols.site.text import Choice, builders_of, check_names, finished
from vertibayes_protocols.site.text_column import TextColumn


class ArrowTable(NamedTuple):
    """A table that gives some of its columns in record batches."""

    title: str  # the table in errors; it has no credentials
    names: Sequence[str]  # the names of its columns
    batches: Callable[[Sequence[str]], Iterator[Any]]
    cast: str  # what to do about a column of a type that has no text
    in_order: bool = False  # whether a batch's dictionaries have what it uses, in the order of use


def library(title: str, module: str, extra: str) -> Any:
    """Return a module of an extra."""
    try:
        return load(module, extra)
    except ImportError as error:
        raise DataError(f"{title}: {error}") from None


def read_arrow(
    table: ArrowTable, *, keep_spaces: bool = False, choose: Choice = list, keys: str | None = None
) -> dict[str, TextColumn]:
    """Read columns of a table."""
    given = list(table.names)
    shown = given if keep_spaces else [name.strip() for name in given]
    check_names(table.title, shown)
    stored = dict(zip(shown, given, strict=True))
    names = choose(shown)
    builders = builders_of(names, keys)
    records = 0
    for batch in table.batches([stored[name] for name in names]):
        records += batch.num_rows
        for place, builder in enumerate(builders.values()):
            array = batch.column(place)
            if isinstance(builder, KeyBuilder):  # codes would only cost time: all are different
                if (block := _block(array)) is not None:
                    builder.add_block(block)
                    continue
                texts = _each(table, names[place], array)
                builder.add(texts if keep_spaces else map(str.strip, texts))
                continue
            texts, places = _coded(table, names[place], array)
            builder.add_places(texts if keep_spaces else map(str.strip, texts), places)
    if not records:
        raise DataError(f"{table.title}: the table has no records")
    return finished(builders)


def _coded(table: ArrowTable, name: str, array: Any) -> tuple[Iterable[str], Any]:
    """Return the distinct texts of a column, in the order of their use, and each record's place."""
    import pyarrow as pa

    array, text = _of_extension(array)
    if pa.types.is_dictionary(array.type):
        array = array if table.in_order else _used(array)
        values = _plain(table, name, array.dictionary)
    else:
        if text is text_of:
            array = _plain(table, name, array)
        array = array.dictionary_encode(null_encoding="encode")
        values = array.dictionary
    return _texts(values, text), np.from_dlpack(array.indices)  # `to_numpy` imports pandas


def _block(array: Any) -> Any:
    """Pack a batch of identifiers without making texts of them; None if that is not possible."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_integer(array.type):
        array = array.cast(pa.string())
    if array.type != pa.string() or array.null_count or not len(array):
        return None
    _, offsets, content = array.buffers()
    begins = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return packed_ascii(begins, np.frombuffer(content or b"", np.uint8))


def _each(table: ArrowTable, name: str, array: Any) -> Iterable[str]:
    """Return the text of each record."""
    import pyarrow as pa

    array, text = _of_extension(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if text is text_of:
        array = _plain(table, name, array)
    return _texts(array, text)


def _of_extension(array: Any) -> tuple[Any, Callable[[Any], str]]:
    """Return the stored values of an array, and what makes texts of them."""
    import pyarrow as pa

    kind = array.type
    if not isinstance(kind, pa.BaseExtensionType):
        return array, text_of
    if isinstance(kind, pa.UuidType):
        return array.storage, lambda value: "" if value is None else str(UUID(bytes=value))
    if isinstance(kind, pa.OpaqueType) and kind.type_name == "numeric":  # a text, in PostgreSQL
        return array.storage, lambda value: "" if value in (None, "nan", "NaN") else str(value)
    return array.storage, text_of


def _used(array: Any) -> Any:
    """Encode a dictionary's codes again: it may have values that no record has, in any order."""
    import pyarrow as pa

    codes = array.indices.dictionary_encode(null_encoding="encode")
    return pa.DictionaryArray.from_arrays(codes.indices, array.dictionary.take(codes.dictionary))


def _plain(table: ArrowTable, name: str, array: Any) -> Any:
    """Return an array whose values have texts; refuse others."""
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz and "UTC"), safe=False)
    if is_a.is_time(array.type):
        return array.cast(pa.time64("us"), safe=False)
    good = (
        *(is_a.is_null, is_a.is_boolean, is_a.is_integer, is_a.is_floating, is_a.is_decimal),
        *(is_a.is_string, is_a.is_large_string, is_a.is_string_view, is_a.is_date),
    )
    if any(check(array.type) for check in good):
        return array
    raise DataError(
        f"{table.title}: the column {name!r} has values of the type {array.type}, which have no "
        f"text; {table.cast}"
    )


def _texts(values: Any, text: Callable[[Any], str]) -> Iterable[str]:
    """Return texts of Python's values, or of numpy's floating-point numbers, which have a width."""
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        return map(text, np.asarray(values.to_numpy(zero_copy_only=False)))
    listed = values.to_pylist()
    if text is text_of and values.type == pa.string():  # quicker, for millions of texts
        return (value or "" for value in listed)
    return map(text, listed)
