"""Cells of NVFlare's CellNet, an internal interface: how they are made, and how they stop.

A cell takes in plain bytes alone. It refuses, before it is read, whatever CellNet would decode: its
own serialization, bulk messages, exchange of keys. The relay's cell also refuses what comes in
another's name.
"""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from protocols.errors import TransportError
from protocols.transports.mailbox import RELAY

if TYPE_CHECKING:
    from protocols.transports.cellnet import CoreCell, Message

CHANNEL, TOPIC = "vertibayes", "packet"
SERVER = "server"  # CellNet's name of the relay
ANSWER_SECONDS = 5.0  # for a receipt, and more for the bytes of its piece
STOP_SECONDS = 1.5  # for CellNet to stop: it waits for a connection that is being tried


class Certificates(NamedTuple):
    """Files in PEM of one party's mutual TLS.

    Parameters
    ----------
    root : Path
        The certificate of the authority that signed all parties' certificates.
    certificate, key : Path
        The party's own; its common name is the party's, or "relay".
    """

    root: Path
    certificate: Path
    key: Path


def make_cell(name: str, address: str, certificates: Certificates | None) -> CoreCell:
    """Make a cell that takes in plain bytes alone; the relay's, nothing in another's name.

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
            root_url=f"{nv.SCHEME}://{address}",
            secure=certificates is not None,
            credentials=credentials,
            max_timeout=ANSWER_SECONDS,
            auth_identity_map={SERVER: RELAY},
        )
    except Exception as error:
        raise TransportError(f"NVFlare does not start {name}: {error}") from None
    cell.add_incoming_filter("*", "*", _refuse, name == SERVER)
    return cell


def _refuse(message: Message, at_relay: bool) -> Message | None:
    """Return a refusal of what CellNet would decode, or None; CellNet's filter."""
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
    """Return CellNet's names of the files, once they were found to be usable."""
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


def stop_cell(cell: CoreCell) -> None:
    """Stop a cell, in a thread that is waited for; let another of its name start here."""
    nv = nvflare()
    stopping = Thread(target=cell.stop, daemon=True)
    stopping.start()
    stopping.join(STOP_SECONDS)
    _stopping.append(stopping)
    nv.CoreCell.ALL_CELLS.pop(cell.get_fqcn(), None)
    nv.StatsPoolManager.pools.clear()


def keeps_process() -> bool:
    """Whether CellNet has not stopped in time: its threads would keep this process from ending."""
    return any(thread.is_alive() for thread in _stopping)


@cache
def nvflare() -> ModuleType:
    """Import NVFlare when it is needed, and return what is used of it.

    Raises
    ------
    TransportError
        If it is not installed.
    """
    try:
        from protocols.transports import cellnet
    except ImportError as error:
        raise TransportError(
            f"NVFlare is not installed: pip install 'vertibayes[nvflare]' ({error})"
        ) from None
    return cellnet
