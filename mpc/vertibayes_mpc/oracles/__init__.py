"""Frequency oracles: each person perturbs one value; an aggregator estimates how many hold each.

    person                  value v in 0 .. d-1:  report = perturb(v)    on the person's device
    person -> aggregator    report
    aggregator              support(v) = number of reports that support v    in any order
                            estimate(v) = (support(v) - n q) / (p - q)    n: number of reports

    DirectEncoding      de    v with probability p, each other value with probability q
    SymmetricUnary      sue   one bit for each value: 1 with probability p for v, q for the others
    OptimalUnary        oue   the same, with the p and q of the least variance
    ThresholdHistogram  the   the same, with the p and q of Laplace noise that is compared to theta
    SubsetSelection     ss    a set of k values: it contains v with probability p, another with q
    SummationHistogram  she   a histogram of one value, with Laplace noise in each cell

p is the probability that a report supports the person's own value, and q that it supports a given
other value. Wang et al. [1]_ call these protocols pure, and give the variance of the estimate of c
people among n:  n q (1-q) / (p-q)^2 + c (1-p-q) / (p-q).

Security: one report is (eps, 0)-locally differentially private: for any two values, the
probabilities of each report differ by a factor of at most e^eps. The factor is exact. Probabilities
are multiples of 2^-64, p is rounded down and q up, and integers are compared with draws of 64 bits.
The draws come from AES-256 under a key of 32 fresh bytes for each call. OpenDP draws the noise of
SummationHistogram on a grid of 2^-10. Several reports of one person add up: k reports are (k
eps)-private, also if the value is the same, because nothing is memorized between calls. Nobody
protects the result from people who lie: a person moves an estimate by up to 1 / (p - q), and by the
largest noise with SummationHistogram. Malformed reports are refused.
Leakage: the aggregator learns n. The time of a call depends on the coins.
Cost: bytes per report, and variance of a rare value at eps = 1 for each of n reports:

    oracle   bytes           d = 8    d = 100
    ss       d / 8           2.57     3.59
    de       4               2.95     34.1
    oue      d / 8           3.68     3.68
    sue      d / 8           3.92     3.92
    the      d / 8           4.81     4.81
    she      8 d             8.00     8.00

Subset selection has the least variance of rare values of all six [3]_; with k = 1 it is
DirectEncoding. SummationHistogram takes some 10 microseconds per cell, the others some 10
nanoseconds, and subset selection k times 30 nanoseconds per report. Hadamard response [4]_ is left
out: its variance is larger than that of OptimalUnary at each eps.

References
----------
.. [1] T. Wang, J. Blocki, N. Li, S. Jha (2017). Locally Differentially Private Protocols for
   Frequency Estimation. USENIX Security. Sections 3 (pure protocols) and 4 (the oracles).
.. [2] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
   Classification. Section 2.2.1. arXiv, doi:10.48550/arXiv.1905.01039.
.. [3] M. Ye, A. Barg (2018). Optimal Schemes for Discrete Distribution Estimation Under Locally
   Differential Privacy. IEEE Trans. Inf. Theory 64(8). doi:10.48550/arXiv.1702.00610. Subset
   selection is also in S. Wang et al. (2016), doi:10.48550/arXiv.1607.08025.
.. [4] J. Acharya, Z. Sun, H. Zhang (2019). Hadamard Response: Estimating Distributions Privately,
   Efficiently, and with Little Communication. AISTATS. doi:10.48550/arXiv.1802.04705.
"""

from vertibayes_mpc.oracles.encodings import ORACLES, DirectEncoding, SubsetSelection, best_oracle
from vertibayes_mpc.oracles.oracle import FrequencyOracle, PureOracle, Tally
from vertibayes_mpc.oracles.summation import SummationHistogram
from vertibayes_mpc.oracles.unary import OptimalUnary, SymmetricUnary, ThresholdHistogram

__all__ = [
    "ORACLES",
    "DirectEncoding",
    "FrequencyOracle",
    "OptimalUnary",
    "PureOracle",
    "SubsetSelection",
    "SummationHistogram",
    "SymmetricUnary",
    "Tally",
    "ThresholdHistogram",
    "best_oracle",
]
