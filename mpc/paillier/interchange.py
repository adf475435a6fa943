"""Keys and ciphertexts of phe, and back.

phe is under the GPL and is imported here alone, by what hands out its objects; the rest of the
package does without it.

What phe encrypts as an integer, `PrivateKey.decrypt` decrypts, and the other way round: for
plaintexts up to N / 3, which phe takes for itself; it reads those above 2 N / 3 as negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpc.extras import load
from mpc.paillier.keys import PrivateKey, PublicKey


def _phe() -> Any:
    return load("phe.paillier", "paillier")


def to_phe_public(public: PublicKey) -> Any:
    """Return a `phe.PaillierPublicKey`.

    Raises
    ------
    ImportError
        If phe is not installed.
    """
    return _phe().PaillierPublicKey(public.modulus)


def to_phe_private(key: PrivateKey) -> Any:
    """Return a `phe.PaillierPrivateKey`.

    Raises
    ------
    ImportError
        If phe is not installed.
    """
    return _phe().PaillierPrivateKey(to_phe_public(key.public), key.p, key.q)


def from_phe_public(key: Any) -> PublicKey:
    """Return the key of a `phe.PaillierPublicKey`.

    Raises
    ------
    ValueError
        If it has fewer than 2048 bits.
    """
    return PublicKey(int(key.n))


def from_phe_private(key: Any) -> PrivateKey:
    """Return the key of a `phe.PaillierPrivateKey`.

    Raises
    ------
    ValueError
        If it has fewer than 2048 bits.
    """
    return PrivateKey(int(key.p), int(key.q))


def to_phe(public: PublicKey, ciphertexts: Sequence[int]) -> list[Any]:
    """Return ciphertexts of integers as `phe.EncryptedNumber` of exponent 0.

    Raises
    ------
    ImportError
        If phe is not installed.
    ValueError
        If one is no ciphertext.
    """
    public.check_ciphertexts(ciphertexts)
    key = to_phe_public(public)
    return [_phe().EncryptedNumber(key, int(c), 0) for c in ciphertexts]


def from_phe(public: PublicKey, numbers: Sequence[Any]) -> list[int]:
    """Return the ciphertexts of `phe.EncryptedNumber`, re-randomized if they were computed.

    Raises
    ------
    ValueError
        If a number is of another key, is no integer (its exponent is not 0), or no ciphertext.
    """
    for place, number in enumerate(numbers):
        if number.public_key.n != public.modulus:
            raise ValueError(f"number {place} is encrypted under another key")
        if number.exponent != 0:
            raise ValueError(f"number {place} has the exponent {number.exponent}: 0 is wanted")
    ciphertexts = [int(number.ciphertext()) for number in numbers]
    public.check_ciphertexts(ciphertexts)
    return ciphertexts
