"""The n-party scalar product: correct on all shapes, counted, and refusing what has no place."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.randomness import HashStream
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Message
from vertibayes_mpc.scalar_product import (
    MaskedFactor,
    MaskedMasks,
    Multiplier,
    Product,
    ProductCorrection,
    deal_product,
    receive_product,
    scalar_product,
    share_product,
    subprotocols,
)
from vertibayes_mpc.scheduler import ByHand, Scheduler, run_all
from vertibayes_mpc.sharing import Share
from vertibayes_protocols.wire import decode, encode

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "scalar_product.json").read_text())


def product_of(n, ring=None, count=1, records=4, name=b"id"):
    return Product(b"study", name, ring or Ring(16), tuple("abcdef"[:n]), count, records)


def keys_of(product):
    return {party: HashStream(party.encode()) for party in product.parties}


def programs(product, vectors, receiver="analyst"):
    keys = keys_of(product)
    found = {
        p: scalar_product(Multiplier(p, keys[p]), product, vectors[p], receiver)
        for p in product.parties
    }
    if receiver not in product.parties:
        found[receiver] = receive_product(product)
    return found | {"dealer": deal_product(keys_of(product), product)}


def ones(product):
    return {p: np.ones(product.shape, product.ring.dtype) for p in product.parties}


def plain(product, vectors):
    """The results by Python's integers."""
    columns = [vectors[p].tolist() for p in product.parties]
    rows = [zip(*rows, strict=True) for rows in zip(*columns, strict=True)]
    return [sum(map(math.prod, row)) % 2**product.ring.bits for row in rows]


# ---- correctness ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_receiver_gets_the_products(data):
    ring = Ring(data.draw(st.sampled_from([1, 3, 8, 16, 32])))
    n = data.draw(st.integers(2, 4))
    count, records = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 5))
    product = product_of(n, ring, count, records)
    receiver = data.draw(st.sampled_from([*product.parties, "analyst"]))
    element = st.integers(0, 2**ring.bits - 1)
    row = st.lists(element, min_size=records, max_size=records)
    draw = lambda: data.draw(st.lists(row, min_size=count, max_size=count))  # noqa: E731
    vectors = {p: np.array(draw(), ring.dtype).reshape(product.shape) for p in product.parties}
    outputs, _ = run_all(programs(product, vectors, receiver))
    assert outputs[receiver].tolist() == plain(product, vectors)
    assert outputs[receiver].dtype == ring.dtype
    assert all(out is None for party, out in outputs.items() if party != receiver)


def test_five_parties():
    generator = np.random.default_rng(5)
    product = product_of(5, Ring(32), 2, 30)
    vectors = {p: generator.integers(0, 2**32, (2, 30), np.uint32) for p in product.parties}
    outputs, transcript = run_all(programs(product, vectors))
    assert outputs["analyst"].tolist() == plain(product, vectors)
    assert count_subprotocols(transcript) == subprotocols(5) == 336


def test_shares_add_up_and_open_nothing():
    product = product_of(3)
    keys, vectors = keys_of(product), ones(product_of(3))
    given_ = {
        p: share_product(Multiplier(p, keys[p]), product, vectors[p]) for p in product.parties
    }
    outputs, transcript = run_all(given_ | {"dealer": deal_product(keys, product)})
    shares = [outputs[p] for p in product.parties]
    assert sum(int(s[0]) for s in shares) % 2**16 == 4
    assert all(int(s[0]) > 4 for s in shares)
    assert not any(isinstance(sent.message, Share) for sent in transcript)


# ---- known answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS["products"], ids=lambda v: f"n = {len(v['vectors'])}")
def test_known_messages(vector):
    ring = Ring(vector["bits"])
    vectors = {p: np.array(v, ring.dtype) for p, v in vector["vectors"].items()}
    shape = next(iter(vectors.values())).shape
    study, name = vector["study"].encode(), bytes.fromhex(vector["id"])
    product = Product(study, name, ring, tuple(vectors), *shape)
    keys = {p: StreamKey(bytes.fromhex(key)) for p, key in vector["keys"].items()}
    given_ = {
        p: scalar_product(Multiplier(p, keys[p]), product, vectors[p], "analyst") for p in vectors
    }
    given_ |= {"dealer": deal_product(keys, product), "analyst": receive_product(product)}
    outputs, transcript = run_all(given_)
    sent = [[s.sender, s.receiver, s.message.kind, s.message.values.tolist()] for s in transcript]
    expected = [
        [*link, ring.pack(np.array(values, ring.dtype)).tolist()]
        for *link, values in vector["messages"]
    ]
    assert sorted(sent) == sorted(expected)
    assert outputs["analyst"].tolist() == vector["result"] == plain(product, vectors)
    opened = [values for _, to, _, values in vector["messages"] if to == "analyst"]
    assert [sum(v) % 2**ring.bits for v in zip(*opened, strict=True)] == vector["result"]


def test_two_parties_by_hand():
    """The messages of two parties, from the streams alone, by Python's integers."""
    product = product_of(2, Ring(16), 1, 3)
    vectors = {"a": np.array([[1, 0, 1]], np.uint16), "b": np.array([[1, 1, 5]], np.uint16)}
    masks, splits = {}, {}
    for party, key in keys_of(product).items():
        masks[party] = key.elements(Ring(16), product.label, (1, 3)).tolist()[0]
        splits[party] = int(key.elements(Ring(16), label("split", product.label), (1,))[0])
    masked = {
        p: [(x + r) % 2**16 for x, r in zip(v[0].tolist(), masks[p], strict=True)]
        for p, v in vectors.items()
    }
    inner = lambda u, v: sum(x * y for x, y in zip(u, v, strict=True))  # noqa: E731
    c_a = (inner(masks["a"], masks["b"]) - splits["b"]) % 2**16
    z_a = (inner(vectors["a"][0].tolist(), masked["b"]) + c_a) % 2**16
    z_b = (splits["b"] - inner(masks["b"], masked["a"])) % 2**16
    _, transcript = run_all(programs(product, vectors))
    found = {(s.sender, s.receiver): s.message.values.view("<u2").tolist() for s in transcript}
    assert found == {
        ("a", "b"): masked["a"],
        ("b", "a"): masked["b"],
        ("dealer", "a"): [c_a],
        ("a", "analyst"): [z_a],
        ("b", "analyst"): [z_b],
    }
    assert (z_a + z_b) % 2**16 == 6


# ---- cost ----------------------------------------------------------------------------------------


def count_subprotocols(transcript):
    masked = [s.message for s in transcript if isinstance(s.message, MaskedFactor | MaskedMasks)]
    return len({message.label for message in masked})


def test_the_number_of_subprotocols_is_the_one_of_the_paper():
    assert [subprotocols(n) for n in range(2, 7)] == [1, 4, 29, 336, 5687]


def test_table_1_of_the_paper_counts_one_level():
    """It has n! / (x! (n - x)!) for each x from 2 to n: the whole, and what is directly below."""
    one_level = [1 + len(list(product_of(n).top.below())) for n in range(2, 7)]
    assert one_level == [sum(math.comb(n, x) for x in range(2, n + 1)) for n in range(2, 7)]
    assert one_level == [1, 4, 11, 26, 57]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_run_takes_as_many_subprotocols(n):
    product = product_of(n)
    _, transcript = run_all(programs(product, ones(product)))
    assert count_subprotocols(transcript) == subprotocols(n)
    assert max(s.depth for s in transcript) == {2: 2, 3: 5, 4: 21}[n] <= subprotocols(n) + 1
    assert not any(s.receiver == "dealer" for s in transcript), "the dealer is sent nothing"


@pytest.mark.parametrize("n", [2, 3])
def test_messages(n):
    _, transcript = run_all(programs(product_of(n), ones(product_of(n))))
    kinds = sorted((type(s.message).__name__, s.sender, s.receiver) for s in transcript)
    pairs = [(p, q) for p in "abc"[:n] for q in "abc"[:n] if p != q]
    wanted = [("MaskedFactor", p, q) for p, q in pairs]
    wanted += [("ProductCorrection", "dealer", "a")]
    wanted += [("Share", p, "analyst") for p in "abc"[:n]]
    if n == 3:  # each party is alone with the two others' masks once
        wanted += [("MaskedFactor", p, q) for p, q in pairs]
        wanted += [("MaskedMasks", "dealer", p) for p in "abc"]
    assert kinds == sorted(wanted)


class OverTheWire(ByHand):
    """Encodes each message, and decodes it within the bounds that its receiver sets."""

    def pack(self, sent):
        return sent._replace(message=encode(super().pack(sent).message))

    def unpack(self, packet, sender, receiver, expect):
        return packet._replace(message=decode(packet.message, sender, expect))


@pytest.mark.parametrize("n", [2, 4])
def test_messages_travel_within_the_bounds_expected(n):
    product = product_of(n, Ring(32), 3, 7)
    scheduler = Scheduler(OverTheWire())
    for party, program in programs(product, ones(product)).items():
        scheduler.start(party, program)
    assert scheduler.finish("analyst").tolist() == [7, 7, 7]


def test_no_two_subprotocols_have_one_label():
    labels = []

    def note(sub):
        labels.append(sub.label)
        for below, _ in sub.below():
            assert sorted(p for factor in below.factors for p in factor) == list("abcde")
            note(below)

    note(product_of(5).top)
    assert len(labels) == len(set(labels)) == 336


@pytest.mark.parametrize(
    "other",
    [
        Product(b"study2", b"id", Ring(16), ("a", "b"), 1, 4),
        Product(b"study", b"id2", Ring(16), ("a", "b"), 1, 4),
        Product(b"study", b"id", Ring(32), ("a", "b"), 1, 4),
        Product(b"study", b"id", Ring(16), ("b", "a"), 1, 4),
        Product(b"study", b"id", Ring(16), ("a", "b"), 4, 1),
        Product(b"study", b"id", Ring(16), ("a", "b"), 1, 4, "another dealer"),
    ],
)
def test_a_name_names_all_that_differs(other):
    assert other.label != product_of(2).label


def test_kinds_are_nobody_else_s():
    named = {(kind.kind, kind.__qualname__) for kind in all_kinds(Message)}
    for kind in (MaskedFactor, MaskedMasks, ProductCorrection):
        assert [name for found, name in named if found == kind.kind] == [kind.__qualname__]


def all_kinds(kind):
    return {kind}.union(*(all_kinds(sub) for sub in kind.__subclasses__()))
