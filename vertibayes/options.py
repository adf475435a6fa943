"""What a run learns: the options of a learner, and whether they fit the variables and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import permutations, starmap
from time import perf_counter
from typing import Any

from vertibayes.choosing import Chooser
from vertibayes.counting import Counter
from vertibayes.dag import Structure
from vertibayes.settings import LEARNING, PSEUDO_COUNT, Algorithm, Missing
from vertibayes.structure.algorithms import ALGORITHMS, DEFAULT, algorithm_of
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.k2 import check_ordering
from vertibayes.structure.learners import (
    check_max_parents,
    check_start,
    follow_search,
    max_parents_of,
    search_of,
)
from vertibayes.structure.search import Pairs, Progress, Search, never
from vertibayes_protocols.variables import Family, Rows, Variable

STRUCTURES = "structure", "start"
OF_SEARCHES = "algorithm", "ordering", "constraints", "start", "class_variable", "max_seconds"


@dataclass(frozen=True)
class Options:
    """What to learn: the values of `vertibayes.settings.LEARNING`, whose help says what each does.

    `ordering`, `constraints`, `structure` and `start` are not files here, but what the files have.

    Parameters
    ----------
    algorithm : str, optional
        The structure learner; hybrid if None, or k2 with an ordering.
    ordering : sequence of str, optional
        The order of the variables, for K2.
    constraints : Constraints
        What experts know.
    structure : Structure, optional
        A structure that is not learned: only its CPTs are. A directed graph of networkx or pgmpy
        becomes a `Structure`, here and as `start`.
    start : Structure, optional
        The structure from which hill_climbing or tabu starts.
    max_parents : int, optional
        The largest number of parents of a variable; 4 if None, and 3 with k2.
    class_variable : str, optional
        The class, for TAN.
    max_seconds : float, optional
        Seconds after which the search ends with the best structure so far.
    most_bits : int, optional
        The number of bits of winners at which the search ends with the structure so far.
    missing : str, optional
        The method for missing values: em (the default if there are any), synthetic, available or
        state.
    pseudo_count : float, default=0.5
        The number that is added to each count of a CPT.
    structure_records : int, optional
        The number of records in the random sample of which the structure is learned; all if None.
    bootstrap : int, optional
        How many samples of the learned network show how sure each edge is; 0 for none.
    wider_cells : int, default=0
        How many further cells EM may reveal, in wider tables.
    synthetic_records : int, optional
        How many synthetic records are drawn; as many as there are records if None.
    em_restarts : int, default=0
        The number of further starts of EM.
    write_synthetic : bool, default=False
        Whether synthetic records are written.

    Raises
    ------
    ValueError
        If an option is out of bounds, or does not fit another option; the message names it.
    """

    algorithm: Algorithm | None = None
    ordering: Sequence[str] | None = None
    constraints: Constraints = Constraints()
    structure: Structure | None = None
    start: Structure | None = None
    max_parents: int | None = None
    class_variable: str | None = None
    max_seconds: float | None = None
    most_bits: int | None = None
    missing: Missing | None = None
    pseudo_count: float = PSEUDO_COUNT
    structure_records: int | None = None
    bootstrap: int | None = None
    wider_cells: int = 0
    synthetic_records: int | None = None
    em_restarts: int = 0
    write_synthetic: bool = False

    def __post_init__(self) -> None:
        for name in STRUCTURES:
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, Structure.from_networkx(given))
        for setting in LEARNING:
            if setting.name not in ("ordering", "constraints", *STRUCTURES):
                try:
                    setting.checked(getattr(self, setting.name))
                except ValueError as error:
                    raise ValueError(f"`{setting.name}` {error}") from None
        self._check_search()
        if self.wider_cells and self.missing not in (None, "em"):
            raise ValueError(f"`wider_cells` needs `missing` em, got {self.missing}")
        if self.em_restarts and self.missing != "synthetic":
            raise ValueError("`em_restarts` needs `missing` synthetic: EM on tables has one start")
        draws = self.write_synthetic or self.missing == "synthetic"
        if self.synthetic_records is not None and not draws:
            raise ValueError("`synthetic_records` needs `missing` synthetic or `write_synthetic`")

    def _check_search(self) -> None:
        if self.structure is not None:
            for name in OF_SEARCHES:
                if getattr(self, name) not in (None, Constraints()):
                    raise ValueError(f"`structure` excludes `{name}`: only the CPTs are learned")
            if self.bootstrap:
                raise ValueError("`structure` excludes `bootstrap`: no structure is learned")
        check_start(self.by, self.start)
        if self.ordering is not None and self.algorithm not in (None, "k2"):
            raise ValueError(f"`ordering` needs `algorithm` k2, got {self.algorithm}")
        if self.class_variable is None and self.by == "tan":
            raise ValueError("`algorithm` tan needs `class_variable`: the variable to predict")
        if self.class_variable is not None and self.by != "tan":
            raise ValueError(f"`class_variable` needs `algorithm` tan, got {self.by}")
        if self.max_seconds is not None and not algorithm_of(self.by).ends_in_time:
            in_time = ", ".join(name for name, how in ALGORITHMS.items() if how.ends_in_time)
            raise ValueError(
                f"`algorithm` {self.by} has no structure before its end: remove `max_seconds`, or "
                f"use one of {in_time}"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the options as JSON data; of given structures, only that there are some."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["constraints"] = self.constraints.as_json()
        for name in STRUCTURES:
            values[name] = None if values[name] is None else "given"
        values["ordering"] = None if self.ordering is None else list(self.ordering)
        return values

    @property
    def knowledge(self) -> Constraints:
        """What experts know of directions: an ordering fixes all, and constraints some."""
        if self.ordering is None:
            return self.constraints
        return replace(self.constraints, tiers=tuple((name,) for name in self.ordering))

    @property
    def by(self) -> str:
        """The algorithm: the given one, or k2 with an ordering, or the default."""
        return self.algorithm or ("k2" if self.ordering is not None else DEFAULT)

    @property
    def most_parents(self) -> int:
        """The largest number of parents of a node: the given one, or that of the algorithm."""
        return algorithm_of(self.by).max_parents if self.max_parents is None else self.max_parents

    def search(self, source: Counter | Chooser) -> Search:
        """Return the search for a structure over a source.

        Raises
        ------
        ValueError
            As `structure.learners.search_of`, and if there are fewer records than asked for.
        """
        return search_of(
            source,
            self.by,
            max_parents=self.max_parents,
            constraints=self.constraints,
            start=self.start,
            missing=how_missing(source.variables, self) == "state",
            rows=sample_rows(source, self.structure_records),
            ordering=self.ordering,
            class_variable=self.class_variable,
        )

    def learn_structure(self, source: Counter | Chooser, progress: Progress) -> Structure:
        """Learn a structure from a source; errors as `search`."""
        ends = None if self.max_seconds is None else perf_counter() + self.max_seconds
        time_is_up = never if ends is None else lambda: perf_counter() > ends
        return follow_search(source, self.by, self.search(source), progress, time_is_up)


def check_without_release(options: Options) -> None:
    """Refuse an option that only a release uses."""
    if options.most_bits is not None:
        raise ValueError(
            "`most_bits` limits what the winners of choices reveal: remove it, or learn with a "
            "release"
        )


def how_missing(variables: Mapping[str, Variable], options: Options) -> Missing:
    """Return how missing values are treated."""
    if options.missing is not None:
        return options.missing
    missing = any(variable.missing for variable in variables.values())
    return "em" if missing else "available"


def families_of(counter: Counter | Chooser, options: Options) -> list[Family]:
    """Return the widest families whose tables a run may ask for, wider tables for EM excepted."""
    if options.structure is not None:
        return list(options.structure.families)
    return algorithm_of(options.by).widest(options.search(counter))


def calls_of(counter: Counter, options: Options, pairs: Pairs | None = None) -> list[list[Family]]:
    """Return the families of the calls that a run typically makes; `pairs` are known to depend."""
    if options.structure is not None:
        return [list(options.structure.families)]
    search, algorithm = options.search(counter), algorithm_of(options.by)
    return [algorithm.widest(search)] if algorithm.asks is None else algorithm.asks(search, pairs)


def notices(source: Counter | Chooser, options: Options) -> Iterator[str]:
    """Yield what a user should know of a search before it begins; the options must fit."""
    if options.structure is not None:
        return
    search = options.search(source)
    if search.max_parents < options.most_parents:
        yield (
            f"a node gets at most {search.max_parents} parents (by default "
            f"{options.most_parents}): the sites allow tables of {source.most_variables} variables"
        )
    pairs = permutations(search.names, 2)
    if len(search.names) > 1 and not any(starmap(search.constraints.allows, pairs)):
        yield "the constraints forbid every edge: the structure has none"


def checks(counter: Counter | Chooser, options: Options) -> dict[str, Callable[[], object]]:
    """Return, by option, the checks that it fits variables and records; they reveal no table."""
    if options.structure is not None:
        return {"structure": partial(_check_structure, counter, options.structure)}
    most = max_parents_of(counter, options.by, options.max_parents)
    return {
        "ordering": partial(check_ordering, counter.variables, options.ordering),
        "max_parents": partial(check_max_parents, counter, most),
        "constraints": partial(options.constraints.check, counter.variables, most),
        "structure_records": partial(sample_rows, counter, options.structure_records),
        "algorithm": partial(options.search, counter),
    }


def _check_structure(counter: Counter | Chooser, structure: Structure) -> None:
    """Refuse a structure whose nodes are not the variables, or with wider tables than allowed."""
    structure.check_nodes(counter.variables)
    widest = max(structure.nodes, key=lambda node: len(structure.parents[node]))
    parents, most = len(structure.parents[widest]), counter.most_variables
    if most is not None and parents >= most:
        raise ValueError(
            f"the structure has a node with too many parents: {widest} has {parents}; the sites "
            f"allow tables of {most} variables, so at most {most - 1} parents"
        )


def sample_rows(counter: Counter | Chooser, records: int | None) -> Rows:
    """Return the rows of a random sample of records; all rows if `records` is None."""
    if records is None or records == counter.records:
        return Rows()
    if not 1 <= records <= counter.records:
        raise ValueError(
            f"structure_records must be between 1 and {counter.records}, the number of records, "
            f"got {records}"
        )
    return Rows(0, 0, records)
