"""Who is at the other end: what each takes for a proof, and what it refuses and why."""

from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.e2e.processes import Authority
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.proof import (
    ANSWER,
    DOUBLED,
    ENTER,
    ENTRY,
    Entry,
    answer,
    challenge,
    entry,
    hello,
    new_nonce,
    read_answer,
    read_challenge,
    read_credentials,
    read_entry,
    read_hello,
)
from vertibayes_protocols.transports.tls import HandshakeError

ASKED = Entry("north~00000000000000a1", b"s" * 16, ENTER)
PARTY, RELAY = b"p" * 32, b"r" * 32  # random bytes of the party and of the relay


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("foreign"))


@pytest.fixture(scope="module")
def relay(study):
    return read_credentials(study.certificates("relay"))


@pytest.fixture(scope="module")
def north(study):
    return read_credentials(study.certificates("north"))


def refused(read, *given):
    with pytest.raises(HandshakeError) as caught:
        read(*given)
    return caught.value.reason


@pytest.mark.parametrize(
    "make",
    [
        partial(ec.generate_private_key, ec.SECP384R1()),
        lambda: rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate,
    ],
)
def test_both_ends_prove_who_they_are_with_keys_of_each_kind(study, make, monkeypatch):
    monkeypatch.setattr(ec, "generate_private_key", lambda _: make())
    relay, north = (read_credentials(study.certificates(name)) for name in ("relay", "north"))
    nonces = party_nonce, relay_nonce = new_nonce(), new_nonce()
    assert read_hello(hello(party_nonce)) == party_nonce
    assert read_challenge(challenge(*nonces, relay), party_nonce, north) == relay_nonce
    asked, shown = read_entry(entry(ASKED, *nonces, north), *nonces, relay)
    assert asked == ASKED and shown.name == "north"
    assert x509.load_der_x509_certificate(north.certificate).serial_number == shown.serial


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("relay", {"days": -0.5}, "expired"),
        ("relay", {"purpose": ExtendedKeyUsageOID.CLIENT_AUTH}, "wrong purpose"),
        ("south", {"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "wrong name"),
        ("south", {}, "wrong purpose"),
        (None, {}, "unknown authority"),
    ],
)
def test_a_certificate_that_is_not_the_relays_is_refused(
    study, foreign, north, name, changed, reason
):
    authority = foreign if name is None else study
    shown = read_credentials(authority.certificates("x", name or "relay", **changed))
    assert refused(read_challenge, challenge(PARTY, RELAY, shown), PARTY, north) == reason


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("north", {"days": -0.5}, "expired"),
        ("north", {"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "wrong purpose"),
        ("relay", {"purpose": ExtendedKeyUsageOID.CLIENT_AUTH}, "wrong name"),
        ("relay", {}, "wrong purpose"),
        (None, {}, "unknown authority"),
    ],
)
def test_a_certificate_that_is_no_partys_is_refused(study, foreign, relay, name, changed, reason):
    authority = foreign if name is None else study
    shown = read_credentials(authority.certificates("x", name or "north", **changed))
    sent = entry(ASKED, PARTY, RELAY, shown)
    assert refused(read_entry, sent, PARTY, RELAY, relay) == reason


def test_without_a_certificate_nobody_is_believed_by_who_has_some(relay, north):
    assert refused(read_challenge, challenge(PARTY, RELAY, None), PARTY, north) == "no certificate"
    sent = entry(ASKED, PARTY, RELAY, None)
    assert refused(read_entry, sent, PARTY, RELAY, relay) == "no certificate"
    assert read_entry(sent, PARTY, RELAY, None) == (ASKED, None)


def test_a_proof_of_another_time_is_refused(relay, north):
    """The controls are the proofs in their own connection."""
    other = b"x" * 32
    sent = challenge(PARTY, RELAY, relay)
    assert read_challenge(sent, PARTY, north) == RELAY
    assert refused(read_challenge, sent, other, north) == "wrong signature"
    sent = entry(ASKED, PARTY, RELAY, north)
    assert read_entry(sent, PARTY, RELAY, relay)[0] == ASKED
    assert refused(read_entry, sent, PARTY, other, relay) == "wrong signature"
    assert refused(read_entry, sent, other, RELAY, relay) == "wrong signature"


def test_who_has_a_certificate_and_not_its_key_proves_nothing(study, relay, north):
    thief = read_credentials(study.certificates("south"))
    sent = entry(ASKED, PARTY, RELAY, thief._replace(certificate=north.certificate))
    assert refused(read_entry, sent, PARTY, RELAY, relay) == "wrong signature"


def test_a_changed_byte_anywhere_is_refused(relay, north):
    sent = entry(ASKED, PARTY, RELAY, north)
    for place in range(len(sent)):
        changed = bytearray(sent)
        changed[place] ^= 1
        assert refused(read_entry, bytes(changed), PARTY, RELAY, relay)
        assert refused(read_entry, sent[:place], PARTY, RELAY, relay)
    assert refused(read_entry, sent + b"\0\0\0\0", PARTY, RELAY, relay) == "not readable"


def test_one_certificate_does_not_stand_in_for_another_of_the_same_key(study, relay, monkeypatch):
    key = ec.generate_private_key(ec.SECP256R1())
    monkeypatch.setattr(ec, "generate_private_key", lambda _: key)
    north, south = (read_credentials(study.certificates(name)) for name in ("north", "south"))
    sent = entry(ASKED, PARTY, RELAY, north)
    assert read_entry(sent, PARTY, RELAY, relay)[1].name == "north"
    start = sent.index(north.certificate)
    size = len(south.certificate).to_bytes(4, "big")
    rest = sent[start + len(north.certificate) :]
    forged = sent[: start - 4] + size + south.certificate + rest
    assert refused(read_entry, forged, PARTY, RELAY, relay) == "wrong signature"


def test_messages_of_another_kind_are_not_readable(relay, north):
    for junk in (b"", b"x" * 51, ENTRY, ENTRY + b"\xff" * 40, hello(PARTY)):
        assert refused(read_entry, junk, PARTY, RELAY, relay) == "not readable"
        assert refused(read_challenge, junk, PARTY, north) == "not readable"
        if junk != hello(PARTY):
            assert refused(read_hello, junk) == "not readable"


def test_an_answers_reason_is_one_of_a_list(relay, north):
    def read(*reason):
        return read_answer(answer(*reason, PARTY, RELAY, relay), PARTY, RELAY, north)

    assert read("") == ""
    assert read("revoked: north, certificate 1f") == "revoked"
    assert read("\x1b[2J and lies") == "its log has the reason"


def test_an_answer_that_the_relay_has_not_signed_is_refused(study, relay, north):
    """The control is the relay's own: it says for good that another process runs."""
    sent, other = answer(DOUBLED, PARTY, RELAY, relay), b"x" * 32
    assert read_answer(sent, PARTY, RELAY, north) == DOUBLED
    assert refused(read_answer, sent, other, RELAY, north) == "wrong signature"
    assert refused(read_answer, sent, PARTY, other, north) == "wrong signature"
    changed = answer("", PARTY, RELAY, relay).replace(
        ANSWER + bytes(4), sent[: len(ANSWER) + 4 + len(DOUBLED)]
    )
    assert refused(read_answer, changed, PARTY, RELAY, north) == "wrong signature"
    unsigned = answer(DOUBLED, PARTY, RELAY, None)
    assert refused(read_answer, unsigned, PARTY, RELAY, north) == "no certificate"
    south = read_credentials(study.certificates("south"))
    assert refused(read_answer, answer("", PARTY, RELAY, south), PARTY, RELAY, north)


def test_files_that_cannot_be_used_are_named(study, tmp_path):
    north = study.certificates("north")
    other = study.certificates("other")
    for wrong in (
        north._replace(root=tmp_path / "none"),
        north._replace(key=north.certificate),
        north._replace(key=other.key),
    ):
        with pytest.raises(TransportError, match=r"the certificates .* cannot be used: "):
            read_credentials(wrong)
