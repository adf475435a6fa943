"""A party's way to the relay: proxies, redirections, addresses; what a lying relay can do."""

import asyncio
import base64
import socket
from functools import partial
from itertools import islice
from threading import Thread

import pytest
from websockets.asyncio.client import ClientConnection

from tests.protocols.relays import Stranger, frames_of, listening, relaying
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.events import WAITING
from vertibayes_protocols.transports import relay_link as module
from vertibayes_protocols.transports.frames import (
    AWAY,
    PIECE,
    TAKEN,
    Frame,
    Mark,
    read_frame,
    write_frame,
)
from vertibayes_protocols.transports.line import knock, open_line, proxy_of
from vertibayes_protocols.transports.proof import ENTER, Entry
from vertibayes_protocols.transports.relay import Relay
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.transports.route import Route

ENTRY = Entry("a", b"s" * 16, ENTER)
USER, PASSWORD = "alice", "s3cret"


def carrying(asked, password=PASSWORD):
    """Return what an HTTP proxy does that asks for a password; note whom it is asked for."""

    def act(plain):
        text = plain.recv(4096).decode()
        asked.append(text.split()[1])
        wanted = base64.b64encode(f"{USER}:{password}".encode()).decode()
        if f"Basic {wanted}" not in text:
            plain.sendall(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
            )
            return
        host, port = asked[-1].split(":")
        with socket.create_connection((host, int(port))) as far:
            plain.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = Thread(target=copy, args=(far, plain), daemon=True)
            back.start()
            copy(plain, far)
            back.join(5)

    return act


def copy(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def test_a_party_connects_by_way_of_a_proxy():
    asked = []
    with relaying() as (relay, _), listening(carrying(asked)) as proxy:
        route = f"http://{USER}:{PASSWORD}@{proxy}"
        with connect("a", relay.address, "a", certificates=None, proxy=route) as link:
            assert link.deliver({"a": b"x"}, 5.0) == {} and link.receive(5.0) == ("a", b"x")
    assert asked == [relay.address]


@pytest.mark.parametrize("given", ["alice:wr0ng", "mallory:s3cret"])
def test_a_wrong_password_is_told_and_shown_nowhere(given, caplog):
    caplog.set_level("INFO")
    told = []
    way = {"timeout": 0.5, "tell": lambda event, **facts: told.append((event, facts))}
    with relaying() as (relay, _), listening(carrying([])) as proxy:
        route = f"http://{given}@{proxy}"
        with pytest.raises(TransportError) as caught:
            connect("a", relay.address, (), certificates=None, proxy=route, **way)
    said = f"the proxy {proxy} refuses the connection: its user or password is wrong or missing"
    assert said in str(caught.value) and told == [(WAITING, {"reason": said})]
    for secret in given.split(":"):
        assert secret not in f"{caught.value}{told}{caplog.text}"


@pytest.mark.parametrize("proxy", ["http://u:pa55@[x", "ftp://u:pa55@h:1", "http://u:pa55@h:1/x"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(proxy):
    with pytest.raises(TransportError, match=r"the proxy .* cannot be used") as caught:
        asyncio.run(open_line(Route("127.0.0.1:1", proxy=proxy), ENTRY))
    assert "pa55" not in str(caught.value)


def test_the_proxy_of_the_environment_is_for_other_machines(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example.org")
    route = Route("relay.example.org:8102")
    assert proxy_of(route) == "http://proxy:3128"
    assert proxy_of(Route("wss://relay.example.org/study")) == "http://proxy:3128"
    assert proxy_of(route._replace(proxy="none")) is None
    assert proxy_of(route._replace(proxy="http://own:1")) == "http://own:1"
    assert proxy_of(Route("127.0.0.1:8102")) is None
    assert proxy_of(Route("inside.example.org:8102")) is None


def test_a_redirection_is_not_followed():
    reached = []

    def elsewhere(plain):
        plain.recv(4096)
        plain.sendall(f"HTTP/1.1 302 Found\r\nLocation: ws://{other}/\r\n\r\n".encode())

    with listening(lambda plain: reached.append(plain)) as other, listening(elsewhere) as address:
        with pytest.raises(TransportError, match="no relay of vertibayes"):
            asyncio.run(open_line(Route(address), ENTRY))
    assert reached == []


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("relay.org:8102", ("relay.org", 8102)),
        ("wss://relay.org", ("relay.org", 443)),
        ("wss://relay.org:8443/study-1", ("relay.org", 8443)),
    ],
)
def test_addresses_have_a_host_and_a_port(address, found):
    assert Route(address).host_and_port == found


# ---- a relay that lies ---------------------------------------------------------------------------


def test_a_receipt_of_another_packet_or_of_another_party_is_none(monkeypatch):
    """The control is the right receipt; a relay can forge it, and the session misses the packet."""
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.3)
    forged = []

    def lie(relay, sender, message):
        frame = read_frame(message)
        if frame.kind == PIECE:
            for kind, address, mark in forged[0](frame):
                relay._tell(sender, write_frame(kind, address, mark))

    monkeypatch.setattr(Relay, "_pass_on", lie)
    wrong = {
        "another party": lambda f: [(TAKEN, "c", f.mark)],
        "another stream": lambda f: [(TAKEN, "b", f.mark._replace(stream=b"x" * 16))],
        "another packet": lambda f: [(TAKEN, "b", f.mark._replace(number=f.mark.number + 1))],
        "another count": lambda f: [
            (TAKEN, "b", f.mark._replace(piece=i, pieces=9)) for i in (1, 0)
        ],
        "away": lambda f: [(AWAY, "b", f.mark)],
    }
    with relaying() as (relay, _), connect("a", relay.address, "b", certificates=None) as link:
        for forgery in wrong.values():
            forged[:] = [forgery]
            assert link.deliver({"b": b"x"}, 0.0)["b"].party == "b"
        forged[:] = [lambda f: [(TAKEN, "b", f.mark)]]
        assert link.deliver({"b": b"x"}, 0.0) == {}


def test_receipts_that_are_no_progress_hold_no_sender():
    delivery = module._Delivery(b"s" * 16, 0, bytes(40 << 16))
    mark = Mark(b"s" * 16, 0, 0, 40)
    for wrong in (*(mark._replace(piece=i) for i in (1, 2)), *[mark._replace(pieces=41)] * 2):
        delivery.take(wrong)
    assert delivery.oldest == 0 and not delivery.heard.is_set()
    delivery.take(mark)
    assert delivery.oldest == 3 and delivery.heard.is_set()


def test_an_unexpected_frame_of_the_relay_is_passed_over():
    with relaying() as (relay, _), connect("a", relay.address, "b", certificates=None) as link:
        mark = Mark(b"s" * 16, 9, 0, 1)
        for kind in range(9):
            link._loop.call(partial(link._take, Frame(kind, "zoe", mark, b"")))
        assert link.is_away("zoe") and link.deliver({"a": b"x"}, 5.0) == {}


def test_who_leaves_at_once_has_given_its_last_receipts(monkeypatch):
    receipt, send = write_frame(TAKEN, "a", Mark(b"s" * 16, 0, 0, 1)), ClientConnection.send

    async def slowly(line, message):
        await asyncio.sleep(0.001)
        await send(line, message)

    monkeypatch.setattr(ClientConnection, "send", slowly)
    monkeypatch.setattr(module, "LEAVE_SECONDS", 30.0)
    with relaying() as (relay, _), Stranger(relay) as stranger:
        assert stranger.enter("a") == ""
        with connect("b", relay.address, "a", certificates=None) as link:
            for _ in range(100):
                link._loop.call(partial(link._out.put, receipt))
        came = islice(frames_of(stranger), 100)
        assert [frame[:2] for frame in came] == [(TAKEN, "b")] * 100


def test_the_relay_is_asked_from_a_thread_that_has_a_loop():
    async def ask():
        return knock(Route("127.0.0.1:1"), 3.0)

    assert asyncio.run(ask()).kind == "nothing"
