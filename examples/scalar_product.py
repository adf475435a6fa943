"""Compute the scalar product of the 0/1 vectors of two to five parties, and print its cost.

python examples/scalar_product.py
"""

from __future__ import annotations

import numpy as np

from vertibayes_mpc.randomness import KeyPair, SystemRandomness
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scalar_product import (
    MaskedFactor,
    MaskedMasks,
    Multiplier,
    Product,
    deal_product,
    receive_product,
    scalar_product,
    subprotocols,
)
from vertibayes_mpc.scheduler import run_all

RECORDS = 10_000
RANDOMNESS = SystemRandomness()


def multiply(parties: int) -> tuple[int, int]:
    """Count the records that all parties have; return it and the number of sub-protocols."""
    names = tuple(f"hospital {i + 1}" for i in range(parties))
    columns = np.frombuffer(RANDOMNESS.bytes(parties * RECORDS), np.uint8).reshape(parties, 1, -1)
    vectors = dict(zip(names, (columns > 63).astype(np.uint32), strict=True))
    dealer = KeyPair.generate(RANDOMNESS)
    keys = {n: KeyPair.generate(RANDOMNESS).agree(dealer.public, "products") for n in names}

    product = Product(b"example", RANDOMNESS.bytes(16), Ring(32), names, 1, RECORDS)
    programs = {
        n: scalar_product(Multiplier(n, keys[n]), product, vectors[n], "analyst") for n in names
    }
    programs |= {"dealer": deal_product(keys, product), "analyst": receive_product(product)}
    outputs, transcript = run_all(programs)

    masked = [s.message for s in transcript if isinstance(s.message, MaskedFactor | MaskedMasks)]
    run, size = len({m.label for m in masked}), sum(m.values.nbytes for m in masked)
    result, plain = int(outputs["analyst"][0]), int(np.prod(columns > 63, axis=0).sum())
    print(
        f"{parties} parties: {result} of {RECORDS:,} records, {plain} by plain counting; ", end=""
    )
    print(f"{run} sub-protocols (T({parties}) = {subprotocols(parties)}), {size / 1e6:.1f} MB")
    return result, run


if __name__ == "__main__":
    for count in (2, 3, 4, 5):
        multiply(count)
