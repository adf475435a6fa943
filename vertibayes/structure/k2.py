"""K2: greedy search for parents, given an ordering (Cooper and Herskovits 1992, fig. "K2")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from protocols.variables import Family, Rows
from vertibayes.counting.counter import (
    MOST_CELLS,
    Counter,
    Table,
    axis_lengths,
    cells_of,
    portions,
)
from vertibayes.network import Edge, Structure
from vertibayes.structure.scores import k2_scores

MOST_PARENTS = 20


@dataclass
class _Search:
    """The search for the parents of one node: its parents so far, and the candidates."""

    child: str
    parents: list[str]
    candidates: list[str]
    done: bool = field(default=False)

    def families(self, lengths: Mapping[str, int]) -> list[Family]:
        """Return the families of the parents and each candidate whose table can be counted."""
        cells = cells_of(lengths, Family(self.child, tuple(self.parents)))
        self.candidates = [c for c in self.candidates if cells * lengths[c] <= MOST_CELLS]
        return [Family(self.child, (*self.parents, candidate)) for candidate in self.candidates]

    def choose(self, gains: Sequence[float]) -> None:
        """Add the candidate with the highest gain (the first of equals) if it is positive."""
        best = max(range(len(gains)), key=gains.__getitem__)  # max takes the first
        if gains[best] > 0:
            self.parents.append(self.candidates.pop(best))
        else:
            self.done = True


def k2(
    counter: Counter,
    *,
    ordering: Sequence[str] | None = None,
    max_parents: int = 3,
    required: Collection[Edge] = (),
    forbidden: Collection[Edge] = (),
    start: Structure | None = None,
    missing: bool = False,
    rows: Rows = Rows(),
    progress: Callable[[int, int], None] | None = None,
) -> Structure:
    """Learn a structure.

    For each node, K2 adds the predecessor with the highest gain in K2 score, as long as the gain is
    positive and the node has fewer than `max_parents` parents. The gain of a candidate is the score
    of the table of child, parents and candidate minus the score of the same table summed over the
    candidate: on complete data the difference of K2 scores, and with missing values a comparison
    over the same records. Given an ordering the nodes are independent: each step asks for the
    tables of all candidates of all nodes in one call. A predecessor whose table would have more
    than `counting.counter.MOST_CELLS` cells is not a candidate.

    Parameters
    ----------
    counter : Counter
        The source of all counts.
    ordering : sequence of str, optional
        All variables, each before those of which it may be a parent; the study's order if None.
    max_parents : int, default=3
        The largest number of parents of a node.
    required : collection of (parent, child)
        Edges that the structure must have.
    forbidden : collection of (parent, child)
        Edges that the structure must not have.
    start : Structure, optional
        The structure from which the search starts; its edges are kept.
    missing : bool, default=False
        Whether a missing value is a state.
    rows : Rows
        The records to learn from; all by default.
    progress : callable, optional
        Called with (steps done, steps at most).

    Returns
    -------
    structure : Structure
        The structure, with parents in the order in which they were added.

    Raises
    ------
    ValueError
        If the ordering or an edge does not fit; the message names the variables.

    Examples
    --------
    >>> import numpy as np
    >>> from protocols.site.data import SiteData
    >>> from protocols.variables import Variable
    >>> from vertibayes.counting import PlainCounter
    >>> x, z = np.array([[0, 1] * 20, [0, 0, 1, 1] * 10], np.uint8)
    >>> codes = {"x": x, "z": z, "y": x ^ z}
    >>> data = SiteData({name: Variable(name, ("no", "yes")) for name in codes}, codes)
    >>> k2(PlainCounter(data), required=[("x", "y")]).edges
    (('x', 'y'), ('z', 'y'))
    """
    order = check_ordering(counter, ordering)
    check_max_parents(counter, max_parents)
    searches = _searches(order, max_parents, required, forbidden, start)
    counter.check(widest_families(counter, order, max_parents, missing=missing), missing=missing)
    lengths = axis_lengths(counter.variables, missing)
    for step in range(max_parents):
        if progress is not None:
            progress(step, max_parents)
        open_ = [s for s in searches if s.candidates and len(s.parents) < max_parents]
        families = [f for s in open_ if not s.done for f in s.families(lengths)]
        if not families:
            break
        gains: list[float] = []
        for portion in portions(lengths, families):
            gains += _gains(counter.tables(portion, missing=missing, rows=rows))
        remaining = iter(gains)
        for search in (s for s in open_ if not s.done and s.candidates):
            search.choose([next(remaining) for _ in search.candidates])
    if progress is not None:
        progress(max_parents, max_parents)
    return Structure({search.child: tuple(search.parents) for search in searches})


def widest_families(
    counter: Counter, order: Sequence[str], max_parents: int, *, missing: bool = False
) -> list[Family]:
    """Return the widest families that a search may ask for, for each step, node and candidate.

    The cost of their tables is an upper bound for the cost of the search.

    Parameters
    ----------
    counter, max_parents, missing
        As `k2`.
    order : sequence of str
        The ordering.
    """
    lengths, families = axis_lengths(counter.variables, missing), []
    for place, child in enumerate(order):
        widest = sorted(order[:place], key=lambda name: -lengths[name])
        for parents in range(min(max_parents, place)):
            search = _Search(child, widest[:parents], widest[parents:])
            families += search.families(lengths)
    return families


def _gains(tables: Sequence[Table]) -> list[float]:
    """Return the gain of the last parent of each table, over the table's records."""
    scores = k2_scores([*tables, *(table.sum(axis=-1) for table in tables)])
    return [a - b for a, b in zip(scores, scores[len(tables) :], strict=False)]


def check_ordering(counter: Counter, ordering: Sequence[str] | None) -> list[str]:
    """Return an ordering of all variables.

    Raises
    ------
    ValueError
        If a variable is unknown, missing or named twice.
    """
    if ordering is None:
        return list(counter.variables)
    unknown = [name for name in ordering if name not in counter.variables]
    absent = [name for name in counter.variables if name not in ordering]
    twice = sorted({name for name in ordering if list(ordering).count(name) > 1})
    faults = (
        ("has unknown variables", unknown),
        ("does not have the variables", absent),
        ("has variables twice", twice),
    )
    for fault, names in faults:
        if names:
            raise ValueError(
                f"the ordering {fault}: {', '.join(names)}; name each variable of the data once"
            )
    return list(ordering)


def check_max_parents(counter: Counter, max_parents: int) -> None:
    """Refuse a number of parents that is out of range, or too large for the sites' policies.

    Raises
    ------
    ValueError
        If the number is out of range; the message has the range.
    """
    most, why, widest = MOST_PARENTS, "", counter.most_variables
    if widest is not None and widest <= MOST_PARENTS:
        most, why = widest - 1, f" (the sites allow tables of {widest} variables)"
    if not 0 <= max_parents <= most:
        raise ValueError(f"max_parents must be between 0 and {most}{why}, got {max_parents}")


def _searches(
    order: list[str],
    max_parents: int,
    required: Collection[Edge],
    forbidden: Collection[Edge],
    start: Structure | None,
) -> list[_Search]:
    given = [(p, c) for p, c in (*(start.edges if start is not None else ()), *required)]
    forbidden = {(p, c) for p, c in forbidden}
    place = {name: i for i, name in enumerate(order)}
    for parent, child in [*given, *forbidden]:
        if parent not in place or child not in place:
            raise ValueError(f"the edge {parent} -> {child} has an unknown variable")
    for parent, child in given:
        if place[parent] >= place[child]:
            raise ValueError(f"the given edge {parent} -> {child} contradicts the ordering")
        if (parent, child) in forbidden:
            raise ValueError(f"the edge {parent} -> {child} is both given and forbidden")
    searches = []
    for child in order:
        parents = list(dict.fromkeys(p for p, c in given if c == child))
        if len(parents) > max_parents:
            raise ValueError(
                f"{child} has {len(parents)} given parents, at most {max_parents} are allowed"
            )
        may = [p for p in order[: place[child]] if p not in parents and (p, child) not in forbidden]
        searches.append(_Search(child, parents, may))
    return searches
