"""Messages from bytes: read by their declared types and by nothing else.

A type is compiled once into a function that reads it. Sizes are compared with what is left of the
packet before anything is made, arrays are read-only views of the packet, and a type that contains
itself is the author's error, so that the type bounds the depth.
"""

from __future__ import annotations

import math
import struct
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import numpy as np

from vertibayes_mpc.errors import MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.rounds import Expect, M, Party
from vertibayes_protocols.wire.encoding import ALIGN, DIM, DTYPES, FLOAT, INT, SIZE
from vertibayes_protocols.wire.types import Most, hints_of, is_record, parts_of

MOST_VALUES, ARRAY_VALUES = 200_000, 4  # in one message; an array takes as long as four others


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
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise MalformedMessageError(sender, f"a message that cannot be read: {error}") from None


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

    def array(self) -> np.ndarray[Any, Any]:
        """Return an array: a view of the packet."""
        code, ndim = self.take(2)
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
Tagged: TypeAlias = Mapping[bytes, Read]  # by tag; of several records of one tag, see `_records`

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
    """Return what reads a declared type, by the tags that it may have.

    Raises
    ------
    TypeError
        If the type cannot be read.
    """
    origin, args = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        tag, read = PLAIN[hint]
        return {tag: read}
    if (alias := getattr(origin or hint, "__value__", None)) is not None:
        return _array(args) if get_origin(alias) is np.ndarray else _tagged(alias)
    if origin is np.ndarray:
        return _array(get_args(args[1]))
    if origin is Annotated:
        return _bounded(_tagged(args[0]), [bound for bound in args[1:] if isinstance(bound, Most)])
    if origin is Literal:
        return _one_of(args)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is tuple:
        return {b"t": _tuple(args)}
    if origin is not None and issubclass(origin, Mapping):
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


def _array(args: tuple[Any, ...]) -> Tagged:
    """Return what reads arrays of the declared type of elements, or of any one below it."""
    scalar = args[0] if args else Any
    known = [code for code in DTYPES if scalar is Any or issubclass(code.type, scalar)]

    def array(reader: Reader) -> np.ndarray[Any, Any]:
        made = reader.array()
        if made.dtype not in known:
            raise ValueError(f"an array of {made.dtype}, expected {', '.join(map(str, known))}")
        return made

    return {b"a": array}


def _bounded(readers: Tagged, bounds: list[Most]) -> Tagged:
    def bounded(read: Read) -> Read:
        def checked(reader: Reader) -> Any:
            value = read(reader)
            for bound in bounds:
                bound.check(value)
            return value

        return checked

    return {tag: bounded(read) if tag != b"n" else read for tag, read in readers.items()}


def _one_of(allowed: tuple[Any, ...]) -> Tagged:
    tag, read = PLAIN[type(allowed[0])]

    def one_of(reader: Reader) -> Any:
        if (value := read(reader)) not in allowed:
            raise ValueError(f"{value!r:.80}; expected {' or '.join(map(repr, allowed))}")
        return value

    return {tag: one_of}


def _union(options: tuple[Any, ...]) -> Tagged:
    """Return what reads one of several types: told apart by tags, records by their names."""
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
    if len(readers) < len(classes):
        raise TypeError(f"two of {classes} have one name")
    if len({parts_of(cls) for cls in classes}) < len(classes):  # their JSON has no name
        raise TypeError(f"two of {classes} have the same fields: contracts cannot tell them apart")

    def record(reader: Reader) -> Any:
        name = bytes(reader.take(reader.size())).decode()
        if name not in readers:
            raise ValueError(f"a {name!r:.80}, expected {' or '.join(readers)}")
        return readers[name](reader)

    return record


@cache
def _parts(cls: Any) -> Read:
    """Return what reads the fields of a class, and makes an object of them."""
    hints = hints_of(cls)
    try:
        parts = {name: _value(hints[name]) for name in parts_of(cls)}
    except RecursionError:
        raise TypeError(f"{cls.__name__} contains itself: nothing bounds its depth") from None
    by_keyword = is_dataclass(cls) and any(item.kw_only for item in fields(cls))

    def made(reader: Reader) -> Any:
        values: dict[str, Any] = {}
        for name, read in parts.items():
            try:
                values[name] = read(reader)
            except ValueError as error:
                raise ValueError(f"{name} is no valid value: {error}") from None
        try:
            return cls(**values) if by_keyword else cls(*values.values())
        except (ValueError, TypeError, ArithmeticError, LookupError) as error:
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
