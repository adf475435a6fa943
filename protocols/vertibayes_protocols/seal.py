"""Seals: only its receiver reads what a party sends, and nobody in between.

    hello     sender -> receiver    the sender's ephemeral key, sealed under the static keys of both
    data      sender -> receiver    any text, sealed under the session key of both
    unknown   sender -> receiver    "I know of no such session", or "I cannot open your hello",
                                    sealed under the static keys

    packet      = header | ChaCha20-Poly1305(envelope key, nonce 0, text, header)
    header      = magic, kind, version, session, sender, receiver, counter, salt
    envelope key = HKDF(static or session key, salt, header)
    session key = HKDF(ee | es | se | ss), over names, static and ephemeral keys and the session

Each party has one ephemeral X25519 key pair a session. Two parties that have exchanged hellos share
the four secrets of `vertibayes_protocols.key_agreement`. The messages are those of Noise's pattern
KK, with one difference: no party waits for the other's hello before it sends its own.

Security: a session key depends, on each side, on the static *or* the ephemeral private key:
- A stranger or a relay cannot act as a party: static keys are pinned and never sent.
- Whoever steals static keys later reads nothing that was sealed before (ee). Whoever steals the
  keys of one party cannot act towards it as another party (es, se): of his packets it opens a
  hello, by which he agrees on no key, and an "unknown", by which it takes the other party for one
  that was started again.
- A hello is bound to its session. A party with a fresh ephemeral key has a fresh session key,
  whatever it receives: no two sessions share one. No two directions or places in a session share an
  envelope key, which the salt randomizes as well, so the nonce can be constant.
Names, session, kind, version and counter are authenticated: a packet that is changed, cut short, or
moved to another receiver, session or place does not open. The counter of a packet that opens must
be the next: a lower one is a replay, a higher one means that packets before it are missing.

Versions: a header has the version of the protocols that its sender speaks. Releases up to 0.1.0
write zeros in its place; they authenticate these bytes and do not read them. Header, key schedule
and hello stay as they are: parties of different versions open each other's hellos, and say why
they end the session (`vertibayes_protocols.transports.control`).

Masks and seals share static keys and no streams: `KeyPair.agree` has the purpose in HKDF's info.

Leakage: whoever carries a packet sees its header and length. Hellos have no forward secrecy:
whoever steals a static key reads their text, the session's parties. Cost: 112 bytes per packet.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from vertibayes_mpc.errors import (
    MalformedMessageError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, Randomness, SystemRandomness, label
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.key_agreement import Own, Peer, agree_session_key
from vertibayes_protocols.wire import VERSION, name_digest

MAGIC = b"VBS1"
HELLO, DATA, UNKNOWN = 1, 2, 3
HEADER = struct.Struct("<4sBHx16s16s16sQ32s")
SALT_BYTES = 32
SESSION_BYTES = 16
TAG_BYTES = 16
OVERHEAD = HEADER.size + TAG_BYTES
_NONCE = bytes(12)


class Header(NamedTuple):
    """The header of a packet: a claim until the packet has been opened."""

    kind: int
    version: int
    session: bytes
    sender: bytes
    receiver: bytes
    counter: int
    salt: bytes


def read_header(packet: bytes, sender: Party) -> Header:
    """Read a packet's header."""
    if len(packet) < OVERHEAD:
        raise MalformedMessageError(sender, f"a packet of {len(packet)} bytes, cut short")
    magic, *parts = HEADER.unpack_from(packet)
    header = Header(*parts)
    if magic != MAGIC or header.kind not in (HELLO, DATA, UNKNOWN):
        raise MalformedMessageError(sender, "bytes that are not a packet")
    return header


@dataclass(frozen=True)
class Identity:
    """A party's own keys, and the public keys of its peers."""

    party: Party
    keys: KeyPair  # the party's static keys
    peers: Mapping[Party, bytes]  # the static public keys that the party has pinned
    version: int = VERSION
    _secrets: dict[tuple[Party, int], bytes] = field(
        default_factory=dict, init=False, repr=False
    )  # an identity with other keys must not inherit it

    def __post_init__(self) -> None:
        if self.party in self.peers:
            raise ValueError(f"{self.party} is named as its own peer")
        everybody = {self.party: self.keys.public, **self.peers}
        owners: dict[bytes, Party] = {}
        for party, key in everybody.items():
            if key in owners:
                raise ValueError(f"{owners[key]} and {party} have the same key")
            owners[key] = party
        for party in self.peers:
            self._secret(party, HELLO)

    def _secret(self, peer: Party, kind: int) -> bytes:
        """Return the static secret with a peer, for one kind of packets."""
        if (peer, kind) not in self._secrets:
            try:
                key = self.keys.agree(self.peers[peer], f"seal: static keys, kind {kind}")
            except ValueError:
                raise ValueError(f"the public key of {peer} is not valid") from None
            self._secrets[peer, kind] = key.secret
        return self._secrets[peer, kind]

    def seal_statically(
        self, receiver: Party, kind: int, session: bytes, text: bytes, randomness: Randomness
    ) -> bytes:
        """Seal a text under static keys: a hello, or a packet of the kind unknown."""
        self._check_known(receiver)
        header = self.header(kind, session, receiver, 0, randomness)
        return _seal(self._secret(receiver, kind), header, text)

    def header(
        self, kind: int, session: bytes, receiver: Party, counter: int, randomness: Randomness
    ) -> Header:
        """Return the header of a packet of this party, with a new salt."""
        names = name_digest(self.party), name_digest(receiver)
        return Header(kind, self.version, session, *names, counter, randomness.bytes(SALT_BYTES))

    def open_statically(self, sender: Party, packet: bytes) -> bytes:
        """Open a packet that was sealed under static keys."""
        self._check_known(sender)
        header = read_header(packet, sender)
        if header.kind == DATA:
            raise UnexpectedMessageError(sender, "a message where a hello is expected")
        _check_names(header, sender, self.party)
        secret = self._secret(sender, header.kind)
        kind = "a hello" if header.kind == HELLO else "an answer to a hello"
        return _open(secret, packet, sender, f"{kind} that does not open: {self._doubt(sender)}")

    def _doubt(self, peer: Party) -> str:
        """Return what may be wrong: the secret of two keys does not show which of them is."""
        return (
            f"the key of {peer} is not the one pinned at {self.party}, or that of {self.party} is "
            f"not the one pinned at {peer}, or it was changed on its way"
        )

    def _check_known(self, peer: Party) -> None:
        if peer not in self.peers:
            raise UnexpectedMessageError(peer, f"{self.party} has not pinned its key")


class Seal:
    """One party's end of one session."""

    def __init__(
        self, identity: Identity, session: bytes, randomness: Randomness | None = None
    ) -> None:
        self.identity = identity
        self.session = session
        self._randomness = randomness or SystemRandomness()
        self._ephemeral = KeyPair.generate(self._randomness)
        self._keys: dict[Party, bytes] = {}
        self._sealed: dict[Party, int] = {}
        self._opened: dict[Party, int] = {}

    def greet(self, receiver: Party, text: bytes) -> bytes:
        """Return a hello: the ephemeral key of this session, and a text."""
        content = self._ephemeral.public + text
        return self.identity.seal_statically(
            receiver, HELLO, self.session, content, self._randomness
        )

    def welcome(self, sender: Party, packet: bytes) -> bytes:
        """Open a hello, agree on the session key, and return the text of the hello."""
        header = read_header(packet, sender)
        if header.kind != HELLO or header.session != self.session:
            raise UnexpectedMessageError(sender, "a packet that is not a hello of this session")
        content = self.identity.open_statically(sender, packet)
        if sender in self._keys:
            raise ReplayedMessageError(sender, "a hello, delivered before")
        if len(content) < KEY_BYTES:
            raise MalformedMessageError(sender, "a hello without a key")
        self._keys[sender] = self._agree(sender, content[:KEY_BYTES])
        return content[KEY_BYTES:]

    def _agree(self, peer: Party, ephemeral: bytes) -> bytes:
        """Return the session key of two parties, the same at both."""
        own = Own(self.identity.party, self.identity.keys, self._ephemeral)
        theirs = Peer(peer, self.identity.peers[peer], ephemeral)
        try:
            return agree_session_key(own, theirs, "seal", self.session)
        except ValueError:
            raise MalformedMessageError(peer, "a hello whose key is not valid") from None

    def knows(self, peer: Party) -> bool:
        """Whether a peer has said hello, so that there is a key to seal with."""
        return peer in self._keys

    def seal(self, receiver: Party, text: bytes) -> bytes:
        """Seal a text as the next packet for a receiver."""
        if receiver not in self._keys:
            raise UnexpectedMessageError(receiver, "has not said hello")
        counter = self._sealed.get(receiver, 0)
        self._sealed[receiver] = counter + 1
        header = self.identity.header(DATA, self.session, receiver, counter, self._randomness)
        return _seal(self._keys[receiver], header, text)

    def open(self, sender: Party, packet: bytes) -> bytes:
        """Open the next packet of a sender."""
        header = read_header(packet, sender)
        if header.session != self.session:
            raise UnexpectedMessageError(sender, "a message of another session")
        _check_names(header, sender, self.identity.party)
        if header.kind != DATA or sender not in self._keys:
            raise UnexpectedMessageError(sender, "a message before its hello")
        reason = "a message that does not open: it was changed, or sealed with another key"
        text = _open(self._keys[sender], packet, sender, reason)
        expected = self._opened.get(sender, 0)
        if header.counter < expected:
            raise ReplayedMessageError(sender, f"packet {header.counter}, delivered before")
        if header.counter > expected:
            lost = f"packet {header.counter} has arrived, and packet {expected} has not"
            raise PeerGoneError(sender, f"packets were lost on their way: {lost}")
        self._opened[sender] = expected + 1
        return text

    def forget(self) -> None:
        """Drop the session's keys: nobody can open what was sealed with them any more."""
        self._keys.clear()
        self._ephemeral = KeyPair.generate(self._randomness)


def _seal(secret: bytes, parts: Header, text: bytes) -> bytes:
    header = HEADER.pack(MAGIC, *parts)
    return header + _cipher(secret, header).encrypt(_NONCE, text, header)


def _open(secret: bytes, packet: bytes, sender: Party, reason: str) -> bytes:
    view = memoryview(packet)
    header = bytes(view[: HEADER.size])
    try:
        return _cipher(secret, header).decrypt(_NONCE, view[HEADER.size :], header)
    except InvalidTag:
        raise MalformedMessageError(sender, reason) from None


def _cipher(secret: bytes, header: bytes) -> ChaCha20Poly1305:
    """Return the cipher of one envelope; each has a new salt, so its key is used once."""
    info = label("seal: envelope", header)
    key = HKDF(hashes.SHA256(), KEY_BYTES, salt=header[-SALT_BYTES:], info=info).derive(secret)
    return ChaCha20Poly1305(key)


def _check_names(header: Header, sender: Party, receiver: Party) -> None:
    if (header.sender, header.receiver) != (name_digest(sender), name_digest(receiver)):
        raise UnexpectedMessageError(sender, "a message from or to somebody else")
