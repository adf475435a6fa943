"""Paillier's cryptosystem: packed vectors of counts, tables of two parties without a dealer.

The owner of a key encrypts thirty times as fast as phe, without further assumptions
(`mpc.paillier.residues`); phe reads the ciphertexts (`mpc.paillier.interchange`).
"""

from mpc.paillier.keys import PrivateKey, PublicKey
from mpc.paillier.packing import Packing
from mpc.paillier.scalar_product import TablePlan, count_by_state, encrypt_column, open_tables
from mpc.paillier.vectors import ComputedCounts, EncryptedCounts

__all__ = [
    "ComputedCounts",
    "EncryptedCounts",
    "Packing",
    "PrivateKey",
    "PublicKey",
    "TablePlan",
    "count_by_state",
    "encrypt_column",
    "open_tables",
]
