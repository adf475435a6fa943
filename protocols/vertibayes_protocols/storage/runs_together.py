"""Whether a site went back: what two sites have of each other since they last met.

A site that lost its disk, or was restored from a backup, has forgotten what it answered for. Its
ledger is a chain whose heads no other chain has (`chain`), and at each `Meet` it sends its newest
head to each other site, which keeps it. At the next `Meet` the peer first says which head it has. A
site that does not find this head in its ledger went back, or its ledger was changed; it says so,
and *both* refuse until the newest files are back, or until each owner has accepted that what was
forgotten may be answered again (`vertibayes meets --older-memory`). A counter alone would not
notice a site that was restored and then met others until the count was as high as before.

A line is on disk before its head leaves, so that a crash or a lost message does not look like an
older ledger. A peer replaces a head only by a head of a ledger that has the earlier one: a party
that cuts messages cannot make a peer forget. A peer that lies about the head that it has can hide
from a site that it went back, or make runs fail; it learns nothing by either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from vertibayes_protocols import clock
from vertibayes_protocols.storage.whole_file import OLDEST, check_format, check_own, write_whole

FORMAT = 1  # of the file of accepted heads

Pair: TypeAlias = str  # the public keys of both sites: with another key, both begin again


class Last(NamedTuple):
    """What a site has of its last session with a peer."""

    head: str = ""  # of the peer's ledger, in hexadecimal; empty before any session
    sessions: int = 0  # in which they met
    day: int = 0  # of the last one (`date.toordinal`)

    def forgotten(self, newer: Last) -> tuple[str, str]:
        """Return how many sessions of `newer` are missing here, if they are fewer, and since when.

        Without a day of its own, it is the day until which they were.
        """
        count = newer.sessions - self.sessions
        if count <= 0:
            return "", f"of {_written(newer.day)}"
        since = f"since {_written(self.day)}" if self.day else f"until {_written(newer.day)}"
        return f"{count} session{'s' * (count > 1)}", since


class RunsTogether:
    """What a site has of its peers, by pair; `keep` writes what has changed, if something has."""

    def __init__(self, accepted: Path | None, keep: Callable[[bool], None]) -> None:
        self._last: dict[Pair, Last] = {}
        self.unknown: dict[Pair, str] = {}  # heads of this site, which its ledger does not have
        self.lost: dict[Pair, str] = {}  # heads of peers, which their ledgers do not have
        self._path, self._keep = accepted, keep

    def last(self, pair: Pair) -> Last:
        """Return what the site has of a peer."""
        return self._last.get(pair, Last())

    def accepted(self) -> list[str]:
        """Return the heads whose loss the owner has accepted; raises as `read_accepted`."""
        return read_accepted(self._path)

    def take_accepted(self) -> None:
        """Forget the heads of peers whose loss the owner has accepted."""
        accepted = self.accepted()
        new = {pair: head for pair, head in self.lost.items() if head in accepted}
        for pair, head in new.items():
            if self.last(pair).head == head:
                self._last[pair] = self.last(pair)._replace(head="")
            del self.lost[pair]
        self._keep(bool(new))

    def check_own(self, pair: Pair, head: str, *, is_known: bool) -> bool:
        """Whether this site has not gone back for a peer, which has `head` of it.

        Without a head the peer has no evidence, neither for nor against.
        """
        accepted, before = self.accepted(), dict(self.unknown)
        if head and not is_known:
            self.unknown[pair] = head
        elif head:  # of a peer that was wrong, or lied
            self.unknown.pop(pair, None)
        if self.unknown.get(pair) in accepted:
            del self.unknown[pair]
        self._keep(self.unknown != before)
        return pair not in self.unknown

    def check_peer(self, pair: Pair, head: str, *, is_known: bool) -> bool:
        """Whether a peer still has the `head` that this site has of it."""
        before = dict(self.lost)
        self.lost.pop(pair, None)
        if head and not is_known:
            self.lost[pair] = head
        self._keep(self.lost != before)
        return pair not in self.lost

    def see(self, pair: Pair, head: str, sessions: int) -> None:
        """Remember the newest head of a peer, which has met this site so often before."""
        if head:
            count = max(self.last(pair).sessions, sessions) + 1
            self._last[pair] = Last(head, count, clock.now().toordinal())
            self._keep(True)

    # ---- the memory's file -----------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Return what the memory's file has of them."""
        return {"last": self._last, "unknown": self.unknown, "lost": self.lost}

    def load(self, notes: Mapping[str, Any]) -> None:
        """Take the notes of a memory's file; one of an older format has other notes."""
        if "last" not in notes:
            return
        self._last = {
            pair: Last(_head(head), int(sessions), int(day))
            for pair, (head, sessions, day) in notes["last"].items()
        }
        self.unknown = {pair: _head(head) for pair, head in notes["unknown"].items()}
        self.lost = {pair: _head(head) for pair, head in notes["lost"].items()}


def _head(text: str) -> str:
    return bytes.fromhex(text).hex()


def _written(day: int) -> str:
    return date.fromordinal(day).isoformat() if day else "an unknown day"


def read_accepted(path: Path | None) -> list[str]:
    """Return the heads of which the owner has accepted that a ledger does not have them."""
    if path is None or not path.exists():
        return []
    check_own(path)
    try:
        content = json.loads(path.read_bytes())
        check_format(path, content.get("format", OLDEST), FORMAT)
        return [*map(str, content["accepted"])]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of accepted memories ({error})") from None


def accept(path: Path, heads: Iterable[str]) -> None:
    """Accept that ledgers do not have some heads: a running site reads it at its next session."""
    content = {"format": FORMAT, "accepted": [*read_accepted(path), *heads]}
    write_whole(path, json.dumps(content, indent=1).encode() + b"\n")
