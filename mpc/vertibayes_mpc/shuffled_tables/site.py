"""A site's program: add noise, shuffle, drop incomplete records, reveal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.labelled import Labelled, Piece, exchange_arrays
from vertibayes_mpc.ring import Elements, Packed, Ring
from vertibayes_mpc.rounds import Party, Program, send
from vertibayes_mpc.sharing import zero_share
from vertibayes_mpc.shuffled_tables.plan import (
    Codes,
    Masks,
    Noise,
    Shuffled,
    ShuffledTable,
    ShufflePlan,
    Streams,
    Tags,
)


def count_shuffled(site: Holder, plan: ShufflePlan, analyst: Party) -> Program[None]:
    """Count the tables of a plan with the other sites and the dealer; reveal them to the analyst.

    The analyst runs `open_shuffled`. A DealReusedError says that a query of this number, or a later
    one, was counted by shuffle before; a MalformedMessageError, that a message has a wrong size.
    """
    site.begin("shuffle", plan.number)
    chains = _Chains(site, plan)
    yield from chains.gather_noise()
    for hop in range(plan.longest - 1):
        yield from chains.hand_on(hop)
    yield from chains.take_masks()
    yield from chains.drop_incomplete()
    yield from send({analyst: chains.opened()})


class _Chains:
    """One site's part in the chains of all tables."""

    def __init__(self, site: Holder, plan: ShufflePlan) -> None:
        self.site, self.plan, self.me = site, plan, site.party
        self.records = plan.selection.records
        self.streams = Streams(site.dealer_key, plan)
        self.mine = [table for table in plan.shuffled if self.me in table.chain]
        self.carried: dict[int, list[Elements]] = {}
        self.masks: dict[int, list[Elements]] = {}
        self.places: dict[int, NDArray[np.intp]] = {}
        self._columns: dict[tuple[str, int], Elements] = {}

    def column(self, name: str, place: int) -> Elements:
        """Return an operand's codes or flags under the others' masks; own ones are in the clear."""
        if (name, place) not in self._columns:
            self._columns[name, place] = self._column(name, place)
        return self._columns[name, place]

    def _column(self, name: str, place: int) -> Elements:
        site, whole = self.site, self.plan.selection.whole
        form, holders = site.commitments.form(name, place), site.commitments.operands[place].holders
        if holders == (self.me,):
            return whole(lambda block: site.clear(form, place, block))
        masked = whole(lambda block: site.masked[form.name, place, block])
        if self.me not in holders:
            return masked
        return masked - whole(lambda block: site.mask(form, place, block))

    def joint_codes(self, table: ShuffledTable) -> Elements:
        """Return the joint codes under the masks of all other holders."""
        total = np.zeros(self.records, table.ring.dtype)
        for place, stride in zip(table.members, table.strides, strict=True):
            codes = self.column("codes", place).astype(total.dtype, copy=False)
            total += codes * total.dtype.type(stride)
        return total

    def noise(self, table: ShuffledTable) -> Elements:
        """Return this site's noise: uniform where a value is missing, without the site's key."""
        total = np.zeros(self.records, self.plan.commitments.flag_ring.dtype)
        for place in table.dropping:
            total += self.streams.noise(table, place) * self.column("flags", place)
        return total

    def gather_noise(self) -> Program[None]:
        """Send noises to the first of each chain, which adds them up."""
        if not self.plan.dropping:
            return
        ring = self.plan.commitments.flag_ring
        mine = [table for table in self.mine if table.dropping]
        outbox = self._outbox(
            [t for t in mine if t.chain[0] != self.me],
            lambda t: [(t.chain[0], ring, self.noise(t) + self.streams.noise_mask(t))],
        )
        first = [table for table in mine if table.chain[0] == self.me]
        senders = {h: [t for t in first if h in t.chain] for h in self.plan.parties if h != self.me}
        noises = yield from self._exchange(outbox, Noise, senders, lambda _: [ring])
        for table in first:
            self.carried[table.index] = [self.joint_codes(table), self.noise(table)]
        for table, (noise,) in noises:
            self.carried[table.index][1] += noise

    def hand_on(self, hop: int) -> Program[None]:
        """Shuffle the tables that are at this site, and receive those of the site before."""
        here = [t for t in self.mine if len(t.chain) > hop + 1 and t.chain[hop] == self.me]
        outbox = self._outbox(
            here,
            lambda t: [
                (t.chain[hop + 1], ring, vector)
                for ring, vector in zip(self.plan.rings(t), self.shuffled(t), strict=True)
            ],
        )
        coming = [t for t in self.mine if len(t.chain) > hop + 1 and t.chain[hop + 1] == self.me]
        senders = {h: [t for t in coming if t.chain[hop] == h] for h in self.plan.parties}
        for table, vectors in (
            yield from self._exchange(outbox, Shuffled, senders, self.plan.rings)
        ):
            self.carried[table.index] = vectors

    def shuffled(self, table: ShuffledTable) -> list[Elements]:
        """Return the vectors of a table that this site sends on: in its order, under its masks."""
        vectors = self.carried.pop(table.index, None) or [self.joint_codes(table)]
        order, masks = self.streams.order(table), self.streams.masks(table)
        return [vector[order] + mask for vector, mask in zip(vectors, masks, strict=True)]

    def take_masks(self) -> Program[None]:
        """Receive the dealer's masks; shuffle the tables whose chains end here."""
        flag_ring = self.plan.commitments.flag_ring

        def rings(table: ShuffledTable) -> list[Ring]:
            codes = [table.ring] if table.chain[0] == self.me else []
            return codes + [flag_ring] * bool(table.dropping)

        dealt = [table for table in self.mine if rings(table)]
        dealer = self.plan.commitments.dealer
        for table, vectors in (yield from self._exchange({}, Masks, {dealer: dealt}, rings)):
            self.masks[table.index] = vectors
        for table in self.mine:
            if table.chain[-1] == self.me:
                self.carried[table.index] = self.shuffled(table)

    def drop_incomplete(self) -> Program[None]:
        """Reveal the tags to all holders, who keep the records whose tag is 0."""
        if not self.plan.dropping:
            return
        ring = self.plan.commitments.flag_ring
        dropping = [table for table in self.mine if table.dropping]
        outbox = self._outbox(
            [table for table in dropping if table.chain[-1] == self.me],
            lambda t: [(to, ring, self.carried[t.index][1]) for to in t.chain if to != self.me],
        )
        senders = {
            h: [t for t in dropping if t.chain[-1] == h] for h in self.plan.parties if h != self.me
        }
        for table, (tags,) in (yield from self._exchange(outbox, Tags, senders, lambda _: [ring])):
            self._keep_complete(table, tags)
        for table in dropping:
            if table.chain[-1] == self.me:
                self._keep_complete(table, self.carried[table.index][1])

    def _keep_complete(self, table: ShuffledTable, masked_tags: Elements) -> None:
        tags = self.plan.commitments.flag_ring.reduce(masked_tags - self.masks[table.index][-1])
        self.places[table.index] = np.flatnonzero(tags == 0)

    def opened(self) -> Codes:
        """Return this site's shares of its tables, and the tables that it counts alone."""
        vectors = [
            self.site.commitments.ring.pack(self._counted(table))
            if table.is_local
            else table.ring.pack(self._padded(self._share(table)))
            for table in self.plan.tables
            if self.me in table.chain
        ]
        values = np.concatenate([np.zeros(0, np.uint8), *vectors])
        complete = [len(self.places[table.index]) for table in self.mine if table.dropping]
        return Codes(values, np.array(complete, np.uint32))

    def _share(self, table: ShuffledTable) -> Elements:
        """Return sigma of this site's share of the codes, plus a zero share."""
        number, share = table.index, np.zeros((), table.ring.dtype)
        if table.chain[0] == self.me:
            share = share - self.masks.pop(number)[0]
        else:
            share = share - self.streams.share(table)
        if table.chain[-1] == self.me:
            share = share + self.carried.pop(number)[0]
        chosen = share[self.places[number]] if number in self.places else share
        seal = Streams(self.site.sites_key, self.plan)
        peers = {peer: self.site.peer_keys[peer] for peer in table.chain if peer != self.me}
        zeros = zero_share(self.me, peers, table.ring, seal.label("zero", table), len(chosen))
        sealed: Elements = chosen[seal.seal(table, len(chosen))] + zeros
        return sealed

    def _padded(self, share: Elements) -> Elements:
        """Pad with zeros: the length must not show the carrier how many records are complete."""
        padded = np.zeros(self.records, share.dtype)
        padded[: len(share)] = share
        return padded

    def _counted(self, table: ShuffledTable) -> Elements:
        """Count a table that this site alone holds."""
        codes = self.joint_codes(table)
        if table.dropping:
            lengths = dict(zip(table.members, table.shape, strict=True))
            known = [self.column("codes", place) < lengths[place] for place in table.dropping]
            codes = codes[np.logical_and.reduce(known)]
        counts = np.bincount(codes, minlength=table.cells)
        return counts.astype(self.site.commitments.ring.dtype)

    def _outbox(
        self,
        tables: Sequence[ShuffledTable],
        sent: Callable[[ShuffledTable], list[tuple[Party, Ring, Elements]]],
    ) -> dict[Party, Packed]:
        """Return what each receiver is sent: its vectors of each table."""
        pieces: dict[Party, list[Packed]] = {}
        for table in tables:
            for to, ring, vector in sent(table):
                pieces.setdefault(to, []).append(ring.pack(vector))
        return {to: np.concatenate(packed) for to, packed in pieces.items()}

    def _exchange(
        self,
        outbox: dict[Party, Packed],
        kind: type[Labelled],
        senders: dict[Party, list[ShuffledTable]],
        rings: Callable[[ShuffledTable], Sequence[Ring]],
    ) -> Program[Iterator[tuple[ShuffledTable, list[Elements]]]]:
        """Send messages, and return those of `senders`: of each table a vector for each ring."""
        layouts = {
            sender: [Piece(ring, (self.records,)) for table in tables for ring in rings(table)]
            for sender, tables in senders.items()
            if tables
        }
        received = yield from exchange_arrays(kind, self.plan.label, outbox, layouts)
        return (
            (table, [next(vectors) for _ in rings(table)])
            for sender, vectors in received.items()
            for table in senders[sender]
        )
