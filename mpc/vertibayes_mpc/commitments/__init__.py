"""Committed columns: each site masks its columns once, and sends them to the other sites.

    P -> sites    Xhat = X + A      mod 2^k             X: the column's indicators, except the first
                  xhat = x + a      mod 2^24            x: the column's codes
                  uhat = u + c      mod 2^48            u: 1 where the value is missing

A, a and c are streams that P and the dealer share, each under a label that names the commitment.
Columns of more than `most_indicators` + 1 codes have no indicators. `vertibayes_mpc.masked_tables`
multiplies indicators, for narrow columns; `vertibayes_mpc.shuffled_tables` shuffles codes, for
tables of any width.

Each site also sends 32 random bytes to each other site, and not to the dealer: the hash of all of
them is the key of the orders in which shuffled codes are revealed (`Holder.sites_key`).

Security: honest-but-curious. A masked column is uniform for everybody who does not know the stream.
Its holder and the dealer know the stream; the dealer does not receive the masked column.
Leakage: n, the number of codes of each column.
Cost: 1 round for each block of rows; per record, a column takes k bits for each indicator, 24
for the code, and 48 if values may be missing, to each other site. k is 14, 16, 20, 24 or 32, so
that 2^k > n (`Ring.holding`).
"""

from vertibayes_mpc.commitments.columns import CodeColumn, Column, PartColumn, SharedColumn
from vertibayes_mpc.commitments.commit import Holder, commit
from vertibayes_mpc.commitments.operands import (
    BLOCK_ROWS,
    MOST_INDICATORS,
    Commitments,
    Operand,
    Selection,
    Term,
)

__all__ = [
    "BLOCK_ROWS",
    "MOST_INDICATORS",
    "CodeColumn",
    "Column",
    "Commitments",
    "Holder",
    "Operand",
    "PartColumn",
    "Selection",
    "SharedColumn",
    "Term",
    "commit",
]
