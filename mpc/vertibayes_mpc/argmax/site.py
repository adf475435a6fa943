"""A site's program: mask the scores, compare all pairs, rank the values, and send the winners."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax.digits import (
    Bits,
    Masks,
    both_factors,
    compare,
    differences,
    packed,
    shifted,
    top_bit,
)
from vertibayes_mpc.argmax.messages import (
    BitNumbers,
    BitProducts,
    MaskedBits,
    MaskedRanks,
    MaskedScores,
    OneHots,
    Winners,
    Won,
    add_up,
    expected_winners,
)
from vertibayes_mpc.argmax.plan import ArgmaxPlan, Part, RankPlan, packed_bytes
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.labelled import Labelled, expected, labelled_elements, receive
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party, Program, exchange
from vertibayes_mpc.sharing import zero_share


def argmax(site: Holder, plan: ArgmaxPlan, scores: Elements, analyst: Party) -> Program[Won]:
    """Find the highest value of each set with the other sites and the dealer.

    `scores` are this site's shares of the scores of all sets, one set after the other: shape
    (values,), in `plan.ring`; `analyst` runs `open_argmax`. Returns what it returns; of equal
    values, the first wins. Errors are its errors, and a DealReusedError if an argmax of this label
    was begun before.
    """
    if scores.shape != (plan.values,) or scores.dtype != plan.ring.dtype:
        given = f"shape {scores.shape} and type {scores.dtype}"
        raise ValueError(f"scores must be {plan.values} of type {plan.ring.dtype}, got {given}")
    site.use(plan.digest)
    if plan.is_shared:
        contest = _Contest(site, plan)
        wins = yield from contest.wins((yield from contest.ranks(scores)))
    else:
        wins = _wins(plan, scores)
    return (yield from _show(site, plan, _shown(plan, wins), analyst))


def share_ranks(site: Holder, plan: RankPlan, values: Elements) -> Program[Elements]:
    """Share how many other values of its set each set's first value equals or exceeds.

    `values` are as the scores of `argmax`. Returns this site's shares in `plan.rank_ring`, of shape
    (sets,).
    """
    site.use(plan.digest)
    if plan.is_shared:
        return (yield from _Contest(site, plan).ranks(values))[plan.starts]
    half = values.dtype.type(1 << (plan.ring.bits - 1))
    firsts = np.repeat(values[plan.starts], plan.sizes)
    reached = plan.ring.reduce(firsts - values) < half
    counts = np.add.reduceat(reached.astype(np.int64), plan.starts) - 1  # itself
    return plan.rank_ring.reduce(counts.astype(plan.rank_ring.dtype))


def _shown(plan: ArgmaxPlan, wins: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return shares of each winner's place, and above its bits of whether it leads."""
    first, leads = wins.reshape(-1, 2).T
    values = first * plan.places | leads.astype(np.intp) << plan.rank_bits
    return np.asarray(np.bitwise_xor.reduceat(values, plan.starts))


def _wins(plan: ArgmaxPlan, values: Elements) -> NDArray[np.bool_]:
    """Return of each value whether it wins its set, and whether it leads."""
    half = values.dtype.type(1 << (plan.ring.bits - 1))
    firsts = np.repeat(values[plan.starts], plan.sizes)  # differences fit the ring: values may not
    ordered = plan.ring.reduce(values - firsts + half)  # in the order of the signed numbers
    highest = np.maximum.reduceat(ordered, plan.starts) if plan.sizes else ordered
    below = np.repeat(highest, plan.sizes) - ordered
    equal, near = below == 0, below <= plan.margin
    before = np.cumsum(equal) - equal  # of all sets: how many were as high as the highest
    first = equal & (before == np.repeat(before[plan.starts], plan.sizes))
    alone = np.add.reduceat(near.astype(np.intp), plan.starts) == 1
    return np.stack([first, first & np.repeat(alone, plan.sizes)], axis=1).ravel()


class _Contest:
    """One site's part in comparing the values that several sites share."""

    def __init__(self, site: Holder, plan: ArgmaxPlan) -> None:
        self.site, self.plan, self.dealer = site, plan, site.commitments.dealer
        self.masks = Masks(site.dealer_key, plan)
        self.first = site.party == plan.sites[0]
        self.others = [peer for peer in plan.sites if peer != site.party]

    def ranks(self, values: Elements) -> Program[Elements]:
        """Return shares of how many of its set each value wins against, and how many it leads."""
        plan, masked = self.plan, (yield from self._masked(values))
        ranks = np.zeros((plan.ranks, plan.values), np.int64)
        for part in plan.pair_parts:
            i, j = plan.pairs_of(part)
            below = yield from self._below(part, differences(plan, masked, part))
            first, *lead = below.reshape(part.size, -1).T
            for rank, (not_i, is_j) in zip(ranks, ((first, first), lead), strict=False):
                rank += _sums(j, is_j, plan.values) - _sums(i, not_i, plan.values)
        if self.first:
            ranks += plan.compared  # in each pair, i wins or leads unless it is said not to
        return plan.rank_ring.reduce(ranks.T.ravel().astype(plan.rank_ring.dtype))

    def _masked(self, values: Elements) -> Program[Elements]:
        """Reveal the masked values to the sites."""
        ring = self.plan.ring
        ours = ring.reduce(values + self.masks.scores())
        shares = yield from self._all(MaskedScores, ours, ring, self.plan.name("scores"))
        return ring.reduce(reduce(np.add, shares))

    def _below(self, part: Part, d: Elements) -> Program[Elements]:
        """Return additive shares, in the ring of ranks, of x_i - x_j + threshold < 0."""
        plan, d = self.plan, shifted(self.plan, d)
        one_hots = np.repeat((yield from self._digits(part)), len(plan.thresholds), axis=1)
        bits, sign = compare(plan, one_hots, d)
        if self.first:
            sign = sign ^ top_bit(plan, d)
        products = yield from self._products(part)
        for level, pairs in enumerate(plan.levels):
            joined = yield from self._and(part, level, *bits.factors(pairs), products[level])
            bits = bits.joined(joined, pairs)
        return (yield from self._as_numbers(part, bits.less ^ sign))

    def _digits(self, part: Part) -> Program[Elements]:
        """Return shares of the one-hot digits of the differences of masks."""
        if not self.first:
            return self.masks.digits(part)
        shape, name = (self.plan.digits, part.size), self.plan.name("pairs", part.number)
        return (yield from receive(OneHots, self.dealer, self.plan.digit_ring, shape, name))

    def _products(self, part: Part) -> Program[list[Bits]]:
        """Return shares of the products of masks, for each level."""
        plan = self.plan
        if not self.first:
            return [self.masks.products(part, level) for level in range(len(plan.levels))]
        rows = [2 * pairs - 1 for pairs in plan.levels]
        shape = sum(rows), packed_bytes(plan.bits_of(part))
        name = plan.name("pairs", part.number)
        dealt = yield from receive(BitProducts, self.dealer, Ring(8), shape, name)
        return np.split(dealt.astype(np.uint8, copy=False), np.cumsum(rows)[:-1])

    def _and(
        self, part: Part, level: int, left: Bits, right: Bits, products: Bits
    ) -> Program[Bits]:
        """Return shares of the products of left and right factors; a left one has one or two."""
        a, b = self.masks.left(part, level), self.masks.right(part, level)
        name = self.plan.name("level", part.number, level)
        opened = yield from self._open(np.concatenate([left ^ a, right ^ b]), name)
        u, v = both_factors(opened[: len(left)]), opened[len(left) :]
        share = (u & b) ^ (v & both_factors(a)) ^ products
        return share ^ (u & v) if self.first else share

    def _as_numbers(self, part: Part, bits: Bits) -> Program[Elements]:
        """Return additive shares, in the ring of ranks, of bits of which this is a share."""
        ring, name = self.plan.rank_ring, self.plan.name("pairs", part.number)
        count = self.plan.bits_of(part)
        if self.first:
            numbers = yield from receive(BitNumbers, self.dealer, ring, (count,), name)
        else:
            numbers = self.masks.numbers(part)
        flipped = yield from self._open(bits ^ self.masks.flip(part), name)
        flips = np.unpackbits(flipped[0], count=count).astype(ring.dtype)
        numbers = np.where(flips, -numbers, numbers)  # where flips is 1, the bit is 1 - beta
        return ring.reduce(numbers + flips if self.first else numbers)

    def wins(self, ranks: Elements) -> Program[NDArray[np.bool_]]:
        """Return this site's XOR shares of whether each ranked value has the highest rank."""
        wins = np.zeros(len(ranks), np.bool_)
        for part in self.plan.value_parts:
            at = slice(part.start, part.stop)
            wins[at] = yield from self._is_highest(part, ranks[at])
        return wins

    def _is_highest(self, part: Part, ranks: Elements) -> Program[NDArray[np.bool_]]:
        """Return shares of the bits that say whether a value has the highest rank of its set."""
        plan, ring = self.plan, self.plan.rank_ring
        name = plan.name("values", part.number)
        ours = ring.reduce(ranks + self.masks.ranks(part))
        shares = yield from self._all(MaskedRanks, ours, ring, name)
        lasts = np.repeat(plan.lasts, plan.ranks)[part.start : part.stop].astype(ring.dtype)
        place = ring.reduce(reduce(np.add, shares) - lasts).astype(np.intp)
        if self.first:
            shape = plan.rank_words, part.size
            one_hots = yield from receive(OneHots, self.dealer, plan.one_hot_ring, shape, name)
        else:
            one_hots = self.masks.one_hots(part)
        word, bit = np.divmod(place, plan.one_hot_ring.bits)
        words = one_hots[word, np.arange(part.size)]
        return (words >> bit.astype(words.dtype) & words.dtype.type(1)).astype(np.bool_)

    def _open(self, bits: Bits, name: bytes) -> Program[Bits]:
        """Return the XOR of all sites' bits."""
        shares = yield from self._all(MaskedBits, bits, Ring(8), name)
        return reduce(np.bitwise_xor, shares).astype(np.uint8, copy=False)

    def _all(
        self, kind: type[Labelled], ours: Elements, ring: Ring, name: bytes
    ) -> Program[list[Elements]]:
        """Send elements to all other sites; return theirs and ours."""
        outbox = dict.fromkeys(self.others, kind(ring.pack(ours), name))
        expect = dict.fromkeys(self.others, expected(kind, ring, ours.size))
        received = yield from exchange(outbox, expect)
        theirs = (labelled_elements(m, s, ring, ours.shape, name) for s, m in received.items())
        return [ours, *theirs]


def _sums(places: NDArray[np.intp], numbers: Elements, count: int) -> NDArray[np.int64]:
    """Add up the numbers of each value: exactly, since their sums stay below 2^53."""
    return np.bincount(places, numbers, count).astype(np.int64)


def _show(site: Holder, plan: ArgmaxPlan, share: NDArray[np.intp], analyst: Party) -> Program[Won]:
    """Send this site's share of the winners to the analyst and all sites; add up all shares."""
    bits = (share[:, None] >> np.arange(plan.shown_bits) & 1).astype(np.uint8).ravel()
    peers = {peer: site.peer_keys[peer] for peer in plan.sites if peer != site.party}
    bits ^= zero_share(site.party, peers, Ring(1), plan.name("zero"), len(bits))
    ours = Winners(packed(bits), plan.winners_name)
    outbox = dict.fromkeys((analyst, *peers), ours)
    received = yield from exchange(outbox, expected_winners(plan, peers))
    return add_up(plan, {site.party: ours, **received})
