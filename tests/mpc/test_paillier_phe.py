"""Keys and ciphertexts of phe, both ways, at full size."""

import subprocess
import sys
from pathlib import Path

import pytest
from phe import paillier as phe

from tests.paillier_worlds import small_key
from tests.randomness import SeededRandomness
from vertibayes_mpc.additive_scheme.scheme import RSA_2048
from vertibayes_mpc.paillier import PublicKey
from vertibayes_mpc.paillier.interchange import (
    from_phe,
    from_phe_private,
    from_phe_public,
    to_phe,
    to_phe_private,
    to_phe_public,
)

ROOT = Path(__file__).parents[2]
VALUES = [0, 1, 2**32, 2**2000]


@pytest.fixture(scope="module")
def theirs():
    return phe.generate_paillier_keypair(n_length=2048)


@pytest.fixture(scope="module")
def ours(theirs):
    return from_phe_private(theirs[1])


def test_keys_there_and_back(theirs, ours):
    assert from_phe_public(theirs[0]) == ours.public
    assert to_phe_public(ours.public) == theirs[0]
    assert to_phe_private(ours) == theirs[1]


@pytest.mark.parametrize("by_owner", [True, False])
def test_phe_decrypts_what_ours_encrypts(theirs, ours, by_owner):
    ciphertexts = (ours if by_owner else ours.public).encrypt(VALUES, SeededRandomness())
    assert [theirs[1].decrypt(number) for number in to_phe(ours.public, ciphertexts)] == VALUES
    assert [theirs[1].raw_decrypt(int(c)) for c in ciphertexts] == VALUES


def test_ours_decrypts_what_phe_encrypts(theirs, ours):
    numbers = [theirs[0].encrypt(value) for value in VALUES]
    assert ours.decrypt(from_phe(ours.public, numbers)) == VALUES
    assert ours.decrypt([theirs[0].raw_encrypt(5)]) == [5]


def test_both_compute_with_the_others_ciphertexts(theirs, ours):
    mine = to_phe(ours.public, ours.encrypt([20], SeededRandomness()))[0]
    assert theirs[1].decrypt(mine + theirs[0].encrypt(3) * 7) == 41
    total = ours.public.add(
        from_phe(ours.public, [theirs[0].encrypt(20) + 1]), ours.encrypt([21], SeededRandomness())
    )
    assert ours.decrypt(total) == [42]


def test_computed_numbers_are_rerandomized(theirs, ours):
    number = theirs[0].encrypt(1) + 1
    before = number.ciphertext(be_secure=False)
    assert from_phe(ours.public, [number])[0] != before


def test_a_negative_number_is_one_modulo_n(theirs, ours):
    number = theirs[0].encrypt(-1)
    assert ours.decrypt(from_phe(ours.public, [number])) == [ours.public.modulus - 1]


def test_what_is_not_ours_to_read_is_refused(theirs, ours):
    with pytest.raises(ValueError, match="number 0 is encrypted under another key"):
        from_phe(PublicKey(RSA_2048), [theirs[0].encrypt(1)])
    with pytest.raises(ValueError, match="number 1 must have the exponent 0"):
        from_phe(ours.public, [theirs[0].encrypt(1), theirs[0].encrypt(0.5)])
    with pytest.raises(ValueError, match="ciphertext 0 lies outside"):
        from_phe(ours.public, [phe.EncryptedNumber(theirs[0], 0)])
    with pytest.raises(ValueError, match="ciphertext 0 lies outside"):
        to_phe(ours.public, [0])


def test_short_keys_of_phe_are_refused():
    public, private = phe.generate_paillier_keypair(n_length=512)
    with pytest.raises(ValueError, match="at least 2048"):
        from_phe_public(public)
    with pytest.raises(ValueError, match="at least 2048"):
        from_phe_private(private)


def test_without_phe_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "phe.paillier", None)
    key = small_key()
    for call in (
        lambda: to_phe_public(key.public),
        lambda: to_phe_private(key),
        lambda: to_phe(key.public, key.encrypt([1], SeededRandomness())),
    ):
        with pytest.raises(ImportError, match=r"pip install 'vertibayes\[paillier\]'"):
            call()


def test_the_package_does_without_phe_and_gmpy2():
    code = """
import sys
sys.modules.update(dict.fromkeys(("phe", "gmpy2")))
from vertibayes_mpc.paillier import PrivateKey
from vertibayes_mpc.randomness import SystemRandomness
key = PrivateKey.generate()
print(key.decrypt(key.public.encrypt([7], SystemRandomness())))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[7]"
