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
noise is added to shares before any of them is sent. laplace, gaussian: the noise of the sites that
do not work with the analyst is a whole copy, and by default that of each site is. When an answer is
given again, no noise is drawn and nothing is computed: a site that has changed its columns
meanwhile does not receive other counts under the same noise. Leakage: the tables by the rule, to
the analyst; which tables, to all parties. The sites learn no table. If a sum differs from the
number of records, the run ends, and no party learns which. Cost: as the tables; cut and rounded
take a lookup for each cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.errors import ImpossibleTablesError, UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, expected, labelled_elements
from vertibayes_mpc.lookups import deal_lookups
from vertibayes_mpc.masked_tables import deal_tables
from vertibayes_mpc.masked_tables.basis import tables_of
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send
from vertibayes_mpc.sharing import open_sum, send_share, zero_share
from vertibayes_mpc.shuffled_tables import count_shuffled, deal_shuffled, open_shuffled
from vertibayes_protocols import wire
from vertibayes_protocols.effects import Effects, Later, Number, Planned
from vertibayes_protocols.queries.releases.plan import ReleasePlan, by_rule
from vertibayes_protocols.queries.tables.counting import MOST_GROUPS
from vertibayes_protocols.queries.tables.masked import look_up_held, share_parts
from vertibayes_protocols.query import At, Give, StudyQuery, check_most, check_variables
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.storage.run_record import GIVEN, RunRecord
from vertibayes_protocols.study import Joined
from vertibayes_protocols.variables import Rows

FAILED = "a check of released tables failed, and the run ended"
AGAIN = "released tables that the analyst has not received are given to it again, byte for byte"


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
        if not self.again:
            return
        if (record := record_of(site)) is None:
            raise ValueError("it has kept no share of released tables")
        if len(record.share) != plan.ring.packed_size(plan.counted.products.cells):
            raise ValueError("the share that it has kept is of other tables")

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
            yield from send_share(share, plan.ring, site.analyst)
            if site.party in plan.counted.shuffles.parties:
                yield from count_shuffled(site.holder, plan.counted.shuffles, site.analyst)
            return
        if site.run is not None:
            site.memory.runs.keep_share(
                site.run.approved.contract.digest, plan.label, plan.ring.pack(share)
            )
        yield from all_have_counted(site.party, plan)
        give()
        yield from send_share(share, plan.ring, site.analyst)

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


@dataclass(frozen=True, slots=True)
class TableSums(Labelled):
    """A site's shares of the sums of tables."""

    kind: ClassVar[str] = "table sums"


def release_share(site: Holder, plan: ReleasePlan, randomness: Randomness) -> Program[Elements]:
    """Return a site's share of released tables, with its noise, hidden under a zero share."""
    site.begin("release", plan.number)
    products = plan.counted.products
    values = np.zeros(products.cells, plan.ring.dtype)
    if site.party in products.parties:
        shares = yield from share_parts(site, plan.parts)
        yield from _check_sums(site, plan, shares)
        values = (yield from _looked_up(site, plan, shares)) if plan.function else shares
    if plan.noise is not None:
        noise = plan.noise.of_a_site(randomness)(products.cells)
        values = values + noise.astype(values.dtype)
    peers = {peer: key for peer, key in site.peer_keys.items() if peer in plan.study.sites}
    name = label("released", plan.label)
    zeros = zero_share(site.party, peers, plan.ring, name, products.cells)
    return plan.ring.reduce(values + zeros)


def _check_sums(site: Holder, plan: ReleasePlan, shares: Elements) -> Program[None]:
    """Compare the sums of tables with the number of records; which sum differs is not said."""
    if not plan.checked:
        return
    ring, name = site.commitments.ring, label("sums of tables", plan.label)
    parties = plan.counted.products.parties
    peers = {peer: site.peer_keys[peer] for peer in parties if peer != site.party}
    sums = np.array([shares[cells].sum(dtype=ring.dtype) for cells in plan.checked], ring.dtype)
    sums = ring.reduce(sums + zero_share(site.party, peers, ring, name, len(sums)))
    expect = dict.fromkeys(peers, expected(TableSums, ring, len(sums)))
    ours = TableSums(ring.pack(sums), name)
    received = yield from exchange(dict.fromkeys(peers, ours), expect)
    for peer, message in received.items():
        sums = sums + labelled_elements(message, peer, ring, sums.shape, name)
    if (ring.reduce(sums) != plan.study.records).any():
        raise ImpossibleTablesError(plan.study.sites, plan.study.dealer)


def _looked_up(site: Holder, plan: ReleasePlan, shares: Elements) -> Program[Elements]:
    """Return this site's shares of the function of each cell."""
    mine = {held: cells for held, cells in plan.by_holders.items() if site.party in held}
    counts = {held: shares[cells] for held, cells in mine.items()}
    values = np.zeros(len(shares), plan.ring.dtype)
    looked_up = yield from look_up_held(site, plan.lookups, counts, plan.known)
    for held, of_cells in looked_up.items():
        values[mine[held]] = of_cells
    return values


@dataclass(frozen=True, slots=True)
class Counted(Labelled):
    """The sender has kept its share of the release; without elements."""

    kind: ClassVar[str] = "counted"


@dataclass(frozen=True, slots=True)
class KeptShare(Labelled):
    """The share that a site has kept, with the label of the release that it is of."""

    kind: ClassVar[str] = "kept share"


def record_of(site: SiteRole) -> RunRecord | None:
    """Return what a site remembers of the run of an approved study; None outside of one."""
    if site.run is None or site.joined is None:
        return None
    return site.memory.run_of(site.run.approved.contract.digest, site.joined.study.id)


def all_have_counted(party: Party, plan: ReleasePlan) -> Program[None]:
    """Wait until all sites have kept their shares."""
    ring, name = plan.ring, label("counted", plan.label)
    peers = [peer for peer in plan.study.sites if peer != party]
    ours = Counted(np.zeros(0, np.uint8), name)
    expect = dict.fromkeys(peers, Expect(Counted, LABEL_BYTES + 1))
    received = yield from exchange(dict.fromkeys(peers, ours), expect)
    for peer, message in received.items():
        labelled_elements(message, peer, ring, (0,), name)


def give_again(site: SiteRole, give: Give) -> Program[None]:
    """Send the share that was kept; give the release if it has not been given."""
    record = record_of(site)
    assert record is not None  # considered
    if record.state == GIVEN:
        site.ledger.note(AGAIN, site.party, (site.analyst,))
    else:
        give()
    yield from send({site.analyst: KeptShare(record.share, record.label)})


def open_kept(plan: ReleasePlan) -> Program[Elements]:
    """Add up the shares that the sites have kept: they must be of one release."""
    sites, count = plan.study.sites, plan.counted.products.cells
    expect = dict.fromkeys(sites, expected(KeptShare, plan.ring, max(count, 1)))
    kept = yield from exchange({}, expect)
    name = kept[sites[0]].label
    if any(message.label != name for message in kept.values()):
        raise UnknownFaultyPartyError(sites, "the shares that they kept are of two releases")
    total = np.zeros(count, plan.ring.dtype)
    for site, message in kept.items():
        total = total + labelled_elements(message, site, plan.ring, (count,), name)
    return plan.ring.reduce(total)
