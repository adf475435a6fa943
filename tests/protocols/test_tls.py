"""TLS between a party and the relay: what each end takes, and what it refuses and why."""

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha1

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.e2e.processes import Authority
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports import tls
from vertibayes_protocols.transports.tls import (
    HandshakeError,
    party_context,
    read_revoked,
    relay_context,
    secure_party,
    secure_relay,
)

SECONDS, AUTHORITY = 5.0, "a public authority"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Wait briefly for ends that never hang up."""
    monkeypatch.setattr(tls, "HANG_UP_SECONDS", 0.2)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("foreign"), AUTHORITY)


@pytest.fixture(scope="module")
def relay(study):
    return study.certificates("relay")


@pytest.fixture(scope="module")
def north(study):
    return study.certificates("north")


def outcome(act):
    """Return what an end says, or why it refuses."""
    try:
        return act()
    except HandshakeError as error:
        return error.reason
    except OSError as error:
        return type(error).__name__


def both(party, relay):
    """Let two ends shake hands over a pair of sockets; return what each says."""
    near, far = socket.socketpair()
    for end in (near, far):
        end.settimeout(SECONDS)
    with near, far, ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(outcome, lambda: party(near)), pool.submit(outcome, lambda: relay(far))]
        return [end.result() for end in ends]


def as_party(certificates):
    def act(plain):
        with secure_party(plain, certificates) as connected:
            return connected.version() if connected.recv(1) else "closed"

    return act


def as_relay(certificates):
    def act(plain):
        connected, shown = secure_relay(plain, relay_context(certificates))
        with connected:
            connected.sendall(b"x")
            return shown.name

    return act


def shows(certificates, seen=None, **versions):
    """Act as a server with a certificate, as anybody who takes the relay's place would."""

    def act(plain):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for name, version in versions.items():
            setattr(context, name, version)
        context.load_cert_chain(certificates.certificate, certificates.key)
        if seen is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(certificates.root)
        with context.wrap_socket(plain, server_side=True) as connected:
            if seen is not None:
                seen.append(dict(part for (part,) in connected.getpeercert()["subject"]))
            connected.sendall(b"x")
            return "believed"

    return act


def as_it_was(certificates):
    """Act as a party with NVFlare's context: the system's authorities, and no name."""

    def act(plain):
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
        context.check_hostname = False
        context.load_verify_locations(certificates.root)
        context.load_cert_chain(certificates.certificate, certificates.key)
        with context.wrap_socket(plain) as connected:
            connected.recv(1)
            return "sent"

    return act


def test_the_party_and_the_relay_of_a_study_connect(north, relay):
    assert both(as_party(north), as_relay(relay)) == ["TLSv1.3", "north"]


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_an_authority_that_the_system_trusts_is_not_taken(
    north, foreign, variable, monkeypatch, tmp_path
):
    """The control is the context that parties had before: it sends to the stranger."""
    stranger = foreign.certificates("relay")
    trusted = {"SSL_CERT_FILE": foreign.root, "SSL_CERT_DIR": hashed(foreign.root, tmp_path)}
    monkeypatch.setenv(variable, str(trusted[variable]))
    assert both(as_it_was(north), shows(stranger)) == ["sent", "believed"]
    assert both(as_party(north), shows(stranger)) == ["unknown authority", "SSLError"]


def hashed(root, folder):
    """Return a folder with the root under the name by which OpenSSL looks for it."""
    text = AUTHORITY.encode()  # OpenSSL hashes names in lower case, in UTF-8
    pair = b"\x06\x03\x55\x04\x03\x0c" + bytes([len(text)]) + text
    item = b"\x30" + bytes([len(pair)]) + pair
    value = int.from_bytes(sha1(b"\x31" + bytes([len(item)]) + item).digest()[:4], "little")
    (folder / f"{value:08x}.0").write_bytes(root.read_bytes())
    return folder


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("south", {}, "wrong purpose"),
        ("south", {"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "wrong name"),
        ("relay", {"purpose": ExtendedKeyUsageOID.CLIENT_AUTH}, "wrong purpose"),
        ("relay", {"purpose": ExtendedKeyUsageOID.CODE_SIGNING}, "wrong purpose"),
        ("relay", {"days": -0.5}, "expired"),
    ],
)
def test_a_certificate_of_the_study_that_is_not_the_relays_is_refused(
    study, north, name, changed, reason
):
    shown = study.certificates("another", name, **changed)
    refused, other = both(as_party(north), shows(shown))
    assert refused == reason and other == "SSLError"


def test_a_party_shows_its_certificate_to_no_site_in_the_relays_place(study, north):
    """The control checks no name: the site learns who connects."""
    posing, seen = study.certificates("south", purpose=ExtendedKeyUsageOID.SERVER_AUTH), []
    assert both(as_party(north), shows(posing, seen))[0] == "wrong name"
    assert seen == []
    assert both(as_it_was(north), shows(posing, seen)) == ["sent", "believed"]
    assert seen == [{"commonName": "north"}]


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x10" * 4])
def test_a_party_sends_nothing_but_a_greeting_in_clear(north, said):
    def in_clear(plain):
        heard = plain.recv(1 << 14)
        plain.sendall(said)
        return heard

    reason, heard = both(as_party(north), in_clear)
    assert reason == "no TLS"
    assert heard.startswith(b"\x16\x03\x01") and b"north" not in heard


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("relay", {}, "wrong purpose"),
        ("relay", {"purpose": ExtendedKeyUsageOID.CLIENT_AUTH}, "wrong name"),
        ("north", {"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "wrong purpose"),
        ("north", {"days": -0.5}, "expired"),
    ],
)
def test_the_relay_refuses_certificates_that_are_no_partys(study, relay, name, changed, reason):
    shown = study.certificates("another", name, **changed)._replace(root=relay.root)
    told, refused = both(as_party(shown), as_relay(relay))
    assert refused == reason
    assert told in ("closed", "SSLError")


def test_the_relay_says_why_it_refuses_strangers(foreign, north, relay):
    def bare(plain):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain) as connected:
            return connected.recv(1)

    def older(plain):
        context = party_context(north)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context.wrap_socket(plain, server_hostname="relay")

    stranger = foreign.certificates("north")._replace(root=relay.root)
    assert both(as_party(stranger), as_relay(relay)) == ["SSLError", "unknown authority"]
    assert both(bare, as_relay(relay)) == ["SSLError", "no certificate"]
    assert both(older, as_relay(relay)) == ["SSLError", "TLS older than 1.3"]
    assert both(lambda end: end.sendall(b"GET / HTTP/1.1\r\n\r\n"), as_relay(relay))[1] == "no TLS"
    assert both(lambda end: end.sendall(bytes(64)), as_relay(relay))[1] == "no TLS"
    assert both(lambda end: end.close(), as_relay(relay))[1] == "closed"


def test_a_party_refuses_tls_before_1_3(north, relay):
    old = shows(relay, maximum_version=ssl.TLSVersion.TLSv1_2)
    assert both(as_party(north), old)[0] == "another version of TLS"


def test_an_end_that_sends_nothing_is_a_timeout(north, relay):
    near, far = socket.socketpair()
    with near, far:
        near.settimeout(0.05)
        assert outcome(lambda: as_party(north)(near)) == "timeout"
    near, far = socket.socketpair()
    with near, far:
        near.settimeout(0.05)
        assert outcome(lambda: as_relay(relay)(near)) == "timeout"


def test_a_context_has_the_root_of_the_study_alone(north, relay):
    control = ssl.create_default_context()
    for context in (party_context(north), relay_context(relay)):
        assert [dict(p for (p,) in c["subject"]) for c in context.get_ca_certs()] == [
            {"commonName": "root"}
        ]
    assert control.cert_store_stats()["x509_ca"] != 1


def test_files_that_cannot_be_used_are_named(north, tmp_path):
    for wrong in (north._replace(root=tmp_path / "none"), north._replace(key=north.certificate)):
        with pytest.raises(TransportError, match=r"the certificates .* cannot be used: "):
            party_context(wrong)


@pytest.mark.parametrize(
    ("text", "serials"),
    [
        ("", set()),
        ("# all of them\n\n0a1f    # north, 2026\nFF\n", {0x0A1F, 0xFF}),
        ("0" * 39 + "1\n", {1}),
    ],
)
def test_a_list_of_revoked_certificates_is_read(tmp_path, text, serials):
    (tmp_path / "revoked.txt").write_text(text)
    assert read_revoked(tmp_path / "revoked.txt") == serials
    assert read_revoked(tmp_path / "none.txt") == set()


@pytest.mark.parametrize("line", ["north", "0x1f", "1f 2f", "-1", "f" * 41])
def test_a_list_with_another_line_is_refused(tmp_path, line):
    (tmp_path / "revoked.txt").write_text(f"1f\n{line}\n")
    with pytest.raises(ValueError, match=r"revoked.txt, line 2: a serial number has 1 to 40"):
        read_revoked(tmp_path / "revoked.txt")


def test_a_list_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "revoked.txt").write_bytes(b"\xff\xfe1f")
    with pytest.raises(ValueError, match="is not a text in UTF-8"):
        read_revoked(tmp_path / "revoked.txt")
    with pytest.raises(ValueError, match="Is a directory"):
        read_revoked(tmp_path)
