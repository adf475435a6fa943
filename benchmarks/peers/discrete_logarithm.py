"""Decryption by one division, beside the discrete logarithm of Shi et al. (2011), by range of sums.

Huai et al. (2015, section 4.4) say that their decryption takes O(1), Shi et al.'s at least the
square root of the range. There, C_k = g^x_k H(t)^sk_k modulo a safe prime (RFC 3526, 2048 bits),
and the sum is the exponent of g, which baby and giant steps find: the baby steps are a table, made
once for g, of as many powers as the square root of the range. Both unblind with H(t)^sk_0 first; a
row of the peer has this exponentiation, the product over parties, and half of the giant steps (the
mean over sums). Ours decrypts about 50 counts at once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from secrets import randbelow
from time import process_time

from gmpy2 import invert, mpz, powmod
from peers.additive_scheme import COUNTS
from peers.additive_scheme import OURS as TRUST
from side_by_side import seconds_of

from vertibayes_mpc.additive_scheme import NEVER, Encryptor, Parameters, deal_keys, decrypt
from vertibayes_mpc.additive_scheme.scheme import RSA_2048
from vertibayes_mpc.aggregation import full_domain_hash
from vertibayes_mpc.product_scheme import MODP_PRIMES
from vertibayes_mpc.randomness import SystemRandomness

PARTIES = 10
BITS = (11, 16, 20, 24, 32, 40)
PRIME = mpz(MODP_PRIMES[2048])
ORDER = (PRIME - 1) // 2
PEERS = "dealer forgets keys; the sum must lie in a small range"


def base(time: int) -> mpz:
    """Return H(t), a square: of the order ORDER."""
    return mpz(full_domain_hash(int(PRIME), b"discrete logarithm", time, 0)) ** 2 % PRIME


G = base(0)
LOW = (1 << 64) - 1  # the bits of a power that are its key in a table


class Table:
    """Baby steps: the powers of g from 0 to the square root of the range."""

    def __init__(self, bits: int) -> None:
        self.steps = isqrt(1 << bits) + 1
        power, self.places = mpz(1), {}
        for place in range(self.steps):
            self.places[int(power & LOW)] = place
            power = power * G % PRIME
        self.giant = invert(power, PRIME)

    def logarithm(self, value: mpz) -> int:
        """Return the exponent of g in the range, by giant steps."""
        for step in range(self.steps):
            place = self.places.get(int(value & LOW))
            if place is not None and powmod(G, place, PRIME) == value:
                return step * self.steps + place
            value = value * self.giant % PRIME
        raise ValueError("the exponent is not in the range")


def theirs(table: Table, total: int) -> Callable[[], None]:
    """Return the decryption of a sum of so much."""
    keys = [randbelow(int(ORDER)) for _ in range(PARTIES)]
    counts = [total // PARTIES] * (PARTIES - 1)
    counts.append(total - sum(counts))
    sent = [powmod(G, x, PRIME) * powmod(base(1), sk, PRIME) % PRIME
            for x, sk in zip(counts, keys, strict=True)]  # fmt: skip
    own = -sum(keys) % ORDER

    def decrypt_sum() -> None:
        product = powmod(base(1), own, PRIME)
        for ciphertext in sent:
            product = product * ciphertext % PRIME
        assert table.logarithm(product) == total

    return decrypt_sum


def ours(highest: int, counts: int) -> Callable[[], None]:
    """Return the decryption of sums of counts up to a bound."""
    parameters = Parameters(RSA_2048, b"benchmark", PARTIES, 0, highest)
    assert parameters.packing.packets(counts) == 1
    keys = deal_keys(parameters, [f"p{i}" for i in range(PARTIES)], SystemRandomness())
    sent = {}
    for party, key in keys.parties.items():
        encryptor = Encryptor(parameters, party, key, last_time=NEVER)
        sent[party] = encryptor.encrypt([highest] * counts, 0)

    def decrypt_sums() -> None:
        found = decrypt(parameters, keys.aggregator, list(sent), sent, 0, counts)
        assert found.tolist() == [highest * PARTIES] * counts

    return decrypt_sums


def row(bits: int) -> list[list[str]]:
    """Measure one sum, and 50, of a range of so many bits."""
    start = process_time()
    table = Table(bits)
    made = process_time() - start
    one, many = (seconds_of(ours((1 << bits) // PARTIES, n), 9) for n in (1, COUNTS))
    peers = seconds_of(theirs(table, (1 << bits) // 2), 3)
    name, peer = f"decryption, sums below 2^{bits}", "Shi et al., baby and giant steps"
    shown = [f"{1e3 * s:,.1f} ms" for s in (one, peers, many, COUNTS * peers)]
    table_of = f"; table once: {table.steps:,} powers, {made:.2g} s"
    return [
        [f"{name}: one count", shown[0], peer + table_of, shown[1], f"{peers / one:.2f}",
         TRUST, PEERS],
        [f"{name}: {COUNTS} counts", shown[2], f"{peer}, {COUNTS} times its time for one", shown[3],
         f"{COUNTS * peers / many:,.1f}", TRUST, PEERS],
    ]  # fmt: skip


def rows() -> list[list[str]]:
    """Measure for growing ranges of the sum."""
    return [line for bits in BITS for line in row(bits)]
