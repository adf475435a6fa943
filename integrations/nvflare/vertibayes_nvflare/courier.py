"""Carries the packets of a party over FLARE's auxiliary messages, between the clients of one job.

    party's process --pipe--> client's job --aux--> server --aux--> client's job --pipe--> peer
                    <-receipt-             <------- reply -------

A party has the name of its FLARE client. A packet is sent again until its receipt comes, and the
receiver takes it once, by its number.

Security: packets are sealed in the parties' processes. FLARE's server and all clients of the job
see who sends to whom, when and how much, and can lose and delay packets. FLARE's certificates
protect the connections to the server; the confidentiality of a packet does not rest on them. A
sender's name is FLARE's claim, and the receiver believes what its seal opens.

Cost: one request with its reply per packet, each of which passes the server.
"""

from __future__ import annotations

from itertools import count
from multiprocessing.connection import Connection
from secrets import token_bytes
from threading import Lock
from time import monotonic, sleep
from typing import Any

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply

from vertibayes_protocols.transports.carried import End, TakenNumbers

TOPIC = "vertibayes.packet"
EPOCH, NUMBER, PACKET = "epoch", "number", "packet"
EPOCH_BYTES = 16
ANSWER_SECONDS = 5.0  # for a receipt, and a second more for each
BYTES_A_SECOND = 250_000
AGAIN_SECONDS = 0.2


class Courier:
    """The packets of one party in one job, which come and go as soon as its process is started.

    Parameters
    ----------
    engine : ClientEngineExecutorSpec
        Of the client's job.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._end: End | None = None
        self._epoch, self._numbers = token_bytes(EPOCH_BYTES), count()
        self._lock = Lock()
        self._taken = TakenNumbers()
        engine.register_aux_message_handler(TOPIC, self._take)

    def carry(self, connection: Connection) -> End:
        """Carry the packets of a party's process, whose connection this is the other end of."""
        self._end = End(connection, self._send)
        return self._end

    def _send(self, peer: str, packet: bytes, patience: float | None) -> bool:
        """Send a packet until its receipt comes; return False if none comes."""
        if patience is None:  # once, without a receipt: a later one may overtake it
            self._ask(peer, Shareable({PACKET: packet}), 0.0)
            return True
        request = {EPOCH: self._epoch, NUMBER: next(self._numbers), PACKET: packet}
        seconds, missing = ANSWER_SECONDS + len(packet) / BYTES_A_SECOND, None
        while not self._ask(peer, Shareable(request), seconds):
            missing = missing or monotonic()
            if self._end is None or self._end.is_closed or monotonic() - missing >= patience:
                return False
            sleep(AGAIN_SECONDS)
        return True

    def _ask(self, peer: str, request: Shareable, seconds: float) -> bool:
        with self._engine.new_context() as fl_ctx:
            replies = self._engine.send_aux_request(
                [peer], TOPIC, request, seconds, fl_ctx, optional=True
            )
        reply = (replies or {}).get(peer)
        return reply is not None and reply.get_return_code() == ReturnCode.OK

    def _take(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        """Hand a packet to the party's process; the reply is the receipt."""
        del topic
        sender = fl_ctx.get_peer_context().get_identity_name()
        epoch, number, packet = request.get(EPOCH), request.get(NUMBER), request.get(PACKET)
        if type(sender) is not str or type(packet) is not bytes:
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        if epoch is None:
            received = self._hand(sender, packet)
        elif type(epoch) is bytes and len(epoch) == EPOCH_BYTES and type(number) is int:
            received = self._take_once(sender, epoch, number, packet)
        else:
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        return make_reply(ReturnCode.OK if received else ReturnCode.SERVICE_UNAVAILABLE)

    def _take_once(self, sender: str, epoch: bytes, number: int, packet: bytes) -> bool:
        with self._lock:
            if self._taken.has(sender, epoch, number):
                return True  # its receipt was lost
            if not self._hand(sender, packet):
                return False
            self._taken.add(sender, epoch, number)
            return True

    def _hand(self, sender: str, packet: bytes) -> bool:
        return self._end is not None and self._end.pass_on(sender, packet, None).result()
