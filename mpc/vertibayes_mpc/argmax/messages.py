"""The messages of an argmax, each for one part; the programs of the dealer and of the analyst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax.digits import Bits, Masks, both_factors, differences, unit_digits
from vertibayes_mpc.argmax.plan import ArgmaxPlan, Part, packed_bytes
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_bytes
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send


class OneHots(Labelled, kind="one-hots"):
    """From the dealer: XOR shares of one-hot digits of differences, or of one-hot ranks."""


class BitProducts(Labelled, kind="bit products"):
    """From the dealer: XOR shares of products of bits, packed."""


class BitNumbers(Labelled, kind="bit numbers"):
    """From the dealer: additive shares of bits."""


class MaskedScores(Labelled, kind="masked scores"):
    """A site's shares of the values, plus its masks."""


class MaskedBits(Labelled, kind="masked bits"):
    """A site's shares of masked bits, packed."""


class MaskedRanks(Labelled, kind="masked ranks"):
    """A site's shares of the ranks, plus its masks."""


class Winners(Labelled, kind="winners"):
    """A site's XOR shares of the bits of each set's winner, packed."""


class Won(NamedTuple):
    """What is revealed of each set: arrays of shape (sets,)."""

    places: NDArray[np.intp]  # of the highest value in its set
    leads: NDArray[np.bool_]  # whether it exceeds all others by more than the margin


def open_argmax(plan: ArgmaxPlan) -> Program[Won]:
    """Add up the sites' shares of the winners: the analyst's side.

    A MalformedMessageError says that a share has a wrong size; an UnknownFaultyPartyError, that a
    winner is outside its set: a site or the dealer is at fault.
    """
    return add_up(plan, (yield from exchange({}, expected_winners(plan, plan.sites))))


def expected_winners(plan: ArgmaxPlan, senders: Iterable[Party]) -> dict[Party, Expect[Winners]]:
    """Return the bounds of the shares that some sites send."""
    return dict.fromkeys(senders, Expect(Winners, plan.shown_bytes + LABEL_BYTES))


def add_up(plan: ArgmaxPlan, messages: Mapping[Party, Winners]) -> Won:
    """Return the winners from the shares of all sites; errors as of `open_argmax`."""
    name = plan.winners_name
    shares = [labelled_bytes(m, s, plan.shown_bytes, name) for s, m in messages.items()]
    bits = np.unpackbits(reduce(np.bitwise_xor, shares), count=len(plan.sizes) * plan.shown_bits)
    rows = bits.reshape(-1, plan.shown_bits)
    weights = np.left_shift(1, np.arange(plan.rank_bits), dtype=np.intp)
    winners: NDArray[np.intp] = (rows[:, :-1] * weights).sum(axis=1)
    if (winners >= np.array(plan.sizes, np.intp)).any():
        reason = "a winner outside its set: one of them or the dealer lies, or a score is too large"
        raise UnknownFaultyPartyError(plan.sites, reason)
    return Won(winners, rows[:, -1].astype(np.bool_))


def deal_argmax(keys: Mapping[Party, Stream], plan: ArgmaxPlan) -> Program[None]:
    """Deal what the sites need to find the highest values; expect nothing."""
    dealer, first = _Dealer(keys, plan), plan.sites[0]
    rho = dealer.scores()
    for part in plan.pair_parts:
        name = plan.name("pairs", part.number)
        yield from send({first: OneHots(plan.digit_ring.pack(dealer.digits(part, rho)), name)})
        yield from send({first: BitProducts(dealer.products(part).ravel(), name)})
        yield from send({first: BitNumbers(plan.rank_ring.pack(dealer.numbers(part)), name)})
    for part in plan.value_parts:
        one_hots = plan.one_hot_ring.pack(dealer.one_hots(part))
        yield from send({first: OneHots(one_hots, plan.name("values", part.number))})


class _Dealer:
    """The masks of all sites, the first site's first."""

    def __init__(self, keys: Mapping[Party, Stream], plan: ArgmaxPlan) -> None:
        self.plan, self.masks = plan, [Masks(keys[site], plan) for site in plan.sites]
        self.others = self.masks[1:]

    def scores(self) -> Elements:
        """Return rho, the sum of all sites' masks of the values."""
        return self.plan.ring.reduce(reduce(np.add, [m.scores() for m in self.masks]))

    def digits(self, part: Part, rho: Elements) -> Elements:
        """Return the first site's shares of the one-hot digits of rho_i - rho_j."""
        one_hots = unit_digits(self.plan, differences(self.plan, rho, part))
        return reduce(np.bitwise_xor, (m.digits(part) for m in self.others), one_hots)

    def products(self, part: Part) -> Bits:
        """Return the first site's shares of the products of masks, level after level."""
        levels = range(len(self.plan.levels))
        width = packed_bytes(self.plan.bits_of(part))
        none = np.zeros((0, width), np.uint8)  # one digit is joined with no other
        return np.concatenate([none, *(self._products(part, level) for level in levels)])

    def _products(self, part: Part, level: int) -> Bits:
        left = reduce(np.bitwise_xor, [m.left(part, level) for m in self.masks])
        right = reduce(np.bitwise_xor, [m.right(part, level) for m in self.masks])
        whole = both_factors(left) & right
        return reduce(np.bitwise_xor, [m.products(part, level) for m in self.others], whole)

    def numbers(self, part: Part) -> Elements:
        """Return the first site's additive shares of the bits beta."""
        flips = reduce(np.bitwise_xor, [m.flip(part) for m in self.masks])
        beta = np.unpackbits(flips[0], count=self.plan.bits_of(part))
        beta = beta.astype(self.plan.rank_ring.dtype)
        numbers = reduce(np.subtract, [m.numbers(part) for m in self.others], beta)
        return self.plan.rank_ring.reduce(numbers)

    def one_hots(self, part: Part) -> Elements:
        """Return the first site's shares of the one-hot masks of ranks."""
        ring = self.plan.one_hot_ring
        q = self.plan.rank_ring.reduce(reduce(np.add, [m.ranks(part) for m in self.masks]))
        word, bit = np.divmod(q.astype(np.intp), ring.bits)
        one_hots = np.zeros((self.plan.rank_words, part.size), ring.dtype)
        one_hots[word, np.arange(part.size)] = ring.dtype.type(1) << bit.astype(ring.dtype)
        return reduce(np.bitwise_xor, [m.one_hots(part) for m in self.others], one_hots)
