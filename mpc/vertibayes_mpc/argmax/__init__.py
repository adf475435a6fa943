"""Argmax: which value of each set is the highest, and whether it leads, from additive shares.

The sites S_1 .. S_h hold additive shares, modulo 2^b, of the values x_i of several sets. Of a pair
i < j, x_j wins if x_i < x_j, and x_i otherwise: the first of equal values wins, and all ranks of a
set differ. A value leads others that it exceeds by more than a public margin m; the winner leads if
it leads all others. t bits hold the rank of a value in the largest set. Each step treats all sets
at once; "all" stands for each site to each other site.

    Scores   all -> all        x_i + rho_i                  revealed to the sites: y_i
    Digits   dealer -> S_1     one-hots of the digits of r = rho_i - rho_j, for each pair i < j
             locally           from each of d = y_i - y_j, d - m - 1, d + m: whether each digit is
                               less than, or equals, that of r; a share of a parity is the parity
                               of a share
    Join     dealer -> S_1     the products c = a b
             all -> all        u + a, v + b                 products of bits: digits in pairs,
                                                            then pairs of pairs
    Flip     dealer -> S_1     beta as a number modulo 2^t
             all -> all        [d - r < 0] + beta           and so each comparison as a number
             locally           sums over pairs: how many values of its set x_i wins against (k_i),
                               and how many it leads (l_i)
    Rank     dealer -> S_1     one-hots of q_i and q'_i
             all -> all        k_i + q_i, l_i + q'_i   mod 2^t
                                                            and so [k_i, l_i is the highest rank]
    Winners  S_s -> all and the analyst
                               the bits of the winner's place and of its lead, plus zero shares

`share_ranks` compares the first value of each set with the others and ends before Rank, with shares
of how many it reaches: nothing is revealed.

rho, a, b, beta and q are sums of masks that each site shares with the dealer. The sites' shares of
what is dealt are XOR shares, except for beta; all sites except S_1 draw theirs from a stream. A
digit has 4 bits; the highest bit of an element is its sign and is not compared.

Security: honest-but-curious. Against the analyst and all sites except one, the messages of this
site are simulated from the winners: each is under a mask that only this site and the dealer know,
or under a zero share. The dealer with the analyst learns only the winners. The dealer with one site
reads every value. A site that lies can change a winner and its lead, and sees what it has changed.
Leakage: the winners, and whether each leads, to the analyst and the sites; the sizes of the sets
and the margin to all. An argmax of scores that differ by more than `ArgmaxPlan` states can have a
wrong winner.
Cost: with sets of 33 to 64 values in Z_2^64, the dealer sends 44 bytes for each pair of values
and 16 for each value; each site sends each other site 15.8 for each pair and 9.5 for each value.
Rounds: 8, if all pairs fit into one part; each further part of pairs takes 5. One site alone finds
the winners in the clear.

References
----------
Damgard, Fitzi, Kiltz, Nielsen, Toft (2006), doi:10.1007/11681878_15: comparison of a revealed
masked value with the bits of its mask. Beaver (1991), doi:10.1007/3-540-46766-1_34: products.
"""

from vertibayes_mpc.argmax.messages import Won, deal_argmax, open_argmax
from vertibayes_mpc.argmax.plan import ArgmaxPlan, RankPlan
from vertibayes_mpc.argmax.site import argmax, share_ranks

__all__ = [
    "ArgmaxPlan",
    "RankPlan",
    "Won",
    "argmax",
    "deal_argmax",
    "open_argmax",
    "share_ranks",
]
