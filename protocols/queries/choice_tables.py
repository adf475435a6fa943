"""Which tables, which lookups in them and how much precision the scores of choices need.

The score of a family is that of K2: with a the cells of its table, N the sums over the child in
each of the J columns, and r the states of the child,

    score = sum ln G(a + 1) - sum ln G(N + r) + J ln G(r).

Each sum is over counts of some variables among the records that are complete in these and in
others. Variables that miss no value change no record set: then the counts are a table of their own,
with fewer variables, and fewer sites hold it. Otherwise they are sums of a larger table's cells.
What several candidates need is looked up once.

Everything here follows from public sizes, in integers, so that all parties agree on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from typing import NamedTuple, TypeAlias

from mpc.rounds import Party
from protocols.choices import Choices, Score
from protocols.queries.ways import Group, check_multiplied, grouped
from protocols.roles import Study
from protocols.variables import Family

Names: TypeAlias = tuple[str, ...]

LOOKUP_ERROR_BITS = 10  # a lookup is at most 2^-10 nats from the logarithm
MOST_FRACTION_BITS = 36  # beyond these, the lookups' approximation is no better


class Lookup(NamedTuple):
    """A sum of ln G(count + shift) over counts of some variables.

    Attributes
    ----------
    shift : int
    table : tuple of str
        The records that are complete in these variables are counted.
    kept : tuple of str
        The variables by which they are counted, in the table's order.
    """

    shift: int
    table: Names
    kept: Names


class Parts(NamedTuple):
    """What the score of a family consists of.

    Attributes
    ----------
    cells, columns : int
        The places of the lookups of its cells and of their sums over the child.
    child_states, cell_count, column_count : int
        r, and the numbers of cells and columns.
    bound : int
        The score lies between minus this number and 0.
    """

    cells: int
    columns: int
    child_states: int
    cell_count: int
    column_count: int
    bound: int

    @property
    def approximations(self) -> int:
        """How many approximate logarithms the score adds up: ln G(r) is one in each column."""
        return self.cell_count + 2 * self.column_count


class Signed(NamedTuple):
    """A score that is added to a candidate, or subtracted from it."""

    sign: int
    parts: Parts


@dataclass(frozen=True)
class ChoiceTables:
    """The tables and lookups of choices.

    Parameters
    ----------
    study : Study
    states : dict of str to int
        How many states of each variable are counted.
    records : int
        How many records are counted.
    sizes : tuple of int
        The number of candidates of each set.
    candidates : tuple of tuple of Signed
        The candidates of all sets, one set after the other.
    lookups : tuple of Lookup
        Each once.
    """

    study: Study
    states: dict[str, int]
    records: int
    sizes: tuple[int, ...]
    candidates: tuple[tuple[Signed, ...], ...]
    lookups: tuple[Lookup, ...]

    @classmethod
    def of(cls, study: Study, choices: Choices) -> ChoiceTables:
        """Return what choices need.

        Raises
        ------
        ValueError
            If a set has fewer than two candidates, a sign is neither 1 nor -1, a variable is
            unknown or appears twice in a score, or a column cannot be multiplied.
        """
        sizes = tuple(map(len, choices.sets))
        if min(sizes, default=0) < 2:
            raise ValueError("choices must have sets, of at least two candidates each")
        reader = _Reader(study, choices)
        candidates = tuple(map(reader.candidate, chain.from_iterable(choices.sets)))
        lookups = tuple(reader.lookups)
        return cls(study, reader.states, reader.records, sizes, candidates, lookups)

    # ---- tables ----------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> tuple[Names, ...]:
        """The variables of each table; none for the number of records, which is public."""
        return tuple(dict.fromkeys(lookup.table for lookup in self.lookups if lookup.table))

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
        held = self.study.holders
        return {t: tuple(sorted({site for name in t for site in held[name]})) for t in self.tables}

    def counts(self, lookup: Lookup) -> int:
        """Return the number of counts of a lookup."""
        return prod(self.states[name] for name in lookup.kept)

    # ---- precision -------------------------------------------------------------------------------

    @property
    def approximations(self) -> int:
        """The most approximate logarithms that a candidate adds up."""
        return max(sum(s.parts.approximations for s in signed) for signed in self.candidates)

    @cached_property
    def bound(self) -> int:
        """No candidate's value, in nats and with the errors of its lookups, is larger in size.

        A score lies between -bound and 0, so that the scores that are added and those that are
        subtracted are bounded separately.
        """
        largest = max(
            sum(s.parts.bound for s in signed if s.sign == sign)
            for signed in self.candidates
            for sign in (1, -1)
        )
        return largest + (self.approximations >> LOOKUP_ERROR_BITS) + 1

    def fraction_bits(self, tie_bits: int) -> int:
        """Return how many bits behind the point leave room for all values.

        A sign, the bits that break ties, those of the largest value and those behind the point take
        at most 63 bits: differences of two values fit into 64 bits.

        Parameters
        ----------
        tie_bits : int
            How many bits the argmax puts below the values.

        Raises
        ------
        ValueError
            If the values are too large.
        """
        left = min(63 - 1 - tie_bits - self.bound.bit_length(), MOST_FRACTION_BITS)
        if left < LOOKUP_ERROR_BITS:
            raise ValueError(
                f"a candidate's score may reach {self.bound:,} nats, which leaves too little "
                "precision to compare candidates: choose with fewer scores in a candidate"
            )
        return left - left % 2  # few different numbers: functions are kept


def score_bound(records: int, states: int, columns: int) -> int:
    """Return a whole number of nats below which no family's score lies, with the sign changed.

    A score is the logarithm of the probability of the child's values, one record after the other,
    when each state is drawn with a chance of (its count so far + 1) / (the column's so far + r).

    Each of the n factors is at least 1 / (n + r - 1): the size is at most n ln(n + r - 1). It is
    also, over the columns, sum ln C(N + r - 1, r - 1) plus the logarithm of the number of orders of
    the states, which are at most J (r - 1) ln(n + 1) and n ln r. The smaller of both holds.
    """
    one = records * log_bound(records + states - 1)
    other = columns * (states - 1) * log_bound(records + 1) + records * log_bound(states)
    return -(-min(one, other) // 10)


def log_bound(number: int) -> int:
    """Return a whole number of tenths of nats that is not below ln(number), number >= 1.

    >>> log_bound(1000), log_bound(2)
    (70, 7)
    """
    return 7 * (number - 1).bit_length()  # ln 2 < .7


class _Reader:
    """Reads scores, and numbers the lookups that they need."""

    def __init__(self, study: Study, choices: Choices) -> None:
        self.study = study
        self.records = choices.rows.count(study.records)
        variables = study.variables.items()
        self.states = {n: v.codes if choices.missing else len(v.states) for n, v in variables}
        self.drops = {n for n, v in variables if v.missing and not choices.missing}
        self.lookups: dict[Lookup, int] = {}
        self._tables: dict[frozenset[str], Names] = {}
        self._parts: dict[tuple[Family, Names], Parts] = {}

    def candidate(self, scores: Sequence[Score]) -> tuple[Signed, ...]:
        """Return the parts of a candidate's scores."""
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
        return Parts(
            self._lookup(1, members, others),
            self._lookup(r, parents, (child, *others) if child in self.drops else others),
            r,
            r * columns,
            columns,
            score_bound(self.records, r, columns),
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
        lookup = Lookup(shift, table, tuple([name for name in table if name in kept]))
        return self.lookups.setdefault(lookup, len(self.lookups))
