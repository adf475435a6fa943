"""Sums: exact and signed, for all shapes; mistakes and wrong messages named."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mpc.test_moduli import EASY
from tests.randomness import SeededRandomness
from tests.schemes import SMALL, encryptors, sums
from vertibayes_mpc import additive_scheme
from vertibayes_mpc.additive_scheme import (
    NEVER,
    Encryptor,
    Packing,
    Parameters,
    clamp,
    contribute,
    deal_keys,
    decrypt,
    draw_modulus,
    open_sums,
)
from vertibayes_mpc.aggregation import Ciphertexts
from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scheduler import run_all

VECTORS = json.loads(
    (Path(__file__).parent.parent / "vectors" / "additive_scheme.json").read_text()
)


# ---- packing -------------------------------------------------------------------------------------


@st.composite
def packed(draw):
    """A packing, and rows of counts: one a party."""
    lowest = draw(st.integers(-50, 50))
    highest = lowest + draw(st.integers(0, 300))
    most = draw(st.integers(1, 9))
    packing = Packing(lowest, highest, most, draw(st.integers(12, 200)))
    count, parties = draw(st.integers(0, 40)), draw(st.integers(1, most))
    row = st.lists(st.integers(lowest, highest), min_size=count, max_size=count)
    return packing, draw(st.lists(row, min_size=parties, max_size=parties))


@given(packed())
def test_sums_of_plaintexts_unpack_to_sums_of_counts(drawn):
    packing, rows = drawn
    plaintexts = [packing.pack(row) for row in rows]
    totals = [sum(column) for column in zip(*plaintexts, strict=True)]
    assert len(totals) == packing.packets(len(rows[0]))
    assert all(total < 2**packing.bits for total in totals)
    unpacked = packing.unpack(totals, len(rows[0]), len(rows))
    assert unpacked.dtype == np.int64
    assert unpacked.tolist() == [sum(column) for column in zip(*rows, strict=True)]


@given(packed(), st.integers(0, 1))
def test_the_largest_and_smallest_counts_do_not_reach_the_next_slot(drawn, which):
    packing, _ = drawn
    extreme = (packing.lowest, packing.highest)[which]
    totals = [packing.most * plaintext for plaintext in packing.pack([extreme] * 30)]
    assert packing.unpack(totals, 30, packing.most).tolist() == [packing.most * extreme] * 30


def test_fifty_counts_of_forty_bits_lie_in_one_plaintext():
    packing = Packing(-(2**30), 2**32, 100, 2047)
    assert (packing.width, packing.slots) == (39, 52)
    assert Packing(0, (2**40 - 1) // 100, 100, 2047).slots == 51


@pytest.mark.parametrize("bad", [-6, 101, 10**30])
def test_a_count_out_of_bounds_is_refused_and_not_told(bad):
    with pytest.raises(
        ValueError, match="place 1, with its noise, must be from -5 to 100"
    ) as caught:
        Packing(-5, 100, 3, 60).pack([0, bad])
    assert str(bad) not in str(caught.value).replace("-5 to 100", "")


def test_counts_are_integers():
    with pytest.raises(TypeError):
        Packing(-5, 100, 3, 60).pack([0.5])
    assert Packing(-5, 100, 3, 60).pack(np.array([7], np.int32)) == [12]


def test_impossible_sums_are_refused():
    packing = Packing(0, 10, 3, 60)
    assert packing.unpack([20], 1, 2).tolist() == [20]
    with pytest.raises(ValueError, match="larger than 2 parties"):
        packing.unpack([21], 1, 2)
    with pytest.raises(ValueError, match="not empty"):
        packing.unpack([1 << packing.width], 1, 3)


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ((1, 0, 2, 60), "lowest must not exceed highest"),
        ((0, 2**61, 2, 200), "below 2\\*\\*62"),
        ((-(2**61), 0, 2, 200), "below 2\\*\\*62"),
        ((0, 2**30, 4, 32), "a slot needs 33 bits"),
    ],
)
def test_a_packing_that_cannot_hold_its_sums_is_refused(bounds, reason):
    with pytest.raises(ValueError, match=reason):
        Packing(*bounds)


def test_clamping_sets_negative_sums_to_zero():
    assert clamp(np.array([-3, 0, 4])).tolist() == [0, 0, 4]


# ---- parameters and keys -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modulus", "reason"),
    [
        (SMALL, "at least 2048 bits, got 246"),
        *EASY,
    ],
)
def test_an_unsafe_modulus_is_refused(modulus, reason):
    with pytest.raises(ValueError, match=reason):
        Parameters(modulus, b"study", 3, 0, 10)


def test_sums_that_do_not_fit_are_refused_at_set_up():
    with pytest.raises(ValueError, match="below 2\\*\\*62"):
        sums(3, 0, 2**61)


def test_keys_are_zero_in_sum_and_wide():
    parameters = sums(5)
    keys = deal_keys(parameters, "abcde", SeededRandomness())
    assert keys.aggregator + sum(keys.parties.values()) == 0
    assert max(keys.parties.values()).bit_length() > 2 * 246 + 120
    assert parameters.key_bound >= 2**128 * SMALL**2


@pytest.mark.parametrize("parties", ["", "a", "aa", "abcd"])
def test_too_few_and_too_many_parties_are_refused(parties):
    with pytest.raises(ValueError, match="from 2 to 3 parties"):
        deal_keys(sums(3), parties, SeededRandomness())


def test_nothing_secret_in_a_repr():
    parameters = sums()
    keys = deal_keys(parameters, "ab", SeededRandomness())
    encryptor = Encryptor(parameters, "a", keys.parties["a"], last_time=NEVER)
    for shown in (repr(keys), repr(encryptor), repr(encryptor.encrypt([1], 0))):
        assert not any(str(key)[:20] in shown for key in (keys.aggregator, *keys.parties.values()))
    assert str(SMALL) not in repr(parameters)


# ---- sums ----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.integers(0, 45).flatmap(
            lambda k: st.lists(
                st.lists(st.integers(-5, 100), min_size=k, max_size=k), min_size=n, max_size=n
            )
        )
    ),
    st.integers(0, 2**62),
)
def test_the_aggregator_opens_the_exact_signed_sums_in_one_round(rows, time):
    parties = [f"p{i}" for i in range(len(rows))]
    parameters = sums(6)
    key, who = encryptors(additive_scheme, parameters, parties)
    programs = {
        party: contribute(who[party], row, time, "aggregator")
        for party, row in zip(parties, rows, strict=True)
    }
    programs["aggregator"] = open_sums(parameters, key, parties, time, len(rows[0]))
    outputs, transcript = run_all(programs)
    assert outputs["aggregator"].tolist() == [sum(column) for column in zip(*rows, strict=True)]
    assert [(type(s.message), s.receiver, s.depth) for s in transcript] == [
        (Ciphertexts, "aggregator", 1)
    ] * len(parties)


def test_later_times_have_sums_of_their_own():
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "ab")
    for time, counts in ((3, [1, 2]), (4, [5, 6]), (9, [100, -5])):
        received = {party: e.encrypt(counts, time) for party, e in who.items()}
        found = decrypt(parameters, key, "ab", received, time, 2)
        assert found.tolist() == [2 * count for count in counts]


def test_a_time_is_never_used_twice():
    parameters = sums()
    _, who = encryptors(additive_scheme, parameters, "ab")
    with pytest.raises(ValueError, match="place 0"):
        who["a"].encrypt([1000], 4)
    who["a"].encrypt([10], 4)  # a refused count has not used the time up
    for time in (4, 3):
        with pytest.raises(DealReusedError):
            who["a"].encrypt([10], time)
    again = Encryptor(parameters, "a", 5, last_time=who["a"].times.last)
    with pytest.raises(DealReusedError):
        again.encrypt([10], 4)


# ---- wrong messages ------------------------------------------------------------------------------


def received_of(parameters, who, time=2, count=2):
    return {party: e.encrypt([7] * count, time) for party, e in who.items()}


def changed(message, value):
    first, *others = message.packets
    return replace(message, packets=(value.to_bytes(len(first), "big"), *others))


def test_a_missing_message_stops_the_aggregator_and_is_named():
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "ab")
    programs = {"aggregator": open_sums(parameters, key, "ab", 0, 1)}
    with pytest.raises(ProtocolError) as caught:
        run_all({**programs, "a": contribute(who["a"], [1], 0, "aggregator")})
    assert caught.value.parties == ("b",)


def test_a_replayed_message_is_named_on_its_way():
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "ab")
    old = who["b"].encrypt([1], 0)

    def replaying():
        yield Round({"aggregator": old}, {})

    programs = {"a": contribute(who["a"], [1], 1, "aggregator"), "b": replaying()}
    with pytest.raises(ReplayedMessageError) as caught:
        run_all({**programs, "aggregator": open_sums(parameters, key, "ab", 1, 1)})
    assert caught.value.party == "b"


def strange():
    _, who = encryptors(additive_scheme, sums(study=b"other"), "abc")
    return who["b"].encrypt([7, 7], 2)


def shifted(message, by):
    """C (1 + dN) adds d to the sum."""
    first = int.from_bytes(message.packets[0], "big")
    return changed(message, first * (1 + by * SMALL) % SMALL**2)


NOT_ONE = UnknownFaultyPartyError, "not 1 modulo N", "abc"
WRONG = {  # what replaces b's ciphertexts: a function of all; the error, its reason, who is named
    "none": (lambda r: None, ProtocolError, "no ciphertexts", "b"),
    "another's": (lambda r: r["a"], ProtocolError, "ciphertexts of a", "b"),
    "of another study": (lambda r: strange(), ProtocolError, "other parameters", "b"),
    "a unit of its choice": (lambda r: changed(r["b"], 12345), *NOT_ONE),
    "one": (lambda r: changed(r["b"], 1), *NOT_ONE),
    "minus one": (lambda r: changed(r["b"], SMALL**2 - 1), *NOT_ONE),
    "beyond what can be": (
        lambda r: shifted(r["b"], 400), UnknownFaultyPartyError, "larger than 3 parties", "abc"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "error", "reason", "named"), WRONG.values(), ids=WRONG)
def test_wrong_ciphertexts_are_refused(change, error, reason, named):
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "abc")
    received = received_of(parameters, who)
    received["b"] = change(received)
    received = {party: message for party, message in received.items() if message}
    with pytest.raises(error, match=reason) as caught:
        decrypt(parameters, key, "abc", received, 2, 2)
    assert caught.value.parties == tuple(named)


def test_a_vector_of_another_length_is_refused_though_it_fills_as_many_packets():
    """The slot that it leaves empty would be read as the lowest count."""
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "ab")
    received = {"a": who["a"].encrypt([10] * 4, 1), "b": who["b"].encrypt([10] * 3, 1)}
    with pytest.raises(MalformedMessageError, match="sent 3 counts; expected 4") as caught:
        decrypt(parameters, key, "ab", received, 1, 4)
    assert caught.value.party == "b"


def test_packets_in_another_order_are_found_out():
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "ab")
    count = parameters.packing.slots + 1
    received = received_of(parameters, who, count=count)
    received["a"] = replace(received["a"], packets=received["a"].packets[::-1])
    with pytest.raises(UnknownFaultyPartyError, match="not 1 modulo N"):
        decrypt(parameters, key, "ab", received, 2, count)


def test_what_cannot_be_found_out_a_shift_within_bounds():
    # Why messages are to travel sealed.
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "ab")
    received = received_of(parameters, who)
    received["a"] = shifted(received["a"], 9)
    assert decrypt(parameters, key, "ab", received, 2, 2).tolist() == [14 + 9, 14]


# ---- full size -----------------------------------------------------------------------------------


def hash_by_hand(modulus, label, time, packet):
    digest = hashlib.sha256(b"vertibayes label 1")
    for part in (b"full domain hash", modulus, label, time, packet, 0):
        encoded = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    size = (modulus.bit_length() + 128 + 7) // 8
    return int.from_bytes(hashlib.shake_256(digest.digest()).digest(size), "big") % modulus


def test_known_answers():
    modulus, time = int(VECTORS["modulus"], 16), VECTORS["time"]
    given = VECTORS["study"].encode(), VECTORS["most"], VECTORS["lowest"], VECTORS["highest"]
    parameters = Parameters(modulus, *given)
    assert parameters.label.hex() == VECTORS["label"]
    received = {}
    for party, vector in VECTORS["parties"].items():
        key = int(vector["key"], 16)
        message = Encryptor(parameters, party, key, last_time=NEVER).encrypt(vector["counts"], time)
        assert [packet.hex() for packet in message.packets] == vector["ciphertexts"]
        received[party] = message
    key, count = int(VECTORS["aggregator"], 16), len(VECTORS["sums"])
    found = decrypt(parameters, key, sorted(received), received, time, count)
    assert found.tolist() == VECTORS["sums"]


def test_the_known_answers_by_plain_arithmetic():
    modulus, width = int(VECTORS["modulus"], 16), VECTORS["width"]
    square, label = modulus**2, bytes.fromhex(VECTORS["label"])
    vector = VECTORS["parties"]["a"]
    slots = (modulus.bit_length() - 1) // width
    last = VECTORS["packets"] - 1
    counts = vector["counts"][last * slots :]
    x = sum((count - VECTORS["lowest"]) << (width * i) for i, count in enumerate(counts))
    base = hash_by_hand(square, label, VECTORS["time"], last)
    ciphertext = (1 + x * modulus) * pow(base, int(vector["key"], 16), square) % square
    assert ciphertext == int(vector["ciphertexts"][last], 16)
    rows = [party["counts"] for party in VECTORS["parties"].values()]
    assert VECTORS["sums"] == [sum(column) for column in zip(*rows, strict=True)]
    keys = [int(party["key"], 16) for party in VECTORS["parties"].values()]
    assert sum(keys) + int(VECTORS["aggregator"], 16) == 0


def test_a_modulus_from_set_up():
    parameters = Parameters(draw_modulus(), b"study", 2, 0, 1)
    assert parameters.modulus.bit_length() == 2048
    with pytest.raises(ValueError, match="1024"):
        draw_modulus(1024)
