"""What every structure learner is given, and how the two kinds of learners are called.

A learner by choices is a generator of `Choices`: whoever knows its parameters and the winners knows
its next step, so that sites of an approved study derive it themselves. A learner by tables asks a
`Counter` and may follow another path, which costs fewer calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.structure.constraints import Constraints
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.variables import Family, Rows, Variable, axis_lengths

Fits: TypeAlias = Callable[[Family], bool]  # whether a family's table is small enough
# stage, steps done, steps at most: 0 if that is unknown
Progress: TypeAlias = Callable[[str, int, int], None]
TimeIsUp: TypeAlias = Callable[[], bool]


def never() -> bool:
    """Return that there is time."""
    return False


def silent(stage: str, done: int, steps: int) -> None:
    """Show no progress."""
    del stage, done, steps


@dataclass(frozen=True)
class Search:
    """What a structure learner is given."""

    variables: Mapping[str, Variable]  # the variables, in the study's order
    records: int  # the number of records that are counted
    fits: Fits  # takes a family; returns whether its table is small enough for a candidate
    max_parents: int  # the largest number of parents of a node
    constraints: Constraints = Constraints()  # what the structure must keep
    start: Structure | None = None  # where a search begins; without edges if None
    missing: bool = False  # whether a missing value is a state
    rows: Rows = Rows()  # the records to learn from; all by default
    ordering: tuple[str, ...] | None = None  # of K2
    class_variable: str | None = None  # of TAN: the class
    most_bits: int | None = None  # of a search by choices: at how many bits of winners it ends
    names: tuple[str, ...] = field(init=False)  # of the variables, sorted: the order of ties

    def __post_init__(self) -> None:
        if not isinstance(self.constraints, Constraints):
            raise TypeError(
                f"constraints must be Constraints, got {type(self.constraints).__name__}; "
                "Constraints.from_json takes a dict of lists"
            )
        object.__setattr__(self, "names", tuple(sorted(self.variables)))
        self.constraints.check(self.variables, self.max_parents)
        if self.start is not None:
            try:
                object.__setattr__(self, "start", self._with_required(self.start))
            except ValueError as error:
                raise ValueError(f"`start`: {error}") from None

    def _with_required(self, start: Structure) -> Structure:
        """Return a structure with the required edges; refuse one that is not in the search."""
        start.check_nodes(self.variables)
        start = Structure.of(start.nodes, dict.fromkeys([*start.edges, *self.constraints.required]))
        if against := self.constraints.violations(start):
            raise ValueError(against[0])
        for child, parents in start.families:
            if len(parents) > self.max_parents or not self.fits(Family(child, parents)):
                raise ValueError(f"{child} has too many parents: {', '.join(parents)}")
        return start

    @cached_property
    def lengths(self) -> Mapping[str, int]:
        """The length of each variable's axis in a table."""
        return axis_lengths(self.variables, self.missing)

    @cached_property
    def drops_records(self) -> bool:
        """Whether families count fewer records than there are: those complete in the family."""
        return not self.missing and any(v.missing for v in self.variables.values())


StepsOfSearch: TypeAlias = Callable[[Search], Steps[Structure]]
Pairs: TypeAlias = Sequence[tuple[str, str]]
# Takes a search and the pairs that depend, if they are known; returns the families of each call.
Asks: TypeAlias = "Callable[[Search, Pairs | None], list[list[Family]]]"
SearchTables: TypeAlias = Callable[[Search, Counter, Progress, TimeIsUp], Structure]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """How a structure is learned: by choices, by tables, or by both.

    An algorithm without `tables` follows its steps over tables too, and takes the same path.
    """

    widest: Callable[[Search], list[Family]]  # takes a search
    asks: Asks | None = None  # what it typically asks; one call for `widest` if None
    steps: StepsOfSearch | None = None  # takes a search; returns its steps by choices
    tables: SearchTables | None = None
    bits: Callable[[int, int], float] | None = None
    calls: Callable[[int, int], int] | None = None  # as `bits`
    max_parents: int = 4  # the largest number of parents of a node if none is given
    ends_early: bool = False
    starts: bool = False  # whether it takes a structure to start from
    ends_in_time: bool = False  # whether `tables` ends with the structure so far when time is up
    is_bound: bool = True  # whether no run asks for more tables than the forecast without `asks`

    @property
    def follows_pairs(self) -> bool:
        """Whether what `tables` asks after its first call depends on the pairs that depend."""
        return self.tables is not None and self.asks is not None
