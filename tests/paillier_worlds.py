"""Keys too small for use, draws made by hand, and the three parties of a table."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from tests.randomness import SeededRandomness
from vertibayes_mpc.paillier import (
    PrivateKey,
    TablePlan,
    count_by_state,
    encrypt_column,
    keys,
    open_tables,
)

PRIMES = {
    6: (5, 7),
    128: (15107933638602454291, 15771031521402884179),
    256: (306293327635350694613238213722730462859, 314775396324375832054442002668430735127),
}


def small_key(bits=256):
    """Return a key that the public constructors refuse; its public part is made here as well."""
    with patch.object(keys, "FEWEST_BITS", 0):
        key = PrivateKey(*PRIMES[bits])
        assert key.public.bits == bits
    return key


class Draws:
    """Hands out integers in the order in which `uniform_below` is to draw them."""

    def __init__(self, *values):
        self.values = list(values)

    def bytes(self, count):
        return self.values.pop(0).to_bytes(count, "big")


def plan_of(key, records, states=(4, (4,)), **settings):
    return TablePlan(
        b"table", key.public, "owner", "other", "analyst", records, *states, **settings
    )


def programs_of(key, plan, x, ys, seed=b"table"):
    codes, columns = np.asarray(x, np.int64), [np.asarray(y, np.int64) for y in ys]
    return {
        "owner": encrypt_column(plan, key, codes, SeededRandomness(seed + b"owner")),
        "other": count_by_state(plan, columns, SeededRandomness(seed + b"other")),
        "analyst": open_tables(plan),
    }


def counted(x, y, states):
    table = np.zeros(states, np.int64)
    np.add.at(table, (np.asarray(x, np.int64), np.asarray(y, np.int64)), 1)
    return table
