"""Shares of rows at level 2 do not tell whose rows they are; unsafe ways of sharing do."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.alignment_worlds import align, plan_of
from vertibayes_mpc.alignment import site as site_module
from vertibayes_mpc.alignment.site import shares_of
from vertibayes_mpc.ring import Ring

pytestmark = pytest.mark.laws
RING = Ring(1)
RUNS = 40
LISTS = {"a": [b"p", b"q"], "b": [b"p", b"r"]}, {"a": [b"p", b"q"], "b": [b"q", b"r"]}
ROWS = {"a": [0, 1], "b": [1, 0]}  # a's own people have different values: which is in the study?


def views(lists, sites, rings=(RING,)):
    """Count what some sites hold together: their shares of all rows."""
    rows = {site: [np.array(ROWS[site], ring.dtype) for ring in rings] for site in lists}
    plan = plan_of(lists, level=2, rings=rings)
    seen = Counter()
    for seed in range(RUNS):
        outputs = align(plan, lists, rows=rows, seed=b"%d" % seed)
        shares = [column for s in sites for owner in "ab" for column in outputs[s].shares[owner]]
        seen[tuple(int(column[0]) for column in shares)] += 1
    return seen


def p_value(*counts):
    keys = sorted(set().union(*counts))
    return chi2_contingency([[seen[key] for key in keys] for seen in counts]).pvalue


@pytest.mark.parametrize("sites", ["a", "b"])
def test_the_shares_of_one_site_are_alike_whoever_is_in_the_study(sites):
    assert p_value(*(views(lists, sites) for lists in LISTS)) > 1e-4


def test_the_shares_of_one_site_are_uniform():
    seen = views(LISTS[0], "a")
    assert len(seen) == 4 and p_value(seen, Counter(dict.fromkeys(seen, RUNS // 4))) > 1e-4


def test_a_first_site_that_has_the_other_share_too_is_found():
    """The control: the dealer does not take the other site's share into account."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "vertibayes_mpc.alignment.site.shares_of",
            lambda *args: [0 * column for column in shares_of(*args)],
        )
        assert p_value(*(views(lists, "a") for lists in LISTS)) < 1e-9


def test_one_stream_for_two_columns_is_found():
    """The control: the difference of two shares is that of the values."""
    rings = RING, RING

    def twice(plan, key, owner, people):
        first, *_ = shares_of(plan, key, owner, people)
        return [first for _ in plan.rings(owner)]

    def differences(lists):
        seen = Counter()
        for (one, other, three, four), count in views(lists, "a", rings).items():
            seen[(other - one) % 2, (four - three) % 2] += count
        return seen

    assert len(differences(LISTS[0])) > 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vertibayes_mpc.alignment.site.shares_of", twice)
        patch.setattr(site_module, "shares_of", twice)
        assert len(differences(LISTS[0])) == 1  # equal columns: equal shares


def test_the_shares_of_all_sites_are_the_rows():
    outputs = align(
        plan_of(LISTS[1], level=2, rings=(RING,)),
        LISTS[1],
        rows={site: [np.array(ROWS[site], RING.dtype)] for site in "ab"},
    )
    total = {
        owner: int(sum(outputs[site].shares[owner][0][0] for site in "ab")) % 2 for owner in "ab"
    }
    assert total == {"a": 1, "b": 1}
