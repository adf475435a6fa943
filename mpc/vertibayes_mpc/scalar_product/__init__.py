"""The n-party scalar product of van Daalen et al., over a ring: for comparison, and for readers.

Parties 1 .. n hold vectors D_i of m elements; a dealer without data shares a key with each. The
result is sum_records D_1 D_2 .. D_n; products below are record by record.

    i -> all others    D_i + R_i
    1                  sum  D_1 prod_{j != 1} (D_j + R_j)  +  C_1
    i > 1              -sum R_i prod_{j != i} (D_j + R_j)  +  C_i
    dealer -> 1        C_1 = (n - 1) sum R_1 .. R_n  -  sum_{i > 1} C_i
    i -> receiver      its sum;  the receiver adds up all sums

Multiplied out, this contains the product of k masks R_K with the data of the other parties 1 - k
times. So, for each set K of 2 to n - 1 parties, (k - 1) sum R_K prod_{i not in K} D_i is still
missing: a scalar product of n - k + 1 factors, and R_K is one of them. It is computed by a
*sub-protocol* with new masks R', whose result is taken k - 1 times. Only the dealer knows R_K, and
sends it masked. Its mask R'_K is the sum of masks of all parties in K, and each of them multiplies
by its own mask:

    i not in K -> the others    D_i + R'_i
    dealer -> all not in K      R_K + R'_K    R'_K = sum of R'_i, i in K
    i in K                      -sum R'_i prod_{j not in K} (D_j + R'_j)

and so on recursively. R_i and C_i are streams under the key that i shares with the dealer, under
labels that name the study, the product and the sub-protocol.

Security: honest-but-curious. Against the receiver and all parties except one, the messages of this
party and of the dealer are simulated from the result alone; against the dealer alone, everything
is. The dealer and one party together read every vector. In the published protocol, one of the
parties of K deals the masks of the sub-protocol: with K = {i, j}, i and one party outside K read
the data of j.
Leakage: the result to the receiver; q, m and n to all.
Cost: T(n) sub-protocols, T(n) = 1 + sum_{k=2}^{n-1} binom(n, k) T(n - k + 1) = 1, 4, 29, 336, 5687
for n = 2 .. 6.

References
----------
.. [1] F. van Daalen, L. Ippel, A. Dekker, I. Bermejo (2023). Privacy Preserving n-Party Scalar
   Product Protocol. IEEE Transactions on Parallel and Distributed Systems 34(4).
.. [2] W. Du, Z. Zhan (2002). Building Decision Tree Classifier on Private Data: two parties.
"""

from vertibayes_mpc.scalar_product.product import (
    MaskedFactor,
    MaskedMasks,
    Multiplier,
    Product,
    ProductCorrection,
    deal_product,
    receive_product,
    scalar_product,
    share_product,
    subprotocols,
)

__all__ = [
    "MaskedFactor",
    "MaskedMasks",
    "Multiplier",
    "Product",
    "ProductCorrection",
    "deal_product",
    "receive_product",
    "scalar_product",
    "share_product",
    "subprotocols",
]
