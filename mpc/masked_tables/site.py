"""A site's programs, and the analyst's: commit, count, open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mpc.errors import UnexpectedMessageError
from mpc.masked_tables.basis import indicators, table_shares, tables_of
from mpc.masked_tables.commitments import Commitments, Selection, Term, committed_rows
from mpc.masked_tables.masks import Masks
from mpc.masked_tables.plan import Plan, Step
from mpc.randomness import Stream
from mpc.ring import Elements, Ring
from mpc.rounds import ArrayMessage, Expect, Message, Party, Program, Round
from mpc.sharing import elements_of, open_sum, send_share, zero_share


@dataclass(frozen=True, slots=True)
class Labelled(ArrayMessage):
    """Elements for one commitment or query: who runs another does not take them.

    Else an analyst who asks the dealer for one table and the sites for another would have a site
    subtract two corrections, and read the mask of another site's column.
    """

    label: bytes


@dataclass(frozen=True, slots=True)
class Masked(Labelled):
    """Columns under their masks: commitments, or terms put together."""

    kind: ClassVar[str] = "masked"


@dataclass(frozen=True, slots=True)
class Part(Labelled):
    """A holder's or the dealer's part of terms that another site puts together."""

    kind: ClassVar[str] = "part"


@dataclass(frozen=True, slots=True)
class Correction(Labelled):
    """The dealer's part of the correction of products."""

    kind: ClassVar[str] = "correction"


LABEL_BYTES = 32


@dataclass
class Holder:
    """A site: its columns, its keys, and the masked columns of all.

    Parameters
    ----------
    party : Party
    commitments : Commitments
    codes : mapping of int to ndarray of shape (n,)
        The codes of each operand that it holds; 0 also where it does not hold the record.
    dealer_key : Stream
        Shared with the dealer.
    peer_keys : mapping of Party to Stream
        Shared with each other site.
    masked : mutable mapping of int to ndarray of shape (columns of the study, rows), optional
        Where the masked columns of each block are kept; in memory by default.
    """

    party: Party
    commitments: Commitments
    codes: Mapping[int, NDArray[np.unsignedinteger]] = field(repr=False)
    dealer_key: Stream = field(repr=False)
    peer_keys: Mapping[Party, Stream] = field(repr=False)
    masked: MutableMapping[int, Elements] = field(default_factory=dict, repr=False)

    def clear(self, place: int, block: int) -> Elements:
        """Return the indicators of an own column in a committed block: shape (width, rows)."""
        rows = slice(block * self.commitments.block_rows, (block + 1) * self.commitments.block_rows)
        width = self.commitments.operands[place].width
        return indicators(self.codes[place][rows], width, self.commitments.ring)


def commit(site: Holder) -> Program[None]:
    """Send one's columns under their masks to the other sites, and keep theirs: a round a block.

    Raises
    ------
    MalformedMessageError
        If a site's columns have a wrong shape.
    """
    all_rows = Selection(site.commitments)
    masks = Masks(site.commitments, site.dealer_key, all_rows)
    own = site.commitments.held_by(site.party)
    others = [peer for peer in site.commitments.sites if peer != site.party]
    for block in all_rows.blocks:
        columns = [site.clear(i, block) + masks.committed(i, block) for i in own]
        ours = site.commitments.ring.reduce(np.concatenate(columns))
        expect = {peer: Expect(Masked, _cells(site.commitments, peer, block)) for peer in others}
        message = Masked(ours, site.commitments.context)
        inbox = yield Round(dict.fromkeys(others, message), expect)
        site.masked[block] = _sum_of_holders(site, block, {site.party: ours}, inbox)


def _cells(commitments: Commitments, peer: Party, block: int) -> int:
    width = sum(commitments.operands[i].width for i in commitments.held_by(peer))
    return width * committed_rows(commitments, block) + LABEL_BYTES


def labelled_elements(
    message: Message, sender: Party, ring: Ring, shape: tuple[int, ...], label: bytes
) -> Elements:
    """Return a message's elements, or blame its sender if they are not for this label.

    Raises
    ------
    UnexpectedMessageError, MalformedMessageError
        If they are for another commitment or query, or of a wrong shape.
    """
    assert isinstance(message, Labelled)  # the transport has checked the kind
    if message.label != label:
        raise UnexpectedMessageError(sender, f"{type(message).__name__} of another query")
    return elements_of(message, sender, ring, shape)


def _sum_of_holders(
    site: Holder, block: int, ours: Mapping[Party, Elements], inbox: Mapping[Party, Message]
) -> Elements:
    """Put all sites' columns in the study's order; those of several holders are added up."""
    commitments, rows = site.commitments, committed_rows(site.commitments, block)
    masked = np.zeros((int(commitments.offsets[-1]), rows), commitments.ring.dtype)
    for peer in commitments.sites:
        held = commitments.held_by(peer)
        theirs = ours.get(peer)
        if theirs is None:
            shape = (sum(commitments.operands[i].width for i in held), rows)
            theirs = labelled_elements(
                inbox[peer], peer, commitments.ring, shape, commitments.context
            )
        at = 0
        for i in held:
            width = commitments.operands[i].width
            masked[commitments.columns(i)] += theirs[at : at + width]
            at += width
    return commitments.ring.reduce(masked)


class Block:
    """What one site knows of the terms in one block of chosen records."""

    def __init__(self, site: Holder, plan: Plan, block: int) -> None:
        self.site, self.plan, self.block = site, plan, block
        self.ring = site.commitments.ring
        self.masks = Masks(site.commitments, site.dealer_key, plan.selection)
        self.columns = plan.selection.gather(site.masked.__getitem__, block)
        self.parts: dict[Term, Elements] = {}
        self._masked: dict[Term, Elements] = {}
        self._masks: dict[Term, Elements] = {}
        self._unmasked: dict[Term, Elements] = {}

    def is_own(self, term: Term) -> bool:
        """Whether this site alone holds the term."""
        return self.site.commitments.holders(term) == (self.site.party,)

    def holds(self, term: Term) -> bool:
        """Whether this site holds a part of the term."""
        return self.site.party in self.site.commitments.holders(term)

    def clear(self, term: Term) -> Elements:
        """Return a term that this site alone holds: shape (width, rows)."""
        load = self.site.clear
        columns = [self.plan.selection.gather(lambda b, i=i: load(i, b), self.block) for i in term]  # type: ignore[misc]
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
        if len(term) == 1:
            return self.columns[self.site.commitments.columns(term[0])]
        if term not in self._masked:
            self._masked[term] = self._put_together(term)
        return self._masked[term]

    def unmasked(self, term: Term) -> Elements:
        """Return a term under the others' masks alone: in the clear if this site alone holds it."""
        if term not in self._unmasked:
            self._unmasked[term] = self._unmask(term)
        return self._unmasked[term]

    def _unmask(self, term: Term) -> Elements:
        if self.is_own(term):
            return self.clear(term)
        if not self.holds(term):
            return self.masked(term)
        return self.ring.reduce(self.masked(term) - self.mask(term))

    def part(self, term: Term) -> Elements:
        """Return this site's part of a term that another puts together."""
        left, right = self.site.commitments.split(term)
        total = self.masks.split(term, self.block) + self.mask(term)
        if self.holds(left):
            total -= self.ring.kron(self.mask(left), self.unmasked(right))
        if self.holds(right):
            total -= self.ring.kron(self.masked(left), self.mask(right))
        return self.ring.reduce(total)

    def _put_together(self, term: Term) -> Elements:
        if self.is_own(term):
            return self.ring.reduce(self.unmasked(term) + self.mask(term))
        left, right = self.site.commitments.split(term)
        product = self.ring.kron(self.unmasked(left), self.unmasked(right))
        return self.ring.reduce(product + self.parts.pop(term) + self.mask(term))

    # ---- messages --------------------------------------------------------------------------------

    def extend(self, step: Step) -> Program[None]:
        """Take one round of extension: send what others need, keep what they send."""
        me, sizes = self.site.party, self.site.commitments.width
        rows = self.plan.selection.rows(self.block)
        outbox: dict[Party, Message] = {}
        for receiver, terms in (
            (to, terms) for (sender, to), terms in step.items() if sender == me
        ):
            outbox[receiver] = self._message(terms)
        senders = {sender: terms for (sender, to), terms in step.items() if to == me}
        kinds = {sender: self._kind(sender, terms) for sender, terms in senders.items()}
        widths = {sender: sum(map(sizes, terms)) for sender, terms in senders.items()}
        cells = {sender: width * rows + LABEL_BYTES for sender, width in widths.items()}
        inbox = yield Round(outbox, {s: Expect(kinds[s], cells[s]) for s in senders})
        for sender, terms in senders.items():
            shape = (widths[sender], rows)
            values = labelled_elements(inbox[sender], sender, self.ring, shape, self.plan.name)
            self._keep(sender, terms, values)

    def _kind(self, sender: Party, terms: list[Term]) -> type[Masked] | type[Part]:
        return Masked if self.site.commitments.lead(terms[0]) == sender else Part

    def _message(self, terms: list[Term]) -> Message:
        kind = self._kind(self.site.party, terms)
        values = [(self.masked if kind is Masked else self.part)(t) for t in terms]
        return kind(np.concatenate(values), self.plan.name)

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

    # ---- products --------------------------------------------------------------------------------

    def add_products(self, products: Elements) -> None:
        """Add this block's shares of all products: shape (plan.height, columns of the study)."""
        plan = self.plan
        ours = plan.rights_at(self.site.party)
        others = [z for z in plan.rights if z not in ours]
        held = [t for t in plan.lefts if self.holds(t)]
        shared = [z for z in others if self.holds((z,))]
        asked = [t for t in plan.lefts if any(t in plan.lefts_at(plan.lead_of(z)) for z in shared)]
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
        found = self.ring.dot(rows, columns, bits=1 if clear else None)
        at = np.ix_(self.plan.rows_of(terms), self.plan.columns(lasts))
        products[at] += found if sign > 0 else -found

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


def count_tables(site: Holder, plan: Plan, analyst: Party) -> Program[None]:
    """Count the tables of a plan with the other sites and the dealer; open them to the analyst.

    Raises
    ------
    MalformedMessageError
        If a message of a site or of the dealer has a wrong shape.
    """
    ring = site.commitments.ring
    columns = int(site.commitments.offsets[-1])
    products = np.zeros((plan.height, columns), ring.dtype)
    sums = np.zeros(plan.height + columns, ring.dtype)
    for number in plan.selection.blocks:
        block = Block(site, plan, number)
        for step in plan.steps:
            yield from block.extend(step)
        block.add_products(products)
        block.add_sums(sums)
    yield from _correct(site, plan, products)
    ones = plan.selection.records if site.party == plan.parties[0] else 0
    shares = table_shares(plan, products, sums, ones)
    peers = {peer: site.peer_keys[peer] for peer in plan.parties if peer != site.party}
    zeros = zero_share(site.party, peers, ring, plan.name, plan.cells)
    yield from send_share(ring.reduce(shares + zeros), analyst)


def _correct(site: Holder, plan: Plan, products: Elements) -> Program[None]:
    """Add this site's parts of the corrections: from its own stream, or from the dealer."""
    masks = Masks(site.commitments, site.dealer_key, plan.selection)
    others = [z for z in plan.rights if plan.lead_of(z) != site.party]
    shared = [z for z in others if site.party in site.commitments.operands[z].holders]
    for term in plan.lefts:
        places = others if site.party in site.commitments.holders(term) else shared
        if places:
            columns = plan.columns(places)
            products[plan.rows[term], columns] += masks.table_split(term)[:, columns]
    rows = plan.rows_of(plan.dealt_to(site.party))
    columns = plan.columns(plan.rights_at(site.party))
    if rows.size:
        dealer, shape = site.commitments.dealer, (rows.size, columns.size)
        cells = rows.size * columns.size + LABEL_BYTES
        message = (yield Round({}, {dealer: Expect(Correction, cells)}))[dealer]
        dealt = labelled_elements(message, dealer, site.commitments.ring, shape, plan.name)
        products[np.ix_(rows, columns)] += dealt


def open_tables(plan: Plan) -> Program[list[NDArray[np.int64]]]:
    """Add up the sites' shares: the analyst's side.

    Returns
    -------
    tables : list of ndarray, dtype int64
        As `tables_of` orders them.

    Raises
    ------
    MalformedMessageError
        If a site's share has a wrong shape.
    """
    cells = yield from open_sum(plan.parties, plan.commitments.ring, plan.cells)
    return tables_of(plan, cells)
