"""A site's share of released tables: counted, checked, looked up by the rule, with its noise.

The figure, and what it costs, are those of `vertibayes_protocols.queries.releases.release`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.errors import ImpossibleTablesError, UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_elements
from vertibayes_mpc.masked_tables import share_tables
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send
from vertibayes_mpc.sharing import zero_share
from vertibayes_protocols.queries.releases.plan import ReleasePlan
from vertibayes_protocols.queries.tables.counting import look_up_held
from vertibayes_protocols.query import Give
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.run_record import GIVEN, RunRecord


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
        shares = yield from _shares(site, plan)
        yield from _check_sums(site, plan, shares)
        values = (yield from _looked_up(site, plan, shares)) if plan.function else shares
    if plan.noise is not None:
        noise = plan.noise.of_a_site(randomness)(products.cells)
        values = values + noise.astype(values.dtype)
    peers = {peer: key for peer, key in site.peer_keys.items() if peer in plan.study.sites}
    name = label("released", plan.label)
    zeros = zero_share(site.party, peers, plan.ring, name, products.cells)
    return plan.ring.reduce(values + zeros)


def _shares(site: Holder, plan: ReleasePlan) -> Program[Elements]:
    """Return this site's shares of all cells, counted part after part."""
    shares = []
    for number, part in enumerate(plan.parts):
        of_part = np.zeros(part.cells, site.commitments.ring.dtype)
        if site.party in part.parties:
            of_part = yield from share_tables(site, part, number)
        shares.append(of_part)
    return np.concatenate(shares)


def _check_sums(site: Holder, plan: ReleasePlan, shares: Elements) -> Program[None]:
    """Compare the sums of tables with the number of records; which sum differs is not said."""
    if not plan.checked:
        return
    ring, name = site.commitments.ring, label("sums of tables", plan.label)
    parties = plan.counted.products.parties
    peers = {peer: site.peer_keys[peer] for peer in parties if peer != site.party}
    sums = np.array([shares[cells].sum(dtype=ring.dtype) for cells in plan.checked], ring.dtype)
    sums = ring.reduce(sums + zero_share(site.party, peers, ring, name, len(sums)))
    expect = dict.fromkeys(peers, Expect(TableSums, len(sums) + LABEL_BYTES))
    received = yield from exchange(dict.fromkeys(peers, TableSums(sums, name)), expect)
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


AGAIN = "released tables that the analyst has not received are given to it again, byte for byte"


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
    ours = Counted(np.zeros(0, ring.dtype), name)
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
    expect = dict.fromkeys(sites, Expect(KeptShare, max(count, 1) + LABEL_BYTES))
    kept = yield from exchange({}, expect)
    name = kept[sites[0]].label
    if any(message.label != name for message in kept.values()):
        raise UnknownFaultyPartyError(sites, "the shares that they kept are of two releases")
    total = np.zeros(count, plan.ring.dtype)
    for site, message in kept.items():
        total = total + labelled_elements(message, site, plan.ring, (count,), name)
    return plan.ring.reduce(total)
