"""Tables by Paillier's cryptosystem: no dealer, and no column is sent before.

Each holder of a table has one column: the joint state of its variables in each record, or none
where one of its values is missing and missing values are not counted. One holder encrypts, the
others multiply and count. The figure, security and cost are those of
`vertibayes_mpc.paillier.counting`, whose generators this module wraps. A site sends the tables that
it holds alone as they are (`OwnCounts`).

Who is the owner of a table's key, and in which order the other holders follow, depends on public
sizes only. It differs between tables: no two sites must work together where tables have three
holders or more. The ledger of a site between the first and the last notes who could read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc import paillier
from vertibayes_mpc.errors import (
    ImpossibleTablesError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.labelled import LABEL_BYTES
from vertibayes_mpc.paillier import Column, count_tables, open_tables
from vertibayes_mpc.paillier.keys import FEWEST_BITS
from vertibayes_mpc.paillier.plan import Link, Table, ordered, sizes, slot_bits
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_mpc.sharing import checked
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.tables.counting import (
    Cost,
    Group,
    TableCosts,
    TablePlan,
    joint_states,
)
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, axis_lengths

Names: TypeAlias = tuple[str, ...]  # of variables
TOGETHER = "its values of each record, if the first of these sites works with another of them"
# Work, in picoseconds, at keys of 2048 bits: to encrypt as the owner, as anybody, to decrypt, to
# square; to receive a ciphertext, and to multiply it; to count a record that a site holds alone.
OWNER_PS, ANYBODY_PS, DECRYPT_PS, SQUARE_PS = 330_000_000, 8_800_000_000, 2_500_000_000, 3_800_000
RECEIVE_PS, MULTIPLY_PS, COUNT_PS = 7_000_000, 5_000_000, 8_000
KEY_BYTES = 45_000_000  # of the tables of powers by which an owner encrypts
HELD_BYTES = 2_500  # of a ciphertext at one party: an integer, and its bytes in messages
POWER, MULTIPLY = 2.6, 1.7  # work grows with a key's length to this power: all of it, a product
KEPT_LOADS = 16  # of queries, also refused ones


# ---- costs ---------------------------------------------------------------------------------------


class Load(NamedTuple):
    """What tables take in one query; see `counting.Load`."""

    cells: int = 0
    tables: int = 0
    groups: int = 0
    vectors: int = 0  # of ciphertexts, one for each record, on all links
    holders: int = 0  # of the table with the most holders
    cost: Cost = Cost()

    def plus(self, other: Load) -> Load:
        """Return the load of one query for both."""
        return Load(
            self.cells + other.cells,
            self.tables + other.tables,
            self.groups + other.groups,
            self.vectors + other.vectors,
            max(self.holders, other.holders),
            self.cost + other.cost,
        )


class PaillierCosts(TableCosts[Load]):
    """The costs of a study's tables by Paillier's cryptosystem.

    key_bits: the length of the longest key, known once the study is joined.
    """

    nothing = Load()
    overhead = 1.25  # what `work` leaves out is little beside encryptions

    def __init__(
        self, study: Study, records: int, missing: bool, key_bits: int = FEWEST_BITS
    ) -> None:
        super().__init__(study, records, missing)
        self.gaps = [variable.missing and not missing for variable in study.variables.values()]
        self.lengths = axis_lengths(study.variables, missing)
        self._length_at = [*self.lengths.values()]  # by a variable's place in the study
        self.slot_bits = slot_bits(records)
        self.slots = (FEWEST_BITS - 1) // self.slot_bits  # of the shortest key
        longer = max(key_bits / FEWEST_BITS, 1.0)
        power, multiply = longer**POWER, longer**MULTIPLY
        self.owner_ps, self.decrypt_ps = int(power * OWNER_PS), int(power * DECRYPT_PS)
        self.anybody_ps, self.square_ps = int(power * ANYBODY_PS), int(multiply * SQUARE_PS)
        self.receive_ps, self.multiply_ps = int(multiply * RECEIVE_PS), int(multiply * MULTIPLY_PS)
        self.ciphertext_bytes = int(longer * FEWEST_BITS / 4)
        self.key_bytes, self.held_bytes = int(longer**2 * KEY_BYTES), int(longer * HELD_BYTES)
        sites = len(study.sites)
        self.commitment_bytes = sites * sites * (FEWEST_BITS // 8 + 300)
        self.commitment_rounds = 3

    def load(self, group: Group) -> Load:
        """Return the load of a group's tables; a ValueError if one takes too much memory."""
        return load_of(self, (group,))

    def total(self, groups: Iterable[Group]) -> Load:
        """Return the load of one query: its tables of two sites share ciphertexts."""
        return load_of(self, tuple(groups))

    def columns_of(self, names: Names) -> Table:
        """Return the columns of a table: one of each holder, in the order of their names."""
        study, columns = self.study, list[Column]()
        for site in study.holders_of(names):
            own = sorted(study.place(name) for name in names if site in study.holders[name])
            joint = prod(self._length_at[place] for place in own)
            columns.append(Column(site, ".".join(map(str, own)), joint))
        return tuple(columns)

    def passed_on(self, chain: Table, most: Sequence[int], passes: int) -> int:
        """Return the work of the sites between the owner and the last one."""
        work = 0
        for place, states in enumerate(most[1:], start=1):
            work += self.slot_bits * prod(most[:place]) * (states - 1) * self.square_ps
            is_zero = states < chain[place].states or self.may_miss(chain[place])
            work += (is_zero + (place > 1)) * self.anybody_ps
        return self.records * passes * work

    def may_miss(self, column: Column) -> bool:
        """Whether a record may have no state of a column."""
        return any(self.gaps[int(place)] for place in column.name.split("."))

    def memory_of(self, load: Load) -> int:
        """Return the memory, in bytes, at a party: as if one party held all ciphertexts."""
        return (self.key_bytes + self.held_bytes * self.records * load.vectors) * bool(load.vectors)

    def rounds(self, load: Load) -> int:
        """Return the rounds: from site to site, back to the owner, and to the analyst."""
        return load.holders + (load.holders > 1)

    def planned(self, load: Load) -> Planned:
        """Return the memory at a party, and the time of all."""
        less = (
            f"it sends {load.cost.bytes:,} bytes by paillier; count by masked-tables, or have "
            "fewer records, sites or parents"
        )
        return super().planned(load)._replace(less=less)


@lru_cache(maxsize=KEPT_LOADS)
def load_of(costs: PaillierCosts, groups: tuple[Group, ...]) -> Load:
    """Return the load of the tables of groups, where each is counted once."""
    families = [family for group in groups for family in group.families]
    columns = [costs.columns_of(family.members) for family in families]
    tables = dict(zip(columns, families, strict=True))
    pairs = Counter(column for table in tables if len(table) == 2 for column in table)
    work, vectors, holders, needed = 0, 0, 1, dict[Family, int]()
    encrypted, sent, filled = set[Column](), set[tuple[Column, Party]](), Counter[Link]()
    for table, family in tables.items():
        if len(table) == 1:
            work += COUNT_PS * costs.records
            continue
        chain, holders = ordered(table, pairs), max(holders, len(table))
        owner, last, most = chain[0], chain[-1], sizes(chain, costs.slots)
        passes = prod(-(-c.states // m) for c, m in zip(chain, most, strict=False))
        is_two, link = len(chain) == 2, (owner, last.site)
        new = passes * (len(chain) - 1) * (not is_two or link not in sent)
        work += costs.records * costs.owner_ps * passes * (not is_two or owner not in encrypted)
        work += costs.records * (costs.receive_ps * new + costs.multiply_ps * passes)
        work += costs.passed_on(chain, most, passes)
        vectors += new
        if is_two:
            encrypted.add(owner)
            sent.add(link)
        filled[last.site, owner.site] += prod(most) * passes * last.states
        needed[family] = costs.memory_of(Load(vectors=passes * (len(chain) - 1)))
    costs.check_memory(needed)
    answers = sum(-(-slots // costs.slots) for slots in filled.values())
    work += answers * (costs.anybody_ps + costs.decrypt_ps)
    work += filled.total() * costs.slot_bits * costs.square_ps
    size = costs.ciphertext_bytes * (vectors * costs.records + 2 * answers)
    cells = sum(prod(column.states for column in table) for table in columns)
    return Load(cells, len(families), len(groups), vectors, holders, Cost(work, size))


# ---- what the parties do -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnCounts(Message):
    """The counts of the tables that a site holds alone, one after the other."""

    kind: ClassVar[str] = "own counts"
    label: bytes
    counts: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True)
class PaillierPlan(TablePlan):
    """How the parties count the tables of one query by Paillier's cryptosystem."""

    costs_type: ClassVar[type[PaillierCosts]] = PaillierCosts

    @cached_property
    def label(self) -> bytes:
        """A digest of the study, of the query and of its records: part of every label."""
        place = self.joined.study.place
        parts: list[bytes | int] = [self.joined.mark, self.number, int(self.missing)]
        parts += [self.rows.seed, self.rows.first, self.selection.records]
        for family in self.families:
            parts += [len(family.members), *map(place, family.members)]
        return label("tables by paillier", *parts)

    @cached_property
    def columns(self) -> list[Table]:
        """Of each table, the column of each holder."""
        return [self.costs.columns_of(family.members) for family in self.families]

    @cached_property
    def encrypted(self) -> paillier.TablePlan:
        """The plan of the tables of two holders or more, each once."""
        tables = tuple(dict.fromkeys(table for table in self.columns if len(table) > 1))
        sites = {column.site for table in tables for column in table}
        keys = {site: self.joined.keys[site] for site in sorted(sites)}
        variables = self.joined.study.variables
        names = {name for family in self.families for name in family.members}
        complete = self.missing or not any(variables[name].missing for name in names)
        whole = frozenset(c for table in tables for c in table if not self.costs.may_miss(c))
        records = self.selection.records
        return paillier.TablePlan(self.label, keys, records, tables, complete, whole)

    def variables_of(self, column: Column) -> list[str]:
        """Return the variables of a column, in the study's order."""
        names = tuple(self.joined.study.variables)
        return [names[int(place)] for place in column.name.split(".")]

    def alone(self, site: Party) -> list[Column]:
        """Return the columns that are whole tables of a site, each once."""
        return [*dict.fromkeys(c for c, *others in self.columns if not others and c.site == site)]

    def shows(self, site: Party) -> Iterator[Fact]:
        """Go through the sites that could read the site's records if they worked together."""
        chains = [[column.site for column in chain.columns] for chain in self.encrypted.chains]
        places = ((chain, chain.index(site)) for chain in chains if site in chain[1:-1])
        readers = {(chain[0], *sorted(chain[place + 1 :])) for chain, place in places}
        yield from (Fact(TOGETHER, site, sites) for sites in sorted(readers))

    def run_site(self, site: SiteRole) -> Program[None]:
        """Encrypt, multiply and count with the other sites; send the tables held alone."""
        joined = self.joined
        assert joined.own_key is not None  # it has joined the study
        joined.asked = self.number
        if alone := self.alone(site.party):
            counts = np.concatenate([self._counted(site, column) for column in alone])
            yield from send({site.analyst: OwnCounts(self.label, counts)})
        columns = {
            column: self._codes(site, column)
            for table in self.encrypted.tables
            for column in table
            if column.site == site.party
        }
        if columns:
            own = site.party, site.analyst, joined.own_key
            yield from count_tables(self.encrypted, *own, columns, site.randomness)

    def _counted(self, site: SiteRole, column: Column) -> NDArray[np.int64]:
        codes = self._codes(site, column)
        return np.bincount(codes[codes >= 0], minlength=column.states).astype(np.int64)

    def _codes(self, site: SiteRole, column: Column) -> NDArray[np.int64]:
        """Return the joint state of each chosen record; -1 if a value that it needs is missing."""
        names, indices = self.variables_of(column), self.selection.indices
        columns = map(site.column, names)
        chosen = columns if indices is None else (codes[indices] for codes in columns)
        lengths = [self.costs.lengths[name] for name in names]
        return joint_states(self.selection.records, chosen, lengths)

    def run_dealer(self, dealer: DealerRole) -> Program[None]:
        """Deal nothing: no dealer is asked."""
        raise NotImplementedError("a study that counts by paillier has no dealer")

    def run_analyst(self) -> Program[list[NDArray[np.int64]]]:
        """Receive the tables of one holder, and decrypt those of several with their owners."""
        tables: dict[Table, NDArray[np.int64]] = {}
        alone = {site: columns for site in self.parties if (columns := self.alone(site))}
        sizes = {site: sum(c.states for c in columns) for site, columns in alone.items()}
        expect = {p: Expect(OwnCounts, LABEL_BYTES + max(size, 1)) for p, size in sizes.items()}
        for site, message in (yield from exchange({}, expect)).items() if expect else ():
            if message.label != self.label:
                raise UnexpectedMessageError(site, "counts of another query")
            counts = checked(message.counts, site, (sizes[site],), np.int64, "counts")
            ends = np.cumsum([column.states for column in alone[site]])[:-1]
            parts = zip(alone[site], np.split(counts, ends), strict=True)
            tables |= {(column,): part for column, part in parts}
        if self.encrypted.tables:
            try:
                opened = yield from open_tables(self.encrypted)
            except UnknownFaultyPartyError as error:
                raise ImpossibleTablesError(error.parties, "", error.reason) from None
            tables |= zip(self.encrypted.tables, opened, strict=True)
        pairs = zip(self.families, self.columns, strict=True)
        return [self._in_order(f.members, columns, tables[columns]) for f, columns in pairs]

    def _in_order(
        self, members: Names, columns: Table, table: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return a table with an axis for each member of its family."""
        names = [name for column in columns for name in self.variables_of(column)]
        shape = [self.costs.lengths[name] for name in names]
        axes = [names.index(name) for name in members]
        return np.ascontiguousarray(table.reshape(shape).transpose(axes))
