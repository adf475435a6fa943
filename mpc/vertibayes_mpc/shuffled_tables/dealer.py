"""The dealer's program: the sums of the sites' masks, in the orders of the sites."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from vertibayes_mpc.commitments.columns import column_mask
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements, Packed
from vertibayes_mpc.rounds import Party, Program, send
from vertibayes_mpc.shuffled_tables.plan import Masks, ShuffledTable, ShufflePlan, Streams


def deal_shuffled(keys: Mapping[Party, Stream], plan: ShufflePlan) -> Program[None]:
    """Deal the masks of a plan's tables; expect nothing."""
    dealer = _Dealer(keys, plan)
    vectors: dict[Party, list[Packed]] = {site: [] for site in plan.parties}
    for table in plan.shuffled:
        codes, *tags = dealer.masks(table)
        vectors[table.chain[0]].append(table.ring.pack(codes))
        for site in table.chain if tags else ():
            vectors[site].append(plan.commitments.flag_ring.pack(tags[0]))
    outbox = {to: Masks(np.concatenate(v), plan.label) for to, v in vectors.items() if v}
    if outbox:
        yield from send(outbox)


class _Dealer:
    """The masks of all sites."""

    def __init__(self, keys: Mapping[Party, Stream], plan: ShufflePlan) -> None:
        self.keys, self.plan = keys, plan
        self.streams = {site: Streams(keys[site], plan) for site in plan.parties}
        self._columns: dict[tuple[str, int, Party], Elements] = {}

    def masks(self, table: ShuffledTable) -> list[Elements]:
        """Return m of the codes, and m' of the tags if records drop out."""
        totals = [self._codes(table)]
        if table.dropping:
            totals.append(self._tags(table))
        for site in table.chain:
            streams = self.streams[site]
            order = streams.order(table)
            masks = zip(totals, streams.masks(table), strict=True)
            totals = [total[order] + mask for total, mask in masks]
        for site in table.chain[1:]:
            totals[0] = totals[0] - self.streams[site].share(table)
        return totals

    def _codes(self, table: ShuffledTable) -> Elements:
        """Return the masks of the joint codes with which the first of the chain starts."""
        total = np.zeros(self.plan.selection.records, table.ring.dtype)
        for place, stride in zip(table.members, table.strides, strict=True):
            masks = self._column("codes", place, without=table.chain[0])
            total += masks.astype(total.dtype) * total.dtype.type(stride)
        return total

    def _tags(self, table: ShuffledTable) -> Elements:
        """Return the masks of the noises that the first of the chain adds up."""
        total = np.zeros(self.plan.selection.records, self.plan.commitments.flag_ring.dtype)
        for site in table.chain:
            streams = self.streams[site]
            if site != table.chain[0]:
                total += streams.noise_mask(table)
            for place in table.dropping:
                total += streams.noise(table, place) * self._column("flags", place, without=site)
        return total

    def _column(self, name: str, place: int, without: Party) -> Elements:
        """Return the sum of all masks of a column except one site's."""
        commitments = self.plan.commitments
        ring = commitments.flag_ring if name == "flags" else commitments.code_ring
        total = np.zeros(self.plan.selection.records, ring.dtype)
        for site in commitments.operands[place].holders:
            if site != without:
                total += self._column_of(name, place, site)
        return total

    def _column_of(self, name: str, place: int, site: Party) -> Elements:
        key = name, place, site
        if key not in self._columns:
            commitments = self.plan.commitments
            form = commitments.form(name, place)
            load = partial(column_mask, commitments, self.keys[site], form, place)
            self._columns[key] = self.plan.selection.whole(load)
        return self._columns[key]
