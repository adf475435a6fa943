"""What ``vertibayes check`` says of an address: whether a relay is there, or could be."""

import socket
import ssl
from contextlib import contextmanager
from threading import Thread

import pytest

from protocols.deployment import certificates
from protocols.deployment.parts import RelayAddress
from protocols.transports.tls import Certificates
from tests.e2e.processes import Authority, free_address
from vertibayes.cli import check

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
def listening(answer):
    """Accept connections, and do to each what `answer` does; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connected, _ = server.accept()
                except OSError:
                    return
                with connected:
                    answer(connected)

        Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def shakes_hands(shown):
    """Return what a relay with these certificates does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(shown.root)
    context.load_cert_chain(shown.certificate, shown.key)

    def answer(connected):
        try:
            with context.wrap_socket(connected, server_side=True) as secure:
                secure.recv(1)
        except OSError:
            pass

    return answer


def is_a_web_server(connected):
    connected.recv(1)
    connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def said(question, address, shown):
    """Return "wrong" and why, or the doubt; None if all is well."""
    try:
        return question(RelayAddress(address, shown))
    except ValueError as error:
        return f"wrong: {error}"


def test_a_relay_of_ones_own_root_listens(folder):
    with listening(shakes_hands(files(folder, "relay"))) as address:
        assert said(check._reach_relay, address, files(folder, "north")) is None
        doubt = said(check._listen, address, files(folder, "relay"))
        assert doubt == "is already in use: right if by this relay"


@pytest.mark.parametrize(
    ("party", "root", "reason"),
    [
        ("relay", "theirs", "wrong: shows no certificate of a relay of this root"),
        ("south", "ours", "wrong: shows no certificate of a relay of this root (unsuitable"),
        (None, None, "wrong: shows no certificate of a relay of this root"),
    ],
)
def test_something_else_that_listens_is_wrong(folder, party, root, reason):
    answer = shakes_hands(files(folder, party, root)) if party else is_a_web_server
    with listening(answer) as address:
        assert said(check._reach_relay, address, files(folder, "north")).startswith(reason)
        assert said(check._listen, address, files(folder, "relay")).startswith(reason)
        assert said(check._reach_relay, address, None) is None  # who listens is not told


def test_a_certificate_of_the_root_in_another_name_is_wrong(tmp_path):
    authority = Authority(tmp_path)
    own = authority.certificates("north")
    with listening(shakes_hands(authority.certificates("other"))) as address:
        told = said(check._reach_relay, address, own)
        assert told == "wrong: shows a certificate that is not in the name of relay"
    with listening(shakes_hands(authority.certificates("relay"))) as address:
        assert said(check._reach_relay, address, own) is None


def test_where_nobody_listens_a_relay_can(folder):
    address = free_address()
    assert said(check._listen, address, None) is None
    assert said(check._reach_relay, address, None).startswith("cannot be reached")


def test_what_listens_and_says_nothing_is_doubtful(folder, monkeypatch):
    monkeypatch.setattr(check, "REACH_SECONDS", 0.3)
    with listening(lambda connected: connected.recv(10_000) and connected.recv(1)) as address:
        doubt = said(check._reach_relay, address, files(folder, "north"))
        assert doubt == "listens, but does not answer"


def test_a_name_that_nobody_has_is_wrong(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    reason = "wrong: has an unknown host (Name or service not known)"
    assert said(check._reach_relay, "relay.example.org:8102", None) == reason


def test_an_address_of_another_machine_cannot_be_listened_on():
    told = said(check._listen, "192.0.2.1:8102", None)
    assert told.startswith("wrong: cannot be used to listen (Cannot assign requested address")
