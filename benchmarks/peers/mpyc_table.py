"""The same contingency table by MPyC, as its own processes: `python mpyc_table.py RECORDS -M3`.

Two of the parties share the indicator matrices of their columns; the product is opened to party 2.
Party 0 prints the median seconds of several runs.
"""

from __future__ import annotations

import sys
from statistics import median
from time import perf_counter

import numpy as np
from mpyc.runtime import mpc

RUNS = 5
FIELD = mpc.SecFld(2**31 - 1)


async def table(records: int) -> None:
    """Count one table of four by four states."""
    codes = np.random.default_rng(mpc.pid).integers(0, 4, records)
    ours = FIELD.array((np.arange(4)[:, None] == codes).astype(int))
    x, y = mpc.input(ours, senders=[0, 1])
    opened = await mpc.output(mpc.np_matmul(x, mpc.np_transpose(y)), receivers=[2])
    if mpc.pid == 2:
        assert np.array([int(cell) for cell in opened.flatten()]).sum() == records
    await mpc.barrier()


async def main(records: int) -> None:
    await mpc.start()
    found = []
    for _ in range(RUNS + 1):
        start = perf_counter()
        await table(records)
        found.append(perf_counter() - start)
    await mpc.shutdown()
    print(median(found[1:]))


if __name__ == "__main__":
    mpc.run(main(int(sys.argv[1])))
