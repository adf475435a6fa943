"""Noise for counts that are published: discrete Laplace and Gauss, diluted geometric, Polya shares.

    DiscreteLaplace    one party adds    X,                Pr[X = k] = (a-1)/(a+1) a^-|k|
    DiscreteGaussian   one party adds    Z,                Pr[Z = k] ~ exp(-k^2 / (2 scale^2))
    DilutedGeometric   each of n adds    X with probability beta, else 0
    PolyaShare         each of n adds    G - G',           G, G' ~ NB(1/n, 1/a);  the sum is one X

with a = alpha = exp(eps / Delta), beta = min(ln(1/delta) / (gamma n), 1). A protocol takes noise as
a callable from a number of counts to as many integers: `Noise`; for exact counts, `no_noise`.

Security: DiscreteLaplace is (eps, 0)-differentially private for a count that one neighbour changes
by at most Delta. DiscreteGaussian is rho-zCDP for such a count, with scale^2 = Delta^2 / (2 rho).
DilutedGeometric is (eps, delta) against an adversary who knows the noise of all except gamma n of
the parties, and even who added a copy: with probability 1 - delta one of these adds a whole copy.
PolyaShare is (eps, 0) while the n parties add their shares and keep them secret; if one share is
missing, there is no guarantee. Against a party that adds a share and sees the result, the others
add less than one copy: choose n smaller than the number of parties that add a share, by the number
of those that may see the result. eps and delta are those of one count, with separate coins for
each. A publisher of several counts that one person changes divides both among them; where Delta
protects a party, delta among all cells.
Leakage: samplers take longer for larger noise; their time is not constant.
Cost: DiscreteLaplace and PolyaShare add 1 copy of noise to a sum, DilutedGeometric n beta =
ln(1/delta) / gamma copies; where gamma n < ln(1/delta), beta is 1 and all n copies are added.

References
----------
.. [1] M. Huai, L. Huang, W. Yang, L. Li, M. Qi (2015). Privacy-Preserving Naive Bayes
   Classification. Definitions 2 and 3, Theorem 1.
.. [2] E. Shi, T.-H. H. Chan, E. Rieffel, R. Chow, D. Song (2011). Privacy-Preserving Aggregation of
   Time-Series Data. NDSS. Theorem 3.
.. [3] C. Canonne, G. Kamath, T. Steinke (2020). The Discrete Gaussian for Differential Privacy.
   Algorithm 1, Theorem 4.
.. [4] G. Acs, C. Castelluccia (2011). I Have a DREAM! Differentially Private Smart Metering.
.. [5] I. Mironov (2012). On Significance of the Least Significant Bits for Differential Privacy.
"""

from vertibayes_mpc.noise.copies import (
    DilutedGeometric,
    DiscreteGaussian,
    DiscreteLaplace,
    IntegerNoise,
    Noise,
    no_noise,
)
from vertibayes_mpc.noise.polya import PolyaShare

__all__ = [
    "DilutedGeometric",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "IntegerNoise",
    "Noise",
    "PolyaShare",
    "no_noise",
]
