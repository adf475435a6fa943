"""The relay: parties connect to it, and it passes on what it cannot read.

It says that two processes use one name (`Roll`), and logs who connects and who is refused
(`vertibayes_protocols.transports.entrance`). What it sees,
`vertibayes_protocols.transports.nvflare` says.
"""

from __future__ import annotations

import socket
from pathlib import Path
from threading import Lock

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.cells import (
    ANSWER_SECONDS,
    CHANNEL,
    SERVER,
    TOPIC,
    CellMessage,
    make_cell,
    nvflare,
)
from vertibayes_protocols.transports.entrance import Entrance, Tell, silent
from vertibayes_protocols.transports.mailbox import party_of
from vertibayes_protocols.transports.nvflare import EPOCH_BYTES, Endpoint, host_and_port
from vertibayes_protocols.transports.tls import Certificates
from vertibayes_protocols.wire import VERSION

MOST_PROCESSES, MOST_NAMES = 4, 1000  # that are remembered: processes of a name, names


class Roll:
    """The processes of the parties, as the relay knows them: they ask it for receipts.

    If a process asks, another process of the same name asks, and the first asks again, two use the
    name: CellNet lets one of them in and the other out, in turns.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: dict[Party, list[bytes]] = {}  # the latest of each name, in order

    def answer(self, request: CellMessage) -> CellMessage:
        """Return a receipt, or that two processes use the name: the callback of the relay."""
        nv = nvflare()
        name = request.get_header(nv.MessageHeaderKey.ORIGIN)
        epoch = request.get_header("epoch")
        if type(name) is not str or type(epoch) is not bytes or len(epoch) != EPOCH_BYTES:
            return nv.make_reply(nv.ReturnCode.INVALID_REQUEST)
        if name != party_of(name):  # each process of an analyst has an address of its own
            return self._receipt(nv.ReturnCode.OK)
        with self._lock:  # CellNet asks from many threads
            known = self._processes.pop(name, [])
            doubled = epoch in known[:-1]
            self._processes[name] = [*(e for e in known if e != epoch), epoch][-MOST_PROCESSES:]
            if len(self._processes) > MOST_NAMES:
                del self._processes[next(iter(self._processes))]
        return self._receipt(nv.ReturnCode.INVALID_SESSION if doubled else nv.ReturnCode.OK)

    def _receipt(self, code: str) -> CellMessage:
        """Return a receipt that has the version of the relay."""
        receipt = nvflare().make_reply(code)
        receipt.set_header("version", VERSION)
        return receipt


def start_relay(
    address: str,
    *,
    certificates: Certificates | None,
    revoked: Path | None = None,
    tell: Tell = silent,
) -> Endpoint:
    """Start the relay in this process."""
    host, port = host_and_port(address)
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise TransportError(f"the relay cannot listen on {address}: {error.strerror}") from None
    entrance = Entrance(certificates, revoked, tell)
    cell = make_cell(SERVER, address, entrance)
    cell.register_request_cb(CHANNEL, TOPIC, Roll().answer)
    relay = Endpoint(address, cell)
    try:
        cell.start()
        if not entrance.listening.wait(ANSWER_SECONDS):
            raise TransportError(f"the relay does not listen on {address}")
    except BaseException:
        relay.close()
        raise
    return relay
