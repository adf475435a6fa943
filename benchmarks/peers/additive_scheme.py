"""The additive scheme beside Paillier as `phe` has it: one packet of 50 counts, and 100 parties.

`phe` encrypts one count a ciphertext. Who holds its private key reads each party's count; here no
key opens less than the sum of all.
"""

from __future__ import annotations

from itertools import count

from phe import paillier
from side_by_side import seconds_of

from vertibayes_mpc.additive_scheme import (
    NEVER,
    Encryptor,
    Parameters,
    deal_keys,
    decrypt,
    draw_modulus,
)
from vertibayes_mpc.randomness import SystemRandomness

COUNTS = 50
PARTIES = 100
OURS = "dealer forgets factors and keys; aggregator may work with any party"
PEERS = "the key's holder does not see single ciphertexts"


def setting() -> tuple[Parameters, int, dict[str, Encryptor]]:
    """Return parameters for 50 counts in a packet, the aggregator's key, and the encryptors."""
    parameters = Parameters(draw_modulus(), b"benchmark", PARTIES, -(2**20), 2**33)
    assert parameters.packing.slots >= COUNTS
    keys = deal_keys(parameters, (f"p{i}" for i in range(PARTIES)), SystemRandomness())
    return (
        parameters,
        keys.aggregator,
        {
            party: Encryptor(parameters, party, key, last_time=NEVER)
            for party, key in keys.parties.items()
        },
    )


def one_packet() -> list[str]:
    """Encrypt 50 counts: ours in one ciphertext, phe's in 50."""
    _, _, who = setting()
    public, _ = paillier.generate_paillier_keypair(n_length=2048)
    counts, times = list(range(COUNTS)), count()
    ours = seconds_of(lambda: who["p0"].encrypt(counts, next(times)), 9)
    peers = seconds_of(lambda: [public.encrypt(x) for x in counts], 3)
    return row("additive scheme: encrypt 50 counts, 2048 bits", ours, "phe, one by one", peers)


def hundred_parties() -> list[list[str]]:
    """Sum over 100 parties, end to end, all parties' work.

    Ours takes as long for 50 counts as for one; phe's time for 50 is 50 times that for one.
    """
    parameters, key, who = setting()
    public, private = paillier.generate_paillier_keypair(n_length=2048)
    counts, times = list(range(COUNTS)), count()

    def ours() -> None:
        time = next(times)
        received = {party: e.encrypt(counts, time) for party, e in who.items()}
        found = decrypt(parameters, key, list(who), received, time, COUNTS)
        assert found.tolist() == [PARTIES * x for x in counts]

    def peers() -> None:
        total = sum((public.encrypt(7) for _ in range(PARTIES)), start=public.encrypt(0))
        assert private.decrypt(total) == PARTIES * 7

    mine, one = seconds_of(ours, 1), seconds_of(peers, 1)
    name = "additive scheme: 100 parties' sum"
    return [
        row(f"{name} of one count", mine, "phe", one),
        row(f"{name} of 50 counts", mine, "phe, 50 times its time for one", COUNTS * one),
    ]


def row(setting: str, ours: float, peer: str, peers: float) -> list[str]:
    """Return a line of the table, times in milliseconds."""
    ratio = f"{peers / ours:.1f}"
    return [setting, f"{ours * 1e3:.1f} ms", peer, f"{peers * 1e3:.1f} ms", ratio, OURS, PEERS]


def rows() -> list[list[str]]:
    """Measure ours and the peer in one run."""
    return [one_packet(), *hundred_parties()]
