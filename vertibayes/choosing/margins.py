"""How far a gain on a sample of records may be from the gain on all records.

A gain is how much further parents Z raise the score of a child x that has the parents U. Let p be
the frequencies among all N records, q those in a sample of m of them, L the log-likelihood per
record, and G(p) = L_p(x | U, Z) - L_p(x | U). With g = ln p(x | U, Z) - ln p(x | U),

    G(q) - G(p)  =  (E_q - E_p) g  +  K(U, Z) - K(U),

where K(A) is the relative entropy of q(x | A) to p(x | A), averaged over q(A). This is an identity,
and g does not depend on the sample. Each of ten events fails with probability e^-t at most:

1. m K(A) <= d + sqrt(2 d t) + t for A = U and for A = (U, Z), where d is the number of free
   parameters of x given A. The moment generating function of m K(A) is at most that of a gamma
   distribution of shape d: Agrawal's bound for each configuration of A, multiplied.
2. Let X be g - G(p) or G(p) - g, so that E_p X = 0 and X >= -b for b = ln(r N), where x has r
   states: no frequency among all records is below 1 / N, and G(p) <= ln r. For each of four
   numbers u, with l = u / b and h = (-ln(1 - u) - u) / b^2,

       l E_q X  <=  h E_q X^2 + t / m.

   For (y - ln(1 + y)) / y^2 falls in y, so that l X - h X^2 <= ln(1 + l X), and the exponential of
   the right side has the mean 1 among all records (Fan, Grama and Liu).

E_q X^2 is the variance of g over the sample plus (E_q X)^2, so that 2 bounds E_q X by the smaller
root of a quadratic equation; the larger one exceeds b, as u <= 1/2. The sample shows the logarithms
of q and not those of p. Their root mean square distances over the sample are at most
sqrt(a K(U, Z)) and sqrt(a K(U)) with a = 2 + ln N: (ln w)^2 <= a (w - 1 - ln w) for w = p / q >=
1 / N. So the standard deviation of g is at most what the sample shows plus these two.

A K2 score differs from the log-likelihood: with Q configurations of parents it lies between L N -
c(Q) and L N, where c(Q) = Q ln C(N / Q + r - 1, r - 1) (method of types, and concavity).

**Assumptions.** None about the records, and nothing is asymptotic: p is what it is. The sample is
drawn uniformly, without replacement, independently of the values. Each bound is that of the mean
of exp(a convex function of q), which is at least as large with replacement (Hoeffding). If no event
fails for any candidate that the search over all records compares, then each winner is that over all
records, and the race compares the same candidates. So the probability that a whole search has
another winner is at most the sum over its candidates. With n candidates in its call number k,
10 n e^-t is `FAILURE` / (k (k + 1)): less than `FAILURE` in all calls.

References
----------
Agrawal (2020), Finite-sample concentration of the multinomial in relative entropy,
doi:10.1109/TIT.2020.2996134. Boucheron, Lugosi and Massart (2013), Concentration inequalities, 2.4
(tails of gamma distributions). Fan, Grama and Liu (2015), Exponential inequalities for martingales
with applications, Electronic Journal of Probability 20. Hoeffding (1963), Probability inequalities
for sums of bounded random variables, theorem 4, whose proof holds for vectors,
doi:10.1080/01621459.1963.10500830. Csiszar (1998), The method of types, doi:10.1109/18.720546.
"""

from __future__ import annotations

from math import lgamma, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from vertibayes.counting.counter import Table
from vertibayes_protocols.choices import ScoreKind

FAILURE = 1e-6  # of a whole search: the probability of another winner than over all records
SCALES = (1 / 2, 1 / 4, 1 / 8, 1 / 16)  # u: the best is near b sqrt(2 t / m) / deviation
EVENTS = 2 + 2 * len(SCALES)  # of a candidate


class Gain(NamedTuple):
    """What a sample shows of a gain."""

    records: int  # of the sample: m
    mean: float  # nats per record: G(q)
    deviation: float  # standard deviation of the log ratio over the sample, in nats
    states: int  # of the child: r
    before: int  # configurations of the parents without the further ones
    after: int  # configurations of all parents

    def bounds(self, records: int, sure: float, score: ScoreKind) -> tuple[float, float]:
        """Return the least and the most that the gain over N records can be, in nats.

        Each event fails with probability e^-`sure` at most.
        """
        few, many = (self._most_entropy(q, sure) for q in (self.before, self.after))
        spread = self.deviation + sqrt(2 + log(records)) * (sqrt(few) + sqrt(many))
        off = _most_mean(log(self.states * records), spread, sure / self.records)
        low, high = records * (self.mean - off - many), records * (self.mean + off + few)
        if score == "k2":
            low -= _most_penalty(records, self.after, self.states)
            high += _most_penalty(records, self.before, self.states)
        return low, high

    def _most_entropy(self, configurations: int, sure: float) -> float:
        """Return the most that K(A) can be (event 1)."""
        free = configurations * (self.states - 1)
        return (free + sqrt(2 * free * sure) + sure) / self.records


def certainty(candidates: int, call: int) -> float:
    """Return t for the candidates of a call: the logarithm of one over an event's probability."""
    return log(EVENTS * candidates * call * (call + 1) / FAILURE)


def gain_of(table: Table) -> Gain:
    """Return what a sample's table shows: axes of child, its parents before, its further ones."""
    counts = table.astype(float)
    pairs, alone = counts.sum(axis=0, keepdims=True), counts.sum(axis=2, keepdims=True)
    ratio = np.ones_like(counts)
    both = pairs * alone
    np.divide(counts * pairs.sum(axis=2, keepdims=True), both, out=ratio, where=counts > 0)
    logs, records = np.log(ratio), counts.sum()
    mean = float((counts * logs).sum() / records)
    deviation = sqrt((counts * (logs - mean) ** 2).sum() / records)
    states, before, further = table.shape
    return Gain(int(records), mean, deviation, states, before, before * further)


def _most_mean(lowest: float, spread: float, share: float) -> float:
    """Return the most that E_q X can be (event 2), where X >= -lowest and `share` is t / m."""
    most = lowest
    for u in SCALES:
        slope, square = u / lowest, (-log1p(-u) - u) / lowest**2
        root = slope**2 - 4 * square * (square * spread**2 + share)
        if root >= 0:
            most = min(most, (slope - sqrt(root)) / (2 * square))
    return most


def _most_penalty(records: int, configurations: int, states: int) -> float:
    """Return c(Q): how far the K2 score of a family is below its log-likelihood, at most."""
    each = records / configurations
    return configurations * (lgamma(each + states) - lgamma(each + 1) - lgamma(states))
