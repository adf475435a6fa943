"""Versions: parties of two versions of the protocols say so, before they read anything else.

    a -> b    hello: the header has a's version                         (vertibayes_protocols.seal)
    b -> a    hello, with the text of a's own; abort, whose reason names both versions

Each party compares the version of a hello with its own after the hello has opened and before it
reads its text. A hello that begins a session is answered as above, and the session does not begin;
in a session that has begun, the party aborts it. A party of release 0.1.0 or older reads hello and
abort, and ends with this reason; so do later ones, which find the version in the hello first.

Security: the version is authenticated as the rest of the header: who carries packets can neither
make two parties differ nor hide that they do. A hello that begins a session opens only if it comes
from a pinned peer, and is answered once. Leakage: the versions, to who carries packets.
"""

from __future__ import annotations

from vertibayes_mpc.errors import ProtocolError
from vertibayes_mpc.randomness import Randomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import RELEASE, wire
from vertibayes_protocols.seal import Identity, Seal, read_header
from vertibayes_protocols.transports.control import CONTROL, Abort

UNNAMED = 0  # what releases have in their headers that do not name their version


class VersionsDifferError(ProtocolError):
    """A peer speaks another version of the protocols; the reason names both versions."""

    @property
    def party(self) -> Party:
        """The peer."""
        return self.parties[0]


def compare_versions(identity: Identity, sender: Party, packet: bytes) -> None:
    """Compare the version of a packet that has opened with a party's own."""
    version = read_header(packet, sender).version
    if version != identity.version:
        own = f"version {identity.version} of the protocols (vertibayes {RELEASE})"
        other = "an older one (vertibayes 0.1.0 or older)"
        other = other if version == UNNAMED else f"version {version}"
        raise VersionsDifferError(
            sender,
            f"{identity.party} speaks {own}, {sender} {other}: install the same release at all "
            "parties",
        )


def farewell(
    identity: Identity, error: VersionsDifferError, hello: bytes, randomness: Randomness
) -> tuple[bytes, bytes]:
    """Return the answer to a hello of another version: a hello of its session and an abort."""
    seal = Seal(identity, read_header(hello, error.party).session, randomness)
    text = seal.welcome(error.party, hello)
    abort = CONTROL + wire.encode(Abort.of(error, identity.party))
    return seal.greet(error.party, text), seal.seal(error.party, abort)
