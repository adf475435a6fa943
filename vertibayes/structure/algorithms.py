"""All algorithms that learn a structure, by name."""

from __future__ import annotations

from collections.abc import Mapping

from vertibayes.structure.climbing_by_choices import hill_climbing_calls, hill_climbing_steps
from vertibayes.structure.climbing_by_tables import (
    hill_climbing_tables,
    tabu_tables,
    typical_families,
)
from vertibayes.structure.exact import exact_tables, exact_widest
from vertibayes.structure.hybrid_by_choices import hybrid_calls, hybrid_steps
from vertibayes.structure.hybrid_by_tables import hybrid_tables
from vertibayes.structure.k2 import k2_asks, k2_bits, k2_calls, k2_steps, k2_widest
from vertibayes.structure.limited_choices import most_bits
from vertibayes.structure.pc import pc_bits, pc_calls, pc_steps, pc_widest
from vertibayes.structure.search import Algorithm
from vertibayes.structure.trees import (
    chow_liu_steps,
    chow_liu_widest,
    tan_steps,
    tan_widest,
    tree_bits,
    tree_calls,
)
from vertibayes.structure.typical import by_neighbours

# What they ask by tables (`asks`): `benchmarks/forecasts.py` has the calls of each.
ALGORITHMS: Mapping[str, Algorithm] = {
    "hybrid": Algorithm(
        steps=hybrid_steps,
        tables=hybrid_tables,
        widest=typical_families,
        asks=by_neighbours({3: 1, 4: 0.4, 5: 0.02}, calls=7),
        bits=most_bits,
        calls=hybrid_calls,
        ends_early=True,
        ends_in_time=True,
    ),
    "hill_climbing": Algorithm(
        steps=hill_climbing_steps,
        tables=hill_climbing_tables,
        widest=typical_families,
        asks=by_neighbours({3: 0.6, 4: 0.1}, calls=6),
        bits=most_bits,
        calls=hill_climbing_calls,
        starts=True,
        ends_early=True,
        ends_in_time=True,
    ),
    "tabu": Algorithm(
        tables=tabu_tables,
        widest=typical_families,
        asks=by_neighbours({3: 0.6, 4: 0.15}, calls=10),
        starts=True,
        ends_in_time=True,
    ),
    "pc": Algorithm(
        steps=pc_steps,
        widest=pc_widest,
        bits=pc_bits,
        calls=pc_calls,
        max_parents=3,
        is_bound=False,
    ),
    "chow_liu": Algorithm(
        steps=chow_liu_steps,
        widest=chow_liu_widest,
        bits=tree_bits,
        calls=tree_calls,
        max_parents=1,
    ),
    "tan": Algorithm(
        steps=tan_steps,
        widest=tan_widest,
        bits=tree_bits,
        calls=tree_calls,
        max_parents=2,
    ),
    "exact": Algorithm(tables=exact_tables, widest=exact_widest),
    "k2": Algorithm(
        steps=k2_steps,
        widest=k2_widest,
        asks=k2_asks,
        bits=k2_bits,
        calls=k2_calls,
        max_parents=3,
    ),
}
DEFAULT = "hybrid"


def algorithm_of(name: str) -> Algorithm:
    """Return an algorithm."""
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise ValueError(f"the algorithm must be one of {known}, got {name!r}")
    return ALGORITHMS[name]
