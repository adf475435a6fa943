"""What a link and a relay promise: receipts, order, named errors, a network found again."""

from __future__ import annotations

import json
import signal
import socket
import time

import pytest

from tests.e2e.processes import Authority, Process, free_address
from tests.e2e.proxy import Proxy
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports import relay_link as module
from vertibayes_protocols.transports.mailbox import RELAY
from vertibayes_protocols.transports.pieces import PIECE
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.transports.tls import Certificates

pytestmark = pytest.mark.machines

PEERS = "bcdz"


class Echoes:
    """A relay and parties that echo, as processes."""

    def __init__(self, folder):
        self.folder, self.address, self.running = folder, free_address(), []

    def start(self, party, certificates=None, address=None, **changes):
        path = self.folder / f"{party}.json"
        paths = certificates and list(map(str, certificates))
        settings = {"address": address or self.address, "certificates": paths, **changes}
        path.write_text(json.dumps(settings))
        process = Process(party, path, "echo")
        self.running.append(process)
        process.wait_for("ready")
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.kill()


@pytest.fixture(scope="module")
def echoes(tmp_path_factory):
    with Echoes(tmp_path_factory.mktemp("echoes")) as found:
        found.start("relay")
        found.start("b")
        found.start("c")
        yield found


@pytest.fixture
def a(echoes):
    with connect("a", echoes.address, PEERS, certificates=None) as link:
        yield link


def test_packets_come_whole_and_in_order_from_several_receivers(a):
    sizes = [0, 1, 100, PIECE, PIECE + 1, 2 * module.UNDER_WAY * PIECE + 5, 7]
    packets = [bytes([i]) * size for i, size in enumerate(sizes)]
    for packet in packets:
        assert a.deliver({"b": packet, "c": packet[::-1]}, 0.0) == {}
    came = {"b": [], "c": []}
    for _ in range(2 * len(packets)):
        sender, packet = a.receive(10.0)
        came[sender].append(packet)
    assert came == {"b": packets, "c": [packet[::-1] for packet in packets]}
    assert a.receive(0.0) is None


def test_many_small_packets_come_one_by_one(a):
    for i in range(100):
        a.deliver({"b": bytes([i])}, 0.0)
        assert a.receive(20.0) == ("b", bytes([i]))


def test_a_peer_that_is_not_there_is_named_at_once(a):
    start = time.monotonic()
    failed = a.deliver({"zoe": b"x", "b": b"y"}, 0.0)
    assert time.monotonic() - start < 2
    assert [(peer, e.party, e.reason) for peer, e in failed.items()] == [
        ("zoe", "zoe", "cannot be reached")
    ]
    assert a.receive(5.0) == ("b", b"y")


def test_whether_a_process_is_away_is_known_at_once(a, echoes):
    """The question is no packet: who is there refuses it."""
    start = time.monotonic()
    assert a.is_away("zoe~00000000000000a1") and not a.is_away("b")
    assert time.monotonic() - start < 2
    assert a.receive(0.1) is None


def test_a_process_of_an_analyst_has_an_address_of_its_own(echoes):
    """Its certificate has the name of the party; see `test_certificates_bind_names`."""
    names = "e~00000000000000a1", "e~00000000000000a2"
    with (
        connect(names[0], echoes.address, PEERS, certificates=None) as one,
        connect(names[1], echoes.address, PEERS, certificates=None) as other,
    ):
        for link, packet in ((one, b"one"), (other, b"other")):
            assert link.deliver({"b": packet}, 5.0) == {}
        assert one.receive(5.0) == ("b", b"one") and other.receive(5.0) == ("b", b"other")


def test_a_killed_peer_is_named_within_patience_and_reached_when_it_is_back(a, echoes):
    echoes.start("d")
    assert a.deliver({"d": b"x"}, 0.0) == {}
    assert a.receive(5.0) == ("d", b"x")
    echoes.running[-1].kill()
    start = time.monotonic()
    assert a.deliver({"d": b"x"}, 1.0)["d"].party == "d"
    assert time.monotonic() - start < 3
    echoes.start("d")
    assert a.deliver({"d": b"again"}, 5.0) == {}
    assert a.receive(5.0) == ("d", b"again")


@pytest.mark.parametrize("loss", ["cut", "swallow"])
def test_a_lost_network_is_found_again(echoes, loss, monkeypatch):
    monkeypatch.setattr(module, "QUIET_SECONDS", 4.0)
    proxy = Proxy(echoes.address)
    try:
        with connect("e", proxy.address, PEERS, certificates=None) as link:
            assert link.deliver({"b": b"before"}, 0.0) == {}
            assert link.receive(5.0) == ("b", b"before")
            getattr(proxy, loss)()
            start = time.monotonic()
            assert link.deliver({"b": b"after"}, 15.0) == {}
            assert link.receive(10.0) == ("b", b"after")
            assert time.monotonic() - start < 25
            assert link.receive(0.3) is None, "a packet came twice"
    finally:
        proxy.close()


def test_a_relay_that_went_is_named(tmp_path):
    with Echoes(tmp_path) as own:
        relay = own.start("relay")
        with connect("a", own.address, PEERS, certificates=None) as link:
            relay.kill()
            failed = link.deliver({"b": b"x"}, 1.0)
            assert failed["b"].party == RELAY and own.address in str(failed["b"])
            own.start("relay")
            own.start("b")
            assert link.deliver({"b": b"x"}, 15.0) == {}


def test_a_second_process_under_one_name_is_refused_and_the_first_goes_on(echoes, a):
    echoes.start("c-1")
    with pytest.raises(TransportError, match="another process is connected to the relay as c-1: "):
        connect("c-1", echoes.address, PEERS, certificates=None)
    assert a.deliver({"c-1": b"x"}, 0.0) == {} and a.receive(5.0) == ("c-1", b"x")


def test_a_process_that_is_frozen_gives_way_and_is_told_when_it_wakes(tmp_path):
    with Echoes(tmp_path) as own:
        own.start("relay")
        first = own.start("d")
        first.process.send_signal(signal.SIGSTOP)
        with connect("d", own.address, PEERS, certificates=None):
            first.process.send_signal(signal.SIGCONT)
            first.wait_for("", "another process is connected to the relay as d", timeout=20)


def test_a_party_that_is_started_again_is_not_two(tmp_path):
    with Echoes(tmp_path) as own:
        own.start("relay")
        for _ in range(4):
            own.start("d").kill()
        last = own.start("d")
        time.sleep(1.5)
        assert last.process.poll() is None


# ---- who is let in ------------------------------------------------------------------------------


def test_certificates_bind_names(tmp_path):
    root = Authority(tmp_path / "root")
    foreign = Authority(tmp_path / "foreign").certificates("a")
    with Echoes(tmp_path) as own:
        own.start("relay", root.certificates("relay"))
        own.start("b", root.certificates("b"))
        with connect("a", own.address, PEERS, certificates=root.certificates("a")) as link:
            assert link.deliver({"b": b"x"}, 0.0) == {}
            assert link.receive(5.0) == ("b", b"x")
        own_address = "a~00000000000000a1"
        certificates = root.certificates("a")
        with connect(own_address, own.address, PEERS, certificates=certificates) as link:
            assert link.deliver({"b": b"x"}, 0.0) == {}
            assert link.receive(5.0) == ("b", b"x")
        as_another = root.certificates("other", "c")
        for name in ("a", own_address):
            for certificates in (foreign, as_another, None):
                with pytest.raises(TransportError, match="the relay cannot be reached at"):
                    connect(name, own.address, PEERS, certificates=certificates, timeout=2.0)


def test_a_relay_with_another_name_is_not_believed(tmp_path):
    root = Authority(tmp_path / "root")
    with Echoes(tmp_path) as own:
        own.start("relay", root.certificates("relay", "mallory"))
        with pytest.raises(TransportError, match="the relay cannot be reached at"):
            connect("a", own.address, PEERS, certificates=root.certificates("a"), timeout=2.0)


# ---- mistakes ------------------------------------------------------------------------------------


def test_an_address_that_is_taken_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TransportError, match=f"the relay cannot listen on {address}: "):
            start_relay(address, certificates=None)


def test_files_that_cannot_be_used_are_named(tmp_path):
    good = Authority(tmp_path).certificates("a")
    absent = tmp_path / "none.crt"
    for wrong in (good._replace(root=absent), good._replace(key=good.certificate)):
        with pytest.raises(TransportError, match=r"the certificates .* cannot be used"):
            connect("a", "127.0.0.1:1", PEERS, certificates=Certificates(*wrong))


def test_a_relay_that_is_not_there_is_an_error_in_time():
    start = time.monotonic()
    with pytest.raises(TransportError, match="the relay cannot be reached at"):
        connect("a", free_address(), PEERS, certificates=None, timeout=1.0)
    assert time.monotonic() - start < 5
