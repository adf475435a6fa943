import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair, StreamKey, SystemRandomness, label
from vertibayes_mpc.ring import Ring

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "streams.json").read_text())
KEY = StreamKey(bytes(range(32)))


@pytest.mark.parametrize("vector", VECTORS["streams"], ids=lambda v: v["purpose"])
def test_known_streams(vector):
    name = label(vector["purpose"], *vector["parts"])
    assert name.hex() == vector["label"]
    stream = StreamKey(bytes.fromhex(vector["secret"])).expand(name, 48)
    assert stream.hex() == vector["stream"]


def test_known_agreement():
    # The key pairs of RFC 7748, section 6.1.
    alice, bob = (KeyPair(bytes.fromhex(VECTORS["agreement"][n])) for n in ("alice", "bob"))
    assert alice.public.hex() == VECTORS["agreement"]["alice_public"]
    ours, theirs = alice.agree(bob.public, "masks"), bob.agree(alice.public, "masks")
    assert ours == theirs
    assert ours.secret.hex() == VECTORS["agreement"]["masks"]
    assert alice.agree(bob.public, "zeros") != ours


@given(st.integers(0, 70), st.integers(0, 70))
def test_a_stream_can_be_expanded_from_any_place(start, count):
    name = label("a", 1)
    assert KEY.expand(name, count, start) == KEY.expand(name, start + count)[start:]


def test_a_long_stream_is_one_stream():
    name = label("long")
    whole = KEY.expand(name, (1 << 20) + 100)
    assert KEY.expand(name, 50, (1 << 20) + 20) == whole[(1 << 20) + 20 : (1 << 20) + 70]
    assert len(set(whole[:4096])) > 200


def test_elements_fill_the_ring_and_no_more():
    values = KEY.elements(Ring(2), label("few"), (3, 400))
    assert set(values.ravel().tolist()) == {0, 1, 2, 3}
    assert KEY.elements(Ring(32), label("none"), (0, 5)).shape == (0, 5)


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_labels_of_different_parts_differ(a, b):
    assert (label("x", *a) == label("x", *b)) == (a == b)


def test_a_label_tells_its_purpose():
    assert label("commit", b"1") != label("remask", b"1")


def test_nothing_secret_in_a_repr():
    pair = KeyPair.generate(SeededRandomness())
    assert pair.private.hex() not in repr(pair) and str(pair.private) not in repr(pair)
    assert repr(KEY) == "StreamKey()"


def test_the_system_source_does_not_repeat():
    assert SystemRandomness().bytes(16) != SystemRandomness().bytes(16)


@pytest.mark.parametrize("bad", [b"short", bytes(32)])
def test_a_bad_public_key_is_refused(bad):
    with pytest.raises(ValueError):  # noqa: PT011 (the library's wording)
        KeyPair.generate(SeededRandomness()).agree(bad, "masks")


def test_elements_are_uniform():
    counts = np.bincount(KEY.elements(Ring(16), label("u"), (1 << 16,)) >> 12, minlength=16)
    assert ((counts - 4096) ** 2 / 4096).sum() < 45  # chi-square, 15 degrees, p = 1e-4
