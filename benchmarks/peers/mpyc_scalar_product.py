"""The scalar product of three parties' 0/1 vectors by MPyC; prints the median seconds of a run.

python benchmarks/peers/mpyc_scalar_product.py -M3 --no-log
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np
from mpyc.runtime import mpc

RECORDS, TIMES = 10_000, 3


async def main() -> None:
    """Share, multiply record by record, take the inner product, open: TIMES times after one."""
    field = mpc.SecFld(2**31 - 1)
    columns = [np.random.default_rng(i).integers(0, 2, RECORDS) for i in range(3)]
    await mpc.start()
    found = []
    for _ in range(TIMES + 1):
        start = perf_counter()
        first, second, third = mpc.input(field.array(columns[mpc.pid]))
        result = await mpc.output(mpc.np_matmul(mpc.np_multiply(first, second), third))
        found.append(perf_counter() - start)
        assert int(result) == np.prod(columns, axis=0).sum()
    await mpc.shutdown()
    if mpc.pid == 0:
        print("seconds", median(found[1:]))


mpc.run(main())
