"""The outer TLS between a party and the relay, or what ends TLS before the relay.

    party -> relay    a greeting
    party <- relay    certificate: "relay", serverAuth, of the study's root; or, with
                      `trust = "system"`, for the host, of an authority that the system trusts

Who the two are, they prove inside (`vertibayes_protocols.transports.proof`), so that a party shows
no certificate here. The relay's own TLS is 1.3 alone. Under the study's root the authorities of the
system have no part: a context begins empty and takes this root. Behind a reverse proxy with a
certificate of another authority, and behind a proxy that reads TLS, the system's are the ones that
fit, and versions from 1.2 on. Files are read at each handshake: a renewed certificate needs no
restart.

Security: the outer TLS hides from the network who sends to whom. Nothing else depends on it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.mailbox import RELAY

PURPOSES = {"relay": ExtendedKeyUsageOID.SERVER_AUTH, "party": ExtendedKeyUsageOID.CLIENT_AUTH}
REVOKED = "revoked.txt"  # beside a party's root: certificates that it takes no more
SERIAL = re.compile(r"[0-9a-f]{1,40}")
FOREIGN = "unknown authority"
OLDER, OTHER = "TLS older than 1.3", "another version of TLS"
_CHAIN = {  # OpenSSL's codes of what is wrong with a certificate
    7: FOREIGN, 18: FOREIGN, 19: FOREIGN, 20: FOREIGN, 21: FOREIGN,
    9: "not valid yet", 10: "expired", 26: "wrong purpose", 62: "wrong name", 64: "wrong name",
}  # fmt: skip
_PROTOCOL = {  # what OpenSSL says of the other end, and alerts of the other end
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no certificate",
    "ALERT_CERTIFICATE_REQUIRED": "no certificate",
    "ALERT_CERTIFICATE_EXPIRED": "expired",
    "ALERT_UNKNOWN_CA": FOREIGN,
    "ALERT_BAD_CERTIFICATE": "wrong name or damaged",
    "ALERT_UNSUPPORTED_CERTIFICATE": "wrong purpose",
    "UNSUPPORTED_PROTOCOL": OLDER,
    "ALERT_PROTOCOL_VERSION": OTHER,
    "WRONG_VERSION_NUMBER": "no TLS",
    "HTTP_REQUEST": "no TLS",
    "RECORD_LAYER_FAILURE": "no TLS",
    "PACKET_LENGTH_TOO_LONG": "no TLS",
    "UNEXPECTED_EOF_WHILE_READING": "closed",
}


class HandshakeError(TransportError):
    """The other end is not who it must be, or refuses this end."""

    def __init__(self, reason: str, sentence: str = "", party: Party = "") -> None:
        super().__init__(sentence or reason)
        self.reason, self.party = reason, party  # the party as it is certified, if it is


class Certificates(NamedTuple):
    """The files in PEM of one party."""

    root: Path  # the certificate of the authority that signed all parties' certificates
    # The party's certificate and its key.
    certificate: Path
    key: Path


class PeerCertificate(NamedTuple):
    """What the other end's certificate says."""

    name: Party  # the common name
    serial: int  # the serial number, which no other certificate of the root has
    end: datetime  # when the certificate expires

    @property
    def number(self) -> str:
        """The serial number as `revoked` files and logs have it."""
        return f"{self.serial:x}"


def party_context(root: Path | None) -> ssl.SSLContext:
    """Return the context of a party: the root of its study alone, or (None) the system's."""
    if root is None:
        return ssl.create_default_context()
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the name is "relay", whatever the host: `check_relay` reads it
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(root)
    except (OSError, ValueError) as error:
        raise unusable((root,), error) from None
    return context


def relay_context(certificates: Certificates) -> ssl.SSLContext:
    """Return the context of the relay."""
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    try:
        context.load_cert_chain(certificates.certificate, certificates.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise unusable(certificates, error) from None
    return context


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def unusable(paths: Iterable[Path], error: Exception) -> TransportError:
    """Return the error of a party whose own files cannot be used."""
    files = ", ".join(str(path) for path in paths)
    reason = getattr(error, "strerror", None) or type(error).__name__
    return TransportError(f"the certificates {files} cannot be used: {reason}")


def _no_password() -> str:
    raise ValueError("the key has a password")  # OpenSSL would ask for it on the terminal


def check_relay(certificate: bytes, revoked: frozenset[int]) -> None:
    """Refuse a certificate in DER, which the handshake has verified, that is not the relay's."""
    shown = x509.load_der_x509_certificate(certificate)
    if not has_purpose(shown, "relay"):
        raise HandshakeError("wrong purpose")
    if common_name(shown) != RELAY:
        raise HandshakeError("wrong name")
    if shown.serial_number in revoked:
        raise HandshakeError("revoked")


def common_name(certificate: x509.Certificate) -> Party:
    """Return the one common name of a certificate."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise HandshakeError("wrong name")
    return str(names[0].value)


def has_purpose(certificate: x509.Certificate, kind: str) -> bool:
    """Whether a certificate states that it is for a "relay", or for a "party"."""
    try:
        uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    return PURPOSES[kind] in uses


def reason_of(error: OSError) -> str:
    """Return in a few words why a handshake failed, or a connection was refused after it."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ssl.SSLCertVerificationError):
        return _CHAIN.get(error.verify_code, error.verify_message)
    if isinstance(error, ssl.SSLError):
        name = (error.reason or "closed").upper()
        return _PROTOCOL.get(name[max(0, name.find("ALERT_")) :], name.lower())
    if isinstance(error, ConnectionError):
        return "closed"
    return error.strerror or type(error).__name__


def read_revoked(path: Path) -> frozenset[int]:
    """Read the serial numbers of revoked certificates, one on a line; none without a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text in UTF-8") from None
    serials = set()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip().lower()
        if text and not SERIAL.fullmatch(text):
            raise ValueError(f"{path}, line {number}: a serial number has 1 to 40 digits 0-9, a-f")
        if text:
            serials.add(int(text, 16))
    return frozenset(serials)
