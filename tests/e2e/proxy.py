"""A proxy between a party and the relay: it loses connections, or writes down what travels."""

from __future__ import annotations

import selectors
import socket
import threading


class Proxy:
    """Carries bytes to the relay; can be cut, and can swallow what it is sent without a word.

    `record`, if it is a list, gets what each end of each connection sent: a bytearray each.
    """

    def __init__(self, address, record=None):
        host, port = address.split(":")
        self.target, self.silent = (host, int(port)), set()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.selector, self.other, self.ends = selectors.DefaultSelector(), {}, False
        self.selector.register(self.server, selectors.EVENT_READ)
        self.record, self.heard = record, {}
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ends:
            for key, _ in self.selector.select(0.05):
                if key.fileobj is self.server:
                    self._connect(self.server.accept()[0])
                elif key.fileobj in self.other:
                    self._carry(key.fileobj)

    def _connect(self, near):
        try:
            far = socket.create_connection(self.target)
        except OSError:  # the relay is away
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            self.other[one] = other
            if self.record is not None:
                self.heard[one] = bytearray()
                self.record.append(self.heard[one])
            self.selector.register(one, selectors.EVENT_READ)

    def _carry(self, source):
        try:
            data = source.recv(1 << 20)
            if self.record is not None:
                self.heard[source] += data
            if data and source not in self.silent:
                self.other[source].sendall(data)
        except OSError:
            data = b""
        if not data:
            self._close(source)

    def _close(self, one):
        for end in (one, self.other.pop(one)):
            self.other.pop(end, None)
            self.selector.unregister(end)
            end.close()

    def swallow(self):
        """Lose all that travels on the connections of now; later ones work."""
        self.silent = set(self.other)

    def cut(self):
        for one in list(self.other):
            if one in self.other:
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.ends = True
        self.thread.join()
        for one in (*self.other, self.server):
            one.close()
        self.selector.close()
