"""Masked sums: an aggregator adds up the integer vectors of many parties, and sees only their sum.

Each party P has k neighbours, on a circle drawn from a digest of all keys; N(P) is P and these. PRG
is an AES-256-CTR stream. P -> aggregator -> all others; U1, U2, .. are those heard in each round.

    1  P -> aggregator    public keys for masks and for sealing, fresh and signed
       aggregator -> P    the keys of U1
    2  P -> aggregator    Shamir shares (t of k + 1) of its mask key s_P and of a seed b_P, each
                          pair sealed for a Q in N(P); digests of all shares
       aggregator -> P    U2; what Q in N(P) and U2 sealed for P
    3  P -> aggregator    y_P = x_P + PRG(b_P) + sum_{Q in N(P) and U2} +- PRG(k_PQ)
       aggregator -> P    U3, whose vectors came
    4  P -> aggregator    a signature on U1 with its keys, U2, U3
       aggregator -> P    the signatures of U4
    5  P -> aggregator    for Q in N(P) and U2: its share of b_Q if Q is in U3, else that of s_Q
    sum                   sum_{U3} x_P = sum_{U3} (y_P - PRG(b_P)) + the masks left by U2 without U3

Parties may drop out between any two rounds, as long as t of each neighbourhood are left.

Security: against an aggregator that lies and `corrupt` parties that work with it, except with the
probability given to `smallest_neighbourhood`. Whatever it sends to whom, it never has both seeds of
one party. There is one list of survivors, since a quorum cannot sign two. It learns nothing less
than the sum of all honest survivors. The parties must receive each other's signing keys by another
way than the aggregator. Drop-outs, and parties that send garbage, can stop a sum; errors name them.
The aggregator checks only the total: a party can move the sum, undetected, to any value within
survivors x bound, by up to 2n times the bound; beyond it, an error names all survivors. The circle
follows from the roster: an aggregator can try many rosters, no more.
Leakage: the sum and whose it is, to the aggregator; who advertised, shared and survived, to all.
Cost: 5 rounds; a party sends its vector once, 146 (k + 1) bytes of shares, 33 (k + 1) to unmask,
and reads 208 bytes per party: keys, lists and signatures. It agrees on 2 (k + 1) keys.

References
----------
K. Bonawitz et al. (2017), Practical secure aggregation for privacy-preserving machine learning:
figure 4, with the consistency check of the active setting. J. H. Bell et al. (2020), Secure
single-server aggregation with (poly)logarithmic overhead: the graph of neighbours.
"""

from vertibayes_mpc.masked_sum.aggregator import Sum, collect
from vertibayes_mpc.masked_sum.party import Member, contribute
from vertibayes_mpc.masked_sum.plan import (
    Neighbourhood,
    SumPlan,
    compromise_probability,
    failure_probability,
    smallest_neighbourhood,
)

__all__ = [
    "Member",
    "Neighbourhood",
    "Sum",
    "SumPlan",
    "collect",
    "compromise_probability",
    "contribute",
    "failure_probability",
    "smallest_neighbourhood",
]
