import pytest

from tests.randomness import SeededRandomness
from vertibayes_mpc.signing import SigningKey, is_signed

# RFC 8032, section 7.1, test 2.
KEY = SigningKey(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def test_a_known_signature():
    assert KEY.public.hex() == PUBLIC
    assert KEY.sign(b"\x72").hex() == SIGNATURE
    assert is_signed(b"\x72", bytes.fromhex(SIGNATURE), bytes.fromhex(PUBLIC))


@pytest.mark.parametrize("at", range(64))
def test_a_changed_signature_is_none(at):
    changed = bytearray.fromhex(SIGNATURE)
    changed[at] ^= 1
    assert not is_signed(b"\x72", bytes(changed), KEY.public)


def test_another_message_or_key():
    signature = KEY.sign(b"a")
    assert is_signed(b"a", signature, KEY.public)
    assert not is_signed(b"b", signature, KEY.public)
    assert not is_signed(b"a", signature, SigningKey.generate(SeededRandomness()).public)
    assert not is_signed(b"a", signature, KEY.public[:31])
    assert not is_signed(b"a", signature[:63], KEY.public)
