"""What ``vertibayes check`` says of an address: whether a relay is there, or could be."""

import socket
import ssl
from contextlib import contextmanager, suppress

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.e2e.processes import Authority, free_address
from tests.protocols.relays import listening
from vertibayes.cli import check
from vertibayes_protocols.deployment import certificates
from vertibayes_protocols.deployment.checks import Findings
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.transports.route import Route
from vertibayes_protocols.transports.tls import Certificates

PARTIES = "north", "south"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "KEY_BITS", 2048)
        out = tmp_path_factory.mktemp("certificates")
        for name in ("ours", "theirs"):
            certificates.provision(out / name, PARTIES, "127.0.0.1")
        yield out


def files(folder, party, root="ours"):
    kind = "server" if party == "relay" else "client"
    paths = (folder / root / party / name for name in ("rootCA.pem", f"{kind}.crt", f"{kind}.key"))
    return Certificates(*paths)


@contextmanager
def relaying(shown):
    """Start a relay with these certificates; yield its address."""
    with start_relay(free_address(), certificates=shown) as relay:
        yield relay.address


def closes(connected):
    """Act as a program that hangs up."""


def is_a_web_server(connected):
    connected.recv(1000)
    connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def said(question, address, shown):
    """Return "wrong" and why, or the doubt; None if all is well."""
    try:
        return question(Route(address, shown))
    except ValueError as error:
        return f"wrong: {error}"


SYSTEM = '; if a proxy or reverse proxy ends TLS: trust = "system" in [relay] of this party'
IN_USE = "is in use by a relay of this study: right if it is this relay"


def test_a_relay_of_the_study_listens(folder):
    with relaying(files(folder, "relay")) as address:
        assert said(check._reach_relay, address, files(folder, "north")) is None
        assert said(check._listen, address, files(folder, "relay")) == IN_USE


def test_a_relay_without_certificates_listens():
    with relaying(None) as address:
        assert said(check._reach_relay, address, None) is None
        assert said(check._listen, address, None) == IN_USE


@pytest.mark.parametrize(
    ("party", "root", "reason", "advice"),
    [
        ("relay", "theirs", "another certificate is shown (unknown authority)", SYSTEM),
        ("south", "ours", "another certificate is shown (wrong purpose)", ""),
        (None, None, "another program does (no TLS)", ""),
    ],
)
def test_something_else_that_listens_is_wrong(folder, party, root, reason, advice):
    other = relaying(files(folder, party, root)) if party else listening(is_a_web_server)
    with other as address:
        assert said(check._reach_relay, address, files(folder, "north")) == (
            f"wrong: is not what listens there: {reason}{advice}"
        )
        assert said(check._listen, address, files(folder, "relay")) == (
            f"wrong: is in use by something else: {reason}"
        )


@pytest.mark.parametrize("answer", [is_a_web_server, closes, lambda c: c.sendall(bytes(10_000))])
def test_something_else_that_listens_is_wrong_without_certificates_too(answer):
    with listening(answer) as address:
        reason = "another program does (no relay of vertibayes)"
        told = said(check._reach_relay, address, None)
        assert told == f"wrong: is not what listens there: {reason}"
        told = said(check._listen, address, None)
        assert told == f"wrong: is in use by something else: {reason}"


def test_a_certificate_of_the_root_in_another_name_is_wrong(tmp_path):
    authority = Authority(tmp_path)
    own, use = authority.certificates("north"), ExtendedKeyUsageOID.SERVER_AUTH
    with relaying(authority.certificates("other", purpose=use)) as address:
        told = said(check._reach_relay, address, own)
        assert told.endswith("another certificate is shown (wrong name)")
    with relaying(authority.certificates("relay")) as address:
        assert said(check._reach_relay, address, own) is None


def test_a_relay_that_does_not_take_the_certificate_is_wrong(tmp_path):
    authority = Authority(tmp_path)
    relay = authority.certificates("relay")
    old = authority.certificates("north", days=-0.5)
    with relaying(relay) as address:
        told = said(check._reach_relay, address, old)
    assert told == "wrong: listens, but does not take the certificate of this party (expired)"


def test_where_nobody_listens_a_relay_can():
    address = free_address()
    assert said(check._listen, address, None) is None
    doubt = said(check._reach_relay, address, None)
    assert doubt == "cannot be reached: nothing listens there (Connection refused)"


def test_a_proxy_is_named_if_it_is_down_or_refuses_the_password():
    def refuses(connected):
        connected.recv(1000)
        connected.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    def doubt(proxy):
        route = Route("relay.example.org:443", proxy=f"http://u:pw@{proxy}")
        return check._reach_relay(route).replace(proxy, "PROXY")

    away = "cannot be reached: the proxy PROXY cannot be reached (Connection refused)"
    assert doubt(free_address()) == away
    with listening(refuses) as address:
        assert doubt(address) == (
            "cannot be reached: the proxy PROXY refuses the connection: its user or password is "
            "wrong or missing"
        )


def test_what_ends_tls_of_an_older_version_is_told_of_the_trust_that_fits(folder):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    shown = files(folder, "relay", "theirs")
    old.load_cert_chain(shown.certificate, shown.key)

    def answer(connected):
        with suppress(OSError):
            old.wrap_socket(connected, server_side=True)

    with listening(answer) as address:
        told = said(check._reach_relay, address, files(folder, "north"))
        assert told.endswith(f"another certificate is shown (another version of TLS){SYSTEM}")
        with pytest.raises(TransportError, match=r"of TLS.; if .* trust = .system."):
            connect("north", address, (), certificates=files(folder, "north"), timeout=1.0)


def test_nothing_is_said_of_a_relay_that_a_party_without_its_certificate_cannot_ask(folder):
    own = files(folder, "north")._replace(certificate=folder / "deleted.crt")
    findings = Findings()
    findings.begin()
    findings.ask("the relay ", "listens", lambda: check._reach_relay(Route("127.0.0.1:1", own)))
    assert findings.lines == []


@pytest.mark.parametrize("secure", [True, False])
def test_what_listens_and_sends_nothing_is_wrong(folder, monkeypatch, secure):
    monkeypatch.setattr(check, "REACH_SECONDS", 0.3)
    shown = files(folder, "north") if secure else None
    with listening(lambda connected: connected.recv(10_000) and connected.recv(1)) as address:
        told = said(check._reach_relay, address, shown)
        assert told == "wrong: is not what listens there: another program does (timeout)"


def test_check_of_a_relay_fails_if_a_foreign_program_has_its_port(tmp_path):
    (tmp_path / "relay.toml").write_text(f'[relay]\naddress = "{free_address()}"\n')
    assert not check.run_check([tmp_path / "relay.toml"], False)
    with listening(is_a_web_server) as address:
        (tmp_path / "relay.toml").write_text(f'[relay]\naddress = "{address}"\n')
        assert check.run_check([tmp_path / "relay.toml"], False)


def test_a_name_that_nobody_has_is_wrong(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    reason = "wrong: has an unknown host (Name or service not known)"
    assert said(check._reach_relay, "relay.example.org:8102", None) == reason


def test_an_address_of_another_machine_cannot_be_listened_on():
    told = said(check._listen, "192.0.2.1:8102", None)
    assert told.startswith("wrong: cannot be used to listen (Cannot assign requested address")
