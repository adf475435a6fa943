"""Keys and ciphertexts of phe, and back.

phe is under the GPL; only this module imports it, when a function needs phe's objects. Without phe
these functions raise an ImportError; the rest of the package does not need it.

`PrivateKey.decrypt` decrypts what phe encrypts as an integer, and phe decrypts what this package
encrypts, for plaintexts up to N / 3; phe reads those above 2 N / 3 as negative numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vertibayes_mpc.extras import load
from vertibayes_mpc.paillier.keys import PrivateKey, PublicKey


def _phe() -> Any:
    return load("phe.paillier", "paillier")


def to_phe_public(public: PublicKey) -> Any:
    """Return a `phe.PaillierPublicKey`."""
    return _phe().PaillierPublicKey(public.modulus)


def to_phe_private(key: PrivateKey) -> Any:
    """Return a `phe.PaillierPrivateKey`."""
    return _phe().PaillierPrivateKey(to_phe_public(key.public), key.p, key.q)


def from_phe_public(key: Any) -> PublicKey:
    """Return the key of a `phe.PaillierPublicKey` of at least 2048 bits."""
    return PublicKey(int(key.n))


def from_phe_private(key: Any) -> PrivateKey:
    """Return the key of a `phe.PaillierPrivateKey` of at least 2048 bits."""
    return PrivateKey(int(key.p), int(key.q))


def to_phe(public: PublicKey, ciphertexts: Sequence[int]) -> list[Any]:
    """Return ciphertexts of integers as `phe.EncryptedNumber` of exponent 0."""
    public.check_ciphertexts(ciphertexts)
    key = to_phe_public(public)
    return [_phe().EncryptedNumber(key, int(c), 0) for c in ciphertexts]


def from_phe(public: PublicKey, numbers: Sequence[Any]) -> list[int]:
    """Return the ciphertexts of `phe.EncryptedNumber`, re-randomized if they were computed."""
    for place, number in enumerate(numbers):
        if number.public_key.n != public.modulus:
            raise ValueError(f"number {place} is encrypted under another key")
        if number.exponent != 0:
            raise ValueError(f"number {place} must have the exponent 0, got {number.exponent}")
    ciphertexts = [int(number.ciphertext()) for number in numbers]
    public.check_ciphertexts(ciphertexts)
    return ciphertexts
