"""Alignment of records: the people whom the lists of several sites share, and their order.

The sites s_1 .. s_S stand in a ring. Every list passes all sites, starting at its owner. A key is a
point of Curve25519, P = H(identifier), under a key that all sites share. k_s is a scalar of site s.

    Start     s               the keys k_s P of its own list in a private order, padded to the
                              public size of the list with keys of random strings
    Chain     s -> s+1        each site multiplies all keys by its k and shuffles them: all lists
                              at once, S - 1 rounds; k_1 (k_2 P) = k_2 (k_1 P)
    Match     last -> matcher    16 bytes of each key. Equal keys are one person; the persons of the
                              study are those in all lists of `everyone` (or in any list, if it is
                              empty), and the matcher draws an order of them
              matcher -> sites    n, and to each site how many of the n are in its list

Level 1, the sites learn who is in the study:

    Back      matcher -> last -> .. -> owner    a mark for each key of the study; each site undoes
                              its order. Each list has marks of its own
              matcher -> owner                  the place of each mark in the study

Level 2, nobody learns who is in the study. Beside each key travels a row, x:

    Start     s               x + a_s                         a_s: a stream of the dealer and s
    Chain     s -> s+1        each site h adds r_h            r_h and its order: streams of both
    Choose    matcher -> last, dealer           where in the list each person of the study is
    Share     last -> s_1     y: the rows there               0 if the list does not have the person
              dealer -> s_1   d: the masks there + t_2 + .. + t_S
              shares          y - d at s_1; t_i at s_i, a stream of s_i and the dealer

Security: honest-but-curious, with H a random oracle and if the decisional Diffie-Hellman problem is
hard on Curve25519. Take the matcher with all sites except h. Keys that h has blinded are fresh
group elements except for their equalities. The equalities are between places, and the orders of h
are uniform, so that the arrangement is uniform given the sizes of the regions. A simulator draws a
point in the image of Elligator 2 (half of all points are) and programs the oracle. Rows of h are
uniform by a_h, rows of others by r_h; at level 1, marks are a uniform order. The dealer with the
matcher reads no rows, and places are uniform to it: an owner's first order is private at both
levels. The dealer with one site reads everything. A site that fills its list with guesses learns at
level 1 which of them the other lists have: limit sizes and runs. A site that shuffles or copies
wrongly is not noticed here. The sites and the dealer refuse places that recur, which would count
one person several times.
Leakage: sizes of lists, n and how many people both sites of an `apart` pair hold, to all (these
counts are 0 in a study). The matcher: how many people are in exactly which lists. A site at level
1: which of its people are in the study. If `everyone` does not name all sites, a site can be in the
ring whose list has only some of the study: then level 1 shows the sites how many, and level 2 shows
the first site and the last of the list at which of the random places; at level 1, the matcher with
a site reads which lists its people of the study are in.
Cost: S multiplications of 25 to 75 us per key and list. 2 S rounds at level 1, S + 2 at level 2;
bytes in `docs/protocols/alignment.md`, which also has the sources.
"""

from vertibayes_mpc.alignment.chain import Member
from vertibayes_mpc.alignment.curve import Spread
from vertibayes_mpc.alignment.match import match_people
from vertibayes_mpc.alignment.plan import AlignmentPlan
from vertibayes_mpc.alignment.site import deal_people, place_people, share_people

__all__ = [
    "AlignmentPlan",
    "Member",
    "Spread",
    "deal_people",
    "match_people",
    "place_people",
    "share_people",
]
