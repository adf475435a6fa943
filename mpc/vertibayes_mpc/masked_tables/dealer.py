"""The dealer's program: corrections for what the sites' masks add to extensions and products."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vertibayes_mpc.commitments import Term
from vertibayes_mpc.masked_tables.block import Correction, Part
from vertibayes_mpc.masked_tables.plan import Masks, Plan, Step
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Message, Party, Program, send


def deal_tables(keys: Mapping[Party, Stream], plan: Plan) -> Program[None]:
    """Deal the corrections for the tables of a plan, block by block; expect nothing."""
    masks = {s: Masks(plan.commitments, key, plan.selection, plan.label) for s, key in keys.items()}
    columns = int(plan.commitments.offsets[-1])
    products = np.zeros((plan.height, columns), plan.commitments.ring.dtype)
    for index in plan.selection.blocks:
        block = MaskBlock(plan, masks, index)
        for step in plan.steps:
            yield from send(block.corrections(step))
        block.add_products(products)
    for site, streams in masks.items():
        for at, part in streams.table_corrections(plan, site):
            products[at] -= part
    outbox = {site: _correction(plan, products, site) for site in plan.parties}
    yield from send({site: message for site, message in outbox.items() if message.values.size})


class MaskBlock:
    """The masks of all sites in one block of chosen records."""

    def __init__(self, plan: Plan, masks: Mapping[Party, Masks], block: int) -> None:
        self.plan, self.masks, self.block = plan, masks, block
        self.ring = plan.commitments.ring
        self._known: dict[tuple[Party, Term], Elements] = {}

    def mask(self, term: Term, without: Party) -> Elements:
        """Return the sum of all masks of a term except one site's: shape (width, rows)."""
        sites = [site for site in self.plan.commitments.holders(term) if site != without]
        if not sites:
            shape = (self.plan.commitments.width(term), self.plan.selection.rows(self.block))
            return np.zeros(shape, self.ring.dtype)
        total = self.mask_of(sites[0], term)
        for site in sites[1:]:
            total = total + self.mask_of(site, term)
        return total

    def mask_of(self, site: Party, term: Term) -> Elements:
        """Return one site's mask of a term."""
        if (site, term) not in self._known:
            self._known[site, term] = self.masks[site].of(term, self.block)
        return self._known[site, term]

    def corrections(self, step: Step) -> Mapping[Party, Message]:
        """Return the dealer's messages in a round of extension."""
        dealt = {
            to: ts for (sender, to), ts in step.items() if sender == self.plan.commitments.dealer
        }
        return {to: self._part(terms) for to, terms in dealt.items()}

    def _part(self, terms: list[Term]) -> Part:
        values = np.concatenate([self._correction(term) for term in terms])
        return Part(self.ring.pack(values), self.plan.label)

    def _correction(self, term: Term) -> Elements:
        """Return sum over s != t of A_s(left) (x) A_t(right), less the holders' parts."""
        commitments = self.plan.commitments
        left, right = commitments.split(term)
        total = np.zeros(
            (commitments.width(term), self.plan.selection.rows(self.block)), self.ring.dtype
        )
        for site in commitments.holders(right):
            total += self.ring.kron(self.mask(left, without=site), self.mask_of(site, right))
        for site in commitments.holders(term):
            if site != commitments.lead(term):
                total -= self.masks[site].correction(term, self.block)
        return self.ring.reduce(total)

    def add_products(self, products: Elements) -> None:
        """Add sum over s != t of A_s(left)^T A_t(last), for each holder t of a last operand."""
        for site in self.masks:
            lasts = [
                z for z in self.plan.rights if site in self.plan.commitments.operands[z].holders
            ]
            leads = {self.plan.lead_of(z) for z in lasts}
            terms = self.plan.lefts_of(leads)
            if terms and lasts:
                rows = np.concatenate([self.mask(t, without=site) for t in terms])
                columns = np.concatenate([self.mask_of(site, (z,)) for z in lasts])
                at = np.ix_(self.plan.rows_of(terms), self.plan.columns(lasts))
                products[at] += self.ring.dot(rows, columns)


def _correction(plan: Plan, products: Elements, lead: Party) -> Correction:
    """Return the lead's part of the correction."""
    columns = plan.columns(plan.rights_at(lead))
    values = products[np.ix_(plan.rows_of(plan.dealt_to(lead)), columns)]
    return Correction(plan.commitments.ring.pack(values), plan.label)
