"""A registry and a hospital count treatments by outcomes for an analyst, without a dealer.

The registry encrypts its column once. The hospital multiplies ciphertexts and decrypts nothing.

    python examples/paillier_table.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.paillier import (
    PrivateKey,
    TablePlan,
    count_by_state,
    encrypt_column,
    open_tables,
)
from vertibayes_mpc.paillier.messages import Integers
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.scheduler import run_all

TREATMENTS, OUTCOMES = ("none", "drug", "surgery"), ("died", "survived")


def count(patients: int = 300) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the table that is revealed to the analyst, and the table of the pooled columns."""
    generator, randomness = np.random.default_rng(0), SystemRandomness()
    treatment = generator.integers(0, 3, patients)
    outcome = (generator.random(patients) < 0.3 + 0.2 * treatment).astype(np.int64)

    key = PrivateKey.generate(2048)
    plan = TablePlan(
        b"patients by ward", key.public, "registry", "hospital", "analyst", patients, 3, (2,)
    )
    programs: dict[Party, Program[Any]] = {
        "registry": encrypt_column(plan, key, treatment, randomness),
        "hospital": count_by_state(plan, [outcome], randomness),
        "analyst": open_tables(plan),
    }
    outputs, transcript = run_all(programs)
    for sent in transcript:
        assert isinstance(sent.message, Integers)
        number, size = sent.message.values.shape
        kind = type(sent.message).__name__
        print(f"{sent.sender:>8} -> {sent.receiver:<8} {kind}: {number} integers of {size} bytes")

    (table,) = outputs["analyst"]
    pooled = np.zeros((3, 2), np.int64)
    np.add.at(pooled, (treatment, outcome), 1)
    for name, row in zip(TREATMENTS, table, strict=True):
        print(f"{name:>8}: {dict(zip(OUTCOMES, row.tolist(), strict=True))}")
    print("as counted on pooled records:", "identical" if (table == pooled).all() else "DIFFERENT")
    return table, pooled


if __name__ == "__main__":
    count()
