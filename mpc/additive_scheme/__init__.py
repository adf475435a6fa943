"""Sums of many parties' counts: one message each to an aggregator, who learns the sums alone.

    Set-up    dealer       N = pq, p and q forgotten; sk_0 + sk_1 + .. + sk_n = 0
    Encrypt   P_k -> aggregator C_k = (1 + x_k N) H(t)^sk_k mod N^2              at time t, once
    Decrypt   aggregator        C = H(t)^sk_0 C_1 .. C_n = 1 + N (x_1 + .. + x_n) mod N^2
                           x_1 + .. + x_n = (C - 1) / N

The scheme of Huai et al. (2015) over a modulus of unknown factorization (Joye and Libert 2013).
With their prime modulus p, C^(p-1) = 1 + p (p-1) (x + h sk) mod p^2 with h known to all, and two
ciphertexts of small counts give the key and every later count. About 50 counts of 40 bits are
packed into one plaintext x; H hashes the parameters, the time and the packet.

Security: the aggregator and any of the parties, together, learn the sum over the others, if
composite residuosity is hard modulo N, H is a random oracle, no party encrypts twice at one time,
and the dealer forgot the factors and the keys: with either it reads every count. Parties need not
trust each other; the dealer they must. Ciphertexts are malleable: C (1 + dN) adds d to the sum, as
would a party that lies about its count, and nothing shows it; so messages are to travel sealed. A
wrong ciphertext that is no such multiple is found out, but not whose it is. Leakage: the sums to
the aggregator; who takes part, at what times, with how many packets, to all who see messages. The
sum of all but one party's counts, known, gives the one's: noise is the caller's. Cost: 1 round, 2
|N| bits a packet from each party, one exponentiation a packet for each.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 4.4.
M. Joye, B. Libert: A scalable scheme for privacy-preserving aggregation of time-series data (2013),
section 4.
"""

from mpc.additive_scheme.packing import Packing, clamp
from mpc.additive_scheme.parameters import Keys, Parameters, deal_keys, draw_modulus
from mpc.additive_scheme.scheme import Encryptor, contribute, decrypt, open_sums
from mpc.aggregation import NEVER, Ciphertexts

__all__ = [
    "NEVER",
    "Ciphertexts",
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
