"""What this package uses of NVFlare's CellNet, an internal interface: cells and connections.

A cell takes in plain bytes alone. It refuses, before it is read, what CellNet would decode: its own
serialization, bulk messages, exchange of keys. The relay also refuses what is in another's name.

Two things of CellNet's connections are replaced here. CellNet's relay shakes hands where it
accepts, so that one stranger who says nothing would keep all others out; its parties wait without
an end for a relay that says nothing. Here each connection has its own thread, and a time.
"""

from __future__ import annotations

import socket
import ssl
from functools import cache
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from protocols.errors import TransportError
from protocols.transports.mailbox import RELAY, party_of

CHANNEL, TOPIC = "vertibayes", "packet"
SERVER = "server"  # CellNet's name of the relay
SCHEME = "vertibayes"  # of addresses: CellNet finds by it how to connect
ANSWER_SECONDS = 5.0  # for a receipt; a piece has more, for its bytes
HANDSHAKE_SECONDS = 10.0
STOP_SECONDS = 1.5  # for CellNet to stop: it waits for a connection that is being tried
Cell: TypeAlias = Any  # NVFlare declares no types that can be checked without it
CellMessage: TypeAlias = Any


class Certificates(NamedTuple):
    """The files in PEM of one party for mutual TLS.

    Parameters
    ----------
    root : Path
        The certificate of the authority that signed all parties' certificates.
    certificate, key : Path
        The party's certificate and its key; the common name is the party's name, or "relay".
    """

    root: Path
    certificate: Path
    key: Path


def make_cell(name: str, address: str, certificates: Certificates | None) -> Cell:
    """Make a cell that refuses all but plain bytes, and at the relay also another's name.

    Raises
    ------
    TransportError
        If a file cannot be used, or NVFlare is not installed.
    """
    nv = nvflare()
    credentials = {} if certificates is None else _credentials(certificates)
    try:
        cell = nv.CoreCell(
            fqcn=name,
            root_url=f"{SCHEME}://{address}",
            secure=certificates is not None,
            credentials=credentials,
            max_timeout=ANSWER_SECONDS,
            auth_identity_map={SERVER: RELAY},
        )
    except Exception as error:
        raise TransportError(f"NVFlare does not start {name}: {error}") from None
    resolve = cell.identity_resolver.resolve  # the name that the certificate of a cell must have
    cell.identity_resolver.resolve = lambda fqcn: party_of(resolve(fqcn) or "")
    cell.add_incoming_filter("*", "*", _refuse, name == SERVER)
    return cell


def _refuse(message: CellMessage, at_relay: bool) -> CellMessage | None:
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
    own = not at_relay or endpoint.name == message.get_header(keys.ORIGIN)
    if plain and own and (ours or returned):
        return None
    return nv.make_reply(nv.ReturnCode.AUTHENTICATION_ERROR)


def _credentials(certificates: Certificates) -> dict[str, str]:
    """Check that the files can be used, and return them under CellNet's names."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(certificates.root)
        context.load_cert_chain(certificates.certificate, certificates.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(path) for path in certificates)
        reason = error.strerror or type(error).__name__
        raise TransportError(f"the certificates {files} cannot be used: {reason}") from None
    names = nvflare().DriverParams
    certificate, key = str(certificates.certificate), str(certificates.key)
    return {
        names.CA_CERT.value: str(certificates.root),
        names.CLIENT_CERT.value: certificate,
        names.CLIENT_KEY.value: key,
        names.SERVER_CERT.value: certificate,
        names.SERVER_KEY.value: key,
    }


# ---- the end -------------------------------------------------------------------------------------

_stopping: list[Thread] = []  # of all cells of this process


def stop_cell(cell: Cell) -> None:
    """Stop a cell in a thread, and wait some time for it; another of its name may start."""
    nv = nvflare()
    stopping = Thread(target=cell.stop, daemon=True)
    stopping.start()
    stopping.join(STOP_SECONDS)
    _stopping.append(stopping)
    nv.CoreCell.ALL_CELLS.pop(cell.get_fqcn(), None)
    nv.StatsPoolManager.pools.clear()


def keeps_process() -> bool:
    """Whether CellNet has not stopped in time, so that its threads keep this process alive."""
    return any(thread.is_alive() for thread in _stopping)


# ---- CellNet -------------------------------------------------------------------------------------


@cache
def nvflare() -> SimpleNamespace:
    """Import NVFlare, when it is needed, and return what this package uses of it.

    Raises
    ------
    TransportError
        If it is not installed.
    """
    try:
        from nvflare.fuel.f3 import communicator
        from nvflare.fuel.f3.cellnet import core_cell, defs
        from nvflare.fuel.f3.cellnet.utils import make_reply
        from nvflare.fuel.f3.drivers import net_utils, socket_conn, tcp_driver
        from nvflare.fuel.f3.drivers.driver_params import DriverParams
        from nvflare.fuel.f3.message import Message
        from nvflare.fuel.f3.stats_pool import StatsPoolManager
    except ImportError as error:
        raise TransportError(
            f"NVFlare is not installed: pip install 'vertibayes[nvflare]' ({error})"
        ) from None
    communicator.driver_mgr.register(_driver(tcp_driver, net_utils, socket_conn, DriverParams))
    return SimpleNamespace(
        CoreCell=core_cell.CoreCell,
        TargetMessage=core_cell.TargetMessage,
        Message=Message,
        make_reply=make_reply,
        MessageHeaderKey=defs.MessageHeaderKey,
        MessagePropKey=defs.MessagePropKey,
        MessageType=defs.MessageType,
        ReturnCode=defs.ReturnCode,
        Encoding=defs.Encoding,
        CellChannel=defs.CellChannel,
        CellChannelTopic=defs.CellChannelTopic,
        DriverParams=DriverParams,
        StatsPoolManager=StatsPoolManager,
    )


def _driver(tcp_driver: Any, net_utils: Any, socket_conn: Any, names: Any) -> Any:
    """Return the class of connections whose handshakes end in time."""

    class Server(tcp_driver.TcpStreamServer):  # type: ignore[misc]
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            if self.ssl_context:
                self.socket.do_handshake_on_connect = False

        def finish_request(self, request: Any, client_address: Any) -> None:
            if self.ssl_context:
                request.settimeout(HANDSHAKE_SECONDS)
                try:
                    request.do_handshake()
                except OSError:
                    return  # a stranger
                request.settimeout(None)
            super().finish_request(request, client_address)

    class Driver(tcp_driver.TcpDriver):  # type: ignore[misc]
        @staticmethod
        def supported_transports() -> list[str]:
            return [SCHEME]

        def listen(self, connector: Any) -> None:
            self.connector = connector
            self.server = Server(self, connector)
            self.server.serve_forever()

        def connect(self, connector: Any) -> None:
            self.connector = connector
            params = connector.params
            where = params[names.HOST.value], int(params[names.PORT.value])
            context = net_utils.get_ssl_context(params, ssl_server=False)
            plain = socket.create_connection(where, HANDSHAKE_SECONDS)
            with context.wrap_socket(plain) if context else plain as connected:
                connected.settimeout(None)
                connection = socket_conn.SocketConnection(connected, connector, bool(context))
                self.add_connection(connection)
                connection.read_loop()
                self.close_connection(connection)

    return Driver
