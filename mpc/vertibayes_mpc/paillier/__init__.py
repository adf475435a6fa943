"""Paillier's cryptosystem: packed vectors of counts, tables of two parties without a dealer.

The owner of a key encrypts thirty times as fast as phe, without further assumptions
(`vertibayes_mpc.paillier.residues`); phe reads the ciphertexts
(`vertibayes_mpc.paillier.interchange`).
"""

from vertibayes_mpc.paillier.keys import PrivateKey, PublicKey
from vertibayes_mpc.paillier.scalar_product import (
    TablePlan,
    count_by_state,
    encrypt_column,
    open_tables,
)
from vertibayes_mpc.paillier.vectors import EncryptedCounts, Packing

__all__ = [
    "EncryptedCounts",
    "Packing",
    "PrivateKey",
    "PublicKey",
    "TablePlan",
    "count_by_state",
    "encrypt_column",
    "open_tables",
]
