"""A small certificate authority: one root, and a certificate in the name of each party.

    FOLDER/root.key                     stays on the coordinator's machine: with it, anybody can
                                        connect to the relay under any name
    FOLDER/rootCA.pem                   for all parties
    FOLDER/issued.txt                   serial numbers of all certificates, for revocation

A bundle has the certificates of keys that the parties made themselves (`certify`). For a trial,
`provision` makes the keys as well:

    FOLDER/NAME/{rootCA.pem, client.crt, client.key}
    FOLDER/relay/{rootCA.pem, server.crt, server.key}

A certificate allows a party to connect to the relay under its name. It opens no message: messages
are sealed with keys that the parties make themselves (`vertibayes enrol` or `keygen`), and that
the coordinator never sees.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import NameOID

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.keys import check_secret, write_secret
from vertibayes_protocols.deployment.parts import ROOT, host_name, party_names, tls_name
from vertibayes_protocols.public_keys import CHECK_BYTES
from vertibayes_protocols.storage.whole_file import replacing
from vertibayes_protocols.transports.mailbox import RELAY
from vertibayes_protocols.transports.tls import PURPOSES, has_purpose

KEY_BITS = 3072
DAYS = 365
SOON = timedelta(days=30)  # before a certificate expires: parties and `check` warn
RENEWED = timedelta(days=90)  # before a certificate expires: the next bundle has a new one
ROOT_DAYS = 3650
CLOCKS = timedelta(minutes=5)  # by which the clock of a party may be slow
TLS_PREFIX = "tls:"


def provision(
    folder: Path, parties: Sequence[Party], host: str, days: int = DAYS, *, new_root: bool = False
) -> list[Path]:
    """Make certificates for parties, and renew those that exist.

    A root and the relay's certificate are made if they do not exist. An old certificate stays valid
    until it expires: the relay's list of revoked certificates ends it before.
    """
    names = party_names([name for name in parties if name != RELAY])
    host_name(host)
    relay = folder / RELAY / _files(RELAY)[0]
    if RELAY in parties or not relay.exists():
        names.append(RELAY)
    else:
        extensions = _certificate(relay).extensions
        named = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if _host(host) not in list(named):
            reason = f"to renew it for {host}, name relay among --parties"
            raise ValueError(f"{relay} is not for the host {host}: {reason}")
    if new_root and (left := sorted({*certified(folder)} - {*names})):
        raise ValueError(f"--new-root must name all parties; missing: {', '.join(left)}")
    key, root = _authority(folder, days, new_root)
    for name in names:
        _write_party(folder, name, key, root, host, days)
    return [folder / name for name in names]


def certified(folder: Path) -> list[Party]:
    """Return the parties that have a certificate in an authority's folder."""
    return [path.name for path in folder.glob("*/") if (path / _files(path.name)[0]).exists()]


def _files(name: Party) -> tuple[str, str]:
    """Return the names of a party's certificate and key."""
    kind = tls_name(name)
    return f"{kind}.crt", f"{kind}.key"


def _authority(
    folder: Path, days: int, new_root: bool
) -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
    """Return the root of a folder, or a new one; refuse days beyond it."""
    if not 1 <= days <= ROOT_DAYS:
        raise ValueError(f"--days must be from 1 to {ROOT_DAYS}, got {days}")
    key, root = _new_root(folder) if new_root else _root(folder)
    rest = root.not_valid_after_utc - datetime.now(UTC)
    if timedelta(days=days) > rest + CLOCKS:
        raise ValueError(f"--days must be at most {rest.days}, as for the root, got {days}")
    return key, root


def _root(folder: Path) -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
    """Read the folder's root, or make one."""
    key_file, file = folder / "root.key", folder / ROOT
    if not key_file.exists():
        return _new_root(folder)
    check_secret(key_file)
    try:
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        root = x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: its root cannot be read ({error})") from None
    if not isinstance(key, rsa.RSAPrivateKey) or key.public_key() != root.public_key():
        raise ValueError(f"{key_file} is not the RSA key of {file}: --new-root replaces both")
    return key, root


def _new_root(folder: Path) -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
    key, name = _new_key(), _name("vertibayes root")
    root = _signed(
        name, name, key.public_key(), key, ROOT_DAYS, x509.BasicConstraints(True, 0), signs=True
    )
    folder.mkdir(parents=True, exist_ok=True)
    _replace_pair(folder / "root.key", key, folder / ROOT, root)
    return key, root


def _write_party(
    folder: Path,
    name: Party,
    root_key: rsa.RSAPrivateKey,
    root: x509.Certificate,
    host: str,
    days: int,
) -> None:
    """Write a party's folder, and a line about its certificate into `issued.txt`."""
    key = _new_key()
    certificate = _issued(folder, name, key.public_key(), (root_key, root), host, days)
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    certificate_file, key_file = _files(name)
    _replace_pair(own / key_file, key, own / certificate_file, certificate)
    (own / ROOT).write_bytes(root.public_bytes(serialization.Encoding.PEM))


def _issued(
    folder: Path,
    name: Party,
    key: CertificatePublicKeyTypes,
    authority: tuple[rsa.RSAPrivateKey, x509.Certificate],
    host: str,
    days: int,
) -> x509.Certificate:
    """Return the certificate of a party's key, of which `issued.txt` has a line."""
    root_key, root = authority
    is_relay = name == RELAY
    names = [x509.DNSName(name), *([_host(host)] if is_relay else [])]
    use = x509.ExtendedKeyUsage([PURPOSES["relay" if is_relay else "party"]])
    alone, named = x509.BasicConstraints(False, None), x509.SubjectAlternativeName(names)
    certificate = _signed(_name(name), root.subject, key, root_key, days, alone, use, named)
    dates = f"{datetime.now(UTC):%Y-%m-%d} to {certificate.not_valid_after_utc:%Y-%m-%d}"
    with (folder / "issued.txt").open("a", encoding="utf-8") as issued:
        issued.write(f"{certificate.serial_number:x}    # {name}, {dates}\n")
    return certificate


# ---- keys that the parties made themselves -------------------------------------------------------


def certify(
    folder: Path,
    keys: Mapping[Party, str],
    old: Mapping[Party, str],
    host: str,
    days: int = DAYS,
    *,
    new_root: bool = False,
) -> tuple[str, dict[Party, str]]:
    """Return the root, and a certificate of each party and the relay, all in PEM.

    `keys` has the public keys of parties that need a certificate for the first time or for another
    key, `old` the certificates that exist. Those that expire soon are made again for the same key.
    """
    host_name(host)
    authority = _authority(folder, days, new_root)
    root = authority[1].public_bytes(serialization.Encoding.PEM).decode()
    certificates = dict(old)
    for name in {**old, **keys}:
        known = x509.load_pem_x509_certificate(old[name].encode()) if name in old else None
        if name in keys:
            public: CertificatePublicKeyTypes = decode_tls(keys[name])
        else:
            assert known is not None
            if not new_root and known.not_valid_after_utc - datetime.now(UTC) > RENEWED:
                continue
            public = known.public_key()
        made = _issued(folder, name, public, authority, host, days)
        certificates[name] = made.public_bytes(serialization.Encoding.PEM).decode()
    return root, certificates


def serials_of(folder: Path, name: Party) -> list[str]:
    """Return the serial numbers of all certificates of a party that an authority has issued."""
    lines = (folder / "issued.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.partition("# ")[2].startswith(f"{name},")]


def make_tls_key(path: Path) -> str:
    """Write a private key for TLS, unless the file exists; return its public half as text."""
    if not path.exists():
        private, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        key = ec.generate_private_key(ec.SECP256R1())
        write_secret(path, key.private_bytes(serialization.Encoding.PEM, private, plain))
    check_secret(path)
    return tls_text(serialization.load_pem_private_key(path.read_bytes(), None).public_key())


def tls_text(public: object) -> str:
    """Return the text of a public key for TLS: its point in base64, with a checksum."""
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise ValueError("expected a key for TLS that `vertibayes enrol` made")
    compressed = serialization.PublicFormat.CompressedPoint
    content = public.public_bytes(serialization.Encoding.X962, compressed)
    check = hashlib.sha256(content).digest()[:CHECK_BYTES]
    return TLS_PREFIX + base64.urlsafe_b64encode(content + check).decode()


def decode_tls(text: str) -> ec.EllipticCurvePublicKey:
    """Return the public key of `tls_text`."""
    try:
        content = base64.urlsafe_b64decode(text.removeprefix(TLS_PREFIX))
        public = ec.EllipticCurvePublicKey.from_encoded_point(
            ec.SECP256R1(), content[:-CHECK_BYTES]
        )
    except ValueError:
        public = None
    if public is None or tls_text(public) != text:
        raise ValueError(
            f"{text!r:.80} is not a public key for TLS: specify the whole line that `vertibayes "
            "enrol` prints"
        )
    return public


def tls_key_of(certificate: str) -> str:
    """Return the text of the public key that a certificate in PEM certifies."""
    return tls_text(x509.load_pem_x509_certificate(certificate.encode()).public_key())


def _replace_pair(
    key_file: Path, key: rsa.RSAPrivateKey, file: Path, certificate: x509.Certificate
) -> None:
    """Write a key and its certificate, and replace the old ones once both are written."""
    with replacing(key_file) as new_key, replacing(file) as new:
        new_key.unlink(missing_ok=True)  # of a process that was killed
        traditional = serialization.PrivateFormat.TraditionalOpenSSL
        plain = serialization.NoEncryption()
        write_secret(new_key, key.private_bytes(serialization.Encoding.PEM, traditional, plain))
        new.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: CertificatePublicKeyTypes,
    issuer_key: rsa.RSAPrivateKey,
    days: int,
    *extensions: x509.ExtensionType,
    signs: bool = False,
) -> x509.Certificate:
    """Return a certificate, for the relay or a party, or (`signs`) of an authority."""
    now = datetime.now(UTC)
    never = "content_commitment", "data_encipherment", "key_agreement"
    usage = x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        **dict.fromkeys((*never, "encipher_only", "decipher_only"), False),
    )
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = x509.CertificateBuilder(
        issuer, subject, key, x509.random_serial_number(), now - CLOCKS, now + timedelta(days)
    )
    for one in (x509.SubjectKeyIdentifier.from_public_key(key), above, usage, *extensions):
        is_critical = isinstance(one, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(one, critical=is_critical)
    return builder.sign(issuer_key, hashes.SHA256())


def check_certificate(
    root: Path, certificate: Path, key: Path, party: Party, now: datetime
) -> datetime:
    """Check that a party's certificate is valid; return when it expires."""
    check_secret(key)
    own, above = _certificate(certificate), _certificate(root)
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), None)
    except (OSError, ValueError):
        raise ValueError(f"{key} is not a private key in PEM") from None
    if private.public_key() != own.public_key():
        raise ValueError(f"{key} is not the key of {certificate}")
    try:
        own.verify_directly_issued_by(above)
    except Exception:  # a type, a name or a signature that is not valid
        raise ValueError(f"{certificate} is not signed by {root}") from None
    names = [str(a.value) for a in own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [party]:
        raise ValueError(f"{certificate} is in the name of {', '.join(names)}, not of {party}")
    kind = "relay" if party == RELAY else "party"
    if not has_purpose(own, kind):
        raise ValueError(
            f"{certificate} is not for a {kind}: its extended key usage does not say so"
        )
    if not own.not_valid_before_utc <= now <= own.not_valid_after_utc:
        span = f"{own.not_valid_before_utc:%Y-%m-%d} to {own.not_valid_after_utc:%Y-%m-%d}"
        raise ValueError(
            f"{certificate} is valid from {span}; this clock says {now:%Y-%m-%d %H:%M} UTC: "
            "set the clock, or ask the coordinator for a new certificate"
        )
    return own.not_valid_after_utc


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError as error:
        reason = f"{path}: {error.strerror}: `vertibayes fetch` writes it, from the newest bundle"
        raise ValueError(reason) from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"{path} is not a certificate in PEM") from None


def end_of(path: Path) -> datetime:
    """Return when a certificate expires."""
    return _certificate(path).not_valid_after_utc


def number_of(path: Path) -> str:
    """Return the serial number of a certificate, as the list of revoked ones has it."""
    return f"{_certificate(path).serial_number:x}"


def public_key_of(path: Path) -> bytes:
    """Return the public key of a certificate, for finding two parties with the same one."""
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return _certificate(path).public_key().public_bytes(encoding, form)
