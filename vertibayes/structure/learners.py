"""Learn a structure by any algorithm, from tables or by choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from vertibayes.choosing import Chooser, chooser_of, follow
from vertibayes.counting.counter import Counter
from vertibayes.dag import AnyStructure, Structure
from vertibayes.structure.algorithms import ALGORITHMS, DEFAULT, algorithm_of
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.search import Progress, Search, TimeIsUp, never, silent
from vertibayes_protocols.approval import Step, Winners
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.variables import Rows

MOST_PARENTS = 20


def learn_structure(
    source: Counter | Chooser,
    algorithm: str = DEFAULT,
    *,
    max_parents: int | None = None,
    constraints: Constraints = Constraints(),
    start: AnyStructure | None = None,
    missing: bool = False,
    rows: Rows = Rows(),
    ordering: Sequence[str] | None = None,
    class_variable: str | None = None,
    progress: Progress = silent,
    time_is_up: TimeIsUp = never,
) -> Structure:
    """Learn a structure.

    Parameters
    ----------
    source : Counter or Chooser
        The source of tables, or of choices.
    algorithm : str, default="hybrid"
        One of `vertibayes.structure.algorithms.ALGORITHMS`.
    max_parents : int, optional
        The largest number of parents of a node; that of `max_parents_of` if None.
    constraints : Constraints
        What the structure must keep.
    start : Structure, optional
        Of hill_climbing and tabu: the structure from which the search starts, or a directed graph
        of networkx or pgmpy.
    missing : bool, default=False
        Whether a missing value is a state.
    rows : Rows
        The records to learn from; all by default.
    ordering : sequence of str, optional
        Of k2: all variables, each before those of which it may be a parent; the study's order if
        None.
    class_variable : str, optional
        Of tan: the class.
    progress : callable, optional
        Called with (stage, steps done, steps at most), with 0 if the most is unknown.
    time_is_up : callable, optional
        Called between steps: whether to end with the best structure so far. Only for a `Counter`.

    Returns
    -------
    structure : Structure
        The structure, with its nodes in the order of the source's variables.

    Raises
    ------
    ValueError
        If a parameter does not fit the variables or the algorithm; nothing is asked then.

    Examples
    --------
    >>> import numpy as np
    >>> from vertibayes_protocols.site.data import SiteData
    >>> from vertibayes_protocols.variables import Variable
    >>> from vertibayes.counting import PlainCounter
    >>> x, z = np.array([[0, 1] * 20, [0, 0, 1, 1] * 10], np.uint8)
    >>> codes = {"x": x, "z": z, "y": x & z}
    >>> data = SiteData({name: Variable(name, ("no", "yes")) for name in codes}, codes)
    >>> learn_structure(PlainCounter(data)).edges
    (('x', 'y'), ('z', 'y'))
    """
    search = search_of(
        source,
        algorithm,
        max_parents=max_parents,
        constraints=constraints,
        start=start,
        missing=missing,
        rows=rows,
        ordering=ordering,
        class_variable=class_variable,
    )
    return follow_search(source, algorithm, search, progress, time_is_up)


def follow_search(
    source: Counter | Chooser,
    algorithm: str,
    search: Search,
    progress: Progress = silent,
    time_is_up: TimeIsUp = never,
) -> Structure:
    """Learn the structure of a search over a source; as `learn_structure`."""
    how = algorithm_of(algorithm)
    source.check(how.widest(search), missing=search.missing)
    if how.tables is not None and not isinstance(source, Chooser):
        return in_order(how.tables(search, source, progress, time_is_up), source.variables)
    if how.steps is None:
        raise ValueError(f"{algorithm} needs tables, and a chooser reveals none")
    chooser = chooser_of(source)
    done = 0

    def answer(step: Step) -> Winners:
        nonlocal done
        assert isinstance(step, Choices)  # a search has no other steps
        progress(algorithm, done, 0)  # how many steps follow depends on the winners
        done += 1
        return chooser.choose(step)

    structure = follow(how.steps(search), answer)
    progress(algorithm, done, done)
    return in_order(structure, source.variables)


def k2(
    source: Counter | Chooser,
    *,
    ordering: Sequence[str] | None = None,
    max_parents: int = 3,
    constraints: Constraints = Constraints(),
    missing: bool = False,
    rows: Rows = Rows(),
    progress: Progress = silent,
) -> Structure:
    """Learn a structure by K2; see `structure.k2.k2_steps`.

    Parameters
    ----------
    source : Counter or Chooser
        The source of all choices; the tables of a counter are scored here (`TableChooser`).
    ordering : sequence of str, optional
        All variables, each before those of which it may be a parent; the study's order if None.
    max_parents : int, default=3
        The largest number of parents of a node.
    constraints : Constraints
        What the structure must keep.
    missing : bool, default=False
        Whether a missing value is a state.
    rows : Rows
        The records to learn from; all by default.
    progress : callable, optional
        Called with ("k2", steps done, steps at most), with 0 if the most is unknown.

    Returns
    -------
    structure : Structure
        The structure, with parents in the order in which they were added.

    Raises
    ------
    ValueError
        If the ordering or a constraint does not fit; the message names the variables.

    Examples
    --------
    >>> import numpy as np
    >>> from vertibayes_protocols.site.data import SiteData
    >>> from vertibayes_protocols.variables import Variable
    >>> from vertibayes.counting import PlainCounter
    >>> x, z = np.array([[0, 1] * 20, [0, 0, 1, 1] * 10], np.uint8)
    >>> codes = {"x": x, "z": z, "y": x ^ z}
    >>> data = SiteData({name: Variable(name, ("no", "yes")) for name in codes}, codes)
    >>> k2(PlainCounter(data), constraints=Constraints(required=(("x", "y"),))).edges
    (('x', 'y'), ('z', 'y'))
    """
    return learn_structure(
        source,
        "k2",
        ordering=ordering,
        max_parents=max_parents,
        constraints=constraints,
        missing=missing,
        rows=rows,
        progress=progress,
    )


def search_of(
    source: Counter | Chooser,
    algorithm: str,
    *,
    max_parents: int | None = None,
    constraints: Constraints = Constraints(),
    start: AnyStructure | None = None,
    missing: bool = False,
    rows: Rows = Rows(),
    ordering: Sequence[str] | None = None,
    class_variable: str | None = None,
) -> Search:
    """Return the search of an algorithm over a source.

    The parameters and errors are those of `learn_structure`.
    """
    check_start(algorithm, start)
    most = max_parents_of(source, algorithm, max_parents)
    check_max_parents(source, most)
    chooser = chooser_of(source)
    return Search(
        variables=source.variables,
        records=rows.count(source.records),
        fits=partial(chooser.fits, missing=missing),
        max_parents=most,
        constraints=constraints,
        start=None if start is None else Structure.from_networkx(start),
        missing=missing,
        rows=rows,
        ordering=None if ordering is None else tuple(ordering),
        class_variable=class_variable,
    )


def in_order(structure: Structure, names: Iterable[str]) -> Structure:
    """Return a structure with its nodes in another order: learners sort them by name."""
    return Structure({name: structure.parents[name] for name in names})


def max_parents_of(source: Counter | Chooser, algorithm: str, given: int | None) -> int:
    """Return the largest number of parents of a node: the given one, or the default.

    The default is that of the algorithm or, if it is smaller, what the policies of the sites allow.
    By choices the policies do not change it: sites derive each step from the study alone.
    """
    if given is not None:
        return given
    most, widest = algorithm_of(algorithm).max_parents, source.most_variables
    if widest is None or isinstance(source, Chooser):
        return most
    return min(most, max(widest - 1, 0))


def check_start(algorithm: str, start: AnyStructure | None) -> None:
    """Refuse a structure to start from, for an algorithm that starts from none."""
    if start is not None and not algorithm_of(algorithm).starts:
        able = " or ".join(name for name, how in ALGORITHMS.items() if how.starts)
        raise ValueError(f"`start` needs `algorithm` {able}, got {algorithm}")


def check_max_parents(source: Counter | Chooser, max_parents: int) -> None:
    """Refuse a number of parents that is out of range, or too large for the sites' policies."""
    most, why, widest = MOST_PARENTS, "", source.most_variables
    if widest is not None and widest <= MOST_PARENTS:
        most, why = widest - 1, f" (the sites allow tables of {widest} variables)"
    if not 0 <= max_parents <= most:
        raise ValueError(f"max_parents must be between 0 and {most}{why}, got {max_parents}")
