"""Three sites multiply counts, and the example shows how much the product reveals of them.

python examples/product_scheme.py
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement
from statistics import median
from typing import Any

from vertibayes_mpc.product_scheme import (
    NEVER,
    Encryptor,
    Parameters,
    contribute,
    deal_keys,
    open_products,
)
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.scheduler import run_all


def multiply() -> list[int]:
    """Reveal products of three sites' counts; say how many other counts have the same product."""
    parameters = Parameters(2048, b"example", most=3, highest=100)
    counts = {
        "a": [12, 97, 60],
        "b": [35, 89, 60],
        "c": [1, 83, 60],
    }  # smoothed: above zero
    keys = deal_keys(parameters, counts, SystemRandomness())
    programs: dict[Party, Program[Any]] = {}
    for site, mine in counts.items():
        encryptor = Encryptor(parameters, site, keys.parties[site], last_time=NEVER)
        programs[site] = contribute(encryptor, mine, 1, "aggregator")
    programs["aggregator"] = open_products(parameters, keys.aggregator, list(counts), 1, 3)
    products: list[int] = run_all(programs)[0]["aggregator"]

    multisets = combinations_with_replacement(range(1, 101), 3)
    sizes = Counter(math.prod(multiset) for multiset in multisets)
    for product in products:
        print(f"product {product}: {sizes[product]} multisets of counts up to 100 have it")
    typical = median(size for size in sizes.values() for _ in range(size))
    print(f"of {sum(sizes.values())} multisets, a product leaves {typical:.0f} (median)")
    return products


if __name__ == "__main__":
    multiply()
