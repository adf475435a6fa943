"""How the tables of a study are released by a rule: what is counted, looked up, added and revealed.

    sites, dealer       shares of the cells of all tables       vertibayes_mpc.masked_tables
    sites <-> sites     the sum of each table's shares + zero shares: together the record count
    sites, dealer       cut: shares of c if c >= fewest, else 0    vertibayes_mpc.lookups
    sites, dealer       rounded: shares of the nearest multiple    vertibayes_mpc.lookups
    each site           laplace, gaussian: + its own noise      vertibayes_mpc.noise
    sites -> analyst    its shares + zero shares
    all                 exact, of wide columns: by shuffle      vertibayes_mpc.shuffled_tables

The sum of a table is public, unless records with missing values drop out of it: a sum that differs
shows that a site's share is not a share of this table, before anything is revealed. It does not
show a lie about a column or a product: the first cell of each axis is what the others leave of the
record count (`vertibayes_mpc.masked_tables.basis`), so that the sum stays
(`test_attacks_by_chosen_columns`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Commitments
from vertibayes_mpc.lookups import Batch, LookupPlan, PublicFunction, cut, rounded
from vertibayes_mpc.masked_tables import Plan
from vertibayes_mpc.noise import DiscreteGaussian, PolyaShare
from vertibayes_mpc.randomness import Randomness, SystemRandomness, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.accounting import SAMPLER, share_of
from vertibayes_protocols.budget import Cost, Released
from vertibayes_protocols.effects import ByRule, Noise, Planned
from vertibayes_protocols.gaussian import rho_of_shares, scale_of
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.queries.tables.counting import (
    TABLE_BYTES,
    TABLE_BYTES_PER_CELL,
    Group,
    Holders,
    grouped,
)
from vertibayes_protocols.queries.tables.masked import (
    MaskedPlan,
    cells_of,
    check_multiplied,
    divided,
    plan_products,
)
from vertibayes_protocols.queries.tables.masked_costs import LOOKUP_PS_PER_BYTE, TERM_BYTES, Columns
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Rows, axis_lengths

TAIL = 2.0**-64  # the chance that noise leaves the range in which a cell is read
WIDE = Ring(64)


@dataclass(frozen=True)
class ReleaseNoise:
    """The noise of a release: what each site adds, and what it costs.

    A record more or less changes one cell of each table by 1. Another value of a record changes
    two, which is two steps: twice epsilon.
    """

    tables: FamilyTables  # their rule adds noise
    sites: int  # the number of sites, which all add noise

    @property
    def honest(self) -> int:
        """How many sites do not work with the analyst at least: their noise is a whole copy."""
        return max(self.sites - math.floor(share_of(self.tables.rule.dishonest, self.sites)), 1)

    @property
    def scale(self) -> float:
        """With gaussian: the scale of one site's noise."""
        rule, count = self.tables.rule, len(self.tables.families)
        return scale_of(rule.epsilon, rule.delta, count, self.honest)

    def of_a_site(self, randomness: Randomness | None = None) -> PolyaShare | DiscreteGaussian:
        """Return the noise that one site adds."""
        rule, count = self.tables.rule, len(self.tables.families)
        if rule.kind == "gaussian":
            return DiscreteGaussian(rho=1 / (2 * self.scale**2))
        source = randomness or SystemRandomness()
        return PolyaShare(eps=rule.epsilon, Delta=count, n=self.honest, randomness=source)

    @property
    def cost(self) -> Cost:
        """What the release costs each site's budget."""
        rule = self.tables.rule
        if rule.kind == "gaussian":
            rho = rho_of_shares(self.scale, len(self.tables.families), self.honest)
            return Cost(rule.epsilon, rule.delta, rho, 0.0)
        both_ways = 1 + math.exp(min(rule.epsilon, 600.0))
        return Cost.of(rule.epsilon, min(self.sites * both_ways * SAMPLER, 1.0))

    def reach(self, cells: int) -> int:
        """Return what the noise of all sites stays within, in all cells."""
        return self.of_a_site().bound(self.sites, TAIL / max(cells, 1))


def function_of(rule: Rule, records: int) -> PublicFunction | None:
    """Return what a rule without noise releases of a count; None for the count itself."""
    make = {"cut": cut, "rounded": rounded}.get(rule.kind)
    return None if make is None else make(rule.fewest, records)


def by_rule(rule: Rule, released: Released, noise: ReleaseNoise | None) -> ByRule:
    """Return in which way tables leave by a rule."""
    if noise is None:
        return ByRule(released, None, None)
    drawn = "gaussian" if rule.kind == "gaussian" else ""  # the project draws Polya shares
    return ByRule(released, Noise(noise.cost, drawn), rule.dishonest)


def check_rule(study: Study, tables: FamilyTables) -> None:
    """Refuse a column that is too wide for the rule, with a ValueError that names it."""
    kind = tables.rule.kind
    why = f"cannot be released by the rule {kind}; the rule exact can release it"
    for family in tables.families if kind != "exact" else ():
        check_multiplied(study, family.members, why)


@dataclass(frozen=True)
class ReleasePlan:
    """All that the parties do for one release."""

    joined: Joined  # the study, and its commitments
    tables: FamilyTables
    number: int  # the number of the query in the study
    query: bytes  # a digest of the query

    @property
    def study(self) -> Study:
        """The study."""
        return self.joined.study

    @property
    def commitments(self) -> Commitments:
        """What the sites have committed."""
        return self.joined.commitments

    @cached_property
    def label(self) -> bytes:
        """Names the query and the commitments, whose ids are new in each session."""
        return label("release", self.commitments.label, self.query)

    # ---- what is counted -------------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The tables, each once, as groups."""
        return tuple(grouped(list(dict.fromkeys(self.tables.families))))

    @cached_property
    def counted(self) -> MaskedPlan:
        """The plan of the tables: a rule that acts on shares needs products."""
        check_rule(self.study, self.tables)
        by_products = self.tables.rule.kind != "exact"
        asked = Rows(), self.tables.missing, self.number
        return MaskedPlan(self.joined, self.groups, *asked, by_products)

    @cached_property
    def parts(self) -> tuple[Plan, ...]:
        """The plans of the products, in this order: each fits the memory of the study."""
        if self.tables.rule.kind == "exact":
            return (self.counted.products,)
        asked = Rows(), self.tables.missing, self.number
        return tuple(plan_products(self.joined, part, *asked) for part in self._groups_of_parts)

    @cached_property
    def _groups_of_parts(self) -> list[list[Group]]:
        """The groups of the tables of each part."""
        return divided(self.counted.costs, self.groups, self.study.memory - self._held)

    @property
    def counting(self) -> Planned:
        """What the tables take, before their products are listed."""
        if not self.counted.by_products:
            return self.counted.planned
        costs = self.counted.costs
        columns = [
            reduce(Columns.plus, (costs.columns_of(group.prefix) for group in part))
            for part in self._groups_of_parts
        ]
        memory = max(map(costs.products_memory, columns)) + self._held
        return Planned(memory, costs.products_time(self.groups))

    @cached_property
    def _held(self) -> int:
        """The bytes that cells, and the plans of all parts, take beside one part."""
        costs = self.counted.costs
        cells: int = sum(size.cells for group in self.groups for size in costs.sizes(*group))
        terms: int = costs.listed_terms([group.prefix for group in self.groups])
        return TABLE_BYTES_PER_CELL * cells + TABLE_BYTES * len(self.groups) + TERM_BYTES * terms

    @property
    def planned(self) -> Planned:
        """What the release takes: one protocol follows the other."""
        lookups, counting = self.lookups, self.counting
        held = TABLE_BYTES_PER_CELL * self.counted.products.cells
        sent = lookups.dealt_bytes + lookups.sent_bytes
        memory = max(counting.memory, held + lookups.memory)
        return Planned(memory, counting.picoseconds + LOOKUP_PS_PER_BYTE * sent)

    @cached_property
    def states(self) -> dict[str, int]:
        """How many states of each variable are counted."""
        return axis_lengths(self.study.variables, self.tables.missing)

    @cached_property
    def cells(self) -> dict[tuple[str, ...], NDArray[np.intp]]:
        """Where the cells of each table that is counted by products lie among the shares."""
        return cells_of(self.counted.multiplied, self.states)

    @cached_property
    def checked(self) -> list[NDArray[np.intp]]:
        """The cells of each table whose sum is public: no record drops out of it."""
        variables, missing = self.study.variables, self.tables.missing
        return [
            cells.ravel()
            for names, cells in self.cells.items()
            if missing or not any(variables[name].missing for name in names)
        ]

    def revealed(self, analyst: Party) -> tuple[RevealedTable, ...]:
        """Return the tables, each once, as ledgers have them."""
        words, families = self.tables.rule.words, dict.fromkeys(self.tables.families)
        sizes = {f: prod(self.states[name] for name in f.members) for f in families}
        return tuple(
            RevealedTable(f.members, cells, analyst, Rows(), words) for f, cells in sizes.items()
        )

    @property
    def size(self) -> Released:
        """The number of revealed tables, and of their cells together."""
        revealed = self.revealed("")
        return Released(len(revealed), sum(table.cells for table in revealed))

    # ---- the rule --------------------------------------------------------------------------------

    @cached_property
    def noise(self) -> ReleaseNoise | None:
        """The noise; None if the rule adds none."""
        rule = self.tables.rule
        return ReleaseNoise(self.tables, len(self.study.sites)) if rule.is_noisy else None

    @cached_property
    def function(self) -> PublicFunction | None:
        """What is looked up of each cell; None for nothing.

        Noise may need a larger ring than counts have: then counts of at least 0, all of them, are
        looked up as they are.
        """
        records = self.study.records
        if self.noise is None:
            return function_of(self.tables.rule, records)
        range_ = records + 2 * self.noise.reach(self.counted.products.cells)
        return cut(0, records) if range_ >= 1 << self.commitments.ring.bits else None

    @property
    def ring(self) -> Ring:
        """The ring of what is revealed: noise or rounding may exceed all counts."""
        ring = self.commitments.ring
        if self.function is None:
            return ring
        largest = int(self.function(np.array(self.study.records)))
        return ring if self.noise is None and largest < 1 << ring.bits else WIDE

    @cached_property
    def by_holders(self) -> dict[Holders, NDArray[np.intp]]:
        """The cells that each group of holders looks up."""
        by_holders: dict[Holders, list[NDArray[np.intp]]] = {}
        for names, cells in self.cells.items() if self.function else ():
            by_holders.setdefault(self.study.holders_of(names), []).append(cells.ravel())
        return {holders: np.concatenate(cells) for holders, cells in sorted(by_holders.items())}

    @cached_property
    def lookups(self) -> LookupPlan:
        """The plan of the lookups among several holders."""
        function, shared = self.function, self.by_holders.items()
        batches = (
            Batch(holders, ((function, len(cells)),))
            for holders, cells in shared
            if function and len(holders) > 1
        )
        return LookupPlan(self.label, self.ring, tuple(batches))

    def known(self, counts: Elements) -> Elements:
        """Return the function of counts that a site holds alone."""
        assert self.function is not None  # something is looked up
        return self.function(counts.astype(np.int64)).astype(self.ring.dtype)

    def read(self, values: Elements) -> Elements:
        """Return revealed numbers modulo 2^64: with noise, they can be below 0."""
        if self.noise is None or self.ring == WIDE:
            return values
        highest = self.study.records + self.noise.reach(self.counted.products.cells)
        signed = values.astype(np.int64)
        return np.where(signed > highest, signed - (1 << self.ring.bits), signed).view(np.uint64)
