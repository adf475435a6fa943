"""A running relay: what its log says of parties and strangers, and whom it refuses."""

from __future__ import annotations

import gc
import shutil
import socket
import ssl
import subprocess
import sys
import time
from threading import Thread

import pytest

from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.fuel.f3.drivers.net_utils import get_ssl_context

from tests.e2e.processes import Authority, Process, free_address
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports import nvflare as module
from vertibayes_protocols.transports.cells import nvflare
from vertibayes_protocols.transports.websocket import connect
from vertibayes_protocols.transports.relay import knock

FILE = """[relay]
address = "{}"
root = "root.crt"
certificate = "relay.crt"
key = "relay.key"
"""


class Relay:
    """The command `vertibayes relay`, its folder and its log."""

    def __init__(self, folder):
        self.folder, self.address = folder / "relay", free_address()
        self.study = Authority(folder / "study")
        self.folder.mkdir()
        self.place(self.study.certificates("relay"))
        self.file = self.folder / "relay.toml"
        self.file.write_text(FILE.format(self.address))
        command = [sys.executable, "-m", "vertibayes", "relay", str(self.file)]
        self.process = Process("relay", command=command)
        self.process.wait_for("", " listening ")

    def place(self, certificates):
        for path, name in zip(certificates, ("root.crt", "relay.crt", "relay.key"), strict=True):
            shutil.copy(path, self.folder / name)
        (self.folder / "relay.key").chmod(0o600)

    @property
    def where(self):
        host, port = self.address.split(":")
        return host, int(port)

    def says(self, *parts):
        """Wait for a line with all parts, from now on."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            line = self.process.wait_for("", parts[0])
            if all(part in line for part in parts):
                return line
        raise AssertionError(parts)


@pytest.fixture(scope="module")
def relay(tmp_path_factory):
    relay = Relay(tmp_path_factory.mktemp("log"))
    yield relay
    relay.process.kill()
    gc.collect()


@pytest.fixture(scope="module")
def north(relay):
    return relay.study.certificates("north")


def test_a_party_that_connects_and_leaves_is_logged(relay, north):
    with connect("north", relay.address, (), certificates=north):
        line = relay.says(" connected ", "peer=north", "127.0.0.1:", "certificate=", "until=")
    relay.says(" disconnected ", "peer=north", "seconds=")
    assert "relay connected" in line


def test_check_tells_what_listens(relay, north, tmp_path):
    assert knock(relay.where, north, 5.0).kind == "relay"
    relay.says(" connected ", "peer=north")
    assert knock(relay.where, None, 5.0).kind == "other"
    relay.says(" refused ", "no TLS")
    foreign = Authority(tmp_path).certificates("north")
    assert tuple(knock(relay.where, foreign, 5.0)) == ("other", "unknown authority")
    old = relay.study.certificates("old", "north", days=-0.5)
    assert tuple(knock(relay.where, old, 5.0)) == ("refused", "expired")
    relay.says(" refused ", "expired")
    checked = subprocess.run(
        [sys.executable, "-m", "vertibayes", "check", str(relay.file)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "is in use by a relay of this study" in checked.stdout


def test_a_relay_without_certificates_is_told_from_another_program(tmp_path):
    address = free_address()
    (tmp_path / "relay.toml").write_text(f'[relay]\naddress = "{address}"\n')
    command = [sys.executable, "-m", "vertibayes", "relay", str(tmp_path / "relay.toml")]
    process = Process("relay", command=command)
    try:
        process.wait_for("", " listening ")
        host, port = address.split(":")
        assert knock((host, int(port)), None, 5.0).kind == "relay"
    finally:
        process.kill()


@pytest.mark.parametrize("how", ["foreign", "expired", "none", "clear"])
def test_who_is_refused_is_logged_with_the_reason(relay, north, tmp_path, how):
    if how == "clear":
        with socket.create_connection(relay.where) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            relay.says(" refused ", 'reason="no TLS"', "address=")
            return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reason = '"no certificate"'
    if how != "none":
        shown = Authority(tmp_path).certificates("north")
        reason = '"unknown authority"'
        if how == "expired":
            shown, reason = relay.study.certificates("old", "north", days=-0.5), "expired"
        context.load_cert_chain(shown.certificate, shown.key)
    with socket.create_connection(relay.where) as plain, pytest.raises(ssl.SSLError):
        with context.wrap_socket(plain) as stranger:
            stranger.recv(1)
    relay.says(" refused ", f"reason={reason}", "address=")


def test_a_party_in_the_name_of_another_is_refused_and_logged(relay):
    """Also under a name that CellNet takes for that of an administrator's session."""
    south = relay.study.certificates("south")
    for name in ("north", "_admin_0123456789abcdef"):
        with pytest.raises((TransportError, ValueError)):
            connect(name, relay.address, (), certificates=south, timeout=2.0)
    relay.says(" refused ", "peer=south", "connected in the name of north")


def test_a_packet_in_the_name_of_another_is_refused_and_logged(relay, north, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.7)
    keys = nvflare().MessageHeaderKey
    with connect("north", relay.address, ("south",), certificates=north) as link:
        link._cell.add_outgoing_request_filter(
            "*", "*", lambda message: message.set_header(keys.ORIGIN, "south")
        )
        link.deliver({"south": b"x"}, 0.0)
        relay.says(" refused ", "packet refused", "peer=north", "in the name of south")


def test_a_revoked_certificate_is_refused_and_its_connection_ends(relay, north):
    revoked = relay.folder / "revoked.txt"
    south = relay.study.certificates("south")
    with connect("south", relay.address, (), certificates=south):
        line = relay.says(" connected ", "peer=south")
        number = line.partition("certificate=")[2].split()[0]
        revoked.write_text(f"{number}    # south, stolen\n")
        relay.says(" refused ", f"revoked: south, certificate {number}")
        relay.says(" disconnected ", "peer=south")
    with pytest.raises(TransportError, match="does not take the certificate of this party"):
        connect("south", relay.address, (), certificates=south, timeout=2.0)
    with connect("north", relay.address, (), certificates=north):
        relay.says(" connected ", "peer=north")
    revoked.unlink()
    renewed = relay.study.certificates("south")
    with connect("south", relay.address, (), certificates=renewed):
        relay.says(" connected ", "peer=south")


def test_a_renewed_certificate_of_the_relay_needs_no_restart(relay, north):
    relay.place(relay.study.certificates("fresh", "relay"))
    with connect("north", relay.address, (), certificates=north):
        relay.says(" connected ", "peer=north")


# ---- a stranger in the relay's place -------------------------------------------------------------


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A server with a certificate of an authority that the system trusts; what it was sent."""
    authority, heard = Authority(tmp_path / "public", "a public authority"), []
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.root))
    shown = authority.certificates("relay")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    with context.wrap_socket(server.accept()[0], server_side=True) as connected:
                        heard.append(connected.recv(1000))
                except ssl.SSLError:
                    pass
                except OSError:
                    return

        Thread(target=serve, daemon=True).start()
        yield server.getsockname(), heard
        server.shutdown(socket.SHUT_RDWR)


def test_an_authority_that_the_system_trusts_does_not_replace_the_relay(stranger, north):
    """The control is NVFlare's own context, which parties had: it sends to the stranger."""
    where, heard = stranger
    params = {DriverParams.SECURE.value: True, DriverParams.CA_CERT.value: str(north.root)}
    params |= {DriverParams.CLIENT_CERT.value: str(north.certificate)}
    params |= {DriverParams.CLIENT_KEY.value: str(north.key)}
    with socket.create_connection(where) as plain:
        with get_ssl_context(params, ssl_server=False).wrap_socket(plain) as fooled:
            fooled.sendall(b"a hello")
            fooled.recv(1)
    assert heard == [b"a hello"]
    reason = "shows no certificate of this study's relay .unknown authority"
    with pytest.raises(TransportError, match=reason):
        connect("north", "{}:{}".format(*where), (), certificates=north, timeout=2.0)
    assert heard == [b"a hello"]
