"""What this package uses of NVFlare's CellNet, an internal interface: cells and connections.

A cell takes in plain bytes alone. It refuses, before it is read, what CellNet would decode: its own
serialization, bulk messages, exchange of keys. The relay also refuses what is in another's name.

CellNet's connections are replaced here. Its TLS takes the certificate of any authority that the
system trusts for the relay's. Its relay shakes hands where it accepts, so that one stranger who
sends nothing excludes all others; its parties wait without limit for a relay that sends nothing.
Here TLS is that of `vertibayes_protocols.transports.tls`, and each connection has its own thread
and a time.
"""

from __future__ import annotations

import socket
import ssl
import sys
from functools import cache, partial
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any, TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError, words
from vertibayes_protocols.transports.entrance import HANDSHAKE_SECONDS, MOST_SHOWN, Entrance
from vertibayes_protocols.transports.mailbox import RELAY, party_of
from vertibayes_protocols.transports.tls import Certificates, party_context, reason_of, secure_party

CHANNEL, TOPIC = "vertibayes", "packet"
SERVER = "server"  # CellNet's name of the relay
SCHEME = "vertibayes"  # of addresses: CellNet finds by it how to connect
END = "vertibayes_end"  # of CellNet's parameters: what makes the connections of a cell
ANSWER_SECONDS = 5.0  # for a receipt; a piece has more, for its bytes
STOP_SECONDS = 1.5  # for CellNet to stop: it waits for a connection that is being tried
Cell: TypeAlias = Any  # NVFlare declares no types that can be checked without it
CellMessage: TypeAlias = Any


class Outgoing:
    """A party's connections to the relay, one after the other."""

    def __init__(self, certificates: Certificates | None) -> None:
        self.certificates, self.failure = certificates, ""
        if certificates is not None:
            party_context(certificates)

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the relay; raise an OSError or a TransportError, with the failure."""
        try:
            connected = socket.create_connection((host, port), HANDSHAKE_SECONDS)
            if self.certificates is not None:  # read again: they may have been renewed
                connected = secure_party(connected, self.certificates)
        except (OSError, TransportError) as error:
            self.failure = words(error)
            raise
        connected.settimeout(None)
        return connected

    def ended(self, error: Exception | None, heard: bool) -> None:
        """Note how a connection ended; raise a TransportError if the relay refused the certificate.

        In TLS 1.3 the handshake of a party ends before the relay has checked its certificate.
        """
        self.failure = ""
        if self.certificates is not None and not heard:
            why = reason_of(error) if isinstance(error, ssl.SSLError) else "its log has the reason"
            self.failure = f"it does not take the certificate of this party ({why})"
            raise TransportError(self.failure)


def make_cell(name: str, address: str, end: Outgoing | Entrance) -> Cell:
    """Make a cell that refuses all but plain bytes, and at the relay also another's name.

    CellNet gets no certificate and no key: its connections are those of `end`.
    """
    nv = nvflare()
    try:
        cell = nv.CoreCell(
            fqcn=name,
            root_url=f"{SCHEME}://{address}",
            secure=end.certificates is not None,
            credentials={END: end},
            max_timeout=ANSWER_SECONDS,
        )
    except Exception as error:
        raise TransportError(f"NVFlare does not start {name}: {error}") from None
    cell.identity_resolver.require_match = partial(_match, end)
    cell.add_incoming_filter("*", "*", _refuse, end)
    return cell


def _match(end: Outgoing | Entrance, address: str, certified: Party, _: str) -> None:
    """Refuse an address that is not of the certified party; CellNet closes the connection."""
    owner = RELAY if address == SERVER else party_of(address)
    if certified != owner:
        if isinstance(end, Entrance):
            end.name_refused(certified, address)
        raise ValueError(f"{certified} is connected under the name of another party")


def _refuse(message: CellMessage, end: Outgoing | Entrance) -> CellMessage | None:
    """Return a refusal of what CellNet would decode, or None: the filter of CellNet."""
    nv = nvflare()
    keys = nv.MessageHeaderKey
    goodbye = message.get_header(keys.CHANNEL) == nv.CellChannel.CELLNET
    goodbye = goodbye and message.get_header(keys.TOPIC) == nv.CellChannelTopic.Bye
    ours = message.get_header(keys.CHANNEL) == CHANNEL or goodbye
    returned = message.get_header(keys.MSG_TYPE) != nv.MessageType.REQ
    plain = message.get_header(keys.PAYLOAD_ENCODING) in (None, nv.Encoding.BYTES, nv.Encoding.NONE)
    plain = plain and not message.get_header(keys.SECURE)
    endpoint = message.get_prop(nv.MessagePropKey.ENDPOINT)
    if isinstance(end, Entrance):
        origin = message.get_header(keys.ORIGIN)
        if endpoint.name != origin:
            end.packet_refused(
                party_of(endpoint.name), f"in the name of {str(origin)[:MOST_SHOWN]}"
            )
            return nv.make_reply(nv.ReturnCode.AUTHENTICATION_ERROR)
    if plain and (ours or returned):
        return None
    if isinstance(end, Entrance):
        end.packet_refused(party_of(endpoint.name), "not plain bytes of a party")
    return nv.make_reply(nv.ReturnCode.AUTHENTICATION_ERROR)


# ---- the end -------------------------------------------------------------------------------------

_stopping: list[Thread] = []  # of all cells of this process


def stop_cell(cell: Cell) -> None:
    """Stop a cell in a thread, and wait some time for it; another of its name may start."""
    nv = nvflare()
    stopping = Thread(target=_stop, args=(cell,), daemon=True)
    stopping.start()
    stopping.join(STOP_SECONDS)
    _stopping.append(stopping)
    nv.CoreCell.ALL_CELLS.pop(cell.get_fqcn(), None)
    nv.StatsPoolManager.pools.clear()


def _stop(cell: Cell) -> None:
    """Stop a cell, also one whose start a signal interrupted: CellNet passes over the latter."""
    cell.stop()
    cell.communicator.stop()


def keeps_process() -> bool:
    """Whether CellNet has not stopped in time, so that its threads keep this process alive."""
    return any(thread.is_alive() for thread in _stopping)


# ---- CellNet -------------------------------------------------------------------------------------


@cache
def nvflare() -> SimpleNamespace:
    """Import NVFlare, when it is needed, and return what this package uses of it."""
    try:
        from nvflare.fuel.f3 import communicator, message, stats_pool
        from nvflare.fuel.f3.cellnet import core_cell, defs, utils
        from nvflare.fuel.f3.drivers import driver_params, socket_conn, tcp_driver
    except ImportError as error:
        raise TransportError(
            f"NVFlare is not installed: pip install 'vertibayes[nvflare]' ({error})"
        ) from None
    driver = _driver(tcp_driver, socket_conn, driver_params.DriverParams)
    communicator.driver_mgr.register(driver)
    used = {
        core_cell: "CoreCell TargetMessage",
        defs: "CellChannel CellChannelTopic Encoding MessageHeaderKey MessagePropKey MessageType "
        "ReturnCode",
        message: "Message",
        stats_pool: "StatsPoolManager",
        utils: "make_reply",
    }
    return SimpleNamespace(
        **{name: getattr(module, name) for module, names in used.items() for name in names.split()}
    )


def _driver(tcp_driver: Any, socket_conn: Any, names: Any) -> Any:
    """Return the class of connections that `Outgoing` and `Entrance` make."""
    server, heard = _server(socket_conn, names), _heard(socket_conn)

    class Driver(tcp_driver.TcpDriver):  # type: ignore[misc]
        @staticmethod
        def supported_transports() -> list[str]:
            return [SCHEME]

        def listen(self, connector: Any) -> None:
            self.connector = connector
            with server(self, connector) as self.server:
                self.server.entrance.listening.set()
                self.server.serve_forever()

        def connect(self, connector: Any) -> None:
            self.connector = connector
            outgoing: Outgoing = connector.params[END]
            with outgoing.connect(*_where(connector.params, names)) as connected:
                connection = heard(connected, connector, outgoing.certificates is not None)
                self.carry(connection)
            if not connection.closing:
                outgoing.ended(connection.error, connection.heard)

        def carry(self, connection: Any) -> None:
            self.add_connection(connection)
            connection.read_loop()
            self.close_connection(connection)

    return Driver


def _server(socket_conn: Any, names: Any) -> Any:
    """Return the class of the relay's port: a thread for each connection."""

    class Server(ThreadingTCPServer):
        allow_reuse_address, daemon_threads, request_queue_size = True, True, 128

        def __init__(self, driver: Any, connector: Any) -> None:
            self.driver, self.connector = driver, connector
            self.entrance: Entrance = connector.params[END]
            super().__init__(_where(connector.params, names), BaseRequestHandler)

        def finish_request(self, request: Any, client_address: Any) -> None:
            entered = self.entrance.enter(request, client_address)
            if entered is None:
                return
            secure, connection = entered.shown is not None, entered.connection
            try:
                self.driver.carry(socket_conn.SocketConnection(connection, self.connector, secure))
            finally:
                self.entrance.leave(entered)

        def service_actions(self) -> None:
            self.entrance.send_away()

        def handle_error(self, *given: Any) -> None:
            host, port = given[1]
            self.entrance.refused(f"{host}:{port}", f"error: {sys.exc_info()[0]}")

    return Server


def _heard(socket_conn: Any) -> Any:
    """Return the class of a party's connection: it knows what it has heard from the relay."""

    class Heard(socket_conn.SocketConnection):  # type: ignore[misc]
        heard, error = False, None

        def process_frame(self, frame: Any) -> None:
            self.heard = True
            super().process_frame(frame)

        def read_into(self, *given: Any) -> None:
            try:
                super().read_into(*given)
            except OSError as error:
                self.error = error
                raise

    return Heard


def _where(params: Any, names: Any) -> tuple[str, int]:
    return params[names.HOST.value], int(params[names.PORT.value])
