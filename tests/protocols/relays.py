"""A relay in this process, its log, and strangers who speak to it as they like."""

import socket
from contextlib import contextmanager, suppress
from threading import Thread
from time import monotonic, sleep

from websockets.sync.client import connect as websocket

from tests.e2e.processes import free_address
from vertibayes_protocols.deployment.log import line
from vertibayes_protocols.transports.frames import BEAT, STREAM_BYTES, read_frame
from vertibayes_protocols.transports.proof import (
    ENTER,
    Entry,
    entry,
    hello,
    new_nonce,
    read_answer,
    read_challenge,
    read_credentials,
)
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.tls import party_context


@contextmanager
def listening(act):
    """Do to each connection what `act` does; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    plain, _ = server.accept()
                except OSError:
                    return
                with plain:
                    with suppress(OSError):
                        act(plain)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


class Log(list):
    """The events that were logged; each must fit into a line."""

    def __call__(self, event, **facts):
        assert line("relay", event, **facts).startswith(f"relay {event} ")
        self.append((event, facts))

    def of(self, event):
        return [facts for kind, facts in self if kind == event]


def soon(question, seconds=20.0):
    """Wait until the answer to a question is true, and return it."""
    end = monotonic() + seconds
    while not (answer := question()) and monotonic() < end:
        sleep(0.01)
    return answer


@contextmanager
def relaying(certificates=None, **how):
    """Yield a relay that listens, and its log."""
    log = Log()
    with start_relay(free_address(), certificates=certificates, tell=log, **how) as relay:
        yield relay, log


class Stranger:
    """A client of the WebSocket that sends what it likes, without the link of a party."""

    def __init__(self, relay, certificates=None, **how):
        secure = certificates is not None and how.pop("tls", True)
        context = party_context(certificates.root) if secure else None
        url = f"ws{'s' if secure else ''}://{relay.address}/"
        self.credentials = certificates and read_credentials(certificates)
        self._opened = websocket(url, ssl=context, proxy=None, close_timeout=0.2, **how)
        self.socket = self._opened.__enter__()

    def enter(self, address, purpose=ENTER, stream=b"s" * STREAM_BYTES):
        """Prove who it is; return why it is refused, and keep what it has sent."""
        party_nonce = new_nonce()
        self.socket.send(hello(party_nonce))
        relay_nonce = read_challenge(self.socket.recv(5.0), party_nonce, self.credentials)
        proving = party_nonce, relay_nonce, self.credentials
        self.sent = entry(Entry(address, stream, purpose), *proving)
        self.socket.send(self.sent)
        return read_answer(self.socket.recv(10.0), *proving)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._opened.__exit__(*error)


def frames_of(stranger):
    """Yield the frames that a stranger is sent, without signs that the relay is alive."""
    while True:
        frame = read_frame(stranger.socket.recv(10.0))
        if frame.kind != BEAT:
            yield frame
