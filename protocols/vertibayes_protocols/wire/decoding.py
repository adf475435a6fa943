"""Messages from bytes: read by their declared types and by nothing else.

A type is compiled once into a function that reads it. Sizes are compared with what is left of the
packet before anything is made, arrays are read-only views of the packet, and a type that contains
itself is the author's error, so that the type bounds the depth.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

import numpy as np

from vertibayes_mpc.errors import MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.rounds import Expect, M, Party
from vertibayes_protocols.errors import printable
from vertibayes_protocols.wire.encoding import ALIGN, DIM, DTYPES, FLOAT, INT, SIZE
from vertibayes_protocols.wire.types import (
    UNIONS,
    Most,
    free_of,
    is_mapping,
    is_record,
    parts_of,
    written_out,
)

MOST_VALUES, ARRAY_VALUES = 200_000, 4  # in one message; an array takes as long as four others
MOST_WORDS = 500  # characters of a reason: a constructor's may quote what the peer sent


def decode(body: bytes | memoryview, sender: Party, expect: Expect[M]) -> M:
    """Decode a message of the kind and size that its receiver expects.

    Raises
    ------
    MalformedMessageError
        If it is cut short or too large, its fields are not those of its kind, or a constructor
        refuses them.
    UnexpectedMessageError
        If the message is of another kind.
    TypeError
        If a declared type cannot be read: the class is at fault, not the sender.
    """
    try:
        return _decode(memoryview(body), sender, expect)
    except (struct.error, IndexError, ValueError) as error:
        reason = printable(str(error)[:MOST_WORDS])
        raise MalformedMessageError(sender, f"a message that cannot be read: {reason}") from None


def _decode(body: memoryview, sender: Party, expect: Expect[M]) -> M:
    name_end = 1 + body[0]
    if name_end > len(body):
        raise ValueError("its kind is cut short")
    kind, known = bytes(body[1:name_end]).decode("ascii"), kinds(expect.kind)
    if kind not in known:
        expected = " or ".join(sorted(known))
        raise UnexpectedMessageError(sender, f"a message {kind!r}, where {expected} is expected")
    (head,) = SIZE.unpack_from(body, name_end)
    start = name_end + SIZE.size
    if head > len(body) - start:
        raise ValueError("its head is cut short")
    cls: Any = known[kind]  # mypy: classes are hashable
    read = _parts(cls)
    reader = Reader(body, start, start + head, expect.cells)
    made: M = read(reader)
    reader.check_end()
    return made


class Reader:
    """Reads the values of a head and the arrays behind it, and counts the cells against a limit."""

    def __init__(self, body: memoryview, at: int, end: int, cells: int) -> None:
        self.body, self.at, self.end, self.cells = body, at, end, cells
        self.array_at = end + -end % ALIGN
        self.values = MOST_VALUES

    def take(self, count: int) -> memoryview:
        """Return the next bytes of the head."""
        if count > self.end - self.at:
            raise ValueError("its head is cut short")
        self.at += count
        return self.body[self.at - count : self.at]

    def tag(self) -> bytes:
        """Return the tag of the next value, which is counted."""
        tag = bytes(self.take(1))
        self.values -= ARRAY_VALUES if tag == b"a" else 1
        if self.values < 0:
            raise ValueError(f"more than {MOST_VALUES:,} values")
        return tag

    def spend(self, cells: int) -> int:
        """Count cells against the limit."""
        self.cells -= cells
        if self.cells < 0:
            raise ValueError(f"{-self.cells} cells more than are allowed")
        return cells

    def size(self) -> int:
        """Return the number of items or characters, each of which takes a byte or more."""
        size = self.spend(int(SIZE.unpack(self.take(SIZE.size))[0]))
        if size > self.end - self.at:
            raise ValueError("its head is cut short")
        return size

    def array(self, codes: Sequence[int]) -> np.ndarray[Any, Any]:
        """Return an array of one of these types: a view of the packet."""
        code, ndim = self.take(2)
        if code not in codes:
            given, *expected = (str(DTYPES[at]) for at in (code, *codes))
            raise ValueError(f"an array of {given}, expected {' or '.join(expected)}")
        if ndim > 32:
            raise ValueError(f"an array of {ndim} axes")
        shape = tuple(int(DIM.unpack(self.take(DIM.size))[0]) for _ in range(ndim))
        count = math.prod(shape)
        self.spend(max(count, 1))
        data = np.frombuffer(self.body, DTYPES[code], count, self.array_at) if count else None
        self.array_at += count * DTYPES[code].itemsize
        self.array_at += -self.array_at % ALIGN
        return np.zeros(shape, DTYPES[code]) if data is None else data.reshape(shape)

    def check_end(self) -> None:
        """Refuse bytes that nothing has read."""
        if self.at != self.end or self.array_at != len(self.body):
            raise ValueError("too many or too few bytes")


# ---- readers of declared types -------------------------------------------------------------------

Read: TypeAlias = Callable[[Reader], Any]  # of what follows a tag
Tagged: TypeAlias = Mapping[bytes, Read]  # by tag
KEYS = {b"s", b"y"}  # tags of keys: a peer cannot choose the hashes of texts
SIZED = {b"s", b"y", b"t", b"m", b"a"}  # tags of what has a size

PLAIN: dict[Any, tuple[bytes, Read]] = {
    bool: (b"b", lambda reader: (False, True)[reader.take(1)[0]]),
    int: (b"i", lambda reader: INT.unpack(reader.take(INT.size))[0]),
    float: (b"f", lambda reader: FLOAT.unpack(reader.take(FLOAT.size))[0]),
    str: (b"s", lambda reader: bytes(reader.take(reader.size())).decode()),
    bytes: (b"y", lambda reader: bytes(reader.take(reader.size()))),
    type(None): (b"n", lambda _: None),
}


@cache
def _tagged(hint: Any) -> Tagged:
    """Return what reads a declared type, by the tags that it may have."""
    hint = written_out(hint)
    origin, args = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return dict([PLAIN[hint]])
    if origin is np.ndarray:
        return _array(*get_args(args[1]))
    if origin is Annotated:
        return _bounded(*args)
    if origin is Literal:
        return _one_of(args)
    if origin in UNIONS:
        return _union(args)
    if origin is tuple:
        return {b"t": _tuple(args)}
    if is_mapping(origin):
        return {b"m": _mapping(*args)}
    if is_record(hint):
        return {b"d": _record(hint)}
    raise TypeError(f"a field is declared as {hint}, which cannot be decoded")


def _value(hint: Any) -> Read:
    """Return what reads a tag and a value of a declared type."""
    readers, shown = _tagged(hint), getattr(hint, "__name__", str(hint))

    def value(reader: Reader) -> Any:
        read = readers.get(reader.tag())
        if read is None:
            raise ValueError(f"not of the type {shown}")
        return read(reader)

    return value


def _array(scalar: Any) -> Tagged:
    """Return what reads arrays of the declared type of elements, or of any one below it."""
    wanted = np.generic if scalar is Any else scalar
    codes = [code for code, dtype in enumerate(DTYPES) if issubclass(dtype.type, wanted)]
    if not codes:
        raise TypeError(f"arrays of {scalar} cannot be decoded")
    return {b"a": lambda reader: reader.array(codes)}


def _bounded(hint: Any, *bounds: Any) -> Tagged:
    readers = _tagged(hint)
    if not all(isinstance(bound, Most) for bound in bounds) or not readers.keys() <= SIZED:
        raise TypeError(f"{hint} cannot be bounded by {bounds}")

    def bounded(read: Read) -> Read:
        def checked(reader: Reader) -> Any:
            value = read(reader)
            for bound in bounds:
                bound.check(value)
            return value

        return checked

    return {tag: bounded(read) for tag, read in readers.items()}


def _one_of(allowed: tuple[Any, ...]) -> Tagged:
    (kind, *more) = {type(value) for value in allowed}
    if more or kind not in PLAIN:
        raise TypeError(f"literals must be of one plain type, got {allowed}")
    tag, read = PLAIN[kind]

    def one_of(reader: Reader) -> Any:
        if (value := read(reader)) not in allowed:
            raise ValueError(f"{value!r:.80}; expected {' or '.join(map(repr, allowed))}")
        return value

    return {tag: one_of}


def _union(options: tuple[Any, ...]) -> Tagged:
    """Return what reads one of several types: tags distinguish them, and names records."""
    together: dict[bytes, Read] = {}
    records = tuple(option for option in options if is_record(option))
    for option in options:
        readers = {} if option in records else _tagged(option)
        if shared := together.keys() & readers.keys():
            raise TypeError(f"two types of {options} have the tag {min(shared)!r}")
        together |= readers
    if records:
        together[b"d"] = _record(*records)
    return together


def _tuple(args: tuple[Any, ...]) -> Read:
    if len(args) == 2 and args[1] is Ellipsis:
        item = _value(args[0])
        return lambda reader: tuple([item(reader) for _ in range(reader.size())])
    items = [_value(arg) for arg in args]

    def fixed(reader: Reader) -> tuple[Any, ...]:
        if (size := reader.size()) != len(items):
            raise ValueError(f"{size} items, expected {len(items)}")
        return tuple([item(reader) for item in items])

    return fixed


def _mapping(key: Any, value: Any) -> Read:
    if not _tagged(key).keys() <= KEYS:
        raise TypeError(f"{key} cannot be the keys of a mapping")
    read_key, read_value = _value(key), _value(value)

    def mapping(reader: Reader) -> dict[Any, Any]:
        size = reader.size()
        made = {read_key(reader): read_value(reader) for _ in range(size)}
        if len(made) < size:
            raise ValueError("a key appears twice")
        return made

    return mapping


def _record(*classes: type) -> Read:
    """Return what reads an object of one of these classes: its name, then its fields."""
    readers = {cls.__name__: _parts(cls) for cls in classes}
    fixed = {frozenset(parts_of(cls)) - free_of(cls) for cls in classes}
    if min(len(readers), len(fixed)) < len(classes):
        raise TypeError(f"two of {classes} have the same name, or the same fields in a contract")

    def record(reader: Reader) -> Any:
        name = bytes(reader.take(reader.size())).decode()
        if name not in readers:
            raise ValueError(f"a {name!r:.80}, expected {' or '.join(readers)}")
        return readers[name](reader)

    return record


@cache
def _parts(cls: Any) -> Read:
    """Return what reads the fields of a class, and makes an object of them."""
    try:
        parts = {name: _value(hint) for name, hint in parts_of(cls).items()}
    except RecursionError:
        raise TypeError(f"{cls.__name__} contains itself: nothing bounds its depth") from None
    items = fields(cls) if is_dataclass(cls) else ()
    by_name = any(item.kw_only or item.name not in parts for item in items)

    def made(reader: Reader) -> Any:
        values: dict[str, Any] = {}
        for name, read in parts.items():
            try:
                values[name] = read(reader)
            except (ValueError, IndexError) as error:
                raise ValueError(f"{name} is no valid value: {error}") from None
        try:
            return cls(**values) if by_name else cls(*values.values())
        except Exception as error:  # whatever it is, the values are the sender's
            raise ValueError(f"{cls.__name__}: {error}") from error

    return made


# ---- kinds of messages ---------------------------------------------------------------------------


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


T = TypeVar("T")


def _subclasses(base: type[T]) -> Iterator[type[T]]:
    yield base
    for cls in base.__subclasses__():
        yield from _subclasses(cls)
