"""The dealer's program: the first site's shares of one-hots, products and numbers.

The dealer holds no data and receives none. Its messages are functions of the streams that it
shares with the sites, under labels that follow from the public plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from mpc.argmax.digits import both_factors, differences, unit_digits
from mpc.argmax.masks import Bits, Masks
from mpc.argmax.messages import BitNumbers, BitProducts, OneHots
from mpc.argmax.plan import ArgmaxPlan, Part
from mpc.randomness import Stream
from mpc.ring import Elements
from mpc.rounds import Party, Program, send


def deal_argmax(keys: Mapping[Party, Stream], plan: ArgmaxPlan) -> Program[None]:
    """Deal what the sites need to find the highest values; expect nothing.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each site.
    plan : ArgmaxPlan
        The plan of the argmax.
    """
    dealer, first = _Dealer(keys, plan), plan.sites[0]
    rho = dealer.sum(Masks.scores)
    for part in plan.pair_parts:
        one_hots = unit_digits(plan, differences(plan, rho, part))
        name = plan.name("pairs", part.number)
        digits = dealer.rest(lambda masks, at=part: masks.digits(at), one_hots)
        yield from send({first: OneHots(digits, name)})
        yield from send({first: BitProducts(dealer.products(part), name)})
        yield from send({first: BitNumbers(dealer.numbers(part), name)})
    for part in plan.value_parts:
        yield from send({first: OneHots(dealer.one_hots(part), plan.name("values", part.number))})


class _Dealer:
    """The masks of all sites, the first site's first."""

    def __init__(self, keys: Mapping[Party, Stream], plan: ArgmaxPlan) -> None:
        self.plan, self.masks = plan, [Masks(keys[site], plan) for site in plan.sites]

    def sum(self, drawn: Callable[[Masks], Elements]) -> Elements:
        """Add up what all sites draw; the caller reduces the sum."""
        return reduce(np.add, map(drawn, self.masks))

    def xor(self, drawn: Callable[[Masks], Bits]) -> Bits:
        """Return the XOR of what all sites draw."""
        return reduce(np.bitwise_xor, map(drawn, self.masks))

    def rest(self, drawn: Callable[[Masks], Elements], whole: Elements) -> Elements:
        """Return the first site's XOR share: the whole without the shares of the other sites."""
        return reduce(np.bitwise_xor, map(drawn, self.masks[1:]), whole)

    def products(self, part: Part) -> Bits:
        """Return the first site's shares of the products of masks, level after level."""
        return np.concatenate(
            [np.zeros((0, part.packed), np.uint8)]
            + [self._products(part, level) for level in range(len(self.plan.levels))]
        )

    def _products(self, part: Part, level: int) -> Bits:
        left = self.xor(lambda masks: masks.left(part, level))
        right = self.xor(lambda masks: masks.right(part, level))
        return self.rest(lambda masks: masks.products(part, level), both_factors(left) & right)

    def numbers(self, part: Part) -> Elements:
        """Return the first site's additive shares of the bits beta."""
        beta = np.unpackbits(self.xor(lambda masks: masks.flip(part))[0], count=part.size)
        ring = self.plan.rank_ring
        others = (masks.numbers(part) for masks in self.masks[1:])
        return ring.reduce(reduce(np.subtract, others, beta.astype(ring.dtype)))

    def one_hots(self, part: Part) -> Elements:
        """Return the first site's shares of the one-hot masks of ranks."""
        plan = self.plan
        q = plan.rank_ring.reduce(self.sum(lambda masks: masks.ranks(part))).astype(np.intp)
        one_hots = np.zeros((plan.rank_words, part.size), plan.one_hot_ring.dtype)
        word, bit = np.divmod(q, plan.one_hot_ring.bits)
        one_hots[word, np.arange(part.size)] = np.left_shift(
            plan.one_hot_ring.dtype.type(1), bit.astype(plan.one_hot_ring.dtype)
        )
        return self.rest(lambda masks: masks.one_hots(part), one_hots)
