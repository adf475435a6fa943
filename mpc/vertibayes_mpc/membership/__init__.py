"""Parties that join, leave and fail: estimates of their number, keys that few neighbours renew.

    Estimates      Algorithm 1 of Huai et al. (2015): each party's u_k in (n/2, n], for its noise
    Groups         interleaved groups: who shares a secret with whom
    Member         a party's pair keys:  sk_j = sum_{i > j} e_ij - sum_{i < j} e_ij,  over the
    Aggregator     neighbours and the aggregator; e_ij in [0, 2^128 N^2) from the key that i and j
                   agreed

    Join, leave    parties with new neighbours agree on keys with them, and drop the old keys
    A sum          aggregator -> j    the time, who is absent
                   j -> aggregator    (1 + x_j N) H(t, absent)^sk_j(present) mod N^2

The e cancel pair by pair, so keys are zero in sum over all who are present, and no dealer knows
any. In a product without the aggregator, or over only some of those present, other pairs remain.

Security: if its rolls are true, the aggregator with fewer than 2 `least` of the parties, including
the absent, learns the sum over the others and no part of it: a part decrypts only if no pair links
it to the rest, and a ring of blocks stays connected until two whole blocks are taken out. An
aggregator that falsely calls parties absent must leave two thirds of each block to those it asks,
and reads one sum a time, if less than a third of each block works with it. A third of each of up to
three blocks reads parts, and is fewer than 4/3 `least`: for blocks of 20 and more, 7 of 21 parties.
A party that leaves knows its own pairs, which nobody uses any more. The aggregator never receives a
key: with that of a party that left, it would read past counts.
Trust: the factors of N are forgotten; public keys belong to their owners; whoever announces joins
and leaves is honest: a party whose announced neighbours all collude has no secret from them.
Therefore everybody can see the blocks.
Drop-outs: a party that is gone before the roll costs nothing. A party that fails after the roll
ends the time. The next time has a roll without it, and is a new release with new noise: if the same
exact counts were summed again, a late answer would reveal its sender's count.
Leakage: the sums; who is present.
Cost: 2 rounds a sum; a join or leave changes keys in at most four blocks, whatever n is.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
sections 4.3 and 4.4. K. Kursawe, G. Danezis, M. Kohlweiss: Privacy-friendly aggregation for the
smart-grid (2011). J. Bell, K. Bonawitz, A. Gascon, T. Lepoint, M. Raykova: Secure single-server
aggregation with (poly)logarithmic overhead (2020): sparse graphs of pairs.
"""

from vertibayes_mpc.membership.estimates import Estimates, tolerable_dropouts
from vertibayes_mpc.membership.groups import Groups
from vertibayes_mpc.membership.pair_keys import (
    Aggregator,
    Member,
    Roll,
    answer_roll,
    call_roll,
    pair_key,
)

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
