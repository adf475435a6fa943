"""Mutual TLS between a party and the relay, under the root of the study alone.

    party -> relay    a greeting, for the name "relay"
    party <- relay    certificate: "relay", serverAuth; checked before the party answers
    party -> relay    certificate: the party's name, clientAuth; checked before any packet

Security: TLS 1.3 alone. The authorities of the system have no part in it: a context begins empty
and takes the root of the study. A certificate has one name and one purpose, so that the certificate
of a site is no certificate of the relay. The relay reads a list of revoked certificates at each
handshake. Files are read at each handshake too: a renewed certificate needs no restart.
Leakage: a party shows its certificate only to the relay of its study.
"""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.mailbox import RELAY

PURPOSES = {"relay": ExtendedKeyUsageOID.SERVER_AUTH, "party": ExtendedKeyUsageOID.CLIENT_AUTH}
HANG_UP_SECONDS = 1.0
SERIAL = re.compile(r"[0-9a-f]{1,40}")
FOREIGN = "unknown authority"
_CHAIN = {  # OpenSSL's codes of what is wrong with a certificate
    7: FOREIGN, 18: FOREIGN, 19: FOREIGN, 20: FOREIGN, 21: FOREIGN,
    9: "not valid yet", 10: "expired", 26: "wrong purpose", 62: "wrong name",
}  # fmt: skip
_PROTOCOL = {  # what OpenSSL says of the other end, and alerts of the other end
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no certificate",
    "ALERT_CERTIFICATE_REQUIRED": "no certificate",
    "ALERT_CERTIFICATE_EXPIRED": "expired",
    "ALERT_UNKNOWN_CA": FOREIGN,
    "ALERT_BAD_CERTIFICATE": "wrong name or damaged",
    "ALERT_UNSUPPORTED_CERTIFICATE": "wrong purpose",
    "UNSUPPORTED_PROTOCOL": "TLS older than 1.3",
    "ALERT_PROTOCOL_VERSION": "another version of TLS",
    "WRONG_VERSION_NUMBER": "no TLS",
    "HTTP_REQUEST": "no TLS",
    "RECORD_LAYER_FAILURE": "no TLS",
    "PACKET_LENGTH_TOO_LONG": "no TLS",
    "UNEXPECTED_EOF_WHILE_READING": "closed",
}


class HandshakeError(TransportError):
    """The other end is not who it must be, or refuses this end."""

    def __init__(self, reason: str, sentence: str = "") -> None:
        super().__init__(sentence or reason)
        self.reason = reason


class Certificates(NamedTuple):
    """The files in PEM of one party for mutual TLS."""

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


def party_context(certificates: Certificates) -> ssl.SSLContext:
    """Return the context of a party: it takes the relay of its study alone."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, certificates)
    context.check_hostname = True  # against "relay"; the certificate of this party leaves after it
    context.hostname_checks_common_name = False
    return context


def relay_context(certificates: Certificates) -> ssl.SSLContext:
    """Return the context of the relay: it takes certified parties alone; as `party_context`."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, certificates)
    context.num_tickets = 0  # no connection is resumed: each shows its certificate
    return context


def _context(protocol: int, certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    try:
        context.load_verify_locations(certificates.root)
        context.load_cert_chain(certificates.certificate, certificates.key, password=_no_password)
    except (OSError, ValueError) as error:
        files = ", ".join(str(path) for path in certificates)
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise TransportError(f"the certificates {files} cannot be used: {reason}") from None
    return context


def _no_password() -> str:
    raise ValueError("the key has a password")  # OpenSSL would ask for it on the terminal


def secure_party(plain: socket.socket, certificates: Certificates) -> ssl.SSLSocket:
    """Shake hands as a party; return the connection to the relay of the study."""
    try:
        connected, shown = _shake_hands(
            plain, party_context(certificates), "relay", server_hostname=RELAY
        )
        if shown.name != RELAY:
            hang_up(connected)
            raise HandshakeError("wrong name")
    except HandshakeError as error:
        sentence = f"it shows no certificate of this study's relay ({error.reason})"
        raise HandshakeError(error.reason, sentence) from None
    return connected


def secure_relay(
    plain: socket.socket, context: ssl.SSLContext
) -> tuple[ssl.SSLSocket, PeerCertificate]:
    """Shake hands as the relay; return the connection, and what the party shows."""
    connected, shown = _shake_hands(plain, context, "party", server_side=True)
    if shown.name == RELAY:
        hang_up(connected)
        raise HandshakeError("wrong name")
    return connected, shown


def _shake_hands(
    plain: socket.socket, context: ssl.SSLContext, other: str, **how: Any
) -> tuple[ssl.SSLSocket, PeerCertificate]:
    connected = context.wrap_socket(plain, do_handshake_on_connect=False, **how)
    try:
        connected.do_handshake()
        return connected, shown_by(connected, other)
    except OSError as error:
        hang_up(connected)
        raise HandshakeError(reason_of(error)) from None
    except BaseException:
        hang_up(connected)
        raise


def hang_up(connected: ssl.SSLSocket) -> None:
    """Close a connection once the other end has read why: unread bytes would cancel the alert."""
    end = monotonic() + HANG_UP_SECONDS
    with suppress(OSError):
        connected.shutdown(socket.SHUT_WR)
        while (rest := end - monotonic()) > 0:
            connected.settimeout(rest)
            if not connected.recv(1 << 14):
                break
    connected.close()


def shown_by(connected: ssl.SSLSocket, kind: str) -> PeerCertificate:
    """Return what the other end's certificate says; the handshake has verified it."""
    content = connected.getpeercert(binary_form=True)
    if content is None:
        raise HandshakeError("no certificate")
    certificate = x509.load_der_x509_certificate(content)
    if not has_purpose(certificate, kind):
        raise HandshakeError("wrong purpose")
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise HandshakeError("wrong name")
    end = certificate.not_valid_after_utc
    return PeerCertificate(str(names[0].value), certificate.serial_number, end)


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
