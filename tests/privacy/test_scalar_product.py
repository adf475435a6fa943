"""What the receiver and all parties but one see; and the published protocol's holes.

Exhaustively on tiny rings, statistically at full size; the attacks are carried out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.privacy.published_scalar_product import (
    LARGEST,
    JavaRandom,
    read_by_generator,
    read_by_product,
    read_by_range,
    three_parties_view,
    two_parties_view,
)
from tests.privacy.simulation import has_choices, influential, is_simulatable
from tests.randomness import HashStream, TableStream
from tests.worlds import all_of
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scalar_product import (
    MaskedFactor,
    MaskedMasks,
    Multiplier,
    Product,
    deal_product,
    receive_product,
    scalar_product,
)
from vertibayes_mpc.scalar_product.product import Subprotocol
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.sharing import Share


def run(parties, bits, vectors, keys):
    """Run a product of vectors of shape (1, m); return the result and all messages."""
    records = vectors[parties[0]].shape[1]
    what = Product(b"study", b"id", Ring(bits), tuple(parties), 1, records)
    programs = {
        p: scalar_product(Multiplier(p, keys[p]), what, vectors[p], "analyst") for p in parties
    }
    programs |= {"dealer": deal_product(keys, what), "analyst": receive_product(what)}
    outputs, transcript = run_all(programs)
    return outputs["analyst"], transcript


# ---- exhaustively --------------------------------------------------------------------------------


def distributions(parties, honest, bits, records, others=1, limit=None, salt=""):
    """Return {result: [distribution of the view, one for each vector of the honest party]}.

    `others` is what all other parties' vectors hold.
    """
    ring, found, places = Ring(bits), defaultdict(list), None
    for data in product(range(2**bits), repeat=records):
        secret = TableStream(limit)
        vectors = {p: np.full((1, records), others, ring.dtype) for p in parties}
        vectors[honest] = np.array([data], ring.dtype)
        keys = {p: HashStream(f"{p}{salt}".encode()) for p in parties} | {honest: secret}

        def view(vectors=vectors, keys=keys):
            result, transcript = run(parties, bits, vectors, keys)
            seen = [
                s for s in transcript if s.sender in (honest, "dealer") and s.receiver != honest
            ]
            seen.sort(key=lambda s: (s.sender, s.receiver, type(s.message).__name__))
            return tuple(result.tolist()), tuple(s.message.values.tobytes() for s in seen)

        result, _ = view()
        places = places or influential(secret, view)
        views = Counter(view()[1] for _ in secret.assignments(places))
        found[result].append(views)
    return found


# Parties, who is honest, bits, records, the others' data: each leaves the honest one's data open.
CASES = {
    "two parties": ("ab", "ab", 2, 2, 1),
    "two parties, zeros": ("ab", "ab", 3, 1, 4),
    "three parties": ("abc", "c", 1, 2, 1),
    "three parties, zeros": ("abc", "abc", 1, 1, 0),
}


def cases():
    for name, (parties, each, bits, records, others) in CASES.items():
        for honest in each:
            case = parties, honest, bits, records, others
            yield pytest.param(*case, id=f"{name}, {honest} honest")


@pytest.mark.laws
@pytest.mark.parametrize(("parties", "honest", "bits", "records", "others"), list(cases()))
def test_a_view_is_simulated_from_the_result(parties, honest, bits, records, others):
    found = distributions(parties, honest, bits, records, others)
    assert has_choices(found) and is_simulatable(found)


def is_rejected(parties, honest):
    """Whether the coalition's view is not simulatable, for some streams of its own."""
    salts = "", "1", "2", "3"
    return any(not is_simulatable(distributions(parties, honest, 1, 2, salt=s)) for s in salts)


def test_ours_is_not_rejected_for_any_of_these_streams():
    assert not is_rejected("ab", "b")


def test_small_masks_are_rejected():
    found = distributions("ab", "b", 2, 2, limit=2)
    assert has_choices(found) and not is_simulatable(found)


def test_results_opened_without_a_split_are_rejected(monkeypatch):
    monkeypatch.setattr(Product, "split", lambda self, key: np.zeros(self.count, self.ring.dtype))
    assert is_rejected("ab", "b")


def test_one_mask_for_all_subprotocols_is_rejected(monkeypatch):
    def mask(self, key):
        return key.elements(self.product.ring, self.product.label, self.product.shape)

    monkeypatch.setattr(Subprotocol, "mask", mask)
    assert is_rejected("abc", "c")


def only_the_first(sub, key, mask):
    """As published: the first party of K alone deals the mask of R_K."""
    (party,) = [p for p, k in KEYS.items() if k is key]
    factor = sub.factor_of(party)
    return mask(sub, key) if factor[0] == party else np.zeros(sub.product.shape, "u2")


KEYS = {p: StreamKey(label("key", p)) for p in "abc"}


def read_with_a_party_of_k(transcript, records):
    """Parties a and b read c's vector: a is sent R_b R_c + R'_b, and b knows R_b and R'_b."""
    what = Product(b"study", b"id", Ring(16), tuple("abc"), 1, records)
    (sub,) = [s for s, _ in what.top.below() if s.factors[-1] == ("b", "c")]
    sent = {(s.sender, s.receiver, s.message.label): s.message.values.view("<u2").reshape(1, -1)
            for s in transcript if isinstance(s.message, MaskedFactor | MaskedMasks)}  # fmt: skip
    products = sent["dealer", "a", sub.label] - sub.mask(KEYS["b"])
    own = what.top.mask(KEYS["b"])
    odd = own[0] % 2 == 1  # the others are known but for a few bits
    inverse = np.array([pow(int(r), -1, 2**16) for r in own[0][odd]], np.uint16)
    return sent["c", "a", what.label][0][odd] - products[0][odd] * inverse, odd


@pytest.mark.parametrize("published", [True, False])
def test_two_parties_read_a_third_if_one_of_them_deals(published, monkeypatch):
    """The published roles, with masks over the whole ring; and ours, where c has a part in R'_K."""
    records = 4000
    generator = np.random.default_rng(9)
    vectors = {p: generator.integers(0, 2, (1, records)).astype(np.uint16) for p in "abc"}
    mask = Subprotocol.mask
    with monkeypatch.context() as patch:
        if published:
            patch.setattr(Subprotocol, "mask", lambda sub, key: only_the_first(sub, key, mask))
        result, transcript = run("abc", 16, vectors, KEYS)
    assert result == (vectors["a"] * vectors["b"] * vectors["c"]).sum()
    guess, odd = read_with_a_party_of_k(transcript, records)
    right = np.mean(guess == vectors["c"][0][odd])
    assert right == 1 if published else right < 0.01


# ---- at full size --------------------------------------------------------------------------------

RECORDS, BUCKETS = 4096, 16


class SmallMasks:
    """Masks of 1 .. `largest`: 512 as published, but from a good generator."""

    def __init__(self, key, largest):
        self.key, self.largest = key, largest

    def elements(self, ring, name, shape, start=0):
        elements = self.key.elements(ring, name, shape, start)
        return elements % ring.dtype.type(self.largest) + ring.dtype.type(1)


def views(parties, value, bits, wrap):
    """Return all elements on each link that the coalition sees, when b's vector is all `value`."""
    vectors = {p: np.ones((1, RECORDS), Ring(bits).dtype) for p in parties}
    vectors["b"] *= vectors["b"].dtype.type(value)
    keys = {p: wrap(StreamKey(label("key", p, value))) for p in parties}
    _, transcript = run(parties, bits, vectors, keys)
    found = defaultdict(list)
    for s in transcript:
        if s.sender in ("b", "dealer") and s.receiver != "b" and s.message.values.size > 4:
            elements = all_of(Ring(bits), s.message.values)
            found[type(s.message), s.sender, s.receiver].append(elements)
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def p_values(parties, bits, wrap=lambda key: key):
    """Compare the high and the low bits of each link for b's all-zeros and all-ones vectors."""
    zeros, all_ones = (views(parties, value, bits, wrap) for value in (0, 1))
    assert zeros.keys() == all_ones.keys()
    found = {}
    for key, shift in product(zeros, (0, 4, bits - 4)):
        high = [v[key] >> v[key].dtype.type(shift) for v in (zeros, all_ones)]
        table = np.array([np.bincount(h % BUCKETS, minlength=BUCKETS) for h in high])
        table = table[:, table.any(axis=0)]
        found[(*key, shift)] = chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
    return found


@pytest.mark.parametrize(("parties", "bits"), [("ab", 16), ("ab", 32), ("abc", 16), ("abcd", 32)])
def test_no_message_depends_on_the_data(parties, bits):
    found = p_values(parties, bits)
    kinds = {key[0] for key in found}
    assert kinds == ({MaskedFactor} if len(parties) == 2 else {MaskedFactor, MaskedMasks})
    assert min(found.values()) > 1e-3 / len(found)


@pytest.mark.parametrize("parties", ["ab", "abc"])
def test_no_message_is_other_than_uniform(parties):
    for value in (0, 1):
        for values in views(parties, value, 16, lambda key: key).values():
            counts = np.bincount(values >> 12, minlength=16)
            assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 60  # p = 2e-7


@pytest.mark.parametrize("parties", ["ab", "abc"])
def test_small_masks_are_rejected_at_full_size(parties):
    assert min(p_values(parties, 32, lambda key: SmallMasks(key, 10)).values()) < 1e-9


def test_shares_are_uniform():
    """Over many products, one party's share takes all values alike, whatever the result."""
    counts = np.zeros(16)
    vectors = {p: np.zeros((1, 3), np.uint16) for p in "abc"}
    for number in range(400):
        keys = {p: StreamKey(label("key", number, p)) for p in "abc"}
        for s in run("abc", 16, vectors, keys)[1]:
            if isinstance(s.message, Share) and s.sender == "b":
                counts[s.message.values.view("<u2")[0] >> 12] += 1
    assert ((counts - 25) ** 2 / 25).sum() < 60


# ---- the published protocol, attacked ------------------------------------------------------------


@pytest.fixture(scope="module")
def records():
    return np.random.default_rng(4).integers(0, 2, 10_000)


def ours_at_the_same_place(records):
    """Return a's masks and b's masked records, in our protocol."""
    vectors = {"a": np.ones((1, len(records)), np.uint32), "b": records[None].astype(np.uint32)}
    _, transcript = run("ab", 32, vectors, KEYS)
    (masked,) = [
        s.message.values.view("<u4") for s in transcript if (s.sender, s.receiver) == ("b", "a")
    ]
    what = Product(b"study", b"id", Ring(32), ("a", "b"), 1, len(records))
    return what.top.mask(KEYS["a"])[0].astype(np.int64), masked.astype(np.int64)


def test_nine_own_masks_give_the_generator_and_all_records_away(records):
    own, masked = two_parties_view(JavaRandom(20_230_401), records)
    assert np.array_equal(read_by_generator(own, masked), records)


def test_our_masks_are_no_linear_generator_s(records):
    own, masked = ours_at_the_same_place(records)
    assert read_by_generator(own % LARGEST + 1, masked) is None


def test_the_ends_of_the_range_give_records_away(records):
    _, masked = two_parties_view(JavaRandom(1), records)
    read = read_by_range(masked)
    known = read >= 0
    assert 5 < known.sum() < 40 and np.array_equal(read[known], records[known])


def test_ours_has_no_range_to_leave(records):
    """Every element of the ring is as likely, whatever the record is."""
    _, masked = ours_at_the_same_place(records)
    assert not (read_by_range(masked) >= 0).any()
    high = masked >> 28
    table = np.array([np.bincount(high[records == bit], minlength=16) for bit in (0, 1)])
    assert chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize(("ones", "least"), [(0.5, 0.32), (0.1, 0.42), (0.0, 0.48)])
def test_a_product_of_masks_gives_a_third_of_the_records_away(ones, least):
    """Three parties, half, a tenth, none of the records 1: 34, 44, 50 % are read, without error."""
    generator = np.random.default_rng(6)
    second, third = (generator.random((2, 10_000)) < ones).astype(np.int64)
    read = read_by_product(*three_parties_view(JavaRandom(7), second, third))
    known = read >= 0
    assert least < known.mean() < least + 0.05 and np.array_equal(read[known], second[known])


def test_our_product_of_masks_gives_nothing_away(records):
    """No value of a record is excluded: each agrees with one mask, and all masks are as likely."""
    generator = np.random.default_rng(8)
    vectors = {p: generator.integers(0, 2, (1, 4000)).astype(np.uint16) for p in "abc"}
    _, transcript = run("abc", 16, vectors, KEYS)
    seen = [s.message.values for s in transcript if isinstance(s.message, MaskedMasks)]
    assert len(seen) == 3
    (masked,) = [s.message.values.view("<u2") for s in transcript
                 if isinstance(s.message, MaskedMasks) and s.receiver == "a"]  # fmt: skip
    bits = (vectors["b"] * 2 + vectors["c"])[0]
    table = np.array([np.bincount(masked[bits == b] >> 12, minlength=16) for b in range(4)])
    assert chi2_contingency(table).pvalue > 1e-3
