"""Keys too small for use, draws made by hand, and the sites of a table."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from itertools import count
from random import Random
from unittest.mock import patch

import numpy as np

from tests.randomness import SeededRandomness
from vertibayes_mpc.integers import is_probable_prime
from vertibayes_mpc.paillier import (
    Column,
    PrivateKey,
    TablePlan,
    count_tables,
    keys,
    open_tables,
)
from vertibayes_mpc.paillier.messages import EncryptedColumns, to_bytes

PRIMES = {
    6: (5, 7),
    10: (29, 31),
    128: (15107933638602454291, 15771031521402884179),
    256: (306293327635350694613238213722730462859, 314775396324375832054442002668430735127),
}
SITES = ("site 1", "site 2", "site 3", "site 4")  # in the order of a chain, of equal columns


def small_key(bits=256, number=0):
    """Return a key that the public constructors refuse; its public part is made here as well."""
    with patch.object(keys, "FEWEST_BITS", 0):
        key = PrivateKey(*(primes_of(bits // 2, number) if number else PRIMES[bits]))
        assert key.public.bits == bits
    return key


@cache
def primes_of(bits, number):
    """Return two primes of so many bits: others for each number."""
    draws, primes = Random(number), []
    while len(primes) < 2:
        prime = draws.getrandbits(bits) | 3 << bits - 2 | 1
        if is_probable_prime(prime):
            primes.append(prime)
    return tuple(primes)


@contextmanager
def small_keys(bits=256):
    """Let sites draw different keys that are too small for use, which all parties accept."""
    numbers = count()
    with (
        patch.object(keys, "FEWEST_BITS", 0),
        patch.object(PrivateKey, "generate", lambda: small_key(bits, next(numbers) % 64)),
    ):
        yield


class Draws:
    """Hands out integers in the order in which `uniform_below` is to draw them."""

    def __init__(self, *values):
        self.values = list(values)

    def bytes(self, count):
        return self.values.pop(0).to_bytes(count, "big")


def columns_of(*states):
    """Return a column of each site, in one table."""
    return tuple(Column(site, "column", count) for site, count in zip(SITES, states, strict=False))


def plan_of(key, records, states=(4, 4), **settings):
    """Return the plan of one table, of the first sites."""
    (table,) = settings.pop("tables", (columns_of(*states),))
    public = {column.site: key.public for column in table}
    return TablePlan(b"table", public, records, (table,), **settings)


def program_of(key, plan, column, codes, randomness):
    """Return the program of a site with one column."""
    return count_tables(
        plan, column.site, "analyst", key, {column: np.asarray(codes, np.int64)}, randomness
    )


def programs_of(key, plan, *codes, seed=b"table"):
    """Return all programs of a plan of one table."""
    (table,) = plan.tables
    sites = {
        column.site: program_of(
            key, plan, column, of_site, SeededRandomness(seed + column.site.encode())
        )
        for column, of_site in zip(table, codes, strict=True)
    }
    return sites | {"analyst": open_tables(plan)}


def counted(states, *codes):
    """Count a table; records with a code of -1 are left out."""
    table, codes = np.zeros(states, np.int64), np.asarray(codes, np.int64)
    np.add.at(table, tuple(codes[:, (codes >= 0).all(axis=0)]), 1)
    return table


def answering(program, plan, ciphertexts, step=1):
    """Run a site that first receives a column; return its next step, with what it sends.

    Step 1 is what the second site receives, and what it sends next is an answer or a column.
    """
    place = dict(enumerate(c.site for c in plan.chains[0].columns))
    next(program)
    width = 2 * plan.plaintext_bytes
    message = EncryptedColumns(plan.label_of(step), to_bytes(ciphertexts, width))
    return program.send({place[step - 1]: message})


def integers(values):
    """Return the integers of a message."""
    return [int.from_bytes(row.tobytes(), "little") for row in values]
