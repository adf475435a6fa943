"""Objects that no constructor has seen: what a hostile peer sends, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from vertibayes_protocols.wire.types import is_record, parts_of


def forged(record: Any, **values: Any) -> Any:
    """Return a copy of an object with other values, whatever its constructor says of them."""
    cls = type(record)
    if not is_dataclass(cls):
        return tuple.__new__(cls, [values.get(name, getattr(record, name)) for name in cls._fields])
    made = object.__new__(cls)
    for item in fields(cls):
        value = values.get(item.name, getattr(record, item.name))
        object.__setattr__(made, item.name, value)
    return made


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of each value in an object: names of fields, places, keys."""
    if path:
        yield path
    for step, inner in _inside(value):
        yield from places(inner, (*path, step))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for step in path:
        value = dict(_inside(value))[step]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return an object with another value at a path."""
    if not path:
        return new
    step, *rest = path
    inner = put(at(value, (step,)), tuple(rest), new)
    if is_record(type(value)):
        return forged(value, **{step: inner})
    if isinstance(value, Mapping):
        return {**value, step: inner}
    return (*value[:step], inner, *value[step + 1 :])


def _inside(value: Any) -> list[tuple[Any, Any]]:
    if is_record(type(value)):
        return [(name, getattr(value, name)) for name in parts_of(type(value))]
    if isinstance(value, Mapping):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, tuple) else []
