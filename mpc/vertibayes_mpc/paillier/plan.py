"""Which site encrypts, multiplies and counts for each table: all follows from public sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import NamedTuple, TypeAlias

from vertibayes_mpc.paillier.keys import PublicKey
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Party

MOST_SLOT_BITS = 62  # counts are handed out as int64
Link: TypeAlias = tuple[Party, Party]  # sender and receiver


class Column(NamedTuple):
    """A site's part of a table: one state for each record."""

    site: Party
    name: str  # equal columns of one plan are the same column
    states: int


Table: TypeAlias = tuple[Column, ...]  # the axes of a table, each of another site
Vector: TypeAlias = "tuple[Column, range] | int"  # names a vector of ciphertexts at one step


class Chain(NamedTuple):
    """The cells of a table that are counted in one pass over the records.

    A plaintext has a slot for each combination of states that the chain counts of all columns
    except the last. A table with more of them has several chains.
    """

    table: int
    columns: Table  # the owner's first, the last site's last
    ranges: tuple[range, ...]  # which states are counted, of each column except the last

    @property
    def widths(self) -> tuple[int, ...]:
        """The slots that the first columns take: of none, of one, .. of all except the last."""
        sizes = [len(states) for states in self.ranges]
        return tuple(prod(sizes[:step]) for step in range(len(sizes) + 1))

    @property
    def owner(self) -> Party:
        """The site whose key encrypts."""
        return self.columns[0].site

    @property
    def last(self) -> Party:
        """The site that counts."""
        return self.columns[-1].site


class Piece(NamedTuple):
    """The counts of one state of the last column of a chain."""

    chain: int
    state: int


@dataclass(frozen=True)
class TablePlan:
    """Tables to be counted together, once, and the keys of their sites.

    A ValueError says what is wrong: a table of fewer than two columns or of two columns of a site,
    a column without states, a site without key, or more records than a slot may hold.
    """

    study: bytes  # names these tables, and no others under the same keys
    keys: Mapping[Party, PublicKey] = field(repr=False)
    records: int
    tables: tuple[Table, ...]
    complete: bool = True  # whether every record has a state of every column
    whole: frozenset[Column] = frozenset()  # columns of which it has one in any case

    def __post_init__(self) -> None:
        for table in self.tables:
            sites = {column.site for column in table}
            if len(table) < 2 or len(sites) < len(table):
                raise ValueError("a table must have columns of two or more sites, one of each")
            if min(column.states for column in table) < 1:
                raise ValueError("a column must have at least one state")
            if missing := sites - self.keys.keys():
                raise ValueError(f"the plan has no key of {', '.join(sorted(missing))}")
        if not 0 <= self.records < 1 << MOST_SLOT_BITS:
            raise ValueError(
                f"records must be from 0 to 2^{MOST_SLOT_BITS} - 1, got {self.records}"
            )
        if not all(self.slots(site) for site in self.keys):
            raise ValueError(f"a key is too short to hold a count of {self.records} records")

    @property
    def slot_bits(self) -> int:
        """The bits of a slot: it holds the number of records."""
        return slot_bits(self.records)

    def slots(self, owner: Party) -> int:
        """Return the slots of a plaintext under a site's key."""
        return (self.keys[owner].bits - 1) // self.slot_bits

    def may_be_outside(self, column: Column, counted: range) -> bool:
        """Whether a record may have none of the states of a column that a pass counts."""
        gaps = not self.complete and column not in self.whole
        return gaps or len(counted) < column.states

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """All passes over the records, table by table."""
        pairs = Counter(column for table in self.tables if len(table) == 2 for column in table)
        return tuple(
            Chain(number, columns, ranges)
            for number, table in enumerate(self.tables)
            for columns in [ordered(table, pairs)]
            for ranges in parts(columns, self.slots(columns[0].site))
        )

    @cached_property
    def steps(self) -> int:
        """How many times columns are passed on."""
        return max((len(table) for table in self.tables), default=1) - 1

    @cached_property
    def passed(self) -> list[dict[Link, list[Vector]]]:
        """For each step, the vectors of ciphertexts that each site sends to another, in order."""
        steps: list[dict[Link, dict[Vector, None]]] = [{} for _ in range(self.steps)]
        for number, chain in enumerate(self.chains):
            for step, (sender, receiver) in enumerate(pairwise(c.site for c in chain.columns)):
                steps[step].setdefault((sender, receiver), {})[self.vector(number)] = None
        return [{link: [*vectors] for link, vectors in step.items()} for step in steps]

    def vector(self, chain: int) -> Vector:
        """Name the ciphertexts of a chain at a step.

        Two sites count with the same ciphertexts of one column in all their tables. What a third
        site receives is used once, as two powers of one ciphertext show how they differ.
        """
        columns, ranges = self.chains[chain].columns, self.chains[chain].ranges
        return (columns[0], ranges[0]) if len(columns) == 2 else chain

    def encrypted(self, vector: Vector) -> tuple[Column, range]:
        """Return the column that its owner encrypts for a vector, and the states that count."""
        if isinstance(vector, tuple):
            return vector
        return self.chains[vector].columns[0], self.chains[vector].ranges[0]

    def owner(self, vector: Vector) -> Party:
        """Return whose key encrypts a vector."""
        return self.encrypted(vector)[0].site

    @cached_property
    def answers(self) -> dict[Link, list[list[Piece]]]:
        """For each last site and owner, the pieces of each plaintext, the lowest slots first."""
        answers = dict[Link, list[list[Piece]]]()
        used = dict[Link, int]()
        for number, chain in enumerate(self.chains):
            link, slots = (chain.last, chain.owner), self.slots(chain.owner)
            for state in range(chain.columns[-1].states):
                groups, width = answers.setdefault(link, []), chain.widths[-1]
                if not groups or used[link] + width > slots:
                    groups.append([])
                    used[link] = 0
                groups[-1].append(Piece(number, state))
                used[link] += width
        return dict(sorted(answers.items()))

    def answers_of(self, site: Party, place: int) -> dict[Party, int]:
        """Return how many answers a site sends (place 0) or receives (1), by the other site."""
        links = ((link, len(groups)) for link, groups in self.answers.items())
        return {link[1 - place]: count for link, count in links if link[place] == site}

    @cached_property
    def plaintext_bytes(self) -> int:
        """The bytes of an integer modulo the longest N."""
        return max((key.plaintext_bytes for key in self.keys.values()), default=1)

    @cached_property
    def label(self) -> bytes:
        """A digest of the plan: part of every label."""
        moduli = [
            part
            for site, key in sorted(self.keys.items())
            for part in (site, key.modulus.to_bytes(key.plaintext_bytes, "big"))
        ]
        columns = [
            part for table in self.tables for column in (*table, ("", "", 0)) for part in column
        ]
        numbers = self.records, int(self.complete), len(self.keys)
        return label("paillier tables", self.study, *numbers, *moduli, *columns)

    def label_of(self, step: int) -> bytes:
        """Return the label of the messages of a step; 0 is that of answers and counts."""
        return label("paillier step", self.label, step)


def slot_bits(records: int) -> int:
    """Return the bits of a slot that holds a count of so many records."""
    return max(1, records.bit_length())


def ordered(table: Table, pairs: Mapping[Column, int]) -> Table:
    """Return the columns of a table in the order of its chain.

    Of two columns, the owner's is the one that more tables of two sites have, as it is encrypted
    once for all; otherwise, those of fewer states come first, as their powers are the smallest.
    """
    often = pairs if len(table) == 2 else {}
    return tuple(sorted(table, key=lambda c: (-often.get(c, 0), c.states, c.site)))


def sizes(columns: Sequence[Column], slots: int) -> list[int]:
    """Return how many states of each column except the last a plaintext has slots for."""
    width, most = 1, list[int]()
    for _, _, states in columns[:-1]:
        most.append(min(states, slots // width))
        width *= most[-1]
    return most


def parts(columns: Sequence[Column], slots: int) -> Iterator[tuple[range, ...]]:
    """Divide the states of all columns except the last into what fits the slots of a plaintext."""
    pairs = zip(columns, sizes(columns, slots), strict=False)
    return product(
        *(
            [range(at, min(at + most, states)) for at in range(0, states, most)]
            for (_, _, states), most in pairs
        )
    )
