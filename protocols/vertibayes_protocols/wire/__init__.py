"""Messages as bytes and back: fixed-width headers, array buffers, nothing that can be executed.

A reader compares each size with what remains of the packet, and with what its receiver expects,
before it allocates anything. It builds no object that the object's own constructor refuses.
"""

from vertibayes_protocols.wire.declared import declared_of, difference
from vertibayes_protocols.wire.decoding import decode, kinds
from vertibayes_protocols.wire.encoding import ALIGN, DTYPES, encode
from vertibayes_protocols.wire.envelope import (
    ENVELOPE,
    MOST_CHAIN,
    Envelope,
    check_header,
    header,
    name_digest,
)
from vertibayes_protocols.wire.types import FREE, LOCAL, Most

VERSION = 12  # raised whenever a message changes; every packet has it (`vertibayes_protocols.seal`)

__all__ = [
    "ALIGN",
    "DTYPES",
    "ENVELOPE",
    "FREE",
    "LOCAL",
    "MOST_CHAIN",
    "VERSION",
    "Envelope",
    "Most",
    "check_header",
    "declared_of",
    "decode",
    "difference",
    "encode",
    "header",
    "kinds",
    "name_digest",
]
