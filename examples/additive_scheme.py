"""Five hospitals add up counts, and an aggregator reads the sums alone: the additive scheme.

python examples/additive_scheme.py
"""

from __future__ import annotations

import numpy as np

from mpc.additive_scheme import (
    NEVER,
    Encryptor,
    Parameters,
    clamp,
    contribute,
    deal_keys,
    draw_modulus,
    open_sums,
)
from mpc.randomness import SystemRandomness
from mpc.scheduler import run_all


def add_up() -> np.ndarray:
    """Sum 60 small noisy counts of five parties at one time."""
    # The dealer: draws N, forgets its factors, deals keys of sum zero, forgets them.
    parameters = Parameters(draw_modulus(), b"example", most=5, lowest=-1000, highest=10**6)
    parties = [f"hospital-{i}" for i in range(5)]
    keys = deal_keys(parameters, parties, SystemRandomness())

    generator = np.random.default_rng(1)  # stands for data; noise for release comes from OpenDP
    counts = {party: generator.integers(0, 3, 60) - 1 for party in parties}
    programs = {}
    for party in parties:
        encryptor = Encryptor(parameters, party, keys.parties[party], last_time=NEVER)
        programs[party] = contribute(encryptor, counts[party], 1, "aggregator")
    programs["aggregator"] = open_sums(parameters, keys.aggregator, parties, 1, 60)

    outputs, transcript = run_all(programs)
    sums = outputs["aggregator"]
    assert np.array_equal(sums, sum(counts.values()))
    slots, sent = parameters.packing.slots, transcript[0].message.packets
    print(f"{slots} counts of {parameters.packing.width} bits fit in one of 2048 bits")
    print(f"each party sent {len(sent)} ciphertext of {len(sent[0])} bytes for 60 counts")
    print(f"total of the sums {sums.sum()}; after clamping {clamp(sums).sum()}: clamp last")
    return sums


if __name__ == "__main__":
    add_up()
