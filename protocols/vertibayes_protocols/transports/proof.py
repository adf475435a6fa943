"""Who is at the other end: the relay and a party show each other that they have certified keys.

    party -> relay    hello      party_nonce: 32 random bytes
    party <- relay    challenge  relay_nonce: 32 random bytes; relay's certificate, signature
    party -> relay    entry      address, stream, purpose; party's certificate, signature
    party <- relay    answer     empty, or why the party is refused; relay's certificate, signature

    signed            label of the message, party_nonce, relay_nonce; then, if they are there,
                      address, stream, purpose or the answer; SHA-256 of the signer's certificate

The messages travel inside the WebSocket, so that they are the same whether TLS ends at the relay or
at a reverse proxy before it, which no certificate of a party passes.

Security: the adversary is who carries the bytes: a proxy, the network, a stranger at either end.
Certificates are of the study's root, directly; the relay's is for a server and has the name
"relay", a party's is for a client and has the party's name. A signature covers random bytes of its
receiver, so that none can be used again, and begins with a label of its own, so that it is no
signature of TLS and of no other message here. The party checks the relay before it shows who it is,
and believes no answer that the relay has not signed: one lets it stop for good.
Who ends the outer TLS between the two (a reverse proxy, a proxy that reads TLS) can pass the proof
on and then use the connection: it can then lose, repeat and invent frames in the party's name, as
the relay itself can, and nothing else. Packets between parties are sealed, and depend on none of
this (`vertibayes_protocols.seal`).

Leakage: who ends the outer TLS reads certificates, addresses, sizes and times. Cost: two messages
each way and three signatures for each connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from secrets import token_bytes
from typing import NamedTuple, TypeAlias

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.frames import STREAM_BYTES
from vertibayes_protocols.transports.mailbox import RELAY, Address
from vertibayes_protocols.transports.tls import (
    FOREIGN,
    REVOKED,
    Certificates,
    HandshakeError,
    PeerCertificate,
    common_name,
    has_purpose,
    read_revoked,
    unusable,
)

NONCE_BYTES = 32
HELLO = b"vertibayes hello 1\0"
CHALLENGE, ENTRY, ANSWER = b"vertibayes relay 1\0", b"vertibayes party 1\0", b"vertibayes answer\0"
ENTER, KNOCK = b"enter", b"knock"  # purposes: to stay, or to see whether the relay would let it
DOUBLED = "another process"
REASONS = (  # of an answer: others are not repeated
    FOREIGN, "no certificate", "expired", "not valid yet", "wrong purpose", "wrong name",
    "damaged", "wrong signature", "revoked", "too many processes", "not readable", DOUBLED,
)  # fmt: skip
MOST_BYTES = 1 << 14  # of a message
KNOWN = (  # extensions of a certificate that may be critical
    x509.BasicConstraints, x509.KeyUsage, x509.ExtendedKeyUsage, x509.SubjectAlternativeName,
    x509.NameConstraints,
)  # fmt: skip

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


class Credentials(NamedTuple):
    """What one end proves itself with, and checks the other by."""

    root: x509.Certificate
    certificate: bytes  # DER
    key: PrivateKey
    revoked: frozenset[int] = frozenset()  # serial numbers of the relay's that a party refuses


class Entry(NamedTuple):
    """What a party asks for."""

    address: Address
    stream: bytes  # names its process
    purpose: bytes


def read_credentials(certificates: Certificates) -> Credentials:
    """Read the files of one end; raise a TransportError if they cannot be used."""
    try:
        root, own = (x509.load_pem_x509_certificate(path.read_bytes()) for path in certificates[:2])
        key = serialization.load_pem_private_key(certificates.key.read_bytes(), None)
        if not isinstance(key, PrivateKey):
            raise ValueError("a key that is not RSA, EC or Ed25519")
        if key.public_key() != own.public_key():
            raise ValueError("the key is of another certificate")
    except (OSError, ValueError, TypeError) as error:  # a TypeError: the key has a password
        raise unusable(certificates, error) from None
    return Credentials(root, own.public_bytes(serialization.Encoding.DER), key)


def read_party_credentials(certificates: Certificates) -> Credentials:
    """Read the files of a party, with the list of certificates that it takes no more."""
    try:
        revoked = read_revoked(certificates.root.with_name(REVOKED))
    except ValueError as error:
        raise TransportError(str(error)) from None
    return read_credentials(certificates)._replace(revoked=revoked)


# ---- the messages --------------------------------------------------------------------------------


def new_nonce() -> bytes:
    """Return random bytes that the other end must sign."""
    return token_bytes(NONCE_BYTES)


def hello(party_nonce: bytes) -> bytes:
    """Return a party's hello."""
    return HELLO + party_nonce


def read_hello(data: bytes) -> bytes:
    """Return the party's random bytes."""
    if not data.startswith(HELLO) or len(data) != len(HELLO) + NONCE_BYTES:
        raise HandshakeError("not readable")
    return data[len(HELLO) :]


def challenge(party_nonce: bytes, relay_nonce: bytes, credentials: Credentials | None) -> bytes:
    """Return the relay's challenge: its random bytes and its proof."""
    proof = _prove(credentials, CHALLENGE, party_nonce, relay_nonce)
    return CHALLENGE + _pack(relay_nonce, *proof)


def read_challenge(data: bytes, party_nonce: bytes, credentials: Credentials | None) -> bytes:
    """Return the relay's random bytes; raise a HandshakeError if it does not prove who it is."""
    relay_nonce, *proof = _unpack(data, CHALLENGE, 3)
    if len(relay_nonce) != NONCE_BYTES:
        raise HandshakeError("not readable")
    _check_relay(credentials, proof, CHALLENGE, party_nonce, relay_nonce)
    return relay_nonce


def entry(
    asked: Entry, party_nonce: bytes, relay_nonce: bytes, credentials: Credentials | None
) -> bytes:
    """Return a party's entry: what it asks for, and its proof."""
    facts = asked.address.encode(), asked.stream, asked.purpose
    return ENTRY + _pack(*facts, *_prove(credentials, ENTRY, party_nonce, relay_nonce, *facts))


def read_entry(
    data: bytes, party_nonce: bytes, relay_nonce: bytes, credentials: Credentials | None
) -> tuple[Entry, PeerCertificate | None]:
    """Return what a party asks for, and what its certificate says; it may name another party."""
    *facts, certificate, signature = _unpack(data, ENTRY, 5)
    proof = certificate, signature
    shown = _check(credentials, "party", proof, ENTRY, party_nonce, relay_nonce, *facts)
    name, stream, purpose = facts
    if len(stream) != STREAM_BYTES or purpose not in (ENTER, KNOCK):
        raise HandshakeError("not readable")
    if shown is not None and shown.name == RELAY:
        raise HandshakeError("wrong name")
    try:
        return Entry(name.decode(), stream, purpose), shown
    except UnicodeDecodeError:
        raise HandshakeError("wrong name") from None


def answer(
    reason: str, party_nonce: bytes, relay_nonce: bytes, credentials: Credentials | None
) -> bytes:
    """Return the relay's answer, and its proof; a reason refuses the party."""
    said = reason.partition(":")[0].encode()
    return ANSWER + _pack(said, *_prove(credentials, ANSWER, party_nonce, relay_nonce, said))


def read_answer(
    data: bytes, party_nonce: bytes, relay_nonce: bytes, credentials: Credentials | None
) -> str:
    """Return why the relay refuses this party, empty if it does not; as `read_challenge`."""
    said, *proof = _unpack(data, ANSWER, 3)
    _check_relay(credentials, proof, ANSWER, party_nonce, relay_nonce, said)
    reason = said.decode(errors="replace")
    return reason if reason in (*REASONS, "") else "its log has the reason"


def _pack(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _unpack(data: bytes, label: bytes, parts: int) -> Sequence[bytes]:
    found, place = [], len(label)
    if not data.startswith(label):
        raise HandshakeError("not readable")
    while place < len(data):
        start = place + 4
        place = start + int.from_bytes(data[place:start], "big")
        if place > len(data):
            raise HandshakeError("not readable")
        found.append(data[start:place])
    if len(found) != parts:
        raise HandshakeError("not readable")
    return found


# ---- signatures ----------------------------------------------------------------------------------


def _prove(credentials: Credentials | None, label: bytes, *facts: bytes) -> tuple[bytes, bytes]:
    """Return the certificate and a signature; nothing without credentials, where names are claims.

    The signature covers the certificate too, and is of no other certificate of the same key.
    """
    if credentials is None:
        return b"", b""
    text = label + _pack(*facts, sha256(credentials.certificate).digest())
    key = credentials.key
    if isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(text, _PSS, hashes.SHA256())
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        signature = key.sign(text, ec.ECDSA(hashes.SHA256()))
    else:
        signature = key.sign(text)
    return credentials.certificate, signature


_PSS = padding.PSS(padding.MGF1(hashes.SHA256()), hashes.SHA256().digest_size)


def _check(
    credentials: Credentials | None,
    kind: str,
    proof: Sequence[bytes],
    label: bytes,
    *facts: bytes,
) -> PeerCertificate | None:
    """Check the other end's proof; return what its certificate says, None without credentials."""
    shown, signature = proof
    if credentials is None:
        if shown or signature:
            raise HandshakeError("no certificate")  # at this end
        return None
    if not shown:
        raise HandshakeError("no certificate")
    try:
        certificate = x509.load_der_x509_certificate(shown)
        found = _certified(certificate, credentials, kind)
        public, text = certificate.public_key(), label + _pack(*facts, sha256(shown).digest())
    except HandshakeError:
        raise
    except Exception:  # a stranger's bytes: the parser has errors of several kinds
        raise HandshakeError("damaged") from None
    try:
        if isinstance(public, rsa.RSAPublicKey):
            public.verify(signature, text, _PSS, hashes.SHA256())
        elif isinstance(public, ec.EllipticCurvePublicKey):
            public.verify(signature, text, ec.ECDSA(hashes.SHA256()))
        elif isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(signature, text)
        else:
            raise HandshakeError("damaged")
    except InvalidSignature:
        raise HandshakeError("wrong signature") from None
    return found


def _check_relay(
    credentials: Credentials | None, proof: Sequence[bytes], label: bytes, *facts: bytes
) -> None:
    shown = _check(credentials, "relay", proof, label, *facts)
    if shown is not None and shown.name != RELAY:
        raise HandshakeError("wrong name")


def _certified(
    certificate: x509.Certificate, credentials: Credentials, kind: str
) -> PeerCertificate:
    """Return what a certificate says if the root has signed it for this use, and it is valid."""
    root = credentials.root
    try:
        certificate.verify_directly_issued_by(root)
    except (InvalidSignature, TypeError, ValueError):
        raise HandshakeError(FOREIGN) from None
    now, end = datetime.now(UTC), min(certificate.not_valid_after_utc, root.not_valid_after_utc)
    if now > end:
        raise HandshakeError("expired")
    if now < certificate.not_valid_before_utc:
        raise HandshakeError("not valid yet")
    if certificate.serial_number in credentials.revoked:
        raise HandshakeError("revoked")
    extensions = certificate.extensions
    if any(one.critical and not isinstance(one.value, KNOWN) for one in extensions):
        raise HandshakeError("damaged")
    if not has_purpose(certificate, kind) or not _may_sign(extensions):
        raise HandshakeError("wrong purpose")
    return PeerCertificate(common_name(certificate), certificate.serial_number, end)


def _may_sign(extensions: x509.Extensions) -> bool:
    """Whether a certificate's key may sign a challenge: not if its usage says otherwise."""
    try:
        return extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    except x509.ExtensionNotFound:
        return True
