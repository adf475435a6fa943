"""What `Report` and `Publish` have until they state their effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.accounting import OPENDP
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.site.statistics import Numeric


def check_opendp(site: Party, noise: str) -> None:
    """Refuse noise that OpenDP draws where it is not installed."""
    if noise in OPENDP and find_spec("opendp") is None:
        raise QueryRefusedError(site, f"{noise} noise needs OpenDP, which is not installed")


def bounds_of(numerics: Mapping[str, Numeric]) -> NDArray[np.float64]:
    """Return the least and largest number of each column: shape (columns, 2)."""
    return np.array([(n.low, n.high) for n in numerics.values()], float).reshape(-1, 2)


def numerics_of(names: Sequence[str], bounds: NDArray[np.float64]) -> dict[str, Numeric]:
    """Return the columns of numbers that a query names; the inverse of `bounds_of`.

    Raises
    ------
    ValueError
        If the columns do not have two bounds each.
    """
    if bounds.shape != (len(names), 2):
        raise ValueError(
            f"{len(names)} columns of numbers must have two bounds each, got the shape "
            f"{bounds.shape}"
        )
    pairs = zip(names, bounds.tolist(), strict=True)
    return {name: Numeric(name, *ends) for name, ends in pairs}
