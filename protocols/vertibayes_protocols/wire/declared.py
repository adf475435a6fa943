"""Objects as canonical JSON: what a contract has of a query, field by field.

A contract fixes all fields but those that are marked `FREE`: what a session numbers or draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from vertibayes_protocols.wire.types import floats_of, free_of, is_record, with_floats


def declared_of(value: Any) -> Any:
    """Return a value as JSON, without the free fields of objects.

    A number that is not finite is a text.

    Parameters
    ----------
    value : object
        Whatever can be sent (`vertibayes_protocols.wire.encode`).

    Examples
    --------
    >>> from vertibayes_protocols.variables import Rows
    >>> declared_of((Rows(first=2), b"a"))
    [{'seed': 0, 'first': 2, 'last': None}, '61']
    """
    if isinstance(value, np.ndarray):
        return [value.dtype.str, declared_of(value.tolist())]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return [[declared_of(key), declared_of(item)] for key, item in value.items()]
    if is_record(type(value)):
        return _fields(value)
    if isinstance(value, list | tuple):
        return [declared_of(item) for item in value]
    return value


def _fields(record: Any) -> dict[str, Any]:
    cls: Any = type(record)
    values = ((name, getattr(record, name), floats) for name, floats in floats_of(cls))
    return {
        name: declared_of(value if floats is None else with_floats(value, floats))
        for name, value, floats in values
        if name not in free_of(cls)
    }


def difference(declared: Any, asked: Any) -> str | None:
    """Return the path of the first field in which JSON of two objects differs; None if equal.

    Parameters
    ----------
    declared, asked : JSON
        As of `declared_of`.

    Examples
    --------
    >>> difference({"odds": {"target": "x"}}, {"odds": {"target": "y"}})
    'odds.target'
    """
    return next(_differences(declared, asked, ()), None)


def _differences(declared: Any, asked: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(declared, dict) and isinstance(asked, dict):
        for key in (*declared, *(key for key in asked if key not in declared)):
            if key not in declared or key not in asked:
                yield ".".join((*path, key))
            else:
                yield from _differences(declared[key], asked[key], (*path, key))
    elif type(declared) is not type(asked) or declared != asked:
        yield ".".join(path)
