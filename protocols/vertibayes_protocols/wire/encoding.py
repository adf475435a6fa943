"""Messages as bytes.

    body   = kind, head, padding to 64 bytes, the arrays' buffers, each padded to 64 bytes
    head   = the fields in order, each a tag and its value; an array's tag has its type and shape
    record = a nested object: its class's name, and its fields in order

Numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from vertibayes_mpc.rounds import Message
from vertibayes_protocols.wire.types import floats_of, is_record, with_floats

ALIGN = 64
DTYPES = tuple(np.dtype(name) for name in ("u1", "<u2", "<u4", "<u8", "<i8", "<f8"))
INT, FLOAT = struct.Struct("<q"), struct.Struct("<d")
SIZE, DIM = struct.Struct("<L"), struct.Struct("<Q")


def encode(message: Message) -> bytes:
    """Encode a message.

    Raises
    ------
    TypeError
        If a value is of no type that can be sent: a number, bool, str, bytes, None, ndarray of a
        known type, a tuple, mapping, frozen dataclass or named tuple of these.
    """
    head, arrays = bytearray(), list[Any]()
    _put_parts(head, arrays, message)
    kind = type(message).kind.encode()
    start = bytes([len(kind)]) + kind + SIZE.pack(len(head)) + head
    pieces = [start, bytes(-len(start) % ALIGN)]
    for array in arrays:
        pieces += [array.data.cast("B") if array.size else b"", bytes(-array.nbytes % ALIGN)]
    return b"".join(pieces)


def _put_parts(head: bytearray, arrays: list[Any], record: object) -> None:
    cls: Any = type(record)
    for name, floats in floats_of(cls):
        value = getattr(record, name)
        _put(head, arrays, value if floats is None else with_floats(value, floats))


def _put(head: bytearray, arrays: list[Any], value: Any) -> None:
    cls = type(value)
    if (write := PLAIN.get(cls)) is not None:
        head += write(value)
    elif cls is tuple:
        head += b"t" + SIZE.pack(len(value))
        for item in value:
            _put(head, arrays, item)
    elif cls is np.ndarray and value.dtype in DTYPES:
        head += b"a" + bytes([DTYPES.index(value.dtype), value.ndim])
        head += b"".join(map(DIM.pack, value.shape))
        arrays.append(np.ascontiguousarray(value))
    elif is_record(cls):
        head += _text(b"d", cls.__name__.encode())
        _put_parts(head, arrays, value)
    elif isinstance(value, Mapping):
        head += b"m" + SIZE.pack(len(value))
        for part in chain.from_iterable(value.items()):
            _put(head, arrays, part)
    else:
        raise TypeError(f"{cls.__name__} cannot be sent")


def _whole(value: int) -> bytes:
    if not -(2**63) <= value < 2**63:
        raise TypeError("an integer beyond 64 bits cannot be sent")
    return b"i" + INT.pack(value)


def _text(tag: bytes, text: bytes) -> bytes:
    return tag + SIZE.pack(len(text)) + text


PLAIN: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"n",
    bool: lambda value: b"b" + bytes([value]),
    int: _whole,
    float: lambda value: b"f" + FLOAT.pack(value),
    str: lambda value: _text(b"s", value.encode()),
    bytes: lambda value: _text(b"y", value),
}
