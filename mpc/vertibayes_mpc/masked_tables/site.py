"""A site's programs for a query, block after block; and the analyst's, who adds up the shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.labelled import receive
from vertibayes_mpc.masked_tables.basis import table_shares, tables_of
from vertibayes_mpc.masked_tables.block import Block, Correction
from vertibayes_mpc.masked_tables.plan import Masks, Plan
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.sharing import open_sum, send_share, zero_share


def share_tables(site: Holder, plan: Plan, part: int = 0) -> Program[Elements]:
    """Count the tables of a plan with the other sites and the dealer; reveal them to nobody.

    Returns this site's shares of the cells in the order of `tables_of`: shape (plan.cells,), in the
    ring of the commitments. The shares of one site say nothing of the cells; those of all holders
    of a table do: whoever sends its share adds a zero share first. The parts of a query have its
    number, and different tables. A DealReusedError says that a query of this number, or a later
    one, was counted before; a MalformedMessageError, that a message has a wrong shape.
    """
    site.begin(f"products {part}" if part else "products", plan.number)
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
    return table_shares(plan, products, sums, site.party)


def count_tables(site: Holder, plan: Plan, analyst: Party) -> Program[None]:
    """Count as `share_tables`, and reveal the tables to the analyst, who runs `open_tables`."""
    shares = yield from share_tables(site, plan)
    ring = site.commitments.ring
    peers = {peer: site.peer_keys[peer] for peer in plan.parties if peer != site.party}
    zeros = zero_share(site.party, peers, ring, plan.label, plan.cells)
    yield from send_share(shares + zeros, ring, analyst)


def _correct(site: Holder, plan: Plan, products: Elements) -> Program[None]:
    """Add this site's parts of the corrections, from its own stream or from the dealer."""
    masks = Masks(site.commitments, site.dealer_key, plan.selection, plan.label)
    for at, part in masks.table_corrections(plan, site.party):
        products[at] += part
    rows = plan.rows_of(plan.dealt_to(site.party))
    columns = plan.columns(plan.rights_at(site.party))
    if rows.size:
        dealer, shape = site.commitments.dealer, (rows.size, columns.size)
        dealt = yield from receive(Correction, dealer, site.commitments.ring, shape, plan.label)
        products[np.ix_(rows, columns)] += dealt


def open_tables(plan: Plan) -> Program[list[NDArray[np.int64]]]:
    """Add up the sites' shares to tables, int64, in the order of `tables_of`: the analyst."""
    cells = yield from open_sum(plan.parties, plan.commitments.ring, plan.cells)
    return tables_of(plan, cells)
