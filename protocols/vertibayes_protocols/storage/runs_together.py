"""Whether a site went back: what two sites have of each other since they last met.

A site that lost its disk, or was restored from a backup, has forgotten what it answered for. Its
ledger is a chain whose heads no other chain has (`chain`), and at each `Meet` it sends its newest
head to each other site, which keeps it. At the next `Meet` the peer first says which head it has. A
site that does not find this head in its ledger went back, or its ledger was changed; it says so,
and *both* refuse until the newest files are back, or until each owner has accepted that what was
forgotten may be answered again (`vertibayes meets --older-memory PEER`). A counter alone would not
notice a site that was restored and then met others until the count was as high as before.

A line is on disk before its head leaves, so that a crash or a lost message does not look like an
older ledger. A peer replaces a head only by a head of a ledger that has the earlier one, and only
the head that the session began with: neither a party that cuts or delays messages, nor a session
that takes long, makes a peer forget. A peer that lies about the head that it has can hide from a
site that it went back, or make runs fail; it learns nothing by either.

What a site has of a peer goes by the peer's name. A new key that the old one signed (`roster
rotate`) continues it. With any other key the peer counts as one that forgot: whoever lost a disk
would otherwise begin again with a new key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.storage.whole_file import OLDEST, check_format, check_own, write_whole

FORMAT = 1  # of the file of accepted heads
MOST_SESSIONS = 10**9
MOST_AHEAD = 1000  # sessions by which a peer's count may be above the own one: it may be a lie
EARLIER = "an earlier release noticed that it went back"


class Last(NamedTuple):
    """What a site has of its last session with a peer."""

    head: str = ""  # of the peer's ledger, in hexadecimal; empty before any session
    sessions: int = 0  # in which they met
    day: int = 0  # of the last one (`date.toordinal`)
    key: str = ""  # the peer's public key in it, in hexadecimal

    def forgotten(self, newer: Last) -> tuple[str, str]:
        """Return how many sessions of `newer` are missing here, if they are fewer, and since when.

        Without a day of its own, it is the day until which they were.
        """
        count = newer.sessions - self.sessions
        if count <= 0:
            return "", f"of {_written(newer.day)}"
        since = f"since {_written(self.day)}" if self.day else f"until {_written(newer.day)}"
        return f"{count} session{'s' * (count > 1)}", since


class Alarm(NamedTuple):
    """A head that a ledger does not have, and in words who has forgotten what."""

    head: str
    words: str


class RunsTogether:
    """What a site has of its peers, by name; `keep` writes what has changed, if something has."""

    def __init__(self, accepted: Path | None, keep: Callable[[bool], None]) -> None:
        self._last: dict[Party, Last] = {}
        self.unknown: dict[Party, Alarm] = {}  # heads of this site, which its ledger does not have
        self.lost: dict[Party, Alarm] = {}  # heads of peers, which their ledgers do not have
        self._path, self._keep = accepted, keep

    def last(self, peer: Party) -> Last:
        """Return what the site has of a peer."""
        return self._last.get(peer, Last())

    def alarms(self, peer: Party) -> list[Alarm]:
        """Return why this site refuses a peer until the owner has accepted it."""
        return [alarms[peer] for alarms in (self.unknown, self.lost) if peer in alarms]

    def refused(self, keys: Mapping[Party, bytes]) -> dict[Party, list[Alarm]]:
        """Return the alarms of all peers; `keys` are their public keys."""
        for peer, key in keys.items():
            self.name(peer, [key])
        return {peer: self.alarms(peer) for peer in sorted({*self.unknown, *self.lost})}

    def accepted(self) -> list[str]:
        """Return the heads whose loss the owner has accepted; raises as `read_accepted`."""
        return read_accepted(self._path)

    def take_accepted(self) -> None:
        """Forget the heads of peers whose loss the owner has accepted."""
        accepted = self.accepted()
        new = {peer: alarm.head for peer, alarm in self.lost.items() if alarm.head in accepted}
        for peer, head in new.items():
            if self.last(peer).head == head:
                self._last[peer] = self.last(peer)._replace(head="")
            del self.lost[peer]
        self._keep(bool(new))

    def check_own(self, peer: Party, alarm: Alarm, *, is_known: bool) -> bool:
        """Whether this site has not gone back for a peer, which has a head of it.

        Without a head the peer has no evidence, neither for nor against.
        """
        accepted, before = self.accepted(), dict(self.unknown)
        if alarm.head and not is_known:
            self.unknown[peer] = alarm
        elif alarm.head:  # of a peer that was wrong, or lied
            self.unknown.pop(peer, None)
        if peer in self.unknown and self.unknown[peer].head in accepted:
            del self.unknown[peer]
        self._keep(self.unknown != before)
        return peer not in self.unknown

    def check_peer(self, peer: Party, alarm: Alarm, *, is_known: bool) -> bool:
        """Whether a peer still has the head that this site has of it."""
        before = dict(self.lost)
        self.lost.pop(peer, None)
        if alarm.head and not is_known:
            self.lost[peer] = alarm
        self._keep(self.lost != before)
        return peer not in self.lost

    def see(self, peer: Party, before: Last, newest: Last) -> None:
        """Remember the newest head of a peer, if what the site has of it is as it was `before`.

        Another session may have brought a newer head since. The peer says how often it has met this
        site, which is only for the owner to read.
        """
        if newest.head and self.last(peer) == before:
            most = min(before.sessions + MOST_AHEAD, MOST_SESSIONS - 1)
            count = min(max(before.sessions, newest.sessions), most) + 1
            self._last[peer] = newest._replace(sessions=count)
            self._keep(True)

    def name(self, peer: Party, keys: Iterable[bytes]) -> None:
        """Name the peer of an alarm of an earlier release, whose memories had only its key."""
        ends = tuple(key.hex() for key in keys)
        pairs = [pair for pair in self.unknown if pair.endswith(ends)]
        for pair in pairs:
            self.unknown[peer] = self.unknown.pop(pair)
        self._keep(bool(pairs))

    # ---- the memory's file -----------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Return what the memory's file has of them."""
        return {"last": self._last, "unknown": self.unknown, "lost": self.lost}

    def load(self, notes: Mapping[str, Any]) -> None:
        """Take the notes of a memory's file; one of an older format has alarms alone."""
        if "last" not in notes:
            older = notes.get("unknown", {})
            self.unknown = {pair: Alarm(_head(token), EARLIER) for pair, token in older.items()}
            return
        self._last = {
            peer: Last(_head(head), int(sessions), int(day), _head(key))
            for peer, (head, sessions, day, key) in notes["last"].items()
        }
        self.unknown, self.lost = _alarms(notes["unknown"]), _alarms(notes["lost"])


def _alarms(notes: Mapping[str, Any]) -> dict[Party, Alarm]:
    return {peer: Alarm(_head(head), str(words)) for peer, (head, words) in notes.items()}


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
