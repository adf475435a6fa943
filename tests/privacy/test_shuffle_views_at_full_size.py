"""At full size, by chi-square: shuffled messages and orders do not depend on another's data.

Masks of 24 and 48 bits and orders from AES streams. Beside each test the variant that it must
reject: masks as small as the data, orders of keys of two bits, one order for two tables.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from tests.worlds import shuffle, taken_apart, world
from vertibayes_mpc.labelled import Piece, unpacked
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.shuffled_tables.plan import Codes, Masks, Noise, Shuffled, Streams, Tags

RECORDS = 20_000
BUCKETS = 32
CODES = 200  # of each of three columns: joint codes take 23 bits


class SmallMasks:
    """A real mistake, made in the field: masks as small as the data."""

    def __init__(self, key):
        self.key = key

    def elements(self, ring, name, shape, start=0):
        return self.key.elements(ring, name, shape, start) % ring.dtype.type(3)

    def permutation(self, name, count):
        return self.key.permutation(name, count)


# ---- what is sent --------------------------------------------------------------------------------


def views(data_of_b, wrap):
    """Return the vectors of each (what, sender, receiver), with their ring, when b holds these."""
    columns = [
        (CODES - 1, False, {"a": np.zeros(RECORDS)}),
        (CODES - 1, True, {"b": data_of_b}),
        (CODES - 1, False, {"c": np.zeros(RECORDS)}),
    ]
    secret = bytes([int(data_of_b[0])])  # other masks in another run
    w = world(
        columns,
        RECORDS,
        block_rows=8192,
        stream=lambda *pair: wrap(StreamKey(label("key", secret, *pair))),
    )
    found = defaultdict(list)
    for m in w.commit():
        for (form, place), values in taken_apart(w.commitments, m.sender, m.message.values).items():
            ring = w.commitments.form(form, place).ring
            found[form, ring, m.sender, m.receiver].append(values[0])
    for missing in (False, True):
        plan, _, messages = shuffle(w, [(0, 1, 2)], missing)
        for m in messages:
            for part, ring, values in vectors_of(plan, m):
                found[part, ring, m.sender, m.receiver].append(values)
    return {key: np.concatenate(vectors) for key, vectors in found.items()}


def vectors_of(plan, sent):
    """Take a message of a plan of one table apart: (what, ring, values)."""
    (table,), kind, values = plan.tables, type(sent.message), sent.message.values
    codes, tags = table.ring, plan.commitments.flag_ring
    if kind is Codes:  # where records drop out there are fewer for one of the data
        return [] if table.dropping else [("opened", codes, codes.unpack(values, RECORDS))]
    rings = {Noise: [tags], Tags: [tags], Shuffled: plan.rings(table)}.get(kind)
    if kind is Masks:
        first = sent.receiver == table.chain[0]
        rings = [codes] * first + [tags] * bool(table.dropping)
    vectors, at = [], 0
    for ring in rings:
        end = at + ring.packed_size(RECORDS)
        vector = ring.unpack(values[at:end], RECORDS)
        vectors.append((f"{kind.kind}, {ring.bits} bits", ring, vector))
        at = end
    assert at == len(values)
    return vectors


def p_values(wrap=lambda key: key):
    """Compare the high and low bits of each vector for b's all-zeros and all-missing data."""
    ones, others = (views(np.full(RECORDS, code), wrap) for code in (0, CODES - 1))
    assert ones.keys() == others.keys()
    found = {}
    for what, ring, sender, receiver in ones:
        drawn = ones[what, ring, sender, receiver], others[what, ring, sender, receiver]
        for shift in (0, ring.bits - 5):
            counts = [
                np.bincount(((v >> v.dtype.type(shift)) % BUCKETS).astype(np.intp), minlength=32)
                for v in drawn
            ]
            table = np.array(counts)
            p = chi2_contingency(table[:, table.any(axis=0)]).pvalue
            found[what, sender, receiver, shift] = p
    return found


# What is sent, and by whom it depends on b's data if masks are small.
SENT = {
    "codes": "b",
    "flags": "b",
    "noise, 48 bits": "b",
    "shuffled, 23 bits": "b",
    "shuffled, 48 bits": "b",
    "tags, 48 bits": "c",
    "opened": "c",
}
DEALT = ("shuffled masks, 23 bits", "shuffled masks, 48 bits")


def test_no_message_depends_on_the_data():
    found = p_values()
    assert {what for what, *_ in found} == {*SENT, *DEALT}
    assert min(found.values()) > 1e-3 / len(found)


def test_small_masks_are_rejected():
    found = p_values(SmallMasks)
    for what, sender in SENT.items():
        sent = [p for (w, s, _, _), p in found.items() if (w, s) == (what, sender)]
        assert min(sent) < 1e-9, what


# ---- orders --------------------------------------------------------------------------------------

MARKED, PEOPLE, TABLES = 0, 8, 2400


class Still:
    """A key of the coalition, which knows its orders: it keeps the records as they are."""

    def __init__(self, key):
        self.elements = key.elements

    def permutation(self, name, count):
        return np.arange(count)


def places(tables):
    """Return the places at which a's marked record is opened in many tables.

    Others' orders are known to them, and taken out. In three tables a is the first, the last and
    the second of the chain.
    """

    def stream(*pair):
        key = StreamKey(label("places", *pair))
        return key if pair == ("a", "dealer") else Still(key)

    marked = np.arange(PEOPLE) == MARKED
    columns = [(1, False, {"a": marked}), *((1, False, {s: np.zeros(PEOPLE)}) for s in "bc")]
    w = world(columns, PEOPLE, stream=stream)
    w.commit()
    plan, _, messages = shuffle(w, [(0, 1, 2)] * tables)
    ring = plan.tables[0].ring
    layout = [Piece(ring, (PEOPLE,))] * tables
    codes = [m for m in messages if type(m.message) is Codes]
    shares = [np.concatenate([*unpacked(layout, m.message.values, m.sender)]) for m in codes]
    opened = ring.reduce(np.sum(shares, axis=0, dtype=ring.dtype)).reshape(tables, PEOPLE)
    assert (np.count_nonzero(opened, axis=1) == 1).all()
    return np.argmax(opened, axis=1)


def p_uniform(found):
    return chisquare(np.bincount(found, minlength=PEOPLE)).pvalue


def p_independent(found):
    pairs = np.zeros((PEOPLE, PEOPLE))
    np.add.at(pairs, (found[::2], found[1::2]), 1)
    return chi2_contingency(pairs).pvalue


@pytest.fixture(scope="module")
def honest_places():
    return places(TABLES)


@pytest.mark.parametrize("turn", [0, 1, 2], ids=["first", "last", "second"])
def test_a_marked_record_is_opened_anywhere(honest_places, turn):
    assert p_uniform(honest_places[turn::3]) > 1e-3


def test_two_orders_are_independent(honest_places):
    assert p_independent(honest_places) > 1e-3


def test_orders_of_keys_of_two_bits_are_rejected(monkeypatch):
    def short(key, name, count):
        return np.argsort(np.frombuffer(key.expand(name, count), np.uint8) >> 6, kind="stable")

    monkeypatch.setattr(StreamKey, "permutation", short)
    assert p_uniform(places(600)) < 1e-9


def test_one_order_for_two_tables_is_rejected(monkeypatch):
    def order(streams, table):
        name = label("order", streams.plan.label, table.index // 2)
        return streams.key.permutation(name, streams.plan.selection.records)

    monkeypatch.setattr(Streams, "order", order)
    assert p_independent(places(600)) < 1e-9
