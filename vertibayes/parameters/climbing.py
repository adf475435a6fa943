"""The loop that EM on records and EM on tables have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.network import Network
from vertibayes.parameters.cpt import network_from

Counts: TypeAlias = list[NDArray[np.float64]]
Expect: TypeAlias = Callable[[Network], tuple[float, Counts]]
Settled: TypeAlias = Callable[[Sequence[float], float], bool]


class NoValueError(ValueError):
    """A variable has no value in any of the records that are to be learned from."""


class Climbed(NamedTuple):
    """Where a start led."""

    network: Network
    trace: tuple[float, ...]
    converged: bool


def climb(
    expect: Expect,
    network: Network,
    *,
    pseudo_count: float,
    settled: Settled,
    most_iterations: int,
    told: Callable[[int], None],
) -> Climbed:
    """Iterate from one start.

    Parameters
    ----------
    expect : callable
        network -> (what the trace has, the expected counts of each family).
    network : Network
        The start.
    pseudo_count : float
        Added to each expected count.
    settled : callable
        (trace, the largest change of an expected count) -> whether to stop.
    most_iterations : int
    told : callable
        Called with the iteration before each.
    """
    trace: list[float] = []
    last: Counts | None = None
    for iteration in range(most_iterations):
        told(iteration)
        value, counts = expect(network)
        trace.append(value)
        network = network_from(network.structure, network.variables, counts, pseudo_count)
        if settled(trace, _moved(last, counts)):
            return Climbed(network, tuple(trace), True)
        last = counts
    return Climbed(network, tuple(trace), False)


def _moved(last: Counts | None, counts: Counts) -> float:
    """Return the largest change of an expected count; infinite at first."""
    if last is None:
        return np.inf
    return max(float(np.abs(a - b).max()) for a, b in zip(last, counts, strict=True))
