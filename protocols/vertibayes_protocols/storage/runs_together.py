"""Whether a site's memory went back: what its peers have of it, that it does not remember.

An old backup of a memory has forgotten what was used up since. In the run of an approved study each
site draws a random token for each other site, writes it down and sends it, and its peer keeps the
last one. At the next run the peer first says which token it has: a site that does not know this
token has an older memory than the one with which it met the peer. It refuses the study until its
owner restores the newest memory, or accepts the older one (`vertibayes meets --older-memory`).

A site writes a token before it leaves, so that a crash or a lost message does not look like an
older memory, unless the tokens of 4,096 runs in succession are lost. A new token leaves after the
check alone: a party that cuts messages cannot make a peer forget the token by which it would
notice. A peer that lies about its token can hide an older memory from this site, or make runs fail;
it learns nothing by either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from vertibayes_protocols.storage.whole_file import OLDEST, check_format, check_own, write_whole

FORMAT = 1  # of the file of accepted tokens
TOKEN_BYTES = 8
MOST_SENT = 4096  # tokens for one peer

Pair: TypeAlias = str  # the public keys of both sites: with another key, both begin again


class RunsTogether:
    """The tokens of a site, by pair; `keep` writes what has changed, if something has."""

    def __init__(self, accepted: Path | None, keep: Callable[[bool], None]) -> None:
        self._sent: dict[Pair, list[str]] = {}
        self._seen: dict[Pair, str] = {}
        self.unknown: dict[Pair, str] = {}  # that a peer has, and this memory has not
        self._path, self._keep = accepted, keep

    def seen(self, pair: Pair) -> bytes:
        """Return the last token of the peer; empty before any."""
        return bytes.fromhex(self._seen.get(pair, ""))

    def check(self, pair: Pair, token: bytes) -> bool:
        """Whether the token that the peer has is known, or it has none; keep one that is not."""
        if not token:
            return True
        if token.hex() in self._sent.get(pair, ()):
            self.unknown.pop(pair, None)  # of a peer that was wrong, or lied
            return True
        self.unknown[pair] = token.hex()
        self._keep(True)
        return False

    def is_older(self, pair: Pair) -> bool:
        """Whether the peer has met a newer memory, and the owner has not accepted this one."""
        token = self.unknown.get(pair)
        if token is not None and token in read_accepted(self._path):
            del self.unknown[pair]
            self.send({pair: bytes.fromhex(token)})
        return pair in self.unknown

    def send(self, tokens: Mapping[Pair, bytes]) -> None:
        """Remember tokens before they leave."""
        for pair, token in tokens.items():
            self._sent[pair] = [*self._sent.get(pair, ()), token.hex()][-MOST_SENT:]
        self._keep(bool(tokens))

    def see(self, tokens: Mapping[Pair, bytes]) -> None:
        """Remember tokens of peers."""
        self._seen |= {pair: token.hex() for pair, token in tokens.items()}
        self._keep(bool(tokens))

    # ---- the memory's file -----------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Return what the memory's file has of them."""
        return {"sent": self._sent, "seen": self._seen, "unknown": self.unknown}

    def load(self, notes: Mapping[str, Any]) -> None:
        """Take the tokens of a memory's file."""
        self._sent = {pair: [*map(_token, tokens)] for pair, tokens in notes["sent"].items()}
        self._seen = {pair: _token(token) for pair, token in notes["seen"].items()}
        self.unknown = {pair: _token(token) for pair, token in notes["unknown"].items()}


def _token(token: str) -> str:
    return bytes.fromhex(token).hex()


def read_accepted(path: Path | None) -> list[str]:
    """Return the tokens of which the owner has accepted that the memory does not know them."""
    if path is None or not path.exists():
        return []
    check_own(path)
    try:
        content = json.loads(path.read_bytes())
        check_format(path, content.get("format", OLDEST), FORMAT)
        return [*map(str, content["accepted"])]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of accepted memories ({error})") from None


def accept(path: Path, tokens: Iterable[str]) -> None:
    """Accept that the memory does not know some tokens: a running site reads it at its next run."""
    content = {"format": FORMAT, "accepted": [*read_accepted(path), *tokens]}
    write_whole(path, json.dumps(content, indent=1).encode() + b"\n")
