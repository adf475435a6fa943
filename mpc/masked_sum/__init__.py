"""Masked sums: a server adds up the integer vectors of many parties, and sees their sum alone.

k neighbours of each party P, on a circle drawn from a digest of all keys; N(P) is P and these.
PRG is an AES-256-CTR stream. P -> server -> all others; U1, U2, .. are those heard in each round.

    1  P -> server    public keys for masks and for sealing, fresh and signed
       server -> P    the keys of U1
    2  P -> server    Shamir shares (t of k + 1) of its mask key s_P and of a seed b_P, each pair
                      sealed for a Q in N(P); digests of all shares
       server -> P    U2; what Q in N(P) and U2 sealed for P
    3  P -> server    y_P = x_P + PRG(b_P) + sum_{Q in N(P) and U2} +- PRG(k_PQ)
       server -> P    U3, whose vectors came
    4  P -> server    a signature on U1 with its keys, U2, U3
       server -> P    the signatures of U4
    5  P -> server    for Q in N(P) and U2: its share of b_Q if Q is in U3, else that of s_Q
    sum               sum_{U3} x_P = sum_{U3} (y_P - PRG(b_P)) + the masks left by U2 without U3

Parties may drop out between any two rounds, as long as t of each neighbourhood are left.

Security: against a server that lies and `corrupt` parties with it, but for the probability asked of
`smallest_neighbourhood`: never both seeds of one party, whatever it tells whom; one list of
survivors, since two cannot both be signed by a quorum; no less is opened than the sum of all
honest survivors. The parties' signing keys must not come from the server. Drop-outs, and parties
that send garbage, can stop a sum; who does is named. The server checks the total alone: a party can
move the sum, unseen, to whatever stays within survivors x bound, by up to 2n times the bound; if it
goes beyond, all survivors are named. The circle follows from the roster: a server can try many
rosters, no more.
Leakage: the sum and whose it is, to the server; who advertised, shared and survived, to all.
Cost: 5 rounds; a party sends its vector once, 146 (k + 1) bytes of shares, 33 (k + 1) to unmask,
and reads 208 bytes a party: keys, lists and signatures. It agrees on 2 (k + 1) keys.

References
----------
K. Bonawitz et al. (2017), Practical secure aggregation for privacy-preserving machine learning,
CCS 2017: figure 4, with the consistency check of the active setting.
J. H. Bell et al. (2020), Secure single-server aggregation with (poly)logarithmic overhead, CCS
2020: the graph of neighbours.
"""

from mpc.masked_sum.parameters import (
    Neighbourhood,
    compromise_probability,
    failure_probability,
    smallest_neighbourhood,
)
from mpc.masked_sum.party import Member, contribute
from mpc.masked_sum.plan import SumPlan
from mpc.masked_sum.server import Sum, collect

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
