"""The outer TLS: what a party takes for the relay, and what the relay takes; revoked lists."""

import asyncio
import socket
import ssl
from hashlib import sha1

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.e2e.processes import Authority
from tests.protocols.relays import listening, relaying
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports import line
from vertibayes_protocols.transports.line import open_line
from vertibayes_protocols.transports.proof import ENTER, Entry
from vertibayes_protocols.transports.route import Route
from vertibayes_protocols.transports.tls import party_context, read_revoked, relay_context

AUTHORITY = "a public authority"
NORTH = Entry("north", b"s" * 16, ENTER)


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


def shows(certificates, heard, **versions):
    """Act as a server with a certificate, as anybody who takes the relay's place would."""

    def act(plain):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for name, version in versions.items():
            setattr(context, name, version)
        context.load_cert_chain(certificates.certificate, certificates.key)
        with context.wrap_socket(plain, server_side=True) as connected:
            heard.append(connected.recv(1000))

    return act


def reason(address, certificates, **route):
    """Connect as north in vain; return why."""
    with pytest.raises(TransportError) as caught:
        asyncio.run(open_line(Route(address, certificates, **route), NORTH))
    return getattr(caught.value, "reason", str(caught.value))


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_an_authority_that_the_system_trusts_is_not_taken(
    north, foreign, variable, monkeypatch, tmp_path
):
    """The control is a party that trusts the system: it sends to the stranger."""
    trusted = {"SSL_CERT_FILE": foreign.root, "SSL_CERT_DIR": hashed(foreign.root, tmp_path)}
    monkeypatch.setenv(variable, str(trusted[variable]))
    monkeypatch.setattr(line, "party_context", without_host)
    stranger, heard = foreign.certificates("relay"), []
    with listening(shows(stranger, heard)) as address:
        assert reason(address, north) == "unknown authority"
        assert heard == []
        assert reason(address, north, trust="system") == "no relay of vertibayes"
        assert heard[0].startswith(b"GET / HTTP/1.1") and b"north" not in heard[0]


def without_host(root):
    """As `party_context`; the certificates of these tests are not for 127.0.0.1."""
    context = party_context(root)
    context.check_hostname = False
    return context


def hashed(root, folder):
    """Return a folder with the root under the name by which OpenSSL looks for it."""
    text = AUTHORITY.encode()  # OpenSSL hashes names in lower case, in UTF-8
    pair = b"\x06\x03\x55\x04\x03\x0c" + bytes([len(text)]) + text
    item = b"\x30" + bytes([len(pair)]) + pair
    value = int.from_bytes(sha1(b"\x31" + bytes([len(item)]) + item).digest()[:4], "little")
    (folder / f"{value:08x}.0").write_bytes(root.read_bytes())
    return folder


def test_who_trusts_the_system_checks_the_host(north, foreign, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(foreign.root))
    with listening(shows(foreign.certificates("relay"), [])) as address:
        assert reason(address, north, trust="system") == "wrong name"


@pytest.mark.parametrize(
    ("name", "changed", "why"),
    [
        ("north", {}, "wrong purpose"),
        ("relay", {"purpose": ExtendedKeyUsageOID.CLIENT_AUTH}, "wrong purpose"),
        ("relay", {"purpose": ExtendedKeyUsageOID.CODE_SIGNING}, "wrong purpose"),
        ("relay", {"days": -0.5}, "expired"),
    ],
)
def test_a_certificate_of_the_study_that_is_not_the_relays_is_refused(
    study, north, name, changed, why
):
    shown, heard = study.certificates("another", name, **changed), []
    with listening(shows(shown, heard)) as address:
        assert reason(address, north) == why
    assert not any(b"north" in text for text in heard)


def test_no_other_party_stands_in_for_the_relay(study, north):
    """A party shows its certificate to no site in the relay's place."""
    posing = study.certificates("south", purpose=ExtendedKeyUsageOID.SERVER_AUTH)
    with relaying(posing) as (relay, log):
        assert reason(relay.address, north) == "wrong name"
        assert log.of("connected") == [] and "north" not in str(log)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x10" * 4])
def test_a_party_sends_nothing_but_a_greeting_in_clear(north, said):
    heard = []

    def in_clear(plain):
        heard.append(plain.recv(1 << 14))
        plain.sendall(said)

    with listening(in_clear) as address:
        assert reason(address, north) == "no TLS"
    assert heard[0].startswith(b"\x16\x03\x01") and b"north" not in heard[0]


def test_a_party_refuses_tls_before_1_3_of_the_relay(north, relay):
    with listening(shows(relay, [], maximum_version=ssl.TLSVersion.TLSv1_2)) as address:
        assert reason(address, north) == "another version of TLS"


def test_the_relay_refuses_tls_before_1_3(relay):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with relaying(relay) as (running, log):
        with socket.create_connection(running.address.split(":")) as plain:
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(plain)
    assert log.of("refused")[0]["reason"] == "TLS older than 1.3"


def test_a_relay_that_sends_nothing_is_given_up(north, monkeypatch):
    monkeypatch.setattr(line, "HANDSHAKE_SECONDS", 0.3)

    def silent(plain):
        while plain.recv(1 << 14):
            pass

    with listening(silent) as address:
        with pytest.raises(TimeoutError):
            asyncio.run(open_line(Route(address, north), NORTH))


def test_a_context_has_the_root_of_the_study_alone(north, relay):
    control = ssl.create_default_context()
    assert [dict(p for (p,) in c["subject"]) for c in party_context(north.root).get_ca_certs()] == [
        {"commonName": "root"}
    ]
    assert relay_context(relay).get_ca_certs() == []
    assert control.cert_store_stats()["x509_ca"] != 1


def test_files_that_cannot_be_used_are_named(relay, tmp_path):
    with pytest.raises(TransportError, match=r"the certificates .* cannot be used: "):
        party_context(tmp_path / "none")
    for wrong in (relay._replace(certificate=tmp_path / "none"), relay._replace(key=relay.root)):
        with pytest.raises(TransportError, match=r"the certificates .* cannot be used: "):
            relay_context(wrong)


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
