"""Permutations from a key: uniform, the same at both ends, of any number of records."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

import vertibayes_mpc.randomness
from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair, StreamKey, label

KEY = StreamKey(bytes(range(32)))


def orders(count, runs, key=KEY):
    return Counter(tuple(key.permutation(label("run", run), count).tolist()) for run in range(runs))


def p_uniform(found, count):
    return chisquare([found[order] for order in permutations(range(count))]).pvalue


def whole_words(monkeypatch):
    """Have all permutations sort whole words, as above 2^21 records."""
    monkeypatch.setattr(vertibayes_mpc.randomness, "MOST_PLACE_BITS", 0)


def cut(monkeypatch, bits):
    """Leave keys of a few bits, the lowest ones of each word: most draws have ties."""
    expand = StreamKey.expand
    sizes = []

    def few(key, name, count, start=0):
        sizes.append(count)
        words = np.frombuffer(expand(key, name, count, start), "<u8") & np.uint64(2**bits - 1)
        return bytearray(words.tobytes())

    monkeypatch.setattr(StreamKey, "expand", few)
    return sizes


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("way", [None, whole_words])
def test_all_orders_are_alike(monkeypatch, count, way):
    if way:
        way(monkeypatch)
    found = orders(count, 4800)
    assert sum(found.values()) == 4800 and len(found) == len(list(permutations(range(count))))
    assert p_uniform(found, count) > 1e-3


@pytest.mark.parametrize("way", [None, whole_words])
def test_keys_with_ties_are_drawn_again(monkeypatch, way):
    """With keys of two bits, three records tie oftener than not; orders are uniform yet."""
    if way:
        way(monkeypatch)
    sizes = cut(monkeypatch, 2)
    found = orders(3, 2400)
    assert len(sizes) > 2 * 2400
    assert p_uniform(found, 3) > 1e-3


def test_orders_with_ties_are_rejected(monkeypatch):
    """Ties in the order of the records are what the test above must find."""
    cut(monkeypatch, 2)
    monkeypatch.setattr(
        vertibayes_mpc.randomness,
        "_sorted_words",
        lambda words, _: np.argsort(words, kind="stable"),
    )
    assert p_uniform(orders(3, 2400), 3) < 1e-9


def test_each_attempt_has_a_stream_of_its_own(monkeypatch):
    sort, drawn = vertibayes_mpc.randomness._sorted_words, []

    def third(words, place_bits):
        drawn.append(words.copy())
        return sort(words, place_bits) if len(drawn) == 3 else None

    monkeypatch.setattr(vertibayes_mpc.randomness, "_sorted_words", third)
    KEY.permutation(b"name", 5)
    assert len({words.tobytes() for words in drawn}) == 3


def test_both_ends_draw_the_same():
    one, other = (KeyPair.generate(SeededRandomness(seed)) for seed in (b"1", b"2"))
    here, there = one.agree(other.public, "masks"), other.agree(one.public, "masks")
    assert np.array_equal(here.permutation(b"name", 1000), there.permutation(b"name", 1000))
    assert not np.array_equal(here.permutation(b"name", 1000), here.permutation(b"other", 1000))


@pytest.mark.parametrize("count", [0, 1, 2, 1000, 65_537])
@pytest.mark.parametrize("way", [None, whole_words])
def test_every_place_appears_once(monkeypatch, count, way):
    if way:
        way(monkeypatch)
    order = KEY.permutation(b"name", count)
    assert order.dtype == np.intp
    assert np.array_equal(np.sort(order), np.arange(count))


def test_more_records_than_places_fit_beside_keys_sort_whole_words(monkeypatch):
    """The bound is 2^21 records: here 2^3."""
    asked = []
    monkeypatch.setattr(vertibayes_mpc.randomness, "MOST_PLACE_BITS", 3)
    sort = vertibayes_mpc.randomness._sorted_keys
    monkeypatch.setattr(
        vertibayes_mpc.randomness, "_sorted_keys", lambda *a: asked.append(len(a[0])) or sort(*a)
    )
    for count in (7, 8, 9, 20):
        KEY.permutation(b"name", count)
    assert asked == [9, 20]


@pytest.mark.parametrize(
    ("name", "words", "order"),
    [
        (b"", False, [10, 4, 11, 5, 2, 3, 0, 7, 1, 9, 8, 6]),
        (b"name", False, [11, 3, 5, 10, 4, 6, 1, 2, 9, 8, 0, 7]),
        (b"name", True, [8, 11, 7, 1, 9, 4, 3, 6, 2, 5, 10, 0]),
    ],
)
def test_known_orders(monkeypatch, name, words, order):
    if words:
        whole_words(monkeypatch)
    assert KEY.permutation(name, 12).tolist() == order


def test_a_known_order_is_that_of_the_stream_s_words():
    """By hand: the words of the first attempt, their low 60 bits before 4 bits of place."""
    stream = KEY.expand(label("permutation", b"name", 0), 8 * 12)
    words = [int.from_bytes(stream[at : at + 8], "little") for at in range(0, 96, 8)]
    keys = [word % 2**60 for word in words]
    assert KEY.permutation(b"name", 12).tolist() == sorted(range(12), key=keys.__getitem__)
