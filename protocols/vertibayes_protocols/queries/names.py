"""Variables as places in arrays: how hot queries name them, and what is refused of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.study import Study


def check_variables(study: Study, names: Iterable[str]) -> None:
    """Refuse a variable that the study does not have, with a ValueError."""
    for name in names:
        if name not in study.variables:
            raise ValueError(f"the study has no variable {name!r}")


def numbered(groups: Iterable[Iterable[str]]) -> dict[str, int]:
    """Return the place of each variable among all variables of some groups.

    Examples
    --------
    >>> numbered([("z", "x"), ("z", "y")])
    {'z': 0, 'x': 1, 'y': 2}
    """
    names = dict.fromkeys(chain.from_iterable(groups))
    return {name: place for place, name in enumerate(names)}


def numbers(values: Iterable[int]) -> NDArray[np.uint32]:
    """Return places or lengths as a query has them."""
    return np.array(list(values), np.uint32)


def check_places(places: NDArray[np.uint32], variables: Sequence[str]) -> None:
    """Refuse an array that does not hold places of variables, with a ValueError."""
    if places.ndim != 1 or (places >= len(variables)).any():
        raise ValueError("a group has places beyond the query's variables")


def check_each_once(variables: Sequence[str]) -> None:
    """Refuse variables of which one is named twice, with a ValueError: it has one place."""
    if len(set(variables)) < len(variables):
        raise ValueError("the query names a variable twice")


def check_most(what: str, number: int, most: int) -> None:
    """Refuse a query that has too many of something, with a ValueError."""
    if number > most:
        raise ValueError(
            f"the query has {number:,} {what}; at most {most:,} are allowed in one query"
        )
