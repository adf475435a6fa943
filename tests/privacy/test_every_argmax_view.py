"""Exhaustively, on tiny rings: what coalitions see of an argmax is simulated from the winners.

Coalitions are the analyst with all sites but one, the honest site, and the dealer with the analyst.
Beside them the unsafe variants, each without one mask, which the same test must reject.

One run has all settings of the secret streams beside each other, each in a set of its own, since
the program treats sets alike (`tests.privacy.shuffle_simulation` has the streams). An honest site
that is not the first draws its shares of what is dealt too, and has too many settings for one run
unless the coalition is told its shares of one-hot ranks: in sets of two values, what these hide
follows from the winner and its lead. So do the comparisons, which only stages show to be hidden.
More values and more digits are shown stage by stage: the masked scores with the digits dealt for a
pair, a level of joined digits, comparisons as numbers, ranks with the winners. Each stage has masks
that no other stage uses, and its input is shared: the coalition knows all shares except the honest
site's. The tests show that for *every* input of the honest site the messages of a stage have one
distribution (of the last stage: one for each winner and its lead). So a simulator draws stage after
stage, and the honest site's output is again the share that the coalition does not know. The parts,
levels and pairs of larger cases repeat these stages.

A pair is compared with three thresholds, each under masks of its own: shown with few digits, and
more digits with one threshold (`RankPlan`). What kept shares are masked with in two argmaxes is
enumerated together: candidates of a later query are other sums of the same shares, which no message
has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import vertibayes_mpc.argmax.site
from tests.mpc.test_argmax import SITES, shares_of, sites_of
from tests.privacy.shuffle_simulation import MOST_SETTINGS, KnownStream, Secret, SecretStream
from tests.privacy.simulation import has_choices, is_simulatable
from tests.worlds import whole_bytes
from vertibayes_mpc.argmax import (
    ArgmaxPlan,
    RankPlan,
    argmax,
    deal_argmax,
    open_argmax,
    share_ranks,
)
from vertibayes_mpc.argmax.digits import Masks, packed
from vertibayes_mpc.argmax.messages import (
    BitNumbers,
    BitProducts,
    MaskedBits,
    OneHots,
    Winners,
    _Dealer,
)
from vertibayes_mpc.argmax.plan import Part
from vertibayes_mpc.argmax.site import _Contest, _show, _shown
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import send
from vertibayes_mpc.scheduler import run_all

pytestmark = pytest.mark.laws
LATER = b"later query"


@pytest.fixture(autouse=True)
def elements_of_a_byte():
    with whole_bytes():
        yield


# ---- stages: programs of (site, plan, input, settings), and what the dealer sends ----------------


def whole(site, plan, scores, settings):
    return argmax(site, plan, elements(scores, plan.ring, settings), "analyst")


def counting(site, plan, values, settings):
    """Share how many values the first of each set reaches: all stages before ranks."""
    return share_ranks(site, plan, elements(values, plan.ring, settings))


def comparing_again(site, plan, kept, settings):
    """Reveal masked sums of kept shares to the sites, in one query and in a later one."""
    later = replace(plan, label=LATER)
    for asked, sums in ((plan, kept), (later, [kept[1] - kept[0], kept[1]])):
        ours = elements(np.array(sums), plan.ring, settings)
        yield from _Contest(site, asked)._masked(ours)


def masking(site, plan, values, settings):
    """Reveal masked values to the sites, and take the digits of the differences of masks."""
    contest, (part,) = _Contest(site, plan), plan.pair_parts
    yield from contest._masked(elements(values, plan.ring, settings))
    yield from contest._digits(part)


def joining(site, plan, bits, settings):
    """Multiply shared bits: of the first level, the left factors and then the right ones."""
    bits = np.tile(bits.reshape(-1, len(plan.thresholds)) & 1, settings)
    contest, rows = _Contest(site, plan), packed(bits)
    (part,), pairs = plan.pair_parts, plan.levels[0]
    products = yield from contest._products(part)
    yield from contest._and(part, 0, rows[:pairs], rows[pairs:], products[0])


def numbering(site, plan, bits, settings):
    """Turn shared bits into numbers: one for each pair and threshold."""
    (part,) = plan.pair_parts
    yield from _Contest(site, plan)._as_numbers(part, packed(np.tile(bits & 1, settings)[None]))


def ranking(site, plan, ranks, settings):
    """Find the winners from shares of ranks."""
    shares = elements(ranks, plan.rank_ring, settings)
    wins = yield from _Contest(site, plan).wins(shares)
    return (yield from _show(site, plan, _shown(plan, wins), "analyst"))


def elements(numbers, ring, settings):
    return ring.reduce(np.tile(numbers, settings).astype(ring.dtype))


def dealt(stage, keys, plan):
    """Send what the dealer sends for a stage."""
    if stage is comparing_again:
        return
    if stage in (whole, counting):
        yield from deal_argmax(keys, plan)
        return
    dealer, part = _Dealer(keys, plan), Part(0, 0, plan.pairs)
    if stage is masking:
        digits = plan.digit_ring.pack(dealer.digits(part, dealer.scores()))
        message = OneHots(digits, plan.name("pairs", 0))
    elif stage is joining:
        message = BitProducts(dealer.products(part).ravel(), plan.name("pairs", 0))
    elif stage is numbering:
        message = BitNumbers(plan.rank_ring.pack(dealer.numbers(part)), plan.name("pairs", 0))
    else:
        one_hots = plan.one_hot_ring.pack(dealer.one_hots(Part(0, 0, 2 * plan.values)))
        message = OneHots(one_hots, plan.name("values", 0))
    yield from send({plan.sites[0]: message})


# ---- views ---------------------------------------------------------------------------------------


class Case(NamedTuple):
    """Who shares sets of how many values, in which ring; without an honest site, the dealer looks.

    inputs: what is shared, in all its forms.
    """

    sites: int
    honest: str
    inputs: list
    bits: int = 2
    digit_bits: int = 1
    size: int = 2
    stage: object = whole
    plan: type = ArgmaxPlan
    told: tuple[str, ...] = ()  # the streams of the honest site that the coalition is told
    salt: str = ""

    def is_secret(self, pair):
        """Whether the coalition does not know the key of a pair."""
        return set(pair) == {self.honest, "dealer"} if self.honest else "dealer" not in pair

    def is_seen(self, sent):
        """Whether the coalition is sent a message, by one who is not of it."""
        if not self.honest:
            return sent.receiver == "analyst"
        return sent.receiver != self.honest and sent.sender in (self.honest, "dealer")

    def shares(self, values):
        """Return the sites' shares: the coalition's are the same for all inputs.

        No message that the dealer or the analyst see has a share of the input: one site's varies.
        """
        sites, generator = SITES[: self.sites], np.random.default_rng(self.sites)
        varied = self.honest or sites[0]
        shares = {s: generator.integers(0, 2**self.bits, len(values)) for s in sites}
        others = sum(shares[s] for s in sites if s != varied)
        return {**shares, varied: np.array(values) - others}  # modulo 2, this is the XOR


@pytest.fixture(autouse=True)
def one_digest(monkeypatch):
    """Labels are the same for any number of settings."""
    monkeypatch.setattr(ArgmaxPlan, "digest", property(lambda plan: plan.label))


@dataclass(frozen=True)
class PartlyTold(SecretStream):
    """A secret stream of which the coalition is told the elements of some names."""

    known: KnownStream
    told: tuple

    def elements(self, ring, name, shape, start=0):
        is_told = name in self.told
        return (self.known if is_told else super()).elements(ring, name, shape, start)


def run(case, values, secret):
    """Run all settings, each in a set; return the winner and the views: shape (settings, n)."""
    settings = secret.settings
    told = tuple(label(f"argmax {purpose}", b"query", 0) for purpose in case.told)

    def stream(*pair):
        known = KnownStream(secret, pair, case.salt)
        return PartlyTold(secret, pair, known, told) if case.is_secret(pair) else known

    w, sizes = sites_of(case.sites, stream), (case.size,) * settings
    plan = case.plan(
        b"query", tuple(w.holders), sizes, Ring(case.bits), case.digit_bits, MOST_SETTINGS * 3
    )
    programs = {
        site: case.stage(w.holders[site], plan, share, settings)
        for site, share in case.shares(values).items()
    }
    programs["dealer"] = dealt(case.stage, w.dealer_keys, plan)
    if case.stage in (whole, ranking):
        programs["analyst"] = open_argmax(plan)
    outputs, transcript = run_all(programs)
    won = outputs.get("analyst", (np.zeros(1), np.zeros(1)))
    (winner,) = {(int(place), bool(leads)) for place, leads in zip(*won, strict=True)}
    seen = sorted(filter(case.is_seen, transcript), key=lambda s: (s.sender, s.receiver, s.depth))
    views = [elements_of(plan, s.message, settings) for s in seen]
    return winner, np.concatenate(views, axis=1)


def elements_of(plan, message, settings):
    """Return a message's elements for each setting."""
    values = message.values
    row = values.size
    if isinstance(message, OneHots):
        row = plan.pairs if message.label == plan.name("pairs", 0) else 2 * plan.values
    elif isinstance(message, Winners):
        row = settings * plan.shown_bits
        values = np.unpackbits(values, count=row)
    elif isinstance(message, MaskedBits | BitProducts):
        row = len(plan.thresholds) * plan.pairs
        values = np.unpackbits(values.reshape(-1, -(-row // 8)), axis=-1, count=row)
    rows = values.reshape(-1, settings, row // settings)
    return rows.swapaxes(0, 1).reshape(settings, -1)


def distributions(case):
    """Return {winner: [distribution of the view, one for each input of this winner]}."""
    first = Secret()
    run(case, case.inputs[0], first)
    settings = math.prod(first.sizes.values())
    assert 1 < settings <= MOST_SETTINGS
    values, before = {}, 1
    for key, size in first.sizes.items():
        values[key] = (np.arange(settings) // before % size).astype(np.uint8)
        before *= size
    views = defaultdict(list)
    for shared in case.inputs:
        winner, view = run(case, shared, Secret(settings, values))
        views[winner].append(counted(view))
    return views


def counted(views):
    """Return the bits of each element, the views that come, and how often each comes."""
    bits = tuple(max(int(column.max()).bit_length(), 1) for column in views.T)
    assert sum(bits) <= 64
    words = np.zeros(len(views), np.uint64)
    for column, width in zip(views.T, bits, strict=True):
        words = words << np.uint64(width) | column
    return bits, *(found.tobytes() for found in np.unique(words, return_counts=True))


def all_of(size, *values):
    return list(product(values, repeat=size))


TWO_ORDERS = [(0, 0, 1, 0, 2, 2), (1, 1, 0, 0, 2, 2)]  # ranks and leads: the third value wins
RANKS = ("one-hot ranks",)
CASES = {
    "two sites, first": Case(2, "a", all_of(2, 0, 1)),
    "three sites, first": Case(3, "a", all_of(2, 0, 1), digit_bits=2),
    "two sites, last": Case(2, "b", all_of(2, 0, 1), digit_bits=2, told=RANKS),
    "three sites, second": Case(3, "b", all_of(2, 0, 1), digit_bits=2, told=RANKS),
    "ranked, two levels, first": Case(2, "a", all_of(2, 0, 1, 3), 3, stage=counting, plan=RankPlan),
    "ranked, last": Case(2, "b", all_of(2, 0, 1), stage=counting, plan=RankPlan),
    "ranked, three sites, second": Case(3, "b", all_of(2, 0, 1), stage=counting, plan=RankPlan),
    "ranked, three sites, last": Case(3, "c", all_of(2, 0, 1), stage=counting, plan=RankPlan),
    "ranked, three values, first": Case(2, "a", all_of(3, 0, 1), 3, 3, 3, counting, RankPlan),
    "scores, first": Case(2, "a", all_of(2, 0, 3, 5), 3, 1, stage=masking),
    "scores, last": Case(2, "b", all_of(2, 0, 3, 5), 3, 1, stage=masking),
    "scores, three sites, second": Case(3, "b", all_of(2, 0, 3, 5), 3, 1, stage=masking),
    "scores of one digit, last": Case(2, "b", all_of(2, 0, 3), 3, 3, stage=masking),
    "digits joined, first": Case(2, "a", all_of(5, 0, 1), 4, stage=joining, plan=RankPlan),
    "digits joined, last": Case(2, "b", all_of(5, 0, 1), 4, stage=joining, plan=RankPlan),
    "digits joined, three sites, second": Case(
        3, "b", all_of(5, 0, 1), 4, stage=joining, plan=RankPlan
    ),
    "thresholds joined, first": Case(2, "a", all_of(6, 0, 1), stage=joining),
    "thresholds joined, last": Case(2, "b", all_of(6, 0, 1), stage=joining),
    "thresholds joined, three sites, second": Case(3, "b", all_of(6, 0, 1), stage=joining),
    "numbers, first": Case(2, "a", all_of(3, 0, 1), stage=numbering),
    "numbers, last": Case(2, "b", all_of(3, 0, 1), stage=numbering),
    "numbers, three sites, second": Case(3, "b", all_of(3, 0, 1), stage=numbering),
    "ranks, first": Case(2, "a", TWO_ORDERS, 3, size=3, stage=ranking),
    "ranks, last": Case(2, "b", all_of(4, 0, 1), stage=ranking),
    "ranks, three sites, second": Case(3, "b", all_of(4, 0, 1), stage=ranking),
    "kept shares, first": Case(2, "a", all_of(2, 0, 3), 3, stage=comparing_again),
    "kept shares, last": Case(2, "b", all_of(2, 0, 3), 3, stage=comparing_again),
    "dealer and analyst": Case(2, "", all_of(3, 0, 1, 2), 5, 5, 3),
    "dealer and analyst, three sites": Case(3, "", all_of(3, 0, 1, 2), 5, 5, 3),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_view_is_simulated_from_the_winners(case):
    views = distributions(case)
    assert has_choices(views)
    assert is_simulatable(views)


# ---- unsafe variants, which must be rejected -----------------------------------------------------


def is_rejected(case):
    """Whether the view of the coalition, with some streams of its own, is not simulatable."""
    return any(not is_simulatable(distributions(case._replace(salt=s))) for s in "012")


def without(monkeypatch, name, rows=slice(None)):
    """Leave out a mask, or rows of it: zeros in its place, for the sites and the dealer."""
    drawn = getattr(Masks, name)

    def zeros(masks, *parts):
        values = drawn(masks, *parts)
        values[rows] = 0
        return values

    monkeypatch.setattr(Masks, name, zeros)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("scores", "two sites, first"),
        ("scores", "three sites, second"),
        ("digits", "scores, three sites, second"),
        ("left", "digits joined, three sites, second"),
        ("products", "digits joined, three sites, second"),
        ("numbers", "numbers, three sites, second"),
        ("left", "thresholds joined, three sites, second"),
        ("one_hots", "ranks, three sites, second"),
        ("scores", "scores, last"),
        ("digits", "scores, last"),
        ("digits", "scores of one digit, last"),
        ("scores", "ranked, last"),
        ("digits", "ranked, last"),
        ("flip", "ranked, three values, first"),
        ("left", "thresholds joined, first"),
        ("right", "thresholds joined, last"),
        ("left", "digits joined, first"),
        ("left", "digits joined, last"),
        ("right", "digits joined, first"),
        ("products", "digits joined, last"),
        ("flip", "numbers, first"),
        ("numbers", "numbers, last"),
        ("ranks", "ranks, first"),
        ("one_hots", "ranks, last"),
    ],
)
def test_an_argmax_without_a_mask_is_rejected(name, case, monkeypatch):
    without(monkeypatch, name)
    assert is_rejected(CASES[case])


def test_equal_digits_joined_without_a_mask_are_rejected(monkeypatch):
    """The last of three right factors of the first level says that digits are equal."""
    without(monkeypatch, "right", slice(2, 3))
    assert is_rejected(CASES["digits joined, first"])


def test_one_mask_for_two_scores_is_rejected(monkeypatch):
    drawn = Masks.scores
    monkeypatch.setattr(Masks, "scores", lambda masks: np.repeat(drawn(masks)[::2], 2))
    assert is_rejected(CASES["scores, first"])


def test_one_mask_for_both_ranks_of_a_value_is_rejected(monkeypatch):
    drawn = Masks.ranks
    monkeypatch.setattr(Masks, "ranks", lambda *given: np.repeat(drawn(*given)[::2], 2))
    assert is_rejected(CASES["ranks, first"])


@pytest.mark.parametrize("honest", ["first", "last"])
def test_kept_shares_under_the_masks_of_the_query_before_are_rejected(honest, monkeypatch):
    """A query that masked a candidate as the candidate of an earlier query was masked."""
    monkeypatch.setattr("tests.privacy.test_every_argmax_view.LATER", b"query")
    assert is_rejected(CASES[f"kept shares, {honest}"])


@pytest.mark.parametrize("name", ["left", "right", "flip"])
def test_one_mask_for_two_thresholds_is_rejected(name, monkeypatch):
    drawn = Masks._bits

    def reused(masks, purpose, rows, part, *level):
        bits = drawn(masks, purpose, rows, part, *level)
        if purpose != name:
            return bits
        columns = np.unpackbits(bits, axis=-1, count=masks.plan.bits_of(part))
        return packed(np.repeat(columns[:, ::3], 3, axis=1))

    monkeypatch.setattr(Masks, "_bits", reused)
    assert is_rejected(CASES["numbers, first" if name == "flip" else "thresholds joined, first"])


def no_zeros(party, peers, ring, name, count):
    return np.zeros(count, ring.dtype)


def test_winners_without_zero_shares_are_rejected(monkeypatch):
    drawn = vertibayes_mpc.argmax.site.zero_share

    def drawn_in_vain(*parameters):
        drawn(*parameters)
        return no_zeros(*parameters)

    monkeypatch.setattr(vertibayes_mpc.argmax.site, "zero_share", drawn_in_vain)
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
    sent = np.unpackbits(packed, count=3 * sets).reshape(sets, 3) @ [1, 2, 0]
    (part,) = plan.value_parts
    masks = [Masks(w.dealer_keys[site], plan) for site in "ab"]
    q = sum(m.ranks(part)[::2] for m in masks).reshape(sets, 3)
    shares = masks[1].one_hots(part)[0, ::2].reshape(sets, 3)
    swapped = np.where(scores == 2, 2, 1 - scores)
    return np.array([fits(ranks + q - 2 & 3, shares, sent) for ranks in (scores, swapped)])


def fits(places, shares, sent):
    """Whether b sends these bits if the one-hot ranks are read at these places."""
    wins = shares >> places.astype(shares.dtype) & 1
    return np.bitwise_xor.reduce(wins * np.arange(3), axis=1) == sent


def test_the_dealer_with_the_analyst_reads_ranks_without_zero_shares(monkeypatch):
    assert 0.15 < orders_that_fit(0).mean() < 0.35, "with them, each order fits by chance"
    monkeypatch.setattr(vertibayes_mpc.argmax.site, "zero_share", no_zeros)
    true, other = orders_that_fit(0)
    assert true.all() and other.mean() < 0.5, "most sets show which loser is the second"
