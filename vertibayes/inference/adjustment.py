"""Adjustment sets: the variables that make records with different exposures comparable.

A set is valid by the back-door criterion (Pearl 2009, section 3.3.1): it has no descendant of the
exposure, and it separates exposure and outcome in the graph without the edges that leave the
exposure. A minimal set has no valid subset. All minimal sets are listed by forbidding, in turn,
each variable of a set that is already known: every other minimal set lacks one of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING

from vertibayes.dag import Structure
from vertibayes.words import offered

if TYPE_CHECKING:
    from networkx import DiGraph

MOST_SETS = 10  # how many are listed if not said otherwise: their number can be exponential


def is_adjustment_set(
    structure: Structure, exposure: str, outcome: str, names: Collection[str]
) -> bool:
    """Return whether a set of variables is valid by the back-door criterion."""
    from networkx import is_d_separator

    check_names(structure, exposure, outcome, names)
    graph, allowed = _back_door(structure, exposure, outcome)
    given = set(names)
    return given <= allowed and bool(is_d_separator(graph, {exposure}, {outcome}, given))


def adjustment_sets(
    structure: Structure,
    exposure: str,
    outcome: str,
    *,
    excluded: Collection[str] = (),
    most: int = MOST_SETS,
) -> tuple[tuple[str, ...], ...]:
    """Return the minimal adjustment sets, the smallest first.

    Parameters
    ----------
    structure : Structure
        The structure; its edges are taken as causes.
    exposure, outcome : str
        The variable that is set, and the variable of which the risk is asked.
    excluded : collection of str, default=()
        The variables that may not be adjusted for.
    most : int, default=10
        The search ends after this number of sets.

    Returns
    -------
    sets : tuple of tuple of str
        The sets, each sorted by name. ``((),)`` says that no adjustment is needed, and an empty
        tuple that no set of the variables is valid.

    Raises
    ------
    ValueError
        As `is_adjustment_set`.

    References
    ----------
    van der Zander, B., Liskiewicz, M. and Textor, J. (2019). Separators and adjustment sets in
    causal graphs. Artificial Intelligence 270, 1-40. doi:10.1016/j.artint.2018.12.006

    Examples
    --------
    >>> confounded = Structure.of("axy", [("a", "x"), ("a", "y"), ("x", "y")])
    >>> adjustment_sets(confounded, "x", "y")
    (('a',),)
    >>> adjustment_sets(confounded, "x", "y", excluded=["a"])
    ()
    """
    from networkx import find_minimal_d_separator

    check_names(structure, exposure, outcome, excluded)
    graph, allowed = _back_door(structure, exposure, outcome)
    minimal: set[tuple[str, ...]] = set()
    waiting, tried = deque([frozenset(excluded)]), {frozenset(excluded)}
    while waiting and len(minimal) < most:
        forbidden = waiting.popleft()
        names = find_minimal_d_separator(
            graph, {exposure}, {outcome}, restricted=allowed - forbidden
        )
        if names is not None:
            minimal.add(tuple(sorted(names)))
            branches = [forbidden | {name} for name in sorted(names)]
            waiting += [branch for branch in branches if branch not in tried]
            tried.update(branches)
    return tuple(sorted(minimal, key=lambda names: (len(names), names)))


def is_cause(structure: Structure, exposure: str, outcome: str) -> bool:
    """Return whether a directed path leads from the exposure to the outcome."""
    from networkx import descendants

    return outcome in descendants(structure.to_networkx(), exposure)


def why_not_valid(structure: Structure, exposure: str, outcome: str, names: Collection[str]) -> str:
    """Return a clause that says why a set is not valid; empty for a valid set."""
    if late := [name for name in sorted(set(names)) if is_cause(structure, exposure, name)]:
        return f"{exposure} is a cause of {', '.join(late)}"
    if not is_adjustment_set(structure, exposure, outcome, names):
        return f"a back-door path between {exposure} and {outcome} stays open"
    return ""


def check_names(structure: Structure, exposure: str, outcome: str, names: Collection[str]) -> None:
    """Refuse names that are not in a structure, or that have two roles."""
    for name in (exposure, outcome, *names):
        if name not in structure.parents:
            known = offered(name, structure.nodes)
            raise ValueError(f"the network has no variable {name!r}; it has {known}")
    check_roles(exposure, outcome, names)


def check_roles(exposure: str, outcome: str, names: Collection[str]) -> None:
    """Refuse a variable that has two roles; as `check_names`."""
    if exposure == outcome:
        raise ValueError(f"exposure and outcome must be two variables, got {exposure} for both")
    for name in (exposure, outcome):
        if name in names:
            raise ValueError(f"{name} is the exposure or the outcome: it cannot be adjusted for")


def _back_door(structure: Structure, exposure: str, outcome: str) -> tuple[DiGraph[str], set[str]]:
    """Return the graph without the edges that leave the exposure, and what a set may have."""
    from networkx import descendants

    graph = structure.to_networkx()
    caused = descendants(structure.to_networkx(), exposure)
    allowed = set(structure.nodes) - caused - {exposure, outcome}
    graph.remove_edges_from(list(graph.out_edges(exposure)))
    return graph, allowed
