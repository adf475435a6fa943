"""A site's share of released tables: counted, checked, looked up by the rule, with its noise.

The figure, and what it costs, are those of `vertibayes_protocols.queries.releases.release`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_elements
from vertibayes_mpc.masked_tables import share_tables
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Program, exchange
from vertibayes_mpc.sharing import zero_share
from vertibayes_protocols.queries.releases.plan import ReleasePlan
from vertibayes_protocols.queries.tables.held_counts import look_up_held


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
