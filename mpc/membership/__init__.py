"""Parties that come, go and fail: estimates of their number, keys that a few neighbours renew.

    Estimates    Algorithm 1 of Huai et al. (2015): each party's u_k in (n/2, n], for its noise
    Groups       interleaved groups: who shares a secret with whom
    Member       a party's pair keys:  sk_j = sum_{i > j} e_ij - sum_{i < j} e_ij,  over the
    Aggregator   neighbours and the aggregator; e_ij in [0, 2^128 N^2) from the key that i and j
                 agreed

    Join, leave  who is concerned agrees with its new neighbours, and drops the old
    A sum        aggregator -> j    time, who is absent
                 j -> aggregator    (1 + x_j N) H(t, absent)^sk_j(present) mod N^2

The e cancel pair by pair, so keys are zero in sum over whoever is present, and no dealer knows any.
Without the aggregator, or over some only of those present, the other pairs stay in the product.

Security: with true rolls the aggregator, with fewer than 2 `least` of the parties, the absent
counted in, learns the sum over the others and no part of it: a part decrypts only if no pair ties
it to the rest, and a ring of blocks does not fall apart before two whole blocks are taken out. An
aggregator that calls parties absent who are there must leave two thirds of each block to those it
asks, and opens one sum a time, as long as less than a third of each block is on its side. A third
of each of up to three blocks reads parts, and is fewer than 4/3 `least`: for blocks of 20 and more,
7 of 21 parties. Who leaves knows its own pairs, which nobody uses any more. No key is ever handed
to the aggregator: of a leaver's, it would read the past. Trust: the factors of N are forgotten;
public keys are their owners'; whoever announces joins and leaves tells true: a party that is told
of colluding neighbours alone has no secret from them. So the blocks are for all to see. Drop-outs:
who is gone before the roll costs nothing. Who fails after it ends the time; the next time has a
roll without it, and is a release of its own, with noise of its own: if the same exact counts were
summed again, the lost answer, should it come late, would give its sender's count. Leakage: the
sums; who is present. Cost: 2 rounds a sum; a join or leave, keys in four blocks at most, whatever
n.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
sections 4.3 and 4.4.
K. Kursawe, G. Danezis, M. Kohlweiss: Privacy-friendly aggregation for the smart-grid (2011).
J. Bell, K. Bonawitz, A. Gascon, T. Lepoint, M. Raykova: Secure single-server aggregation with
(poly)logarithmic overhead (2020): sparse graphs of pairs, and when they keep a sum together.
"""

from mpc.membership.estimates import Estimates, tolerable_dropouts
from mpc.membership.groups import Groups
from mpc.membership.pair_keys import Aggregator, Member, pair_key
from mpc.membership.roll import Roll, answer_roll, call_roll

__all__ = [
    "Aggregator",
    "Estimates",
    "Groups",
    "Member",
    "Roll",
    "answer_roll",
    "call_roll",
    "pair_key",
    "tolerable_dropouts",
]
