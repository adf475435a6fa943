"""Exhaustively, on tiny rings: what coalitions see of an argmax is simulated from the winners.

Coalitions are the analyst with all sites but one, the honest site, and the dealer with the analyst.
Beside them the unsafe variants, each without one mask, which the same test must reject.

One run has all settings of the secret streams beside each other, each in a set of its own, since
the program treats sets alike (`tests.privacy.shuffle_simulation` has the streams). A honest site
that is not the first draws its shares of what is dealt: sets of two values in Z_4 then have 2^19
settings. Larger cases are shown in stages. The messages of a stage depend on the honest site's
shares, on what was revealed, and on masks that no other stage uses; the stages are the masked
scores with the dealt digits, each level of joined digits, the flipped bits, and the ranks with the
winners. If the messages of each stage have one distribution for all shares that the honest site may
have, a simulator draws stage after stage: levels and pairs repeat stages that are enumerated here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import pytest

import mpc.argmax.site
from mpc.argmax import ArgmaxPlan, argmax, deal_argmax, open_argmax
from mpc.argmax.masks import Masks
from mpc.argmax.messages import BitProducts, MaskedBits, Winners
from mpc.argmax.site import _Contest, _show
from mpc.ring import Ring
from mpc.scheduler import run_all
from tests.mpc.test_argmax import shares_of, sites_of
from tests.privacy.shuffle_simulation import (
    MOST_SETTINGS,
    KnownStream,
    Secret,
    SecretStream,
    counted,
)
from tests.privacy.simulation import has_choices, is_simulatable

pytestmark = pytest.mark.laws


class Case(NamedTuple):
    """Who shares sets of how many values, in which ring; without an honest site, the dealer looks.

    levels: the values that each of the honest site's shares takes. tail: only ranks and winners are
    computed, and the shares are those of ranks.
    """

    sites: int
    honest: str = ""
    size: int = 2
    bits: int = 2
    digit_bits: int = 1
    levels: tuple = (0, 1)
    tail: bool = False
    salt: str = ""

    def is_secret(self, pair):
        """Whether the coalition does not know the key of a pair."""
        return set(pair) == {self.honest, "dealer"} if self.honest else "dealer" not in pair

    def is_seen(self, sent):
        """Whether the coalition is sent a message, by one who is not of it."""
        if not self.honest:
            return sent.receiver == "analyst"
        return sent.receiver != self.honest and sent.sender in (self.honest, "dealer")

    def data(self):
        """Return all shares that the honest site, or the first site, may have."""
        shares = map(np.array, product(self.levels, repeat=self.size))
        if not self.tail:
            return list(shares)
        known = sum(self.known_ranks(s) for s in range(1, self.sites))
        return [np.array(ranks) - known for ranks in permutations(range(self.size))]

    def known_ranks(self, seed):
        """Return the shares of ranks of a site that is not honest."""
        return np.random.default_rng(seed).integers(0, 4, self.size)


def run(case, share, secret):
    """Run all settings, each in a set; return the winner and the views: shape (settings, n)."""
    settings = secret.settings

    def stream(*pair):
        known = KnownStream(secret, pair, case.salt)
        return SecretStream(secret, pair) if case.is_secret(pair) else known

    w = sites_of(case.sites, stream)
    plan = ArgmaxPlan(
        b"query", tuple(w.holders), (case.size,) * settings, Ring(case.bits), case.digit_bits
    )
    varied, others = case.honest or plan.sites[0], iter(range(1, case.sites))
    ring = plan.rank_ring if case.tail else plan.ring
    programs = {}
    for site in plan.sites:
        mine = share if site == varied else case.known_ranks(next(others))
        shares = ring.reduce(np.tile(mine, settings).astype(np.int64).astype(ring.dtype))
        program = tail if case.tail else argmax
        programs[site] = program(w.holders[site], plan, shares, "analyst")
    programs["dealer"] = deal_argmax(w.dealer_keys, plan)
    programs["analyst"] = open_argmax(plan)
    outputs, transcript = run_all(programs)
    (winner,) = set(outputs["analyst"].tolist())
    seen = sorted(filter(case.is_seen, transcript), key=lambda s: (s.sender, s.receiver, s.depth))
    views = [elements_of(plan, s.message, settings) for s in seen]
    return winner, np.concatenate(views, axis=1)


def tail(site, plan, ranks, analyst):
    """Find the winners from shares of ranks: the last stage. The dealer deals no pairs."""
    share = yield from _Contest(site, plan).winners(ranks)
    return (yield from _show(site, plan, share, analyst))


def elements_of(plan, message, settings):
    """Return a message's elements for each setting."""
    values = message.values
    if isinstance(message, Winners):
        values = np.unpackbits(values, count=settings * plan.tie_bits)
    elif isinstance(message, MaskedBits | BitProducts):
        values = np.unpackbits(values, axis=-1, count=plan.pairs)
    rows = values.reshape(-1, settings, values.shape[-1] // settings)
    return rows.swapaxes(0, 1).reshape(settings, -1)


def distributions(case):
    """Return {winner: [distribution of the view, one for each data of this winner]}."""
    first = Secret()
    run(case, case.data()[0], first)
    settings = math.prod(first.sizes.values())
    assert 1 < settings <= MOST_SETTINGS
    values, before = {}, 1
    for key, size in first.sizes.items():
        values[key] = (np.arange(settings) // before % size).astype(np.uint8)
        before *= size
    views = defaultdict(list)
    for share in case.data():
        winner, view = run(case, share, Secret(settings, values))
        views[winner].append(counted(view))
    return views


CASES = {
    "two sites, first": Case(2, "a"),
    "two sites, last": Case(2, "b", digit_bits=2),
    "three sites, first": Case(3, "a", digit_bits=2),
    "three sites, second": Case(3, "b", digit_bits=2),
    "three sites, last": Case(3, "c", digit_bits=2),
    "two sites, last, joined digits": Case(2, "b"),
    "a digit left over": Case(2, "a", bits=3, levels=(0, 3)),
    "two levels of digits": Case(2, "a", bits=4, levels=(0, 5)),
    "three values, first": Case(2, "a", 3, 3, 3),
    "three values, last, ranks": Case(2, "b", 3, 3, tail=True),
    "dealer and analyst": Case(2, bits=4, digit_bits=4, size=3),
    "dealer and analyst, three sites": Case(3, bits=4, digit_bits=4, size=3),
}


@pytest.fixture(autouse=True)
def no_pairs_where_ranks_are_given(request, monkeypatch):
    """The dealer deals no pairs for the last stage alone."""
    if "ranks" in request.node.name:
        monkeypatch.setattr(ArgmaxPlan, "pair_parts", property(lambda _: iter(())))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_view_is_simulated_from_the_winners(case):
    views = distributions(case)
    assert has_choices(views)
    assert is_simulatable(views)


# ---- unsafe variants, which must be rejected -----------------------------------------------------


def is_rejected(case):
    """Whether the view of the coalition, with some streams of its own, is not simulatable."""
    return any(not is_simulatable(distributions(case._replace(salt=s))) for s in "012")


def without(monkeypatch, name, row=slice(None)):
    """Leave out a mask, or a row of it: zeros in its place, for the sites and the dealer."""
    drawn = getattr(Masks, name)

    def zeros(masks, *parts):
        values = drawn(masks, *parts)
        values[row] = 0
        return values

    monkeypatch.setattr(Masks, name, zeros)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("scores", "two sites, first"),
        ("left", "two sites, first"),
        ("right", "two sites, first"),
        ("flip", "two sites, first"),
        ("ranks", "two sites, first"),
        ("digits", "two sites, last"),
        ("numbers", "two sites, last"),
        ("one_hots", "two sites, last"),
        ("products", "two sites, last, joined digits"),
    ],
)
def test_an_argmax_without_a_mask_is_rejected(name, case, monkeypatch):
    without(monkeypatch, name)
    assert is_rejected(CASES[case])


def test_equal_digits_joined_without_a_mask_are_rejected(monkeypatch):
    """The last of three products of the first level joins what says that digits are equal."""
    without(monkeypatch, "right", 2)
    assert is_rejected(CASES["two levels of digits"])


def test_one_mask_for_two_scores_is_rejected(monkeypatch):
    drawn = Masks.scores
    monkeypatch.setattr(Masks, "scores", lambda masks: np.repeat(drawn(masks)[::2], 2))
    assert is_rejected(CASES["two sites, first"])


def no_zeros(party, peers, ring, name, count):
    return np.zeros(count, ring.dtype)


def test_winners_without_zero_shares_are_rejected(monkeypatch):
    drawn = mpc.argmax.site.zero_share

    def drawn_in_vain(*parameters):
        drawn(*parameters)
        return no_zeros(*parameters)

    monkeypatch.setattr(mpc.argmax.site, "zero_share", drawn_in_vain)
    assert is_rejected(CASES["dealer and analyst"])


# ---- what the dealer with the analyst reads ------------------------------------------------------


def orders_that_fit(seed):
    """Return, for sets of three values, which orders of the losers fit what the dealer knows.

    The dealer knows all masks; the analyst gives it the winners and the share that b has sent.

    Returns
    -------
    fits : ndarray of shape (2, sets), dtype bool
        Whether the true order of the losers fits, and whether the other does.
    """
    sets, w = 400, sites_of(2)
    plan = ArgmaxPlan(b"query", ("a", "b"), (3,) * sets)
    scores = np.random.default_rng(seed).permuted(np.tile(np.arange(3), (sets, 1)), axis=1)
    programs = {
        site: argmax(w.holders[site], plan, share, "analyst")
        for site, share in zip("ab", shares_of(scores.ravel(), plan.ring, 2), strict=True)
    }
    programs |= {"dealer": deal_argmax(w.dealer_keys, plan), "analyst": open_argmax(plan)}
    _, transcript = run_all(programs)
    (packed,) = (s.message.values for s in transcript if (s.sender, s.receiver) == ("b", "analyst"))
    sent = np.unpackbits(packed, count=2 * sets).reshape(sets, 2) @ [1, 2]
    (part,) = plan.value_parts
    masks = [Masks(w.dealer_keys[site], plan) for site in "ab"]
    q = sum(m.ranks(part) for m in masks).reshape(sets, 3)
    shares = masks[1].one_hots(part)[0].reshape(sets, 3)
    swapped = np.where(scores == 2, 2, 1 - scores)
    return np.array([fits(ranks + q - 2 & 3, shares, sent) for ranks in (scores, swapped)])


def fits(places, shares, sent):
    """Whether b sends these bits if the one-hot ranks are read at these places."""
    wins = shares >> places.astype(shares.dtype) & 1
    return np.bitwise_xor.reduce(wins * np.arange(3), axis=1) == sent


def test_the_dealer_with_the_analyst_reads_ranks_without_zero_shares(monkeypatch):
    assert 0.15 < orders_that_fit(0).mean() < 0.35, "with them, each order fits by chance"
    monkeypatch.setattr(mpc.argmax.site, "zero_share", no_zeros)
    true, other = orders_that_fit(0)
    assert true.all() and other.mean() < 0.5, "most sets show which loser is the second"
