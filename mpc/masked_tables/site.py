"""A site's program for a query, block after block; and the analyst's, who adds up the shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc.commitments import Holder
from mpc.labelled import LABEL_BYTES, labelled_elements
from mpc.masked_tables.basis import table_shares, tables_of
from mpc.masked_tables.block import Block
from mpc.masked_tables.masks import Masks
from mpc.masked_tables.messages import Correction
from mpc.masked_tables.plan import Plan
from mpc.ring import Elements
from mpc.rounds import Expect, Party, Program, exchange
from mpc.sharing import open_sum, send_share, zero_share


def count_tables(site: Holder, plan: Plan, analyst: Party) -> Program[None]:
    """Count the tables of a plan with the other sites and the dealer; reveal them to the analyst.

    Parameters
    ----------
    site : Holder
        The columns and keys of this site.
    plan : Plan
        The plan of the query.
    analyst : Party
        Who runs `open_tables`.

    Raises
    ------
    DealReusedError
        If a query of this number, or a later one, was counted before.
    MalformedMessageError
        If a message of a site or of the dealer has a wrong shape.
    """
    site.begin("products", plan.number)
    ring = site.commitments.ring
    columns = int(site.commitments.offsets[-1])
    products = np.zeros((plan.height, columns), ring.dtype)
    sums = np.zeros(plan.height + columns, ring.dtype)
    for index in plan.selection.blocks:
        block = Block(site, plan, index)
        for step in plan.steps:
            yield from block.extend(step)
        block.add_products(products)
        block.add_sums(sums)
    yield from _correct(site, plan, products)
    ones = plan.selection.records if site.party == plan.parties[0] else 0
    shares = table_shares(plan, products, sums, ones)
    peers = {peer: site.peer_keys[peer] for peer in plan.parties if peer != site.party}
    zeros = zero_share(site.party, peers, ring, plan.label, plan.cells)
    yield from send_share(ring.reduce(shares + zeros), analyst)


def _correct(site: Holder, plan: Plan, products: Elements) -> Program[None]:
    """Add this site's parts of the corrections, from its own stream or from the dealer."""
    masks = Masks(site.commitments, site.dealer_key, plan.selection, plan.label)
    others = [z for z in plan.rights if plan.lead_of(z) != site.party]
    shared = [z for z in others if site.party in site.commitments.operands[z].holders]
    for term in plan.lefts:
        places = others if site.party in site.commitments.holders(term) else shared
        if places:
            columns = plan.columns(places)
            products[plan.rows[term], columns] += masks.table_correction(term)[:, columns]
    rows = plan.rows_of(plan.dealt_to(site.party))
    columns = plan.columns(plan.rights_at(site.party))
    if rows.size:
        dealer, shape = site.commitments.dealer, (rows.size, columns.size)
        cells = rows.size * columns.size + LABEL_BYTES
        message = (yield from exchange({}, {dealer: Expect(Correction, cells)}))[dealer]
        dealt = labelled_elements(message, dealer, site.commitments.ring, shape, plan.label)
        products[np.ix_(rows, columns)] += dealt


def open_tables(plan: Plan) -> Program[list[NDArray[np.int64]]]:
    """Add up the sites' shares: the analyst's side.

    Returns
    -------
    tables : list of ndarray, dtype int64
        In the order of `tables_of`.

    Raises
    ------
    MalformedMessageError
        If a site's share has a wrong shape.
    """
    cells = yield from open_sum(plan.parties, plan.commitments.ring, plan.cells)
    return tables_of(plan, cells)
