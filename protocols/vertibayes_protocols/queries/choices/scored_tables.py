"""Which tables, and which lookups in them, the scores of choices need.

The score of a family is that of K2: with a the cells of its table, N the sums over the child in
each of the J columns, and r the states of the child,

    score = sum ln G(a + 1) - sum ln G(N + r) + J ln G(r).

The largest log-likelihood of a family is

    score = sum a ln a - sum N ln N.

One function serves its cells and its columns: the counts that are the cells of one family and the
columns of another are looked up once, and what two candidates both add cancels exactly.

Each sum is over counts of some variables among the records that are complete in these and in
others. Variables that miss no value change no record set: then the counts are a table of their own,
with fewer variables, and fewer sites hold it. Otherwise they are sums of a larger table's cells.
What several candidates need is looked up once. What an earlier query of the session has looked up
is not looked up again: `Kept`.

Everything here follows from public sizes, and from what was asked before.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.choices import Candidate, Choices, constant_of, scores_of
from vertibayes_protocols.queries.choices.precision import (
    LOOKUP_ERROR_BITS,
    MOST_MILLIONTHS,
    Precision,
    likelihood_bound,
    score_bound,
)
from vertibayes_protocols.queries.tables.counting import Group, grouped
from vertibayes_protocols.queries.tables.masked import check_multiplied
from vertibayes_protocols.queries.tables.shared_products import order_of_products
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, axis_lengths

Names: TypeAlias = tuple[str, ...]
OF_LIKELIHOOD = 0  # the shift that stands for count ln count


class Lookup(NamedTuple):
    """A sum of ln G(count + shift), or of count ln count, over counts of some variables."""

    shift: int  # `OF_LIKELIHOOD` for count ln count
    table: Names  # the records that are complete in these variables are counted
    kept: Names  # the variables by which they are counted, in the table's order

    def within(self, table: Names) -> Lookup:
        """Return the lookup in a table of the same variables in another order."""
        return Lookup(self.shift, table, tuple([name for name in table if name in self.kept]))


class Kept(NamedTuple):
    """A sum of logarithms whose shares the sites keep: what it is of, and how precise it is."""

    shift: int
    table: frozenset[str]
    kept: frozenset[str]
    precision: Precision

    @classmethod
    def of(cls, lookup: Lookup, precision: Precision) -> Kept:
        """Return what is kept of a lookup, whatever the order of its variables."""
        return cls(lookup.shift, frozenset(lookup.table), frozenset(lookup.kept), precision)


class Parts(NamedTuple):
    """What the score of a family consists of."""

    # The places of the lookups of its cells and of their sums over the child.
    cells: int
    columns: int
    # The shift of the columns' lookup, and the numbers of cells and columns.
    column_shift: int
    cell_count: int
    column_count: int
    bound: int  # as of `score_bound` and `likelihood_bound`

    @property
    def approximations(self) -> int:
        """How many approximate logarithms the score adds up: ln G(r) is one in each column."""
        one = 1 if self.column_shift == OF_LIKELIHOOD else 2
        return self.cell_count + one * self.column_count


class Signed(NamedTuple):
    """A score that is added to a candidate, or subtracted from it."""

    sign: int
    parts: Parts


@dataclass(frozen=True)
class ChoiceTables:
    """The tables and lookups of choices."""

    study: Study
    states: dict[str, int]  # how many states of each variable are counted
    records: int  # how many records are counted
    sizes: tuple[int, ...]  # the number of candidates of each set
    candidates: tuple[tuple[Signed, ...], ...]
    constants: tuple[int, ...]  # what is added to each candidate, in millionths of a nat
    lookups: tuple[Lookup, ...]  # each once
    known: frozenset[int] = frozenset()  # the places of those whose shares are kept

    @classmethod
    def of(cls, study: Study, choices: Choices) -> ChoiceTables:
        """Return what choices need."""
        sizes = tuple(map(len, choices.sets))
        if min(sizes, default=0) < 2:
            raise ValueError("choices must have sets, of at least two candidates each")
        if len(set(choices.sets)) < len(choices.sets):
            raise ValueError("two sets have the same candidates; ask for each set once")
        reader = _Reader(study, choices)
        candidates = list(chain.from_iterable(choices.sets))
        constants = tuple(map(constant_of, candidates))
        largest = max(constants, key=abs)
        if abs(largest) > MOST_MILLIONTHS:
            raise ValueError(
                f"the constant of a candidate must be at most {MOST_MILLIONTHS} millionths of a "
                f"nat in size, got {largest}"
            )
        read = tuple(map(reader.candidate, candidates))
        needed = cls(
            study, reader.states, reader.records, sizes, read, constants, tuple(reader.lookups)
        )
        return needed._ordered()

    def beside(self, kept: Set[Kept]) -> ChoiceTables:
        """Return what choices need beside the sums that are kept."""
        known = (place for place, key in enumerate(self.keys) if key in kept)
        return replace(self, known=frozenset(known))._ordered()

    @cached_property
    def keys(self) -> tuple[Kept, ...]:
        """The names of the sums of all lookups."""
        return tuple([Kept.of(lookup, self.precision) for lookup in self.lookups])

    def _ordered(self) -> ChoiceTables:
        """Order the variables of the tables so that they share products."""
        order = dict(zip(self.tables, order_of_products(self.study, self.tables), strict=True))
        lookups = [lookup.within(order.get(lookup.table, lookup.table)) for lookup in self.lookups]
        return replace(self, lookups=tuple(lookups))

    # ---- tables ----------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> tuple[Names, ...]:
        """The variables of each table that is counted; the number of records is public."""
        return tuple(dict.fromkeys(self.lookups[place].table for place in self.asked))

    @cached_property
    def asked(self) -> tuple[int, ...]:
        """The places of the lookups that the sites do."""
        places = enumerate(self.lookups)
        return tuple(p for p, lookup in places if lookup.table and p not in self.known)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The tables as groups that share the products of all variables except the last."""
        return tuple(grouped([Family(child, tuple(parents)) for child, *parents in self.tables]))

    @property
    def cells(self) -> int:
        """The number of cells of all tables, those of missing values included."""
        return sum(size for _, size in self.table_sizes)

    @cached_property
    def table_sizes(self) -> tuple[tuple[int, int], ...]:
        """Of each table, the numbers of variables and of cells."""
        codes = {name: v.codes for name, v in self.study.variables.items()}
        return tuple((len(t), prod(codes[name] for name in t)) for t in self.tables)

    @cached_property
    def holders(self) -> dict[Names, tuple[Party, ...]]:
        """Of each table, the sites that hold a column of it, sorted."""
        return {table: self.study.holders_of(table) for table in self.tables}

    def counts(self, lookup: Lookup) -> int:
        """Return the number of counts of a lookup."""
        return prod(self.states[name] for name in lookup.kept)

    # ---- precision -------------------------------------------------------------------------------

    @cached_property
    def precision(self) -> Precision:
        """The precision of values."""
        return Precision.of(self.span, self.records)

    @property
    def approximations(self) -> int:
        """The most approximate logarithms that a candidate adds up."""
        return max(sum(s.parts.approximations for s in signed) for signed in self.candidates)

    @cached_property
    def span(self) -> int:
        """No two values of a set, with their errors and the margin, differ by more nats.

        An error is twice in the difference of two values, and the margin is two errors.
        The scores that are added to a candidate are not above 0, nor are those that are subtracted.
        """
        below, above = (
            [sum(s.parts.bound for s in signed if s.sign == sign) for signed in self.candidates]
            for sign in (1, -1)
        )
        sets = list(pairwise([0, *accumulate(self.sizes)]))
        spans = [max(below[a:b]) + max(above[a:b]) + self._spread(a, b) for a, b in sets]
        return max(spans) + 4 * ((self.approximations >> LOOKUP_ERROR_BITS) + 1)

    def _spread(self, start: int, end: int) -> int:
        """Return by how many nats the constants of some candidates differ, rounded up."""
        constants = self.constants[start:end]
        return -(-(max(constants) - min(constants)) // 10**6)


class _Reader:
    """Reads scores, and numbers the lookups that they need."""

    def __init__(self, study: Study, choices: Choices) -> None:
        self.study = study
        self.score = choices.score
        self.records = choices.rows.count(study.records)
        self.states = axis_lengths(study.variables, choices.missing)
        missing = {name for name, variable in study.variables.items() if variable.missing}
        self.drops = set() if choices.missing else missing
        self.lookups: dict[Lookup, int] = {}
        self._tables: dict[frozenset[str], Names] = {}
        self._parts: dict[tuple[Family, Names], Parts] = {}

    def candidate(self, candidate: Candidate) -> tuple[Signed, ...]:
        """Return the parts of a candidate's scores."""
        scores = scores_of(candidate)
        if any(abs(score.sign) != 1 for score in scores):
            raise ValueError(f"the sign of a score must be 1 or -1, got {[s.sign for s in scores]}")
        return tuple([Signed(sign, self._of(family, within)) for family, within, sign in scores])

    def _of(self, family: Family, within: Names) -> Parts:
        parts = self._parts.get((family, within))
        if parts is None:
            parts = self._parts[family, within] = self._read(family, within)
        return parts

    def _read(self, family: Family, within: Names) -> Parts:
        members, (child, parents) = family.members, family
        self._check((*members, *within))
        others = tuple(name for name in within if name in self.drops)
        r, columns = self.states[child], prod(self.states[name] for name in parents)
        shifts, bound = (1, r), score_bound(self.records, r, columns)
        if self.score == "likelihood":
            shifts, bound = (OF_LIKELIHOOD,) * 2, likelihood_bound(self.records, r)
        return Parts(
            self._lookup(shifts[0], members, others),
            self._lookup(shifts[1], parents, (child, *others) if child in self.drops else others),
            shifts[1],
            r * columns,
            columns,
            bound,
        )

    def _check(self, names: Names) -> None:
        for name in names:
            if name not in self.study.variables:
                raise ValueError(f"the study has no variable {name!r}")
        check_multiplied(self.study, names, "cannot be counted without revealing it")
        if len(set(names)) < len(names):
            raise ValueError(f"a variable appears twice in the score of {', '.join(names)}")

    def _lookup(self, shift: int, kept: Names, others: Names) -> int:
        """Return the place of a lookup; the order of its variables makes no difference."""
        table = self._tables.setdefault(frozenset((*kept, *others)), (*kept, *others))
        lookup = Lookup(shift, table, kept).within(table)
        return self.lookups.setdefault(lookup, len(self.lookups))
