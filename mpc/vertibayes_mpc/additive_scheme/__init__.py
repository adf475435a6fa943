"""Sums of many parties' counts: one message each to an aggregator, who learns the sums alone.

    Set-up    dealer                 N = pq, p and q forgotten;  sk_0 + sk_1 + .. + sk_n = 0
              dealer -> P_k          N, sk_k in [0, 2^128 N^2)
              dealer -> aggregator   N, sk_0
    Encrypt   P_k -> aggregator      C_k = (1 + x_k N) H(t)^sk_k mod N^2    at time t, once
    Decrypt   aggregator             C = H(t)^sk_0 C_1 .. C_n = 1 + N (x_1 + .. + x_n) mod N^2
                                     x_1 + .. + x_n = (C - 1) / N

One plaintext x packs about 50 counts of 40 bits; H hashes the parameters, the time and the packet.

Security: the aggregator and any of the parties together learn only the sum over the other parties,
if composite residuosity is hard modulo N, H is a random oracle, no party encrypts twice at one
time, and the dealer forgot the factors and the keys: with either it reads every count. Ciphertexts
are malleable: C (1 + dN) adds d to the sum, as does a party that lies about its count, and nobody
can detect it; so messages must travel sealed. The aggregator detects a wrong ciphertext that is not
such a multiple, but not whose it is.
Leakage: the sums to the aggregator; who takes part, at what times, with how many packets, to all
who see messages. Whoever knows all counts but one learns that one from the sum: the caller adds
noise.
Cost: 1 round, 2 |N| bits a packet from each party, one exponentiation a packet for each.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 4.4; its prime modulus lets two ciphertexts give the key.
M. Joye, B. Libert: A scalable scheme for privacy-preserving aggregation of time-series data (2013),
section 4.
"""

from vertibayes_mpc.additive_scheme.scheme import (
    Encryptor,
    Packing,
    Parameters,
    clamp,
    deal_keys,
    decrypt,
    draw_modulus,
    open_sums,
)
from vertibayes_mpc.aggregation import NEVER, Keys, contribute

__all__ = [
    "NEVER",
    "Encryptor",
    "Keys",
    "Packing",
    "Parameters",
    "clamp",
    "contribute",
    "deal_keys",
    "decrypt",
    "draw_modulus",
    "open_sums",
]
