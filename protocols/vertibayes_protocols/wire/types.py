"""The declared types of what travels: which parts an object has, and what each may be."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sized
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

FREE: Final = {"contract": "free"}  # metadata of a field that a contract does not fix
LOCAL: Final = {"wire": "local"}  # metadata of a field that does not travel
UNIONS: Final = Union, types.UnionType


class Most(NamedTuple):
    """A bound of a field, as ``Annotated[tuple[str, ...], Most(8)]``: its items, or its elements.

    Parameters
    ----------
    size : int
        The largest number of items, characters or elements.
    """

    size: int

    def check(self, value: Sized) -> None:
        """Refuse more, with a ValueError."""
        size = value.size if isinstance(value, np.ndarray) else len(value)
        if size > self.size:
            raise ValueError(f"{size} items, at most {self.size} are allowed")


def is_named_tuple(cls: Any) -> bool:
    """Whether a class is one of named tuples, which travel as records do."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_record(cls: Any) -> bool:
    """Whether objects of a class travel as their fields."""
    return isinstance(cls, type) and (is_dataclass(cls) or is_named_tuple(cls))


def is_mapping(origin: Any) -> bool:
    """Whether the origin of a generic type is one of mappings."""
    return isinstance(origin, type) and issubclass(origin, Mapping)


@cache
def parts_of(cls: Any) -> Mapping[str, Any]:
    """Return the fields of a record that travel, in order, with their declared types."""
    try:
        hints = get_type_hints(cls, include_extras=True)
        return {name: hints[name] for name in _names(cls)}
    except (NameError, KeyError) as error:
        raise TypeError(f"a field of {cls.__name__} has no readable type: {error}") from None


def _names(cls: Any) -> Iterator[str]:
    if is_named_tuple(cls):
        return iter(cls._fields)
    return (item.name for item in fields(cls) if item.init and item.metadata != LOCAL)


@cache
def free_of(cls: Any) -> frozenset[str]:
    """Return the fields of a record that a contract does not fix."""
    marked = fields(cls) if is_dataclass(cls) else ()
    return frozenset(item.name for item in marked if item.metadata == FREE)


def written_out(hint: Any) -> Any:
    """Return a type for which None or an alias stands; numpy's NDArray is one from 2.5 on."""
    if hint is None:
        return type(None)
    alias = getattr(get_origin(hint) or hint, "__value__", None)
    if alias is None:
        return hint
    return written_out(alias[get_args(hint)] if get_args(hint) else alias)


# ---- whole numbers where floats are declared -----------------------------------------------------


@cache
def floats_of(cls: Any) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a record that travel, with the types of those that have floats."""
    parts = parts_of(cls).items()
    return tuple((name, hint if _has_floats(hint) else None) for name, hint in parts)


@cache
def _has_floats(hint: Any) -> bool:
    hint = written_out(hint)
    return hint is float or any(map(_has_floats, get_args(hint)))


def with_floats(value: Any, hint: Any) -> Any:
    """Return a value in which a whole number is a float where its type declares a float.

    Objects that are equal therefore have equal bytes: ``1 == 1.0``.
    """
    hint = written_out(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return with_floats(value, args[0])
    if type(value) is int:
        is_float = hint is float or (origin in UNIONS and float in args and int not in args)
        return float(value) if is_float else value
    if origin in UNIONS:
        for option in args:
            value = with_floats(value, option)
    elif origin is tuple and type(value) is tuple:
        hints = repeat(args[0], len(value)) if args[-1:] == (Ellipsis,) else args
        if len(value) == len(args) or hints is not args:
            return tuple(map(with_floats, value, hints))
    elif is_mapping(origin) and isinstance(value, Mapping):
        key, item = args
        return {with_floats(k, key): with_floats(v, item) for k, v in value.items()}
    return value
