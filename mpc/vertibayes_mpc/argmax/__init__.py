"""Argmax: which value of each set is the highest, from additive shares of the values.

The sites S_1 .. S_h hold additive shares, modulo 2^b, of the values x_i of several sets. Of a pair
i < j, x_j wins if x_i < x_j, and x_i otherwise: the first of equal values wins, and all ranks of a
set differ. t bits hold the rank of a value in the largest set. Each step treats all sets at once;
"all" stands for each site to each other site.

    Scores   all -> all        x_i + rho_i                  revealed to the sites: y_i
    Digits   dealer -> S_1     one-hots of the digits of r = rho_i - rho_j, for each pair i < j
             locally           from d = y_i - y_j: whether each digit of d is less than, or equals,
                               that of r; a share of a parity is the parity of a share
    Join     dealer -> S_1     the products c = a b
             all -> all        u + a, v + b                 products of bits: digits in pairs,
                                                            then pairs of pairs
    Flip     dealer -> S_1     beta as a number modulo 2^t
             all -> all        [x_i < x_j] + beta           and so the comparison as a number
             locally           the sum over pairs: k_i, how many values of its set x_i exceeds
    Rank     dealer -> S_1     one-hots of q_i
             all -> all        k_i + q_i   mod 2^t          and so [k_i is the highest rank]
    Winners  S_s -> all and the analyst
                               the bits of the winner's place, plus zero shares

A star then says which winners exceed all other values of their sets by more than a public margin:
the sites, who know the winners, put each first in its set, and S_1 subtracts the margin and one.
The figure is the same with other masks, for the pairs of the first value with each other, for the
ranks of the first values, and for one bit of each set. Of two equal scores, none exceeds the other.
`share_ranks` ends before Rank, with shares of how many others the first value of each set reaches:
nothing is revealed.

rho, a, b, beta and q are sums of masks that each site shares with the dealer. The sites' shares of
what is dealt are XOR shares, except for beta; all sites except S_1 draw theirs from a stream. A
digit has 4 bits; the highest bit of an element is its sign and is not compared.

Security: honest-but-curious. Against the analyst and all sites except one, the messages of this
site are simulated from the winners: each is under a mask that only this site and the dealer know,
or under a zero share. The dealer with the analyst learns only the winners. The dealer with one site
reads every value. A site that lies can change a winner, and sees the winner that it has changed.
The same holds for a star, whose bits are simulated with the winners.
Leakage: the winners, and the bit of each set of a star, to the analyst and the sites; the sizes of
the sets and the margin to all. An argmax of scores that differ by more than `ArgmaxPlan` states
can have a wrong winner.
Cost: with sets of 33 to 64 values in Z_2^64, the dealer sends 36 bytes for each pair of values
and 8 for each value; each site sends each other site 5.3 for each pair and 8.8 for each value.
Rounds: 8, if all pairs fit into one part; each further part of pairs takes 5. One site alone finds
the winners in the clear. A star costs the same for s - 1 pairs, s values and one rank of a set of s
values, and as many rounds.

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
