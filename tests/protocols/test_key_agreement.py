"""Each of the four secrets of a session key is needed: a thief reads the key that leaves it out."""

from itertools import combinations

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, StreamKey, label
from vertibayes_protocols.key_agreement import Own, Peer, agree_session_key

SOURCE = SeededRandomness(b"four keys")
STATIC, EPHEMERAL = ({party: KeyPair.generate(SOURCE) for party in "ab"} for _ in range(2))
PAIRS = {"ss": (STATIC, STATIC), "es": (EPHEMERAL, STATIC), "se": (STATIC, EPHEMERAL)}
PAIRS["ee"] = EPHEMERAL, EPHEMERAL  # the keys of a and of b whose secret each part is
agree = KeyPair.agree


def agreed(name, *context, purpose="masks", **changes):
    peer = "b" if name == "a" else "a"
    theirs = Peer(peer, STATIC[peer].public, EPHEMERAL[peer].public)
    own = Own(name, STATIC[name], EPHEMERAL[name])
    return agree_session_key(own, theirs._replace(**changes), purpose, *context)


def thiefs_keys(stolen):
    """Derive keys from the secrets that follow from stolen pairs, and from some of them.

    The thief knows all public keys, and everything that is not secret about the derivation.
    """
    parts = {}
    for part, (of_a, of_b) in PAIRS.items():
        purpose = "masks: es" if part == "se" else f"masks: {part}"
        if of_a["a"] in stolen:
            parts[part] = agree(of_a["a"], of_b["b"].public, purpose).secret
        elif of_b["b"] in stolen:
            parts[part] = agree(of_b["b"], of_a["a"].public, purpose).secret
    sides = [part for p in "ab" for part in (p, EPHEMERAL[p].public, STATIC[p].public)]
    info = label("masks: session key", *sides)
    return {
        HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(b"".join(known))
        for count in range(1, 5)
        for known in combinations([parts[p] for p in ("ee", "es", "se", "ss") if p in parts], count)
    }


def without(monkeypatch, part):
    """Leave a secret out of all keys: `es` stands for both mixed secrets."""

    def patched(pair, public, purpose):
        agreed = agree(pair, public, purpose)
        return StreamKey(b"") if purpose.endswith(f": {part}") else agreed

    monkeypatch.setattr(KeyPair, "agree", patched)


def test_both_ends_derive_the_same_key():
    assert agreed("a") == agreed("b") and len(agreed("a")) == KEY_BYTES


def test_keys_of_other_purposes_contexts_names_and_keys_differ():
    other = KeyPair.generate(SOURCE).public
    keys = {
        agreed("a"),
        agreed("a", purpose="zeros"),
        agreed("a", b"one study"),
        agreed("a", b"another study"),
        agreed("a", party="c"),
        agreed("a", static=other),
        agreed("a", ephemeral=other),
    }
    assert len(keys) == 7


def test_all_keys_of_one_party_are_enough():
    """The thief of these tests derives each key for which it has the secrets."""
    for party in "ab":
        assert agreed("a") in thiefs_keys([STATIC[party], EPHEMERAL[party]])


@pytest.mark.parametrize(
    ("stolen", "part"),
    [
        ([STATIC["a"], STATIC["b"]], "ee"),
        ([EPHEMERAL["a"], STATIC["b"]], "es"),
        ([STATIC["a"], EPHEMERAL["b"]], "es"),
        ([EPHEMERAL["a"], EPHEMERAL["b"]], "ss"),
    ],
)
def test_a_thief_of_one_key_of_each_party_lacks_one_secret(monkeypatch, stolen, part):
    assert agreed("a") not in thiefs_keys(stolen)
    without(monkeypatch, part)
    assert agreed("a") == agreed("b") and agreed("a") in thiefs_keys(stolen), "the control"


def test_one_stolen_key_is_never_enough():
    everybody = [*STATIC.values(), *EPHEMERAL.values()]
    assert not any(agreed("a") in thiefs_keys([stolen]) for stolen in everybody)


@pytest.mark.parametrize("key", [bytes(32), bytes(31), b"\1" + bytes(31)])
@pytest.mark.parametrize("which", ["static", "ephemeral"])
def test_a_key_that_is_not_valid_is_refused(key, which):
    with pytest.raises(ValueError):  # noqa: PT011 the texts are those of X25519
        agreed("a", **{which: key})
