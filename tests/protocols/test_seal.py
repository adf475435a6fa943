"""Seals: what they open, and each attack on what travels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.network import identities
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.randomness import KeyPair, label
from vertibayes_protocols import seal as seals
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.queries.opening.commit import MASKS, ZEROS
from vertibayes_protocols.seal import (
    DATA,
    HEADER,
    HELLO,
    OVERHEAD,
    UNKNOWN,
    Identity,
    Seal,
    read_header,
)
from vertibayes_protocols.wire import VERSION

SESSION = bytes(range(16))
KNOWN = identities("a", "b", "c")


def pair(first="a", second="b", session=SESSION, seed=b""):
    """Two ends of a session that have swapped hellos."""
    ends = {
        p: Seal(KNOWN[p], session, SeededRandomness(seed + p.encode())) for p in (first, second)
    }
    hellos = {p: ends[p].greet(q, b"hi") for p, q in ((first, second), (second, first))}
    assert ends[first].welcome(second, hellos[second]) == b"hi"
    assert ends[second].welcome(first, hellos[first]) == b"hi"
    return ends[first], ends[second]


def rewritten(packet, **changes):
    names = "magic", "kind", "version", "session", "sender", "receiver", "counter", "salt"
    parts = {**dict(zip(names, HEADER.unpack_from(packet), strict=True)), **changes}
    return HEADER.pack(*parts.values()) + packet[HEADER.size :]


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_what_is_sealed_is_opened_in_both_directions(texts):
    a, b = pair()
    for text in texts:
        packet = a.seal("b", text)
        assert b.open("a", packet) == text and len(packet) == len(text) + OVERHEAD
        assert a.open("b", b.seal("a", text)) == text


def test_nothing_of_a_text_is_in_its_packet_and_equal_texts_differ():
    a, _ = pair()
    first, second = a.seal("b", b"marker" * 10), a.seal("b", b"marker" * 10)
    assert b"marker" not in first + second
    assert first[HEADER.size :] != second[HEADER.size :]
    assert b"hello text" not in a.greet("b", b"hello text")


# ---- attacks -------------------------------------------------------------------------------------


def test_a_packet_sent_again_is_a_replay():
    a, b = pair()
    packets = [a.seal("b", bytes([i])) for i in range(3)]
    for packet in packets:
        b.open("a", packet)
    for packet in packets:
        with pytest.raises(ReplayedMessageError, match="delivered before") as caught:
            b.open("a", packet)
        assert caught.value.party == "a"


def test_packets_in_another_order_are_refused_and_the_right_one_still_opens():
    a, b = pair()
    first, second = a.seal("b", b"1"), a.seal("b", b"2")
    with pytest.raises(
        PeerGoneError, match=r"a: packets were lost .* packet 1 has arrived, and packet 0"
    ):
        b.open("a", second)
    assert (b.open("a", first), b.open("a", second)) == (b"1", b"2")


def test_every_truncation_names_the_sender():
    a, b = pair()
    packet = a.seal("b", b"some text")
    for end in range(len(packet)):
        with pytest.raises(MalformedMessageError) as caught:
            b.open("a", packet[:end])
        assert caught.value.party == "a"
    assert b.open("a", packet) == b"some text"


def test_every_flipped_bit_is_refused():
    a, b = pair()
    packet = a.seal("b", b"some text")
    for bit in range(8 * len(packet)):
        changed = bytearray(packet)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ProtocolError) as caught:
            b.open("a", bytes(changed))
        assert caught.value.party == "a"
    assert b.open("a", packet) == b"some text"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"counter": 0}, MalformedMessageError),  # not even a replay: it does not open
        ({"counter": 2}, MalformedMessageError),
        ({"salt": bytes(32)}, MalformedMessageError),
        ({"kind": HELLO}, UnexpectedMessageError),
        ({"kind": UNKNOWN}, UnexpectedMessageError),
        ({"kind": 4}, MalformedMessageError),
        ({"version": 0}, MalformedMessageError),
        ({"version": VERSION + 1}, MalformedMessageError),
        ({"session": bytes(16)}, UnexpectedMessageError),
        ({"sender": bytes(16)}, UnexpectedMessageError),
        ({"receiver": bytes(16)}, UnexpectedMessageError),
    ],
)
def test_a_header_cannot_be_written_anew(changes, error):
    a, b = pair()
    b.open("a", a.seal("b", b"0"))
    packet = a.seal("b", b"1")
    with pytest.raises(error) as caught:
        b.open("a", rewritten(packet, **changes))
    assert caught.value.party == "a" and type(caught.value) is error


def test_a_packet_reflected_to_its_sender_is_refused():
    a, _ = pair()
    packet = a.seal("b", b"x")
    with pytest.raises(UnexpectedMessageError, match="somebody else"):
        a.open("b", packet)
    header = read_header(packet, "a")
    turned = rewritten(packet, sender=header.receiver, receiver=header.sender)
    with pytest.raises(MalformedMessageError, match="does not open"):
        a.open("b", turned)


def test_a_packet_for_another_receiver_or_session_does_not_open_even_if_renamed():
    a, b = pair()
    a_to_c, _ = pair("a", "c")
    other, _ = pair(session=bytes(16), seed=b"other")
    b.open("a", a.seal("b", b"0"))
    with pytest.raises(UnexpectedMessageError, match="another session"):
        b.open("a", other.seal("b", b"x"))
    renamed = [
        rewritten(a_to_c.seal("c", b"x"), receiver=read_header(a.seal("b", b""), "a").receiver),
        rewritten(other.seal("b", b"x"), session=SESSION),
    ]
    for packet in renamed:
        with pytest.raises(MalformedMessageError, match="does not open"):
            b.open("a", packet)


def test_one_party_cannot_speak_for_another():
    """c, whose keys b has pinned, seals with its own keys and writes a's name."""
    _, b = pair()
    c, _ = pair("c", "b")
    packet = rewritten(c.seal("b", b"x"), sender=seals.name_digest("a"))
    with pytest.raises(MalformedMessageError, match="a: a message that does not open"):
        b.open("a", packet)
    hello = rewritten(Seal(KNOWN["c"], SESSION).greet("b", b""), sender=seals.name_digest("a"))
    with pytest.raises(MalformedMessageError, match="not the one pinned"):
        Seal(KNOWN["b"], SESSION).welcome("a", hello)


def test_a_stranger_with_a_key_that_is_not_pinned_is_refused_on_both_sides():
    stranger = identities("a", "b", seed=b"stranger")["a"]
    liar = Seal(replace(stranger, peers={"b": KNOWN["b"].keys.public}), SESSION)
    honest = Seal(KNOWN["b"], SESSION)
    wanted = "the key of a is not the one pinned at b, or that of b is not the one pinned at a"
    with pytest.raises(MalformedMessageError, match=wanted) as caught:
        honest.welcome("a", liar.greet("b", b""))
    assert caught.value.party == "a" and not honest.knows("a")
    with pytest.raises(MalformedMessageError, match="the key of b is not the one pinned at a"):
        liar.welcome("b", honest.greet("a", b""))
    with pytest.raises(UnexpectedMessageError, match="zoe: b has not pinned its key"):
        honest.greet("zoe", b"")


def test_a_hello_sent_again_or_in_another_session_is_refused():
    a, b = pair()
    packet = Seal(KNOWN["a"], SESSION).greet("b", b"")
    with pytest.raises(ReplayedMessageError, match="a hello, delivered before"):
        b.welcome("a", packet)
    with pytest.raises(UnexpectedMessageError, match="not a hello of this session"):
        Seal(KNOWN["b"], bytes(16)).welcome("a", packet)
    with pytest.raises(MalformedMessageError, match="does not open"):
        Seal(KNOWN["b"], bytes(16)).welcome("a", rewritten(packet, session=bytes(16)))
    with pytest.raises(UnexpectedMessageError, match="before its hello"):
        Seal(KNOWN["b"], SESSION).open("a", a.seal("b", b""))


def test_an_old_hello_gives_nobody_an_old_key():
    """A whole run is recorded; its hello and its packets are sent to b once more."""
    hello = Seal(KNOWN["a"], SESSION, SeededRandomness(b"old")).greet("b", b"")
    old = Seal(KNOWN["a"], SESSION, SeededRandomness(b"old"))
    first, again = Seal(KNOWN["b"], SESSION), Seal(KNOWN["b"], SESSION)
    old.welcome("b", first.greet("a", b""))
    first.welcome("a", hello)
    packet = old.seal("b", b"do it")
    assert first.open("a", packet) == b"do it"
    again.welcome("a", hello)  # b, started again, cannot know that it is old; but
    with pytest.raises(MalformedMessageError, match="does not open"):
        again.open("a", packet)


# ---- thieves: who has recorded a session, and learns some of its private keys --------------------

BOTH, MIXED_A, MIXED_B, STATIC = 0, 1, 2, 3  # places of the secrets: ee, es and se, ss


class Recorded:
    """A session of a and b: its hellos, a packet, and the private keys behind it."""

    def __init__(self, first="a", second="b"):
        self.names = first, second
        self.ends = pair(first, second)
        self.packet = self.ends[0].seal(second, b"secret")
        self.static = [end.identity.keys for end in self.ends]
        self.ephemeral = [end._ephemeral for end in self.ends]

    def secrets(self):
        """Return the four secrets, each computed from one of the two private keys that know it."""
        (static_a, static_b), (key_a, key_b) = self.static, self.ephemeral
        return [
            key_a.agree(key_b.public, "seal: ee").secret,
            key_a.agree(static_b.public, "seal: es").secret,
            key_b.agree(static_a.public, "seal: es").secret,
            static_a.agree(static_b.public, "seal: ss").secret,
        ]

    def guesses(self, *missing):
        """Return what a thief without some secrets can try: leave them out, or guess them."""
        known = self.secrets()
        others = [secret for place, secret in enumerate(known) if place not in missing]
        for instead in (b"", bytes(32), *others):
            yield [instead if place in missing else s for place, s in enumerate(known)]

    def opens(self, secrets, packet=None):
        """Whether a key of these secrets opens the packet; written down from the definition."""
        sides = zip(self.names, self.ephemeral, self.static, strict=True)
        parts = [part for name, key, static in sides for part in (name, key.public, static.public)]
        info = label("seal: session key", SESSION, *parts)
        key = HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(b"".join(secrets))
        try:
            return seals._open(key, packet or self.packet, self.names[0], "") == b"secret"
        except MalformedMessageError:
            return False


def test_all_four_secrets_together_open_a_packet():
    """The control of the tests below: their thieves compute keys as parties do."""
    recorded = Recorded()
    assert recorded.opens(recorded.secrets())


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param((BOTH,), id="who steals both static keys afterwards lacks ee"),
        pytest.param((MIXED_A,), id="who steals the key of a and acts towards a lacks es"),
        pytest.param((MIXED_B,), id="who steals the key of b and acts towards b lacks se"),
        pytest.param((STATIC,), id="who learns both ephemeral keys lacks ss"),
        pytest.param((BOTH, MIXED_A, MIXED_B), id="who has ss alone"),
    ],
)
def test_who_lacks_one_secret_opens_nothing(missing):
    recorded = Recorded()
    assert not any(recorded.opens(guess) for guess in recorded.guesses(*missing))


def test_whoever_steals_both_static_keys_afterwards_opens_hellos_alone():
    recorded = Recorded()
    a, b = recorded.ends
    hello = a.greet("b", b"parties")
    a.forget(), b.forget()
    thief = Seal(KNOWN["b"], SESSION)
    assert thief.welcome("a", hello) == b"parties"
    with pytest.raises(UnexpectedMessageError):
        b.open("a", recorded.packet)


@pytest.mark.parametrize(("victim", "other"), [("b", "a"), ("a", "b")])
def test_whoever_steals_a_key_cannot_speak_to_its_owner_as_another(victim, other):
    """Key compromise: the thief of a party's key forges the other's hello, but cannot seal as it.

    Of the four secrets he computes all except that of the victim's ephemeral key and the static
    key of the other, whose private key he does not have.
    """
    end, stolen = Seal(KNOWN[victim], SESSION), KNOWN[victim].keys
    public, own = KNOWN[other].keys.public, KeyPair(bytes([9]) * 32)
    claimed = Identity(other, KeyPair(bytes([7]) * 32), {victim: stolen.public})
    header = claimed.header(HELLO, SESSION, victim, 0, SeededRandomness(b"t"))
    static = KNOWN[victim]._secret(other, HELLO)  # what he computes from the stolen key
    end.welcome(other, seals._seal(static, header, own.public))
    seen = end._ephemeral.public  # the victim's hello has it, and the stolen key opens the hello
    both = own.agree(seen, "seal: ee").secret
    mixed, ss = own.agree(stolen.public, "seal: es").secret, stolen.agree(public, "seal: ss").secret
    sides = sorted([(victim, seen, stolen.public), (other, own.public, public)])
    info = label("seal: session key", SESSION, *(part for side in sides for part in side))
    for guess in (b"", bytes(32), both, mixed, ss, claimed.keys.agree(seen, "seal: es").secret):
        secrets = (mixed, guess) if other < victim else (guess, mixed)
        key = HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(b"".join((both, *secrets, ss)))
        header = claimed.header(DATA, SESSION, victim, 0, SeededRandomness(b"u"))
        with pytest.raises(MalformedMessageError, match="does not open"):
            end.open(other, seals._seal(key, header, b"I am another"))


@pytest.mark.parametrize("key", [bytes(32), b"\1" + bytes(31)])
def test_a_key_of_small_order_is_refused(key):
    hello = KNOWN["a"].seal_statically("b", HELLO, SESSION, key, SeededRandomness())
    with pytest.raises(MalformedMessageError, match="a: a hello whose key is not valid"):
        Seal(KNOWN["b"], SESSION).welcome("a", hello)
    with pytest.raises(ValueError, match="the public key of z is not valid"):
        Identity("a", KNOWN["a"].keys, {"z": key})


def test_an_identity_has_one_name_and_one_key_each():
    a, b = KNOWN["a"], KNOWN["b"]
    with pytest.raises(ValueError, match="its own peer"):
        Identity("a", a.keys, {"a": b.keys.public})
    with pytest.raises(ValueError, match="b and c have the same key"):
        Identity("a", a.keys, {"b": b.keys.public, "c": b.keys.public})
    with pytest.raises(ValueError, match="a and b have the same key"):
        Identity("a", a.keys, {"b": a.keys.public})
    assert a.keys.private.hex() not in repr(a) and str(a.keys.private) not in repr(a)


def test_masks_and_seals_share_no_secret():
    a, b = KNOWN["a"], KNOWN["b"].keys.public
    masks = {a.keys.agree(b, purpose).secret for purpose in (MASKS, ZEROS)}
    seal = {a._secret("b", kind) for kind in (HELLO, UNKNOWN)}
    mixed = {a.keys.agree(b, f"seal: {part}").secret for part in ("es", "ee", "ss")}
    assert len(masks | seal | mixed) == 7


def test_no_two_envelopes_share_a_key(monkeypatch):
    """Also where a restart draws the same ephemeral keys: the salt is another."""
    keys, cipher = [], seals.ChaCha20Poly1305
    monkeypatch.setattr(seals, "ChaCha20Poly1305", lambda key: keys.append(key) or cipher(key))
    for run in range(2):
        a, b = pair(seed=b"same")
        for end, peer in ((a, "b"), (b, "a")):
            end._randomness = SeededRandomness(b"run %d" % run + peer.encode())
            for _ in range(3):
                end.seal(peer, b"x")
    sealed = [key for place, key in enumerate(keys) if place % 10 >= 4]
    assert len(keys) == 20 and len(set(sealed)) == 12


# ---- fuzz ----------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", seals.MAGIC]), st.integers(0, 4))
def test_any_bytes_blame_the_sender(tail, magic, kind):
    _, b = pair()
    packet = magic + bytes([kind]) * bool(magic) + tail
    for read in (b.open, b.welcome, KNOWN["b"].open_statically):
        with pytest.raises(ProtocolError) as caught:
            read("a", packet)
        assert caught.value.party == "a"


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_mutated_packets_are_refused_and_change_nothing(data):
    a, b = pair()
    before = a.seal("b", b"text of some length")
    packet = bytearray(before)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(packet) - 1))
        packet[place] ^= data.draw(st.integers(1, 255))
    if bytes(packet) == before:
        return
    with pytest.raises(ProtocolError, match=r"^a: "):
        b.open("a", bytes(packet))
    with pytest.raises(PeerGoneError, match="packet 1 has arrived, and packet 0 has not"):
        b.open("a", a.seal("b", b"next"))
    assert b.open("a", before) == b"text of some length"


def test_kinds_are_apart():
    hello = Seal(KNOWN["a"], SESSION).greet("b", b"")
    with pytest.raises(MalformedMessageError, match="does not open"):
        KNOWN["b"].open_statically("a", rewritten(hello, kind=UNKNOWN))
    with pytest.raises(UnexpectedMessageError, match="a message where a hello is expected"):
        KNOWN["b"].open_statically("a", rewritten(hello, kind=DATA))
