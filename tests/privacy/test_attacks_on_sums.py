"""Attacks on the additive scheme, each on the variant that it breaks, and on ours.

What an attacker has: all ciphertexts, all that is hashed, and, where it says so, keys.
"""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from tests.randomness import SeededRandomness
from tests.schemes import SMALL, P, Q, encryptors, sums
from vertibayes_mpc import additive_scheme
from vertibayes_mpc.additive_scheme import decrypt
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.integers import uniform_below

MOST = 10_000  # counts are known to be smaller

# The smallest prime above 2^511 + 2^300.
PRIME = 2**511 + 2**300 + 0x18B


def integers(message):
    return [int.from_bytes(packet, "big") for packet in message.packets]


# ---- a prime modulus: the scheme as printed, in tests alone --------------------------------------


def logarithm(value, modulus, exponent):
    """Return l of value^exponent = 1 + l * exponent * modulus, if the power is 1 mod `modulus`.

    It is x + h sk for a ciphertext (1 + x N) H^sk, and h for the hash H.
    """
    power, rest = divmod(pow(value, exponent, modulus**2) - 1, modulus)
    return None if rest else power * pow(exponent, -1, modulus) % modulus


def key_from_two(ciphertexts, bases, modulus, exponent):
    """Return sk modulo `modulus` from two ciphertexts of counts below MOST, or None."""
    found = [logarithm(value, modulus, exponent) for value in (*ciphertexts, *bases)]
    if None in found:
        return None
    z1, z2, h1, h2 = found
    inverse = pow(h1, -1, modulus)
    for x in range(MOST):
        key = (z1 - x) * inverse % modulus
        if (z2 - h2 * key) % modulus < MOST:
            return key
    return None


def three_times(modulus, counts, key_bound):
    """Encrypt three counts at three times as the scheme does, modulo `modulus` squared."""
    randomness, square = SeededRandomness(b"three"), modulus**2
    key = uniform_below(key_bound, randomness)
    bases = [uniform_below(square, randomness) for _ in counts]
    pairs = zip(counts, bases, strict=True)
    return [(1 + x * modulus) * pow(h, key, square) % square for x, h in pairs], bases


def attack(modulus, exponent, counts=(1234, 9876, 555)):
    """Return the third count, read from ciphertexts alone; None if nothing is found."""
    ciphertexts, bases = three_times(modulus, counts, modulus**2)
    key = key_from_two(ciphertexts[:2], bases[:2], modulus, exponent)
    if key is None:
        return None
    h = logarithm(bases[2], modulus, exponent)
    return (logarithm(ciphertexts[2], modulus, exponent) - h * key) % modulus


def test_modulo_the_square_of_a_prime_two_ciphertexts_give_the_key_and_the_third_count():
    assert attack(PRIME, PRIME - 1) == 555
    assert attack(PRIME, PRIME - 1, (0, 9999, 31)) == 31


@pytest.mark.parametrize("exponent", [SMALL - 1, SMALL, SMALL**2 - 1, SMALL * (SMALL - 1)])
def test_modulo_the_square_of_a_product_the_attack_finds_nothing(exponent):
    assert attack(SMALL, exponent) is None


def test_who_keeps_the_factors_reads_every_count():
    # Why the dealer is to forget them: the very same attack, with the exponent that they give.
    assert attack(SMALL, math.lcm(P - 1, Q - 1)) == 555


def test_the_attack_fails_on_ciphertexts_of_the_package():
    parameters = sums(highest=MOST)
    _, who = encryptors(additive_scheme, parameters, "ab")
    ciphertexts = [integers(who["a"].encrypt([x], t))[0] for t, x in enumerate((1234, 9876))]
    bases = [parameters.base(t, 0) for t in range(2)]
    assert key_from_two(ciphertexts, bases, SMALL, SMALL - 1) is None
    low = parameters.lowest
    found = key_from_two(ciphertexts, bases, SMALL, math.lcm(P - 1, Q - 1))
    h, z = (logarithm(v, SMALL, math.lcm(P - 1, Q - 1)) for v in (bases[0], ciphertexts[0]))
    assert (z - h * found) % SMALL == 1234 - low  # it was these ciphertexts that it failed on


# ---- a base used for two plaintexts --------------------------------------------------------------


def difference(one, other):
    """Return x1 - x2 of two ciphertexts under one base and key; None if they are not."""
    ratio = one * pow(other, -1, SMALL**2) % SMALL**2
    return None if ratio % SMALL != 1 else (ratio - 1) // SMALL


def two_packets(parameters):
    _, who = encryptors(additive_scheme, parameters, "ab")
    slots = parameters.packing.slots
    return integers(who["a"].encrypt([40] * slots + [2] * slots, 1))


def test_packets_under_one_base_show_their_difference(monkeypatch):
    parameters = sums()
    each = sum(38 << (parameters.packing.width * i) for i in range(parameters.packing.slots))
    assert difference(*two_packets(parameters)) is None
    own = type(parameters).base
    monkeypatch.setattr(type(parameters), "base", lambda self, time, *_: own(self, time, 0))
    assert difference(*two_packets(parameters)) == each


def test_a_time_used_twice_shows_the_difference():
    parameters = sums()
    keys = additive_scheme.deal_keys(parameters, "ab", SeededRandomness())

    def encrypted(count, time):  # an encryptor that begins anew, its times forgotten
        fresh = additive_scheme.Encryptor(parameters, "a", keys.parties["a"], last_time=-1)
        return integers(fresh.encrypt([count], time))[0]

    assert difference(encrypted(90, 1), encrypted(7, 1)) == 83
    assert difference(encrypted(90, 1), encrypted(7, 2)) is None


@pytest.mark.parametrize("study", [b"another", b"study"])
def test_two_studies_have_bases_of_their_own(study):
    one, other = sums(), sums(study=study)
    assert (one.base(1, 0) == other.base(1, 0)) == (study == b"study")


# ---- the aggregator with some of the parties -----------------------------------------------------


def opens(parameters, key, messages):
    """Return the sum of these ciphertexts under a key, or None if it is no encryption."""
    product = pow(parameters.base(1, 0), key, parameters.square)
    for message in messages:
        product = product * integers(message)[0] % parameters.square
    total, rest = divmod(product - 1, parameters.modulus)
    return None if rest else total


def test_the_aggregator_with_any_of_the_parties_opens_the_sum_of_the_others_and_no_part():
    parties, parameters = "abcd", sums(4)
    keys = additive_scheme.deal_keys(parameters, parties, SeededRandomness())
    who = {
        party: additive_scheme.Encryptor(parameters, party, key, last_time=-1)
        for party, key in keys.parties.items()
    }
    counts = {party: 10 + i for i, party in enumerate(parties)}
    messages = {party: who[party].encrypt([counts[party]], 1) for party in parties}
    for size in range(4):
        for colluders in combinations(parties, size):
            known = keys.aggregator + sum(keys.parties[party] for party in colluders)
            honest = [party for party in parties if party not in colluders]
            for some in range(1, len(honest) + 1):
                for chosen in combinations(honest, some):
                    found = opens(parameters, known, [messages[party] for party in chosen])
                    whole = sum(counts[party] + 5 for party in honest)
                    assert found == (whole if len(chosen) == len(honest) else None)


def test_without_the_aggregators_key_nobody_opens_the_sum():
    parameters = sums()
    key, who = encryptors(additive_scheme, parameters, "ab")
    received = {party: e.encrypt([1], 1) for party, e in who.items()}
    for wrong in (0, 1, -key, key + 1):
        with pytest.raises(UnknownFaultyPartyError, match="not 1 modulo N"):
            decrypt(parameters, wrong, "ab", received, 1, 1)


def test_keys_dealt_in_groups_apart_open_the_sum_of_a_group():
    # The aggregator's shares of two groups: a party's count is then hidden among its group alone.
    parameters = sums(4)
    groups = ["ab", "cd"]
    dealt = [additive_scheme.deal_keys(parameters, g, SeededRandomness(g.encode())) for g in groups]
    messages = [
        additive_scheme.Encryptor(parameters, party, key, last_time=-1).encrypt([10], 1)
        for party, key in dealt[0].parties.items()
    ]
    assert opens(parameters, dealt[0].aggregator, messages) == 30
