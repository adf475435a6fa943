"""An event loop in a thread of its own: connections live there, beside a party's programs."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as NotYetError
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

R = TypeVar("R")

WAKE_SECONDS = 0.5  # a signal may reach another thread: Python acts when the main one next runs
END_SECONDS = 2.0  # for all tasks to end
HANDSHAKE_SECONDS = 10.0  # for TLS, and as many for what follows
UNSENT = 1 << 17  # bytes that the system keeps unsent: others wait where receipts overtake them
SILENT = logging.Logger("websockets", logging.CRITICAL + 1)  # lines of our own say what matters


class Loop:
    """An event loop that runs until it is closed."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine, and return its result; it is cancelled if this thread is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while True:
                with suppress(NotYetError):
                    return future.result(WAKE_SECONDS)
                if future.done():  # the work itself has raised a TimeoutError
                    return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel all tasks and stop."""
        if self.loop.is_closed():
            return
        with suppress(NotYetError):
            asyncio.run_coroutine_threadsafe(_cancel_all(), self.loop).result(END_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(END_SECONDS)
        if not self._thread.is_alive():
            self.loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0.01)  # for connections that they have closed


def keep_little_unsent(connected: socket.socket) -> None:
    """Let the system take in no more of a connection than it can send soon."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # Windows has none
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
