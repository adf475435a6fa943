"""Products of a few parties' counts: one message each to an aggregator, who learns the products.

    Set-up    dealer                 p = 2q + 1 (RFC 3526);  sk_0 + sk_1 + .. + sk_n = 0 mod q
              dealer -> P_k          p, sk_k
              dealer -> aggregator   p, sk_0
    Encrypt   P_k -> aggregator      C_k = x_k^2 H(t)^sk_k mod p    at time t, once; x_k >= 1
    Decrypt   aggregator             M = H(t)^sk_0 C_1 .. C_n = (x_1 .. x_n)^2 mod p
                                     x_1 .. x_n = the root of M that is at most (p - 1) / 2

H maps to the squares and all messages are squares, because a Legendre symbol distinguishes squares
from other residues. No count is zero, because its ciphertext would be zero.

Security: the aggregator and any of the parties together learn only the product over the other
parties, if the decisional Diffie-Hellman problem is hard among the squares modulo p, H is a random
oracle, no party encrypts twice at one time, and the dealer forgot the keys. Ciphertexts are
malleable: C y^2 makes the product y times as large; so messages must travel sealed.
Leakage: the product, and often its factors (`docs/protocols/product_scheme.md`). The counts should
therefore be noisy, or such that the aggregator may know them.
Cost: 1 round, |p| bits a count from each party, one exponentiation a count for each, and for the
aggregator n + 2.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 5.4. T. Kivinen, M. Kojo: MODP Diffie-Hellman groups, RFC 3526 (2003).
"""

from vertibayes_mpc.aggregation import NEVER, Keys, contribute
from vertibayes_mpc.product_scheme.scheme import (
    MODP_PRIMES,
    Encryptor,
    Parameters,
    deal_keys,
    decrypt,
    open_products,
)

__all__ = [
    "MODP_PRIMES",
    "NEVER",
    "Encryptor",
    "Keys",
    "Parameters",
    "contribute",
    "deal_keys",
    "decrypt",
    "open_products",
]
