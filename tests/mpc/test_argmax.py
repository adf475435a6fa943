"""Argmax of shared values: equal to numpy's, at the stated cost; and wrong messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tampering import (
    changing,
    longer,
    of_another_query,
    of_another_type,
    run_changing,
    shorter,
)
from tests.worlds import world
from vertibayes_mpc.argmax import ArgmaxPlan, argmax, deal_argmax, open_argmax
from vertibayes_mpc.argmax.digits import compare, digits_of, unit_digits
from vertibayes_mpc.argmax.messages import (
    BitNumbers,
    BitProducts,
    MaskedBits,
    MaskedRanks,
    MaskedScores,
    OneHots,
    Winners,
)
from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all

SITES = "abcde"


def sites_of(number, stream=None):
    """Sites that hold a column each: what an argmax needs of them is their keys."""
    return world([(1, False, {s: [0]}) for s in SITES[:number]], 1, stream=stream)


def shares_of(scores, ring, number, seed=0):
    """Additive shares of signed scores."""
    whole = np.asarray(scores, np.int64).view(np.uint64).astype(ring.dtype)
    generator = np.random.default_rng(seed)
    shares = [
        ring.reduce(generator.integers(0, 2**64, len(whole), np.uint64).astype(ring.dtype))
        for _ in range(number - 1)
    ]
    return [ring.reduce(whole - sum(shares, np.zeros_like(whole))), *shares]


def programs_of(w, plan, scores):
    """The programs of all parties, for scores that the sites share."""
    shares = shares_of(scores, plan.ring, len(plan.sites))
    programs = {
        site: argmax(w.holders[site], plan, share, "analyst")
        for site, share in zip(plan.sites, shares, strict=True)
    }
    programs["dealer"] = deal_argmax(w.dealer_keys, plan)
    programs["analyst"] = open_argmax(plan)
    return programs


def run(scores, number=3, **options):
    """Find the winners of sets of scores; return the plan, the outputs and the messages."""
    w = sites_of(number)
    sizes = tuple(len(values) for values in scores)
    plan = ArgmaxPlan(b"query", tuple(w.holders), sizes, **options)
    flat = np.concatenate([np.zeros(0, np.int64), *scores])
    outputs, transcript = run_all(programs_of(w, plan, flat))
    return plan, outputs, transcript


def check(scores, plan, outputs, transcript):
    """Compare with numpy, and with what the plan says of the cost."""
    expected = [int(np.argmax(values)) for values in scores]
    for party in (*plan.sites, "analyst"):
        places, lead = outputs[party]
        assert places.dtype == np.intp and places.tolist() == expected
        assert lead.tolist() == [leads(values, plan.margin) for values in scores]
    check_costs([plan], transcript)


def check_costs(plans, transcript):
    """Compare with what the plans of a transcript say of their costs."""
    sent, sites = Counter(), plans[0].sites
    for s in transcript:
        sent[s.sender, s.receiver] += s.message.values.nbytes
    each, dealt = sum(plan.sent_bytes for plan in plans), sum(plan.dealt_bytes for plan in plans)
    assert all(sent[a, b] == each for a in sites for b in sites if a != b)
    assert sum(n for (sender, _), n in sent.items() if sender == "dealer") == dealt
    if len(sites) > 1:  # one site sends message after message, and awaits none
        assert max(s.depth for s in transcript) == sum(plan.rounds for plan in plans)
    assert not [s for s in transcript if s.receiver == "dealer"]


def leads(values, margin):
    """Whether the highest value exceeds all others by more than a margin."""
    *_, second, best = sorted(values.tolist())
    return best - second > margin


def leads_of(outputs):
    return outputs["analyst"].leads.tolist()


@st.composite
def sets_of_scores(draw, most_bits=2):
    """Sets of some sizes, rings and digits; scores up to the bound, many of them equal."""
    sizes = draw(st.lists(st.sampled_from([2, 2, 3, 4, 5, 17, 63, 64, 65]), max_size=4))
    ring = Ring(draw(st.integers(4, 64)))
    most = draw(st.sampled_from([2, 1 << ring.bits - most_bits]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    return ring, [generator.integers(1 - most, most, size) for size in sizes]


@settings(max_examples=60, deadline=None)
@given(sets_of_scores(), st.integers(1, 5), st.integers(1, 6), st.sampled_from([5, 300, 1 << 17]))
def test_the_winners_are_the_first_of_the_highest_scores(drawn, number, digit_bits, most_pairs):
    ring, scores = drawn
    if most_pairs == 5 and sum(map(len, scores)) > 30:
        most_pairs = 700  # each part takes a round of messages
    plan, outputs, transcript = run(
        scores, number, ring=ring, digit_bits=digit_bits, most_pairs=most_pairs
    )
    check(scores, plan, outputs, transcript)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_sets_of_very_different_sizes(number):
    generator = np.random.default_rng(number)
    scores = [generator.integers(-3, 4, size) for size in (2, 300, 63, 2, 64, 65)]
    plan, outputs, transcript = run(scores, number)
    assert plan.rank_bits == 9 and plan.rank_words == 8
    check(scores, plan, outputs, transcript)


@pytest.mark.parametrize("number", [1, 2])
def test_scores_at_the_bound(number):
    for ring in (Ring(64), Ring(24), Ring(8)):
        far = 1 << ring.bits - 1  # what two scores must not differ by
        half = far >> 1
        scores = [
            np.array([-half + 1, half - 1, half - 1, -half + 1]),
            np.array([0, far - 1, 1, far - 1]),
            np.array([0, 1 - far, 0, -1]),
            np.zeros(4, np.int64),
        ]
        if ring.bits < 64:  # of numpy's own integers too
            scores.append(np.array([far - 1, far, far + 1, far - 1]))  # only differences must fit
        plan, outputs, transcript = run(scores, number, ring=ring)
        check(scores, plan, outputs, transcript)


def test_scores_beyond_the_bound_compare_wrongly():
    """The bound is sharp: at a difference of 2^(bits - 1) the winner can be wrong."""
    _, outputs, _ = run([np.array([1 << 62, -(1 << 62)])], 2)
    assert outputs["analyst"].places.tolist() == [1]


def test_the_bytes_of_a_pair():
    """The figures that the package's docstring states, for sets of at most 64 values."""
    plan = ArgmaxPlan(b"", ("a", "b"), (64,) * 8)
    per_pair = plan.digits * 2 + 3 * (6 / 8 + 26 / 8)
    assert plan.dealt_bytes == plan.pairs * per_pair + plan.values * 16
    per_pair = 3 * 42 / 8
    assert plan.sent_bytes == plan.pairs * per_pair + plan.values * 9.5 + len(plan.sizes) * 7 / 8
    assert plan.rounds == 8


def test_one_site_sends_the_winners_and_the_dealer_nothing():
    plan, _, transcript = run([np.array([1, 3, 3])], 1)
    assert [(s.sender, s.receiver) for s in transcript] == [("a", "analyst")]
    assert (plan.dealt_bytes, plan.rounds) == (0, 1)


def test_no_sets_have_no_winners():
    for number in (1, 3):
        _, outputs, _ = run([], number)
        assert outputs["analyst"].places.tolist() == outputs["a"].places.tolist() == []


def test_a_part_has_the_pairs_in_order():
    plan = ArgmaxPlan(b"", ("a", "b"), (2, 4, 3), most_pairs=4)
    pairs = [plan.pairs_of(part) for part in plan.pair_parts]
    i, j = (np.concatenate(places).tolist() for places in zip(*pairs, strict=True))
    assert list(zip(i, j, strict=True)) == [
        (0, 1),
        *((2 + a, 2 + b) for a in range(4) for b in range(a + 1, 4)),
        *((6, 7), (6, 8), (7, 8)),
    ]
    assert [len(first) for first, _ in pairs] == [4, 4, 2]


@pytest.mark.parametrize(("bits", "digit_bits"), [(3, 1), (4, 2), (5, 2), (6, 3), (5, 4)])
def test_the_comparison_of_all_elements_of_a_small_ring(bits, digit_bits):
    """Joined without shares, the bits say whether d - r is negative."""
    plan = ArgmaxPlan(b"", ("a", "b"), (2,), Ring(bits), digit_bits)
    d, r = (v.ravel().astype(np.uint8) for v in np.indices((1 << bits, 1 << bits)))
    bits_left, sign = compare(plan, unit_digits(plan, r), d)
    for pairs in plan.levels:
        left, right = bits_left.factors(pairs)
        bits_left = bits_left.joined(np.concatenate([left, left[1:]]) & right, pairs)
    assert len(bits_left.less) == 1 and not len(bits_left.same)
    negative = np.unpackbits(bits_left.less[0] ^ sign[0], count=len(d)) ^ (d >> (bits - 1))
    assert np.array_equal(negative, plan.ring.reduce(d - r) >> (bits - 1))
    assert np.array_equal(
        sum(row << k * digit_bits for k, row in enumerate(digits_of(plan, d))), d.astype(np.intp)
    )


# ---- which winners exceed all others by a margin -------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(sets_of_scores(most_bits=3), st.integers(1, 5), st.integers(1, 6), st.data())
def test_a_winner_leads_if_it_exceeds_all_others_by_more_than_the_margin(
    drawn, number, digit_bits, data
):
    ring, scores = drawn
    gaps = [int(np.diff(np.sort(values))[-1]) for values in scores]
    near = [gap + step for gap in gaps for step in (-1, 0, 1) if gap + step >= 0]
    most = 1 << ring.bits - 2  # with the largest difference, below the bound
    margin = data.draw(st.sampled_from([m for m in (0, 1, *near) if m <= most]))
    few = 7 if sum(map(len, scores)) <= 30 else 700
    plan, outputs, transcript = run(
        scores, number, margin=margin, ring=ring, digit_bits=digit_bits, most_pairs=few
    )
    check(scores, plan, outputs, transcript)


@pytest.mark.parametrize("number", [1, 2])
def test_leads_at_the_bound_of_scores(number):
    """A difference and the margin may add up to 2^(bits - 1) - 1."""
    far = (1 << 24 - 1) - 1
    for margin in (0, 1, far // 2, far - 1, far):
        most = far - margin
        scores = [np.array([0, most, 0]), np.array([most, 0, 0]), np.array([-most, 0, -most])]
        scores += [np.array([0, min(margin + step, most)]) for step in (0, 1)]
        check(scores, *run(scores, number, margin=margin, ring=Ring(24)))


@pytest.mark.parametrize("number", [1, 2])
def test_each_lead_and_margin_of_a_small_ring(number):
    far = (1 << 4 - 1) - 1
    for margin in range(far + 1):
        most = far - margin
        scores = [np.array([0, lead]) for lead in range(-most, most + 1)]
        check(scores, *run(scores, number, margin=margin, ring=Ring(4)))


def test_the_bound_of_differences_and_the_margin_is_sharp():
    _, outputs, _ = run([np.array([4, 0])], 2, margin=4, ring=Ring(4))
    assert leads_of(outputs) != [leads(np.array([4, 0]), 4)]


def test_parties_with_different_margins_stop():
    w, plan = sites_of(2), ArgmaxPlan(b"query", ("a", "b"), (2, 3))
    programs, others = (
        programs_of(w, replace(plan, margin=margin), np.arange(5)) for margin in (1, 2)
    )
    with pytest.raises(UnexpectedMessageError, match="of another query"):
        run_all({**programs, "b": others["b"]})


# ---- wrong plans and messages --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sites": ()}, "one or more"),
        ({"sites": ("a", "a")}, "each once"),
        ({"sizes": (2, 1)}, "from 2 to 4096 values, got from 1 to 2"),
        ({"sizes": (4097,)}, "got from 4097"),
        ({"digit_bits": 7}, "from 1 to 6, got 7"),
        ({"most_pairs": 0}, "at least 1"),
        ({"margin": -1}, "margin must be from 0 to 9223372036854775807, got -1"),
        ({"margin": 8, "ring": Ring(4)}, "margin must be from 0 to 7, got 8"),
    ],
)
def test_impossible_plans(options, reason):
    with pytest.raises(ValueError, match=reason):
        ArgmaxPlan(**{"label": b"", "sites": ("a", "b"), "sizes": (2,), **options})


@pytest.mark.parametrize("scores", [np.zeros(3, np.uint64), np.zeros(2, np.int64)])
def test_scores_of_a_wrong_shape_or_type_are_refused(scores):
    plan = ArgmaxPlan(b"query", ("a", "b"), (2,))
    with pytest.raises(ValueError, match="scores must be 2 of type uint64"):
        next(argmax(sites_of(2).holders["a"], plan, scores, "analyst"))


SENDERS = [
    (OneHots, "dealer"),
    (BitProducts, "dealer"),
    (BitNumbers, "dealer"),
    (MaskedScores, "b"),
    (MaskedBits, "b"),
    (MaskedRanks, "b"),
    (Winners, "b"),
]


def run_with(sender, kind, change, w=None):
    """Find winners, where one message is changed on its way."""
    w = w or sites_of(3)
    plan = ArgmaxPlan(b"query", ("a", "b", "c"), (3, 2))
    programs = programs_of(w, plan, np.arange(5))
    return run_changing(programs, changing(kind, change, sender))


@pytest.mark.parametrize(("kind", "sender"), SENDERS)
@pytest.mark.parametrize("change", [longer, shorter, of_another_type])
def test_a_message_of_a_wrong_size_or_type_names_its_sender(kind, sender, change):
    with pytest.raises(MalformedMessageError, match=f"{kind.__name__} of shape") as caught:
        run_with(sender, kind, change)
    assert caught.value.party == sender


@pytest.mark.parametrize(("kind", "sender"), SENDERS)
def test_a_message_of_another_argmax_names_its_sender(kind, sender):
    with pytest.raises(UnexpectedMessageError, match=f"{kind.__name__} of another") as caught:
        run_with(sender, kind, of_another_query)
    assert caught.value.party == sender


def test_a_winner_outside_its_set_names_the_sites():
    """The winner of the first set is value 2; a changed bit makes it 3, of three values."""

    def changed(message):
        return replace(message, values=message.values ^ np.uint8(0b10000000))

    with pytest.raises(UnknownFaultyPartyError, match="outside its set") as caught:
        run_with("b", Winners, changed)
    assert caught.value.parties == ("a", "b", "c")


# ---- labels --------------------------------------------------------------------------------------


def test_a_label_serves_one_argmax():
    w, plan = sites_of(2), ArgmaxPlan(b"query", ("a", "b"), (2, 3))
    run_all(programs_of(w, plan, np.arange(5)))
    for site, program in programs_of(w, plan, np.arange(5)).items():
        if site in plan.sites:
            with pytest.raises(DealReusedError, match="hidden other values before"):
                next(program)


@pytest.mark.parametrize("deviating", ["b", "dealer"])
def test_parties_that_were_asked_for_different_sets_stop(deviating):
    """One label, and as many values: a lying analyst could have a site take another's shares."""
    w = sites_of(2)
    programs, others = (
        programs_of(w, ArgmaxPlan(b"query", ("a", "b"), sizes), np.arange(5))
        for sizes in ((2, 3), (3, 2))
    )
    programs[deviating] = others[deviating]
    with pytest.raises(UnexpectedMessageError, match="of another query"):
        run_all(programs)
