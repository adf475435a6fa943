"""Release: reveal the tables that a study ends with, by the rule that its sites have approved.

The figure is that of `vertibayes_protocols.queries.releases.plan`. Before a site sends its share:

    site -> its disk    its share, with its noise and its zero share
    site -> sites       Counted: this site has kept its share
    site -> its disk    the release is used up, and charged to all budgets

An answer that was lost is given again (`again`): each site sends the share that it has kept, byte
for byte. No site sends its share before all have kept theirs. A release that broke before that has
revealed nothing, and is computed again. Tables that are shuffled leave on the way: such a release
is used up when it begins, and is not given again.

Security: honest-but-curious, that of `vertibayes_mpc.masked_tables` and `vertibayes_mpc.lookups`;
noise is added to shares before any of them is sent. laplace: the noise of the sites that do not
work with the analyst is a whole copy; gaussian: that of each site is. When an answer is given
again, no noise is drawn and nothing is computed: a site that has changed its columns meanwhile does
not receive other counts under the same noise. Leakage: the tables by the rule, to the analyst;
which tables, to all parties. The sites learn no table. If a sum differs from the number of records,
the run ends, and no party learns which. Cost: as the tables; cut takes a lookup for each cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.lookups import deal_lookups
from vertibayes_mpc.masked_tables import deal_tables
from vertibayes_mpc.masked_tables.basis import tables_of
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Program
from vertibayes_mpc.sharing import open_sum, send_share
from vertibayes_mpc.shuffled_tables import count_shuffled, deal_shuffled, open_shuffled
from vertibayes_protocols import wire
from vertibayes_protocols.effects import Effects, Later, Number, Planned
from vertibayes_protocols.queries.names import check_most, check_variables
from vertibayes_protocols.queries.releases.plan import ReleasePlan, by_rule
from vertibayes_protocols.queries.releases.shares import (
    all_have_counted,
    give_again,
    open_kept,
    record_of,
    release_share,
)
from vertibayes_protocols.queries.tables.ways import MOST_GROUPS
from vertibayes_protocols.query import At, Give, StudyQuery
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.storage.run_record import GIVEN
from vertibayes_protocols.study import Joined
from vertibayes_protocols.variables import Rows

FAILED = "a check of released tables failed, and the run ended"


@dataclass(frozen=True, slots=True)
class Release(StudyQuery[list[NDArray[np.int64]], ReleasePlan]):
    """Ask for the tables of families over all records, by a rule."""

    kind: ClassVar[str] = "release"
    is_dealt: ClassVar[bool] = True
    gives_late: ClassVar[bool] = True
    ends_run: ClassVar[bool] = True
    tables: FamilyTables
    again: bool = False  # give a lost answer again: the dealer is not asked

    @classmethod
    def of(cls, joined: Joined, tables: FamilyTables, *, again: bool = False) -> Release:
        """Return the next query of a study; `again` if an answer was lost that all have kept."""
        joined.asked += 1
        study = joined.study
        return cls(study.sites if again else study.parties, study.id, joined.asked, tables, again)

    @property
    def step(self) -> FamilyTables:
        """The step of an approved study that it asks for."""
        return self.tables

    @property
    def gives_again(self) -> bool:
        """Whether it asks for an answer again, which was lost."""
        return self.again

    def plan(self, at: At) -> ReleasePlan:
        """Return the plan; a ValueError if the families do not fit the study."""
        joined, families = self.joined(at), self.tables.families
        check_most("tables", len(families), MOST_GROUPS)
        if not families:
            raise ValueError("a release must have families, each with a child")
        if len(set(families)) < len(families):
            raise ValueError("two families of the release are equal; ask for each family once")
        for family in families:
            check_variables(joined.study, family.members)
            if len(set(family.members)) < len(family.members):
                named = ", ".join(family.members)
                raise ValueError(f"a variable appears twice in the family {named}")
        digest = label("release", wire.encode(self))
        return ReleasePlan(joined, self.tables, self.number, digest)

    def effects(self, plan: ReleasePlan, at: At) -> Effects:
        """Return the effects: tables leave by the rule."""
        study, opens = plan.study, plan.revealed(at.analyst)
        sizes = [[study.variables[n].codes for n in f.members] for f in self.tables.families]
        return Effects(
            asks=study.sites if self.again else study.parties,
            columns=(),
            tables=tuple((len(codes), prod(codes)) for codes in sizes),
            counts=Rows(),
            takes=Later(partial(_takes, plan)),
            number=Number(self.number),
            leaves=by_rule(self.tables.rule, plan.size, plan.noise),
            says=Later(partial(plan.counted.facts, at, self.parties)),
            opens=opens,
        )

    def is_paid(self, site: SiteRole) -> bool:
        """Whether the site has given this release before."""
        record = record_of(site) if self.again else None
        return record is not None and record.state == GIVEN

    def fits(self, site: SiteRole, plan: ReleasePlan) -> None:
        """Refuse to give again what was not kept."""
        if self.again and record_of(site) is None:
            raise ValueError("it has kept no share of released tables")

    def run_site(self, site: SiteRole, plan: ReleasePlan, give: Give) -> Program[None]:
        """Count, keep the share, and give it once all sites have kept theirs."""
        assert site.holder is not None  # it has joined the study
        if self.again:
            yield from give_again(site, give)
            return
        if is_shuffled := any(plan.counted.shuffled):  # these tables leave on the way
            give()
        try:
            share = yield from release_share(site.holder, plan, site.randomness)
        except ImpossibleTablesError:
            site.ledger.note(FAILED, site.party, ())
            raise
        if is_shuffled:
            yield from send_share(share, site.analyst)
            if site.party in plan.counted.shuffles.parties:
                yield from count_shuffled(site.holder, plan.counted.shuffles, site.analyst)
            return
        if site.run is not None:
            site.memory.keep_share(site.run.approved.contract.digest, plan.label, share)
        yield from all_have_counted(site.party, plan)
        give()
        yield from send_share(share, site.analyst)

    def run_dealer(self, dealer: DealerRole, plan: ReleasePlan) -> Program[None]:
        """Deal what tables and lookups need."""
        keys = dealer.mask_keys
        for part in plan.parts:
            yield from deal_tables(keys, part)
        yield from deal_lookups(keys, plan.lookups)
        yield from deal_shuffled(keys, plan.counted.shuffles)

    def run_analyst(
        self, analyst: AnalystRole, plan: ReleasePlan
    ) -> Program[list[NDArray[np.int64]]]:
        """Add up the shares; return the tables in the order of the families."""
        products = plan.counted.products
        if self.again:
            cells = yield from open_kept(plan)
        else:
            cells = yield from open_sum(plan.study.sites, plan.ring, products.cells)
        multiplied = iter(tables_of(products, plan.read(cells)))
        shuffled = iter((yield from open_shuffled(plan.counted.shuffles)))
        tables = [next(shuffled if way else multiplied) for way in plan.counted.shuffled]
        families = [family for group in plan.groups for family in group.families]
        released = dict(zip(families, tables, strict=True))
        return [released[family] for family in self.tables.families]


def _takes(plan: ReleasePlan) -> Iterator[Planned]:
    """Go through what a release takes: tables first, before products are listed."""
    yield plan.counting
    yield plan.planned
