"""Refuse a run whose tables take too much memory, before it says what it will cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from vertibayes.counting.secure import SecureCounter
from vertibayes.options import Options, families_of
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import budget_for
from vertibayes_protocols.queries.tables.counting import TableMemoryError, grouped
from vertibayes_protocols.queries.tables.ways import costs_of
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family


def check_memory(counter: SecureCounter, options: Options, *, apart: bool) -> None:
    """Refuse options whose largest table does not fit a query, and name options that fit.

    `apart` says whether the parties are on different machines, each with its own limit.
    """
    try:
        _check(counter, options)
    except TableMemoryError as error:
        needed = _memory_for(counter.study, options, families_of(counter, options), error.needed)
        memory, parents = "memory in study.toml and most_memory in each [policy]", "max_parents ="
        if not apart:
            needed = budget_for(needed, len(counter.study.sites))
            memory, parents = "`memory`", "`max_parents`"
        advice = f"it fits with {memory} of {-(-needed >> 20)}MiB"
        if most := _most_parents(counter, options, error.parents):
            advice += f"; {parents} {most} fits as it is"
        raise ValueError(f"{error} ({advice})") from None


def _check(counter: SecureCounter, options: Options) -> None:
    counter.check(families_of(counter, options), missing=options.missing == "state")


def _memory_for(study: Study, options: Options, families: Sequence[Family], least: int) -> int:
    """Return a memory that suffices for tables: some ways take more of it the more there is."""
    larger = replace(study, memory=least)
    try:
        costs_of(larger, study.records, options.missing == "state").checked(grouped(families))
    except TableMemoryError as error:
        return _memory_for(study, options, families, error.needed * 9 // 8)
    return least


def _most_parents(counter: SecureCounter, options: Options, refused: int) -> int:
    """Return the largest number of parents, below a refused one, whose tables fit; 0 if none."""
    if options.structure is None:
        for most in range(refused - 1, 0, -1):
            fewer = replace(options, max_parents=most)
            with suppress(ValueError, QueryRefusedError):
                _check(counter, fewer)
                return most if families_of(counter, fewer) else 0  # tan asks for none with one
    return 0
