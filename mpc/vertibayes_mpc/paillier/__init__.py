"""Paillier's cryptosystem: tables of several sites without a dealer.

The owner of a key encrypts thirty times as fast as phe, without further assumptions
(`vertibayes_mpc.paillier.residues`); phe reads the ciphertexts
(`vertibayes_mpc.paillier.interchange`).
"""

from vertibayes_mpc.paillier.counting import count_tables, open_tables
from vertibayes_mpc.paillier.keys import PrivateKey, PublicKey
from vertibayes_mpc.paillier.plan import Column, TablePlan

__all__ = [
    "Column",
    "PrivateKey",
    "PublicKey",
    "TablePlan",
    "count_tables",
    "open_tables",
]
