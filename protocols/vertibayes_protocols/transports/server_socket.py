"""The relay's end of one WebSocket, over streams: the library parses, this reads and writes.

The library's own server says nothing of TLS that fails, and the relay's log must. Here the relay
accepts each connection, shakes hands, and keeps its own times.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TypeAlias

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN, Event
from websockets.server import ServerProtocol

from vertibayes_protocols.transports.frames import MOST_BYTES
from vertibayes_protocols.transports.loop import HANDSHAKE_SECONDS, SILENT, keep_little_unsent
from vertibayes_protocols.transports.tls import HandshakeError, reason_of

CHUNK = 1 << 16
HandOut: TypeAlias = Callable[[str], bytes | None]  # the content at a path of HTTP
BROKEN = "not a WebSocket of vertibayes"


class ServerSocket:
    """One WebSocket that a party has opened."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._protocol = ServerProtocol(max_size=MOST_BYTES, logger=SILENT)
        self._events: deque[Event] = deque()

    async def accept(self, hand_out: HandOut = lambda _: None) -> bool:
        """Answer the request of HTTP that opens the WebSocket.

        A request for a path that `hand_out` has content for is answered with this content, and
        opens none: the result is then False.
        """
        request = await self._event()
        assert isinstance(request, Request)  # the first event
        if (content := hand_out(request.path)) is not None:
            found = self._protocol.reject(HTTPStatus.OK, content.decode())
            self._protocol.send_response(found)
            await self._flush()
            return False
        self._protocol.send_response(self._protocol.accept(request))
        await self._flush()
        if self._protocol.handshake_exc is not None:
            raise HandshakeError(BROKEN)
        return True

    async def receive(self) -> bytes:
        """Return the next message; raise an OSError when the connection has ended."""
        message = bytearray()
        while True:
            frame = await self._event()
            assert isinstance(frame, Frame)  # all events but the first
            if frame.opcode in (Opcode.BINARY, Opcode.CONT):
                message += frame.data
                if frame.fin:
                    return bytes(message)
            elif frame.opcode in (Opcode.TEXT, Opcode.CLOSE):
                raise ConnectionResetError

    async def _event(self) -> Event:
        while not self._events:
            data = await self._reader.read(CHUNK)
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            self._events.extend(self._protocol.events_received())
            await self._flush()
            if not self._events and self._protocol.handshake_exc is not None:
                raise HandshakeError(BROKEN if data else "closed")
            if not self._events and (not data or self._protocol.state > OPEN):
                raise ConnectionResetError
        return self._events.popleft()

    async def send(self, message: bytes) -> None:
        """Send a message, and wait until there is room for the next."""
        if self._protocol.state is not OPEN:
            raise ConnectionResetError
        self._protocol.send_binary(message)
        await self._flush()

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        """Say goodbye if the other end still listens, and close."""
        with suppress(OSError, RuntimeError):
            if self._protocol.state is OPEN:
                self._protocol.send_close()
                self._writer.writelines(filter(None, self._protocol.data_to_send()))
        self._writer.close()

    def abort(self) -> None:
        """Close at once, whatever is still unsent."""
        self._writer.transport.abort()


async def shake_hands(plain: socket.socket, context: ssl.SSLContext | None) -> ServerSocket:
    """Return the WebSocket of a connection that was accepted, after the handshake of TLS, if any.

    Raises
    ------
    HandshakeError
        If the handshake fails or takes too long.
    """
    loop = asyncio.get_running_loop()
    keep_little_unsent(plain)
    reader = asyncio.StreamReader(CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    times = {} if context is None else {"ssl_handshake_timeout": HANDSHAKE_SECONDS,
                                        "ssl_shutdown_timeout": 1.0}  # fmt: skip
    try:
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, plain, ssl=context, **times
        )
    except OSError as error:
        reason = "timeout" if "is taking longer" in str(error) else reason_of(error)
        raise HandshakeError(reason) from None
    return ServerSocket(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
