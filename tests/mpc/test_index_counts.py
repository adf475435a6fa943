"""Ranks of shared values and counts of shared indices, as in the clear, at the stated costs."""

from __future__ import annotations

import numpy as np
import pytest

import vertibayes_mpc.unit_vectors
from tests.mpc.test_argmax import check_costs, shares_of, sites_of
from vertibayes_mpc.argmax import RankPlan, deal_argmax, share_ranks
from vertibayes_mpc.errors import DealReusedError
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.table_lookups import CountPlan, deal_counts, share_counts


def test_ranks_are_the_numbers_of_values_that_the_first_reaches():
    generator = np.random.default_rng(1)
    for number in (1, 2, 3):
        sizes = (2, 5, 8, 128, 3)
        values = [generator.integers(-9, 9, size) for size in sizes]
        values[0][:] = 2**61, -(2**61)
        w = sites_of(number)
        plan = RankPlan(b"query", tuple(w.holders), sizes)
        shares = shares_of(np.concatenate(values), Ring(64), number)
        programs = {
            s: share_ranks(w.holders[s], plan, share)
            for s, share in zip(plan.sites, shares, strict=True)
        }
        outputs, transcript = run_all(programs | {"dealer": deal_argmax(w.dealer_keys, plan)})
        ranks = plan.rank_ring.reduce(sum(outputs[s] for s in plan.sites))
        assert ranks.tolist() == [int((v[1:] <= v[0]).sum()) for v in values]
        assert not [s for s in transcript if s.receiver in ("dealer", "analyst")]
        check_costs([plan], transcript)
        with pytest.raises(DealReusedError):
            next(share_ranks(w.holders["a"], plan, shares[0]))


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("part_bytes", [200, 1 << 20])
def test_counts_are_those_of_the_indices_in_the_clear(number, part_bytes, monkeypatch):
    monkeypatch.setattr(vertibayes_mpc.unit_vectors, "PART_BYTES", part_bytes)
    codes, w = np.random.default_rng(number).integers(0, 2**5, 300), sites_of(number)
    plan = CountPlan(b"query", tuple(w.holders), 300, 5, Ring(16))
    programs = {
        s: share_counts(w.holders[s], plan, share)
        for s, share in zip(plan.sites, shares_of(codes, plan.indices, number), strict=True)
    }
    outputs, transcript = run_all(programs | {"dealer": deal_counts(w.dealer_keys, plan)})
    counts = plan.ring.reduce(sum(outputs[s] for s in plan.sites))
    assert counts.tolist() == np.bincount(codes, minlength=32).tolist()
    sent = sum(s.message.values.nbytes for s in transcript)
    assert sent == plan.dealt_bytes + plan.sent_bytes
    with pytest.raises(DealReusedError):
        next(share_counts(w.holders["a"], plan, codes.astype(np.uint8)))


def test_sizes_of_counts_are_checked():
    with pytest.raises(ValueError, match="from 1 to 16 bits, got 17"):
        CountPlan(b"query", ("a",), 3, 17, Ring(16))
