"""An event loop in a thread of its own: connections live there, beside a party's programs."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
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
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Start a coroutine, and do not wait for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, and do not wait for it."""
        self._loop.call_soon_threadsafe(function)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine, and return its result; it is cancelled if this thread is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while not wait([future], WAKE_SECONDS).done:
                pass
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel all tasks and stop."""
        if self._loop.is_closed():
            return
        wait([asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop)], END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


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
