"""The messages of an argmax, each for one part; and the analyst, who adds up shares of winners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax.plan import ArgmaxPlan, packed_bytes
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_bytes
from vertibayes_mpc.rounds import Expect, Party, Program, exchange


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
    """A site's XOR shares of the bits of each set's winner, or of a star, packed."""


def open_argmax(plan: ArgmaxPlan) -> Program[NDArray[np.intp]]:
    """Add up the sites' shares of the winners: the analyst's side.

    Returns
    -------
    winners : ndarray of shape (sets,), dtype intp
        The place of each set's highest value in its set; of a `StarPlan`, 1 if the winner exceeds
        all others by more than the margin, otherwise 0.

    Raises
    ------
    MalformedMessageError
        If a site's share has a wrong size.
    UnknownFaultyPartyError
        If a winner is outside its set: a site or the dealer is at fault.
    """
    return add_up(plan, (yield from exchange({}, expected_winners(plan, plan.sites))))


def expected_winners(plan: ArgmaxPlan, senders: Iterable[Party]) -> dict[Party, Expect[Winners]]:
    """Return the bounds of the shares that some sites send."""
    return dict.fromkeys(senders, Expect(Winners, _size(plan) + LABEL_BYTES))


def add_up(plan: ArgmaxPlan, messages: Mapping[Party, Winners]) -> NDArray[np.intp]:
    """Return the winners from the shares of all sites; errors as of `open_argmax`."""
    name = plan.winners_name
    shares = [labelled_bytes(m, s, _size(plan), name) for s, m in messages.items()]
    bits = np.unpackbits(reduce(np.bitwise_xor, shares), count=len(plan.sizes) * plan.shown_bits)
    weights = np.left_shift(1, np.arange(plan.shown_bits), dtype=np.intp)
    winners: NDArray[np.intp] = (bits.reshape(-1, plan.shown_bits) * weights).sum(axis=1)
    if (winners >= np.array(plan.sizes, np.intp)).any():
        reason = "a winner outside its set: one of them or the dealer lies, or a score is too large"
        raise UnknownFaultyPartyError(plan.sites, reason)
    return winners


def _size(plan: ArgmaxPlan) -> int:
    return packed_bytes(len(plan.sizes) * plan.shown_bits)
