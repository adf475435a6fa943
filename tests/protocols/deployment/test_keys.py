import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.deployment.keys import read_private, write_private
from vertibayes_protocols.public_keys import decode_public, encode_public

KEYS = KeyPair.generate(SeededRandomness())


@given(st.binary(min_size=32, max_size=32))
def test_a_public_key_is_read_as_it_was_written(public):
    assert decode_public(encode_public(public)) == public and len(encode_public(public)) == 52


@given(st.integers(4, 51), st.sampled_from("ABCDEFGHabcdefgh0123456789-_"))
def test_one_other_character_is_a_slip(place, character):
    text = encode_public(KEYS.public)
    if text[place] == character:
        return
    with pytest.raises(ValueError, match="has a typing error"):
        decode_public(text[:place] + character + text[place + 1 :])


def test_a_private_key_is_its_owners_alone_and_never_overwritten(tmp_path):
    path, before = tmp_path / "keys" / "a.key", os.umask(0)
    try:
        write_private(path, KEYS)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and read_private(path) == KEYS
    content = path.read_bytes()
    with pytest.raises(ValueError, match="exists: a key is never overwritten"):
        write_private(path, KeyPair.generate(SeededRandomness(b"another")))
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_private_key_that_others_can_read_is_refused(tmp_path, mode):
    write_private(tmp_path / "a.key", KEYS)
    (tmp_path / "a.key").chmod(mode)
    with pytest.raises(ValueError, match=r"other users can read .*: chmod 600 .*a\.key"):
        read_private(tmp_path / "a.key")


@pytest.mark.parametrize("change", [lambda t: "x" + t, lambda t: t[:-9], lambda t: t + "more", len])
def test_what_is_no_key_is_refused_and_not_shown(tmp_path, change):
    write_private(tmp_path / "a.key", KEYS)
    secret = (tmp_path / "a.key").read_text()
    (tmp_path / "a.key").write_text(str(change(secret)))
    with pytest.raises(ValueError, match="is not a private key") as caught:
        read_private(tmp_path / "a.key")
    assert secret.splitlines()[1][:8] not in str(caught.value)


def test_what_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        read_private(tmp_path / "none")
    with pytest.raises(ValueError, match="is not a file"):
        read_private(tmp_path)
