"""Five hospitals add up counts by the additive scheme, and an aggregator reads only the sums.

python examples/additive_scheme.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.additive_scheme import (
    NEVER,
    Encryptor,
    Parameters,
    clamp,
    contribute,
    deal_keys,
    draw_modulus,
    open_sums,
)
from vertibayes_mpc.aggregation import Ciphertexts
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.scheduler import run_all


def add_up() -> NDArray[np.int64]:
    """Sum 60 small noisy counts of each of five parties, all of one time."""
    # The dealer draws N, forgets its factors, deals keys whose sum is zero, and forgets the keys.
    parameters = Parameters(draw_modulus(), b"example", most=5, lowest=-1000, highest=10**6)
    parties = [f"hospital-{i}" for i in range(5)]
    keys = deal_keys(parameters, parties, SystemRandomness())

    generator = np.random.default_rng(1)  # in place of data; noise for a release comes from OpenDP
    counts = {party: generator.integers(0, 3, 60) - 1 for party in parties}
    programs: dict[Party, Program[Any]] = {}
    for party in parties:
        encryptor = Encryptor(parameters, party, keys.parties[party], last_time=NEVER)
        programs[party] = contribute(encryptor, counts[party], 1, "aggregator")
    programs["aggregator"] = open_sums(parameters, keys.aggregator, parties, 1, 60)

    outputs, transcript = run_all(programs)
    sums: NDArray[np.int64] = outputs["aggregator"]
    assert np.array_equal(sums, sum(counts.values()))
    slots, first = parameters.packing.slots, transcript[0].message
    assert isinstance(first, Ciphertexts)
    sent = first.packets
    print(f"{slots} counts of {parameters.packing.width} bits fit in one of 2048 bits")
    print(f"each party sent {len(sent)} ciphertext of {len(sent[0])} bytes for 60 counts")
    print(f"total of the sums {sums.sum()}; after clamping {clamp(sums).sum()}: clamp last")
    return sums


if __name__ == "__main__":
    add_up()
