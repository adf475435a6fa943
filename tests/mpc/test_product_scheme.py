"""Products: exact, for all shapes; mistakes and wrong messages named."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.randomness import SeededRandomness
from tests.schemes import ProductParameters, encryptors
from vertibayes_mpc import product_scheme
from vertibayes_mpc.aggregation import Ciphertexts
from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ProtocolError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.product_scheme import (
    MODP_PRIMES,
    NEVER,
    Encryptor,
    Parameters,
    contribute,
    deal_keys,
    decrypt,
    open_products,
)
from vertibayes_mpc.scheduler import run_all

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "product_scheme.json").read_text())


def products(most=3, highest=1000, bits=64, study=b"study"):
    return ProductParameters(bits, study, most, highest)


def times_pi(bits):
    """Return floor(pi * 2**bits), by Machin's formula."""
    scale = 1 << (bits + 64)

    def arctan(x):
        term, total, n = scale // x, 0, 1
        while term:
            total += term // n if n % 4 == 1 else -(term // n)
            term, n = term // x**2, n + 2
        return total

    return (16 * arctan(5) - 4 * arctan(239)) >> 64


@pytest.mark.parametrize(("bits", "plus"), [(2048, 124476), (3072, 1690314)])
def test_the_primes_are_those_of_rfc_3526(bits, plus):
    prime = MODP_PRIMES[bits]
    assert prime == 2**bits - 2 ** (bits - 64) - 1 + 2**64 * (times_pi(bits - 130) + plus)
    # Safe: q passes Fermat's test, and then p is prime, since 2^q = 1 modulo p (Pocklington).
    q = prime // 2
    assert pow(2, q - 1, q) == 1 and pow(2, q, prime) == 1


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.integers(0, 5).flatmap(
            lambda k: st.lists(
                st.lists(st.integers(1, 1000), min_size=k, max_size=k), min_size=n, max_size=n
            )
        )
    ),
    st.integers(0, 2**62),
)
def test_the_aggregator_opens_the_exact_products_in_one_round(rows, time):
    parties = [f"p{i}" for i in range(len(rows))]
    parameters = products(6)
    key, who = encryptors(product_scheme, parameters, parties)
    programs = {
        party: contribute(who[party], row, time, "aggregator")
        for party, row in zip(parties, rows, strict=True)
    }
    programs["aggregator"] = open_products(parameters, key, parties, time, len(rows[0]))
    outputs, transcript = run_all(programs)
    assert outputs["aggregator"] == [math.prod(column) for column in zip(*rows, strict=True)]
    assert [(type(s.message), s.receiver, s.depth) for s in transcript] == [
        (Ciphertexts, "aggregator", 1)
    ] * len(parties)


def test_all_products_up_to_the_largest_are_told_apart():
    parameters = products(2, 16, bits=10)  # 256 of at most 281
    key, who = encryptors(product_scheme, parameters, "ab")
    for time in range(256):
        x, y = divmod(time, 16)
        pair = zip(who.items(), (x + 1, y + 1), strict=True)
        received = {party: e.encrypt([count], time) for (party, e), count in pair}
        assert decrypt(parameters, key, "ab", received, time, 1) == [(x + 1) * (y + 1)]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((1024, b"study", 3, 10), "bits must be .* got 1024"),
        ((2048, b"study", 3, 2**683), "must be at most \\(p - 1\\) / 2"),
        ((2048, b"study", 3, 0), "counts from 1 to 0"),
    ],
)
def test_unsafe_parameters_are_refused(given, reason):
    with pytest.raises(ValueError, match=reason):
        Parameters(*given)


def test_keys_are_zero_in_sum_and_wide():
    parameters = Parameters(2048, b"study", 5, 1000)
    keys = deal_keys(parameters, "abcde", SeededRandomness())
    assert (keys.aggregator + sum(keys.parties.values())) % parameters.order == 0
    dealt = (keys.aggregator, *keys.parties.values())
    assert len(set(dealt)) == len(dealt)
    assert all(key.bit_length() > 2048 - 40 and key < parameters.order for key in dealt)


def test_the_largest_product_is_that_of_half_the_prime():
    assert products(2, 16, bits=10).largest == 256
    with pytest.raises(ValueError, match="must be at most"):
        products(2, 17, bits=10)  # 289 of 281


@pytest.mark.parametrize("bad", [0, -3, 1001])
def test_a_count_of_zero_is_refused_and_uses_no_time(bad):
    parameters = products()
    _, who = encryptors(product_scheme, parameters, "ab")
    with pytest.raises(ValueError, match="place 1 must be from 1 to 1000; smooth it first"):
        who["a"].encrypt([5, bad], 3)
    who["a"].encrypt([5, 6], 3)
    with pytest.raises(DealReusedError):
        who["a"].encrypt([5, 6], 3)


@pytest.mark.parametrize("parties", ["", "a", "abcd"])
def test_too_few_and_too_many_parties_are_refused(parties):
    with pytest.raises(ValueError, match="from 2 to 3 parties"):
        deal_keys(products(), parties, SeededRandomness())


def test_keys_are_zero_in_sum_modulo_q():
    parameters = products()
    keys = deal_keys(parameters, "abc", SeededRandomness())
    assert (keys.aggregator + sum(keys.parties.values())) % parameters.order == 0
    assert str(keys.aggregator) not in repr(keys)
    encryptor = Encryptor(parameters, "a", keys.parties["a"], last_time=NEVER)
    assert str(keys.parties["a"]) not in repr(encryptor)


def changed(message, value):
    return replace(message, packets=(value.to_bytes(len(message.packets[0]), "big"),))


def received_of(parameters, parties="abc"):
    key, who = encryptors(product_scheme, parameters, parties)
    return key, {party: e.encrypt([7], 2) for party, e in who.items()}


def test_a_ciphertext_that_is_no_square_names_its_sender():
    parameters = products()
    key, received = received_of(parameters)
    tampered = parameters.prime - int.from_bytes(received["b"].packets[0], "big")
    received["b"] = changed(received["b"], tampered)
    with pytest.raises(MalformedMessageError, match="not a square") as caught:
        decrypt(parameters, key, "abc", received, 2, 1)
    assert caught.value.party == "b"


def test_another_square_is_found_out_but_not_whose():
    parameters = products()
    key, received = received_of(parameters)
    received["b"] = changed(received["b"], 123456789**2)
    with pytest.raises(UnknownFaultyPartyError, match="larger than") as caught:
        decrypt(parameters, key, "abc", received, 2, 1)
    assert caught.value.parties == ("a", "b", "c")


def test_what_cannot_be_found_out_a_factor_within_bounds():
    # C y^2 makes the product y times as large: why messages are to travel sealed.
    parameters = products()
    key, received = received_of(parameters)
    tampered = int.from_bytes(received["b"].packets[0], "big") * 9 % parameters.prime
    received["b"] = changed(received["b"], tampered)
    assert decrypt(parameters, key, "abc", received, 2, 1) == [7**3 * 3]


def test_missing_late_and_foreign_messages_are_named():
    parameters = products()
    key, received = received_of(parameters)
    wrong = {
        "missing": {party: received[party] for party in "ac"},
        "late": received | {"b": replace(received["b"], time=1)},
        "foreign": received | {"b": replace(received["b"], label=b"other")},
        "handed on": received | {"b": received["a"]},
    }
    for messages in wrong.values():
        with pytest.raises(ProtocolError) as caught:
            decrypt(parameters, key, "abc", messages, 2, 1)
        assert caught.value.parties == ("b",)


def test_known_answers():
    prime, time = MODP_PRIMES[2048], VECTORS["time"]
    parameters = Parameters(2048, b"vectors", VECTORS["most"], VECTORS["highest"])
    assert parameters.label.hex() == VECTORS["label"]
    received = {}
    for party, vector in VECTORS["parties"].items():
        key = int(vector["key"], 16)
        message = Encryptor(parameters, party, key, last_time=NEVER).encrypt(vector["counts"], time)
        assert [packet.hex() for packet in message.packets] == vector["ciphertexts"]
        for place, count in enumerate(vector["counts"]):  # by plain arithmetic
            masked = count**2 * pow(int(VECTORS["bases"][place], 16), key, prime) % prime
            assert masked == int(vector["ciphertexts"][place], 16)
        received[party] = message
    bases = [parameters.base(time, place) for place in range(len(VECTORS["bases"]))]
    assert [f"{base:x}" for base in bases] == VECTORS["bases"]
    found = decrypt(parameters, int(VECTORS["aggregator"], 16), "ab", received, time, len(bases))
    rows = [vector["counts"] for vector in VECTORS["parties"].values()]
    assert found == VECTORS["products"] == [math.prod(c) for c in zip(*rows, strict=True)]
