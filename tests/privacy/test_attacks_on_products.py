"""Attacks on the product scheme, each on the variant that it breaks, and on ours."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement
from statistics import median

import pytest
from scipy.stats import chi2_contingency

from tests.randomness import SeededRandomness
from tests.schemes import ProductParameters, encryptors
from vertibayes_mpc import product_scheme
from vertibayes_mpc.integers import uniform_below

TINY = ProductParameters(10, b"study", 2, 16)  # p = 563
PRIME, ORDER = TINY.prime, TINY.order


def is_square(value):
    return pow(value, ORDER, PRIME) == 1


def plain(count, base, key):
    """The variant as printed: x H^sk."""
    return count * pow(base, key, PRIME) % PRIME


def squared(count, base, key):
    """The scheme's."""
    return plain(count**2, base, key)


def views(encrypt, count, base):
    """Count all ciphertexts of a count under all keys."""
    return Counter(encrypt(count, base, key) for key in range(ORDER))


def test_under_all_keys_every_count_has_the_same_ciphertexts():
    base = TINY.base(1, 0)
    seen = [views(squared, count, base) for count in range(1, TINY.highest + 1)]
    assert all(view == seen[0] for view in seen)
    assert set(seen[0].values()) == {1} and len(seen[0]) == ORDER


def test_without_squaring_the_ciphertexts_tell_squares_from_others():
    base = TINY.base(1, 0)
    for count in range(1, TINY.highest + 1):
        assert {is_square(c) for c in views(plain, count, base)} == {is_square(count)}
    assert len({is_square(count) for count in range(1, 17)}) == 2
    assert views(plain, 2, base) != views(plain, 4, base)


def test_a_zero_is_sent_as_zero():
    assert set(views(squared, 0, TINY.base(1, 0))) == {0}
    _, who = encryptors(product_scheme, TINY, "ab")
    with pytest.raises(ValueError, match="smooth it first"):
        who["a"].encrypt([0], 1)


def test_a_base_that_is_no_square_gives_the_keys_parity_away():
    base = next(b for b in range(2, PRIME) if not is_square(b))
    parities = {key % 2 for key in range(ORDER) if is_square(squared(5, base, key))}
    assert parities == {0}
    assert all(is_square(TINY.base(time, 0)) for time in range(50))


def residues(encrypt, counts):
    """Tabulate the quadratic character of ciphertexts, for several counts of a party."""
    randomness = SeededRandomness(b"residues")
    rows = []
    for count in counts:
        found = [
            is_square(encrypt(count, TINY.base(time, 0), uniform_below(ORDER, randomness)))
            for time in range(200)
        ]
        rows.append([1 + sum(found), 1 + len(found) - sum(found)])
    return chi2_contingency(rows).pvalue


def test_the_quadratic_character_is_independent_of_the_count():
    assert residues(squared, (2, 4)) > 1e-3


def test_the_same_test_rejects_the_variant_without_squaring():
    assert residues(plain, (2, 4)) < 1e-9


# ---- what the product itself tells ---------------------------------------------------------------


def compatible(sites, highest):
    """Return, for each multiset of counts, how many multisets have its product."""
    found = Counter(
        math.prod(counts) for counts in combinations_with_replacement(range(1, highest + 1), sites)
    )
    return [many for many in found.values() for _ in range(many)]


def test_a_product_leaves_few_multisets_of_counts():
    sizes = compatible(3, 100)
    assert len(sizes) == math.comb(102, 3) == 171_700
    assert median(sizes) == 6
    assert sum(size == 1 for size in sizes) / len(sizes) > 0.05


def test_a_sum_leaves_many():
    sums = Counter(map(sum, combinations_with_replacement(range(1, 101), 3)))
    assert median(size for size in sums.values() for _ in range(size)) > 500
