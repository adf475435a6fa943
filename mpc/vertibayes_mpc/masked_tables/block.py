"""One site's terms in one block of records: it extends, multiplies and sums them; the messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vertibayes_mpc.commitments import Holder, Term
from vertibayes_mpc.commitments.operands import Form
from vertibayes_mpc.labelled import Labelled, expected, labelled_elements
from vertibayes_mpc.masked_tables.plan import Masks, Plan, Step
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program, exchange


class Masked(Labelled, kind="masked"):
    """Complete terms under their masks."""


class Part(Labelled, kind="part"):
    """A holder's or the dealer's part of terms that another site adds up."""


class Correction(Labelled, kind="correction"):
    """The dealer's part of the correction of products."""


class Block:
    """One site's terms in one block of chosen records."""

    def __init__(self, site: Holder, plan: Plan, block: int) -> None:
        self.site, self.plan, self.block = site, plan, block
        self.ring = site.commitments.ring
        self.masks = Masks(site.commitments, site.dealer_key, plan.selection, plan.label)
        self.parts: dict[Term, Elements] = {}
        self._masked: dict[Term, Elements] = {}
        self._masks: dict[Term, Elements] = {}
        self._unmasked: dict[Term, Elements] = {}

    def extend(self, step: Step) -> Program[None]:
        """Take one round of extension: send what others need, keep what they send."""
        me, sizes = self.site.party, self.site.commitments.width
        rows = self.plan.selection.rows(self.block)
        sent = {to: tuple(terms) for (sender, to), terms in step.items() if sender == me}
        messages = {terms: self._message(terms) for terms in dict.fromkeys(sent.values())}
        outbox = {to: messages[terms] for to, terms in sent.items()}
        senders = {sender: terms for (sender, to), terms in step.items() if to == me}
        shapes = {sender: (sum(map(sizes, terms)), rows) for sender, terms in senders.items()}
        expect = {
            sender: expected(self._kind(sender, terms), self.ring, shapes[sender][0] * rows)
            for sender, terms in senders.items()
        }
        received = yield from exchange(outbox, expect)
        for sender, message in received.items():
            shape, label = shapes[sender], self.plan.label
            values = labelled_elements(message, sender, self.ring, shape, label)
            self._keep(sender, senders[sender], values)

    def _kind(self, sender: Party, terms: Sequence[Term]) -> type[Masked] | type[Part]:
        return Masked if self.site.commitments.lead(terms[0]) == sender else Part

    def _message(self, terms: tuple[Term, ...]) -> Masked | Part:
        kind = self._kind(self.site.party, terms)
        values = [(self.masked if kind is Masked else self.part)(t) for t in terms]
        return kind(self.ring.pack(np.concatenate(values)), self.plan.label)

    def _keep(self, sender: Party, terms: list[Term], values: Elements) -> None:
        at = 0
        for term in terms:
            width = self.site.commitments.width(term)
            piece = values[at : at + width]
            at += width
            if self._kind(sender, [term]) is Masked:
                self._masked[term] = piece
            else:
                self.parts[term] = self.parts[term] + piece if term in self.parts else piece

    def add_products(self, products: Elements) -> None:
        """Add this block's shares of all products to `products`, of shape (height, columns)."""
        plan = self.plan
        ours = plan.rights_at(self.site.party)
        others = [z for z in plan.rights if z not in ours]
        held = [t for t in plan.lefts if self.holds(t)]
        shared = [z for z in others if self.holds((z,))]
        asked = plan.lefts_of({plan.lead_of(z) for z in shared})
        self._add(products, plan.lefts_at(self.site.party), ours, self.unmasked, self.unmasked, 1)
        self._add(products, held, others, self.mask, self.unmasked, -1)
        self._add(products, asked, shared, self.masked, self.mask, -1)

    def _add(
        self,
        products: Elements,
        terms: Sequence[Term],
        lasts: Sequence[int],
        left: Callable[[Term], Elements],
        right: Callable[[Term], Elements],
        sign: int,
    ) -> None:
        if not terms or not lasts:
            return
        rows = np.concatenate([left(t) for t in terms])
        columns = np.concatenate([right((z,)) for z in lasts])
        clear = right == self.unmasked and all(self.is_own((z,)) for z in lasts)
        dots = self.ring.dot(rows, columns, bits=1 if clear else None)
        at = np.ix_(self.plan.rows_of(terms), self.plan.columns(lasts))
        products[at] += dots if sign > 0 else -dots

    def add_sums(self, sums: Elements) -> None:
        """Add this block's shares of the sums of all left terms, then of the last operands."""
        for term in self.plan.lefts:
            sums[self.plan.rows[term]] += self._sum(term)
        for z in self.plan.rights:
            sums[self.plan.height + self.plan.columns([z])] += self._sum((z,))

    def _sum(self, term: Term) -> Elements:
        if self.site.commitments.lead(term) == self.site.party:
            return self.ring.row_sums(self.unmasked(term))
        if self.holds(term):
            return -self.ring.row_sums(self.mask(term))
        return np.zeros(self.site.commitments.width(term), self.ring.dtype)

    def is_own(self, term: Term) -> bool:
        """Whether this site alone holds the term."""
        return self.site.commitments.holders(term) == (self.site.party,)

    def holds(self, term: Term) -> bool:
        """Whether this site holds a part of the term."""
        return self.site.party in self.site.commitments.holders(term)

    def clear(self, term: Term) -> Elements:
        """Return a term that this site alone holds: shape (width, rows)."""
        columns = [self._gathered(self.site.clear, i) for i in term]
        product = columns[0]
        for column in columns[1:]:
            product = self.ring.kron(product, column)
        return product

    def mask(self, term: Term) -> Elements:
        """Return this site's share of a term's mask."""
        if term not in self._masks:
            self._masks[term] = self.masks.of(term, self.block)
        return self._masks[term]

    def masked(self, term: Term) -> Elements:
        """Return a term under its whole mask."""
        if term not in self._masked:
            single = len(term) == 1
            self._masked[term] = (
                self._gathered(self._committed, term[0]) if single else self._put_together(term)
            )
        return self._masked[term]

    def _committed(self, form: Form, place: int, block: int) -> Elements:
        return self.site.masked[form.name, place, block]

    def _gathered(self, load: Callable[[Form, int, int], Elements], place: int) -> Elements:
        """Return an operand's indicators, which `load` returns, over the chosen records."""
        form = self.site.commitments.form("indicators", place)
        return self.plan.selection.gather(lambda block: load(form, place, block), self.block)

    def unmasked(self, term: Term) -> Elements:
        """Return a term under the other sites' masks only: in the clear if this site holds it."""
        if term not in self._unmasked:
            self._unmasked[term] = self._unmask(term)
        return self._unmasked[term]

    def _unmask(self, term: Term) -> Elements:
        if self.is_own(term):
            return self.clear(term)
        if not self.holds(term):
            return self.masked(term)
        unmasked = self.masked(term) - self.mask(term)
        return self.ring.reduce(unmasked, out=unmasked)

    def part(self, term: Term) -> Elements:
        """Return this site's part of a term that another site computes."""
        left, right = self.site.commitments.split(term)
        total = self.masks.correction(term, self.block) + self.mask(term)
        if self.holds(left):
            total -= self.ring.kron(self.mask(left), self.unmasked(right))
        if self.holds(right):
            total -= self.ring.kron(self.masked(left), self.mask(right))
        return total

    def _put_together(self, term: Term) -> Elements:
        if self.is_own(term):
            return self.ring.reduce(self.unmasked(term) + self.mask(term))
        left, right = self.site.commitments.split(term)
        product = self.ring.kron(self.unmasked(left), self.unmasked(right))
        return self.ring.reduce(product + self.parts.pop(term) + self.mask(term))
