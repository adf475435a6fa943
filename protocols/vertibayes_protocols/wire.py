"""Messages as bytes and back: fixed-width headers, array buffers, nothing that can be executed.

    packet   = envelope | body
    envelope = magic, session, sender, receiver, counter, depth, length of body: fixed width
    body     = kind, head, padding to 64 bytes, the arrays' buffers, each padded to 64 bytes
    head     = the fields in order, each a tag and its value; an array's tag has its type and shape

Everything is little-endian. A reader compares each size with what remains of the packet, and with
what its receiver expects, before it allocates anything. Arrays are read-only views of the packet.
"""

from __future__ import annotations

import hashlib
import math
import struct
import types
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from vertibayes_mpc.errors import (
    MalformedMessageError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.rounds import Expect, M, Message, Party

VERSION = 6  # raised whenever a message changes; every packet has it (`vertibayes_protocols.seal`)
MAGIC = b"VB1\0"  # of envelopes
ALIGN = 64
DTYPES = tuple(np.dtype(name) for name in ("u1", "<u2", "<u4", "<u8", "<i8", "<f8"))
MOST_CHAIN = 1 << 31
TUPLE_DEPTH = 6  # of tuples in tuples
MOST_VALUES, ARRAY_VALUES = 200_000, 4  # in one message; an array takes as long as four others
ENVELOPE = struct.Struct("<4s16s16s16sQLQ")
_INT, _SIZE, _DIM = struct.Struct("<q"), struct.Struct("<L"), struct.Struct("<Q")


class Envelope(NamedTuple):
    """Session, sender, receiver and number of a message, and the length of the chain it ends."""

    session: bytes
    sender: Party
    receiver: Party
    counter: int
    depth: int


def name_digest(party: Party) -> bytes:
    """Return the 16 bytes that stand for a party's name in an envelope."""
    return hashlib.sha256(party.encode()).digest()[:16]


def header(envelope: Envelope, body: bytes) -> bytes:
    """Return the header of a body."""
    sender, receiver = name_digest(envelope.sender), name_digest(envelope.receiver)
    numbers = envelope.counter, envelope.depth, len(body)
    return ENVELOPE.pack(MAGIC, envelope.session, sender, receiver, *numbers)


def check_header(header: bytes, body: bytes | memoryview, expected: Envelope) -> int:
    """Check that a packet is the expected one, of any depth, and return its depth.

    Raises
    ------
    MalformedMessageError
        If the packet is cut short or does not start as a packet does.
    UnexpectedMessageError
        If it is of another session, sender or receiver, or messages before it are missing.
    ReplayedMessageError
        If the packet was delivered before.
    """
    sender = expected.sender
    if len(header) != ENVELOPE.size:
        raise MalformedMessageError(sender, f"an envelope of {len(header)} bytes, cut short")
    magic, session, source, target, counter, depth, length = ENVELOPE.unpack(header)
    if magic != MAGIC or length != len(body):
        raise MalformedMessageError(sender, f"a body of {len(body)} bytes, {length} announced")
    if session != expected.session:
        raise UnexpectedMessageError(sender, "a message of another session")
    if (source, target) != (name_digest(sender), name_digest(expected.receiver)):
        raise UnexpectedMessageError(sender, "a message from or to somebody else")
    if depth > MOST_CHAIN:
        raise MalformedMessageError(sender, f"a chain of {depth} messages")
    if counter < expected.counter:
        raise ReplayedMessageError(sender, f"message {counter}, delivered before")
    if counter > expected.counter:
        raise UnexpectedMessageError(
            sender, f"message {counter}, where message {expected.counter} is expected"
        )
    return int(depth)


# ---- encoding ------------------------------------------------------------------------------------


def encode(message: Message) -> bytes:
    """Encode a message.

    Raises
    ------
    TypeError
        If a field is not an int, bool, str, bytes, ndarray of a known type, or tuple of these.
    """
    head, arrays = bytearray(), list[Any]()
    for item in fields(message):
        _put(head, arrays, getattr(message, item.name))
    kind = type(message).kind.encode()
    start = bytes([len(kind)]) + kind + _SIZE.pack(len(head)) + head
    pieces = [start, bytes(-len(start) % ALIGN)]
    for array in arrays:
        pieces += [array.data.cast("B") if array.size else b"", bytes(-array.nbytes % ALIGN)]
    return b"".join(pieces)


def _put(head: bytearray, arrays: list[Any], value: object) -> None:
    if isinstance(value, bool):
        head += b"b" + bytes([value])
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise TypeError("an integer beyond 64 bits cannot be sent")
        head += b"i" + _INT.pack(value)
    elif isinstance(value, str):
        text = value.encode()
        head += b"s" + _SIZE.pack(len(text)) + text
    elif isinstance(value, bytes):
        head += b"y" + _SIZE.pack(len(value)) + value
    elif isinstance(value, tuple):
        head += b"t" + _SIZE.pack(len(value))
        for item in value:
            _put(head, arrays, item)
    elif isinstance(value, np.ndarray) and value.dtype in DTYPES:
        head += b"a" + bytes([DTYPES.index(value.dtype), value.ndim])
        head += b"".join(map(_DIM.pack, value.shape))
        arrays.append(np.ascontiguousarray(value))
    else:
        raise TypeError(f"{type(value).__name__} cannot be sent")


# ---- decoding ------------------------------------------------------------------------------------


def decode(body: bytes | memoryview, sender: Party, expect: Expect[M]) -> M:
    """Decode a message of the kind and size that its receiver expects.

    Raises
    ------
    MalformedMessageError
        If it is cut short or too large, or its fields are not those of its kind.
    UnexpectedMessageError
        If the message is of another kind.
    """
    try:
        return _decode(memoryview(body), sender, expect)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise MalformedMessageError(sender, f"a message that cannot be read: {error}") from None


def _decode(body: memoryview, sender: Party, expect: Expect[M]) -> M:
    name_end = 1 + body[0]
    if name_end > len(body):
        raise ValueError("its kind is cut short")
    kind = bytes(body[1:name_end]).decode("ascii")
    if kind not in kinds(expect.kind):
        expected = " or ".join(sorted(kinds(expect.kind)))
        raise UnexpectedMessageError(sender, f"a message {kind!r}, where {expected} is expected")
    cls = kinds(expect.kind)[kind]
    (head,) = _SIZE.unpack_from(body, name_end)
    start = name_end + _SIZE.size
    if head > len(body) - start:
        raise ValueError("its head is cut short")
    reader = _Reader(body, start, start + head, expect.cells)
    values = [reader.value(TUPLE_DEPTH) for _ in fields(cls)]
    hints = _hints(cls)  # type: ignore[arg-type]  # classes are hashable
    reader.check_end()
    for item, value in zip(fields(cls), values, strict=True):
        if not _fits(value, hints[item.name]):
            raise ValueError(f"{item.name} is not of the type {hints[item.name]}")
    return cls(*values)


class _Reader:
    """Reads the values of a head and the arrays behind it, and counts the cells against a limit."""

    def __init__(self, body: memoryview, at: int, end: int, cells: int) -> None:
        self.body, self.at, self.end, self.cells = body, at, end, cells
        self.array_at = end + -end % ALIGN
        self.values = MOST_VALUES

    def take(self, count: int) -> memoryview:
        if count > self.end - self.at:
            raise ValueError("its head is cut short")
        self.at += count
        return self.body[self.at - count : self.at]

    def spend(self, cells: int) -> int:
        self.cells -= cells
        if self.cells < 0:
            raise ValueError(f"{-self.cells} cells more than are allowed")
        return cells

    def size(self) -> int:
        return self.spend(int(_SIZE.unpack(self.take(_SIZE.size))[0]))

    def value(self, depth: int) -> Any:
        tag = bytes(self.take(1))
        self.values -= ARRAY_VALUES if tag == b"a" else 1
        if self.values < 0:
            raise ValueError(f"more than {MOST_VALUES:,} values")
        if tag == b"b":
            return (False, True)[self.take(1)[0]]
        if tag == b"i":
            return _INT.unpack(self.take(_INT.size))[0]
        if tag == b"s":
            return bytes(self.take(self.size())).decode()
        if tag == b"y":
            return bytes(self.take(self.size()))
        if tag == b"t" and depth:
            return tuple(self.value(depth - 1) for _ in range(self.size()))
        if tag == b"a":
            return self.array()
        raise ValueError(f"an unknown tag {tag!r}, or tuples too deep")

    def array(self) -> np.ndarray[Any, Any]:
        code, ndim = self.take(2)
        if ndim > 32:
            raise ValueError(f"an array of {ndim} axes")
        shape = tuple(int(_DIM.unpack(self.take(_DIM.size))[0]) for _ in range(ndim))
        count = math.prod(shape)
        self.spend(max(count, 1))
        data = np.frombuffer(self.body, DTYPES[code], count, self.array_at) if count else None
        self.array_at += count * DTYPES[code].itemsize
        self.array_at += -self.array_at % ALIGN
        return np.zeros(shape, DTYPES[code]) if data is None else data.reshape(shape)

    def check_end(self) -> None:
        if self.at != self.end or self.array_at != len(self.body):
            raise ValueError("too many or too few bytes")


def kinds(base: type[M]) -> dict[str, type[M]]:
    """Return a class of messages and all its subclasses, by their names on the wire.

    Raises
    ------
    TypeError
        If two classes have the same name: a receiver could not distinguish them.
    """
    kinds: dict[str, type[M]] = {}
    for cls in _subclasses(base):
        kind = vars(cls).get("kind", "")
        other = kinds.get(kind, cls)
        if kind and _place(other) != _place(cls):
            raise TypeError(f"{_place(other)} and {_place(cls)} are both messages of kind {kind!r}")
        kinds[kind] = cls
    kinds.pop("", None)
    return kinds


def _place(cls: type) -> str:
    """Return where a class is defined: ``slots=True`` makes a second class of the same place."""
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _subclasses(base: type[M]) -> Iterator[type[M]]:
    yield base
    for cls in base.__subclasses__():
        yield from _subclasses(cls)


def _fits(value: object, hint: Any) -> bool:
    """Whether a decoded value is of a field's declared type.

    Raises
    ------
    TypeError
        If the declared type cannot be decoded: the class is at fault, not the sender.
    """
    origin, args = get_origin(hint), get_args(hint)
    alias = getattr(origin or hint, "__value__", None)
    if alias is not None:  # ``type`` statements, as numpy's NDArray from 2.5 on
        return _fits(value, alias)
    if origin in (Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(args) == 2 and args[1] is Ellipsis:
            if isinstance(args[0], type):  # all names of a list at once
                return set(map(type, value)) <= {args[0]}
            return all(_fits(item, args[0]) for item in value)
        return len(value) == len(args) and all(map(_fits, value, args))
    if not isinstance(hint, type):
        raise TypeError(f"a message's field is declared as {hint}, which cannot be decoded")
    return type(value) is hint
