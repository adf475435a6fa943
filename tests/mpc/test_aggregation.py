"""The full-domain hash, times, and what an aggregator takes from whom."""

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest

from vertibayes_mpc.aggregation import (
    NEVER,
    Ciphertexts,
    Expected,
    Times,
    check_senders,
    full_domain_hash,
)
from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_protocols.wire import decode, encode

EXPECTED = Expected(b"label", 5, 2, 2, 1001)
GOOD = Ciphertexts(b"label", "a", 5, 2, (b"\x00\x02", b"\x03\xe8"))


def by_hand(modulus, name, *parts):
    """The same hash from its definition."""
    digest = hashlib.sha256(b"vertibayes label 1")
    for part in ("full domain hash", modulus, name, *parts, 0):
        encoded = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    size = (modulus.bit_length() + 128 + 7) // 8
    return int.from_bytes(hashlib.shake_256(digest.digest()).digest(size), "big") % modulus


def test_the_hash_is_as_defined():
    prime = 2**521 - 1
    for parts in ((), (0,), (3, 1)):
        assert full_domain_hash(prime, b"name", *parts) == by_hand(prime, b"name", *parts)


def test_the_hash_tells_its_inputs_apart():
    inputs = [(97**9, b"a", 1, 2), (97**9, b"a", 12), (97**9, b"a", 1), (97**9, b"b", 1, 2)]
    assert len({full_domain_hash(*given) for given in inputs}) == len(inputs)


def test_the_hash_is_invertible_and_uniform():
    found = [full_domain_hash(15, b"name", i) for i in range(4000)]
    assert all(math.gcd(value, 15) == 1 for value in found)
    counts = np.bincount(found, minlength=15)[[1, 2, 4, 7, 8, 11, 13, 14]]
    assert ((counts - 500) ** 2 / 500).sum() < 30  # chi-square, 7 degrees, p = 1e-4


def test_times_increase():
    times = Times(NEVER)
    for time in (0, 1, 9):
        times.use(time)
    for time in (9, 3):
        with pytest.raises(DealReusedError, match="times must increase"):
            times.use(time)
    assert times.last == 9
    for time in (-1, 2**62 + 1):
        with pytest.raises(ValueError, match="must be from 0"):
            times.use(time)


def test_a_restart_goes_on_where_it_stopped():
    with pytest.raises(DealReusedError):
        Times(Times(7).last).use(7)


def test_a_good_message_is_read():
    assert EXPECTED.integers(GOOD, "a") == (2, 1000)
    assert EXPECTED.pack("a", [2, 1000]) == GOOD


WRONG = {
    "of another": ({"party": "b"}, UnexpectedMessageError, "ciphertexts of b"),
    "other parameters": ({"label": b"other"}, UnexpectedMessageError, "other parameters"),
    "replayed": ({"time": 4}, ReplayedMessageError, "time 4"),
    "of a time to come": ({"time": 6}, UnexpectedMessageError, "expected time 5"),
    "a packet short": ({"packets": (b"\x00\x02",)}, MalformedMessageError, "1 packets"),
    "too wide": ({"packets": (b"\x00\x02", b"\x00\x00\x02")}, MalformedMessageError, "range"),
    "zero": ({"packets": (b"\x00\x02", b"\x00\x00")}, MalformedMessageError, "range"),
    "the modulus": ({"packets": (b"\x00\x02", b"\x03\xe9")}, MalformedMessageError, "range"),
    "a factor": ({"packets": (b"\x00\x02", b"\x00\x07")}, MalformedMessageError, "invertible"),
}


@pytest.mark.parametrize(("change", "error", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_message_names_its_sender(change, error, reason):
    with pytest.raises(error, match=reason) as caught:
        EXPECTED.integers(replace(GOOD, **change), "a")
    assert caught.value.party == "a" and type(caught.value) is error


def test_the_missing_and_the_strangers_are_named():
    check_senders({"a": GOOD, "b": GOOD}, ["b", "a"])
    with pytest.raises(ProtocolError, match="sent no ciphertexts") as caught:
        check_senders({"a": GOOD}, ["a", "c", "b"])
    assert caught.value.parties == ("b", "c")
    with pytest.raises(UnexpectedMessageError) as caught:
        check_senders({"a": GOOD, "b": GOOD}, ["a"])
    assert caught.value.party == "b"


def test_messages_travel_as_bytes():
    assert decode(encode(GOOD), "a", EXPECTED.message) == GOOD
    long = Expected(b"label" * 6, 2**62, 60, 60, 2**4096 - 1)
    full = long.pack("a" * 200, [2**4096 - 2] * 60)
    assert decode(encode(full), "a", long.message) == full
