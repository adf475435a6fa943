"""The loop of EM steps that EM on records and EM on tables share."""

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
    """A variable has no value in any of the records."""


def check_steps(tolerance: float, most_iterations: int, name: str, number: int) -> None:
    """Refuse numbers that are out of range; `name` is the option with the third number."""
    if not tolerance > 0 or most_iterations < 1 or number < 0:
        raise ValueError(
            f"tolerance must be above 0, most_iterations at least 1 and {name} at least 0, got "
            f"{tolerance}, {most_iterations} and {number}"
        )


class EmSteps(NamedTuple):
    """The result of EM steps from one start."""

    network: Network
    trace: tuple[float, ...]
    converged: bool


def em_steps(
    expect: Expect,
    network: Network,
    *,
    pseudo_count: float,
    settled: Settled,
    most_iterations: int,
    progress: Callable[[int, int], None] | None,
) -> EmSteps:
    """Repeat EM steps from one start."""
    trace: list[float] = []
    last: Counts | None = None
    for iteration in range(most_iterations):
        if progress is not None:
            progress(iteration, most_iterations)
        value, counts = expect(network)
        trace.append(value)
        network = network_from(network.structure, network.variables, counts, pseudo_count)
        if settled(trace, _moved(last, counts)):
            return EmSteps(network, tuple(trace), True)
        last = counts
    return EmSteps(network, tuple(trace), False)


def _moved(last: Counts | None, counts: Counts) -> float:
    """Return the largest change of an expected count; infinity in the first step."""
    if last is None:
        return np.inf
    return max(float(np.abs(a - b).max()) for a, b in zip(last, counts, strict=True))
