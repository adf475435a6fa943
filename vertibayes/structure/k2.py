"""K2: greedy search for parents, given an ordering (Cooper and Herskovits 1992, fig. "K2")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from protocols.approval import Step, Steps, Winners
from protocols.choices import Candidate, Choices, Score
from protocols.variables import Family, Rows, Variable, axis_lengths
from vertibayes.choosing import Chooser, chooser_of, follow
from vertibayes.counting.counter import Counter
from vertibayes.network import Edge, Structure

MOST_PARENTS = 20

Fits: TypeAlias = Callable[[Family], bool]


@dataclass
class _Search:
    """The search for the parents of one node: its parents so far, and the candidates."""

    child: str
    parents: list[str]
    candidates: list[str]
    done: bool = field(default=False)

    def families(self, fits: Fits) -> list[Family]:
        """Return the families of the parents and each candidate whose table is small enough."""
        families = [Family(self.child, (*self.parents, name)) for name in self.candidates]
        families = [family for family in families if fits(family)]
        self.candidates = [family.parents[-1] for family in families]
        return families

    def candidates_of(self, families: Sequence[Family]) -> tuple[Candidate, ...]:
        """Return the gain of each family's last parent; before them no gain, for no parent."""
        before = Family(self.child, tuple(self.parents))
        gains = (
            (Score(family), Score(before, within=family.parents[-1:], sign=-1))
            for family in families
        )
        return ((), *gains)

    def add(self, winner: int) -> None:
        """Add the candidate that has won; 0 stands for no further parent."""
        if winner:
            self.parents.append(self.candidates.pop(winner - 1))
        else:
            self.done = True


def k2(
    source: Counter | Chooser,
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
    choices of all nodes in one call. A predecessor whose table would be too large (`Chooser.fits`)
    is not a candidate.

    Parameters
    ----------
    source : Counter or Chooser
        The source of all choices; the tables of a counter are scored here (`TableChooser`).
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
    chooser = chooser_of(source)
    order = check_ordering(chooser.variables, ordering)
    check_max_parents(chooser, max_parents)
    fits = partial(chooser.fits, missing=missing)
    chooser.check(
        widest_families(chooser.variables, order, max_parents, fits, missing=missing),
        missing=missing,
    )
    done = 0

    def answer(step: Step) -> Winners:
        nonlocal done
        assert isinstance(step, Choices)  # the search has no other steps
        if progress is not None:
            progress(done, max_parents)
        done += 1
        return chooser.choose(step)

    search = k2_steps(
        chooser.variables,
        fits,
        ordering=order,
        max_parents=max_parents,
        required=required,
        forbidden=forbidden,
        start=start,
        missing=missing,
        rows=rows,
    )
    structure = follow(search, answer)
    if progress is not None:
        progress(max_parents, max_parents)
    return structure


def k2_steps(
    variables: Mapping[str, Variable],
    fits: Fits,
    *,
    ordering: Sequence[str] | None = None,
    max_parents: int = 3,
    required: Collection[Edge] = (),
    forbidden: Collection[Edge] = (),
    start: Structure | None = None,
    missing: bool = False,
    rows: Rows = Rows(),
) -> Steps[Structure]:
    """Search as `k2`, by asking for choices; whoever drives the search sends the winners.

    The steps follow from the parameters and the winners: all who know these know the next step.

    Parameters
    ----------
    variables : mapping of str to Variable
        The variables, in the study's order.
    fits : callable
        Takes a family; returns whether its table is small enough for a candidate.
    ordering, max_parents, required, forbidden, start, missing, rows
        As `k2`.

    Yields
    ------
    choices : Choices
        One set for each node that may get a further parent: first no further parent, then the gain
        of each predecessor.

    Returns
    -------
    structure : Structure
        As `k2`.

    Raises
    ------
    ValueError
        As `k2`.
    """
    order = check_ordering(variables, ordering)
    searches = _searches(order, max_parents, required, forbidden, start)
    for _ in range(max_parents):
        open_ = [s for s in searches if not s.done and len(s.parents) < max_parents]
        sets = [(s, s.families(fits)) for s in open_]
        sets = [(search, families) for search, families in sets if families]
        if not sets:
            break
        candidates = tuple(search.candidates_of(families) for search, families in sets)
        winners = yield Choices(candidates, missing, rows)
        for (search, _families), winner in zip(sets, winners, strict=True):
            search.add(winner)
    return Structure({search.child: tuple(search.parents) for search in searches})


def widest_families(
    variables: Mapping[str, Variable],
    order: Sequence[str],
    max_parents: int,
    fits: Fits,
    *,
    missing: bool = False,
) -> list[Family]:
    """Return the widest families that a search may ask for, for each step, node and candidate.

    The cost of their tables is an upper bound for the cost of the search.

    Parameters
    ----------
    variables, max_parents, fits, missing
        As `k2_steps`.
    order : sequence of str
        The ordering.
    """
    lengths, families = axis_lengths(variables, missing), []
    for place, child in enumerate(order):
        widest = sorted(order[:place], key=lambda name: -lengths[name])
        for parents in range(min(max_parents, place)):
            search = _Search(child, widest[:parents], widest[parents:])
            families += search.families(fits)
    return families


def check_ordering(variables: Collection[str], ordering: Sequence[str] | None) -> list[str]:
    """Return an ordering of all variables.

    Raises
    ------
    ValueError
        If a variable is unknown, missing or named twice.
    """
    if ordering is None:
        return list(variables)
    unknown = [name for name in ordering if name not in variables]
    absent = [name for name in variables if name not in ordering]
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


def check_max_parents(source: Counter | Chooser, max_parents: int) -> None:
    """Refuse a number of parents that is out of range, or too large for the sites' policies.

    Raises
    ------
    ValueError
        If the number is out of range; the message has the range.
    """
    most, why, widest = MOST_PARENTS, "", source.most_variables
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
