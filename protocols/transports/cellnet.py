"""What this package uses of NVFlare, and connections whose handshakes end in time.

CellNet's relay shakes hands where it accepts, so that one stranger who says nothing would keep all
others out; its parties wait without an end for a relay that says nothing. Both are replaced: each
connection has its own thread, and a time. To import this module is to import NVFlare.
"""

from __future__ import annotations

from socket import create_connection
from typing import Any

from nvflare.fuel.f3.cellnet.core_cell import CoreCell, TargetMessage
from nvflare.fuel.f3.cellnet.defs import (
    CellChannel,
    CellChannelTopic,
    Encoding,
    MessageHeaderKey,
    MessagePropKey,
    MessageType,
    ReturnCode,
)
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.communicator import driver_mgr
from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.fuel.f3.drivers.net_utils import get_ssl_context
from nvflare.fuel.f3.drivers.socket_conn import SocketConnection
from nvflare.fuel.f3.drivers.tcp_driver import TcpDriver, TcpStreamServer
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.stats_pool import StatsPoolManager

__all__ = ["CellChannel", "CellChannelTopic", "CoreCell", "DriverParams", "Encoding", "Message"]
__all__ += ["MessageHeaderKey", "MessagePropKey", "MessageType", "ReturnCode", "StatsPoolManager"]
__all__ += ["TargetMessage", "make_reply"]

SCHEME = "vertibayes"  # of addresses: CellNet finds by it how to connect
HANDSHAKE_SECONDS = 10.0


class _Server(TcpStreamServer):  # type: ignore[misc]
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


class _Driver(TcpDriver):  # type: ignore[misc]
    @staticmethod
    def supported_transports() -> list[str]:
        return [SCHEME]

    def listen(self, connector: Any) -> None:
        self.connector = connector
        self.server = _Server(self, connector)
        self.server.serve_forever()

    def connect(self, connector: Any) -> None:
        self.connector = connector
        params = connector.params
        where = params[DriverParams.HOST.value], int(params[DriverParams.PORT.value])
        context = get_ssl_context(params, ssl_server=False)
        plain = create_connection(where, HANDSHAKE_SECONDS)
        with context.wrap_socket(plain) if context else plain as connected:
            connected.settimeout(None)
            connection = SocketConnection(connected, connector, bool(context))
            self.add_connection(connection)
            connection.read_loop()
            self.close_connection(connection)


driver_mgr.register(_Driver)
