"""Lists of people for the benchmark of alignment: only the standard library."""

from __future__ import annotations

import random

HELD = 0.8  # the share of all people whom each list has


def lists_of(keys: int, sites: int) -> list[list[bytes]]:
    """Return a list of `keys` identifiers for each site, of equally likely people."""
    generator = random.Random(1)
    people = range(int(keys / HELD))
    return [[b"%09d" % person for person in generator.sample(people, keys)] for _ in range(sites)]
