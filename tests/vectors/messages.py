"""An example of each kind of message, made from the declared types of its fields."""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

import vertibayes
import vertibayes_mpc
import vertibayes_protocols
from vertibayes_mpc.rounds import Message
from vertibayes_protocols import wire

PACKAGES = (vertibayes_mpc, vertibayes_protocols, vertibayes)


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
)


def message_classes() -> dict[str, type[Message]]:
    """Return every kind of message that the packages send; tests have kinds of their own."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith((".__main__", ".cellnet")):  # cellnet imports NVFlare
                importlib.import_module(module.name)
    names = {package.__name__ for package in PACKAGES}
    kinds = sorted(wire.kinds(Message).items())
    return {kind: cls for kind, cls in kinds if cls.__module__.partition(".")[0] in names}


def example(cls: type[Message]) -> Message:
    """Return an example: each field's value tells the field's place."""
    hints = get_type_hints(cls)
    return cls(*(_value(hints[item.name], at) for at, item in enumerate(fields(cls), 1)))


def _value(hint, place: int):
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(args[0], place)
    if origin is tuple:
        parts = [args[0]] * 2 if args[-1] is Ellipsis else args
        return tuple(_value(part, 10 * place + at) for at, part in enumerate(parts))
    dtype = next(_dtypes(hint), None)
    if dtype is not None:
        dtype = np.int64 if dtype is np.generic else dtype  # any kind of array
        return np.arange(place, place + 6).astype(dtype).reshape(2, 3)
    plain = {int: 1000 + place, bool: place % 2 == 1, str: f"ü{place}", bytes: b"\0%d" % place}
    if hint not in plain:
        raise TypeError(f"a field is declared as {hint}: tests/vectors has no example of that")
    return plain[hint]


def _dtypes(hint) -> Iterator[type[np.generic]]:
    """Find the type of an array's elements, however numpy spells that of arrays."""
    if isinstance(hint, type) and issubclass(hint, np.generic):
        yield np.uint32 if hint is np.unsignedinteger else hint
    for part in get_args(hint):
        yield from _dtypes(part)
