"""An example of each kind of message, made from the declared types of its fields."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

import vertibayes
import vertibayes_mpc
import vertibayes_protocols
from tests.vectors.valid import VALID
from vertibayes_mpc.rounds import Message
from vertibayes_protocols import wire
from vertibayes_protocols.wire.types import UNIONS, is_record, parts_of, written_out

PACKAGES = (vertibayes_mpc, vertibayes_protocols, vertibayes)


@dataclass(frozen=True)
class Record:
    """An object in a message; the second field is a whole number in the example."""

    name: str
    share: float
    perhaps: int | None = None


class Pair(NamedTuple):
    """A named tuple in a message."""

    left: Record
    right: bytes


@dataclass(frozen=True, slots=True)
class EachType(Message):
    """Whatever can be sent."""

    kind: ClassVar[str] = "vectors: each type"
    numbers: tuple[int, ...]
    flags: tuple[bool, ...]
    texts: tuple[str, ...]
    codes: tuple[bytes, ...]
    nested: tuple[tuple[tuple[int, str], ...], ...]
    arrays: tuple[NDArray[np.generic], ...]
    reals: tuple[float, ...]
    nothing: None
    word: Literal["one", "other"]
    records: tuple[Record | Pair, ...]
    mapping: Mapping[str, Annotated[tuple[Record, ...], wire.Most(2)]]


EACH_TYPE = EachType(
    numbers=(0, 1, -1, 2**63 - 1, -(2**63)),
    flags=(False, True),
    texts=("", "a", "ü"),
    codes=(b"", b"\0\xff"),
    nested=((), ((1, "a"), (2, "b"))),
    arrays=(
        *(np.arange(3, dtype=dtype) for dtype in wire.DTYPES),
        np.arange(6, dtype="<u4").reshape(2, 3).T,
        np.array([-1, -(2**63)], "<i8"),
        np.array([0.5, -np.inf]),
        np.zeros((0, 4), "<u2"),
        np.array(7, "u1"),
    ),
    reals=(0.5, 1, -0.0, float("inf")),
    nothing=None,
    word="other",
    records=(Record("ü", 1), Pair(Record("b", 0.25, 7), b"c")),
    mapping={"b": (), "a": (Record("a", 2.0),)},
)


def message_classes() -> dict[str, type[Message]]:
    """Return every kind of message that the packages send; tests have kinds of their own."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    names = {package.__name__ for package in PACKAGES}
    kinds = sorted(wire.kinds(Message).items())
    return {kind: cls for kind, cls in kinds if cls.__module__.partition(".")[0] in names}


def example(cls: type[Message]) -> Message:
    """Return an example: each field's value tells the field's place."""
    return _record(cls, 0)


def _record(cls, place: int):
    """Return an object of a class: its fields by their types, unless `VALID` has them."""
    valid = VALID.get(cls, {})
    values = {
        name: valid[name] if name in valid else _value(hint, 10 * place + at)
        for at, (name, hint) in enumerate(parts_of(cls).items(), 1)
    }
    try:
        return cls(**values)
    except ValueError as error:
        error.add_note(f"which fields does {cls.__name__} take? Add them to tests/vectors/valid.py")
        raise


def _value(hint, place: int):
    hint = written_out(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _value(args[0], place)
    if origin is Literal:
        return args[place % len(args)]
    if origin in UNIONS:
        return _value(args[0], place)
    if origin is tuple:
        parts = [args[0]] * 2 if args[-1] is Ellipsis else args
        return tuple(_value(part, 10 * place + at) for at, part in enumerate(parts))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = [_value(args[1], place + at) for at in range(2)]
        keys = [getattr(v, "name", _value(args[0], place + at)) for at, v in enumerate(values)]
        return dict(zip(keys, values, strict=True))
    if is_record(hint):
        return _record(hint, place)
    dtype = next(_dtypes(hint), None)
    if dtype is not None:
        dtype = np.int64 if dtype is np.generic else dtype  # any kind of array
        return np.arange(place, place + 6).astype(dtype).reshape(2, 3)
    plain = {
        int: 1000 + place,
        float: 1 - 1 / (1 + place),  # shares, probabilities, bounds in order
        bool: place % 2 == 1,
        str: f"ü{place}",
        bytes: b"\0%d" % place,
        type(None): None,
    }
    if hint not in plain:
        raise TypeError(f"a field is declared as {hint}: tests/vectors has no example of that")
    return plain[hint]


def _dtypes(hint) -> Iterator[type[np.generic]]:
    """Find the type of an array's elements."""
    if isinstance(hint, type) and issubclass(hint, np.generic):
        yield np.uint32 if hint is np.unsignedinteger else hint
    for part in get_args(hint):
        yield from _dtypes(part)
