"""The declared types of what travels: which parts an object has, and what each may be."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, NamedTuple, get_type_hints

import numpy as np

LOCAL: Final = {"wire": "local"}  # metadata of a field that does not travel


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


@cache
def hints_of(cls: Any) -> dict[str, Any]:
    """Return the declared types of a class's fields, their bounds included."""
    return get_type_hints(cls, include_extras=True)


@cache
def parts_of(cls: Any) -> tuple[str, ...]:
    """Return the fields of a record that travel, in order."""
    if is_named_tuple(cls):
        return tuple(cls._fields)
    return tuple(item.name for item in fields(cls) if item.metadata != LOCAL)


@cache
def whole_floats(cls: Any) -> frozenset[str]:
    """Return the fields that are declared as a float, also as one that may be None."""
    hints = hints_of(cls)
    return frozenset(name for name in parts_of(cls) if hints[name] in (float, float | None))
