"""How many comparisons with each other site's list of people may have been guesses.

A comparison counts as unanswered from when this site's code leaves until the other site's code is
there. With this code it is no guess, or a list that differs. So whoever cuts the messages between
two sites can add unanswered comparisons, and no others. The owner of the site can forgive both: the
command writes a number into a file beside the memory, which the running site reads at each `Meet`.

Alignments are counted as the comparisons with one more site, whose name no site can have: each
alignment tests a whole list of people, one by one, and none is forgotten without the owner.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vertibayes_mpc.rounds import Party
from vertibayes_protocols import clock
from vertibayes_protocols.storage.whole_file import OLDEST, check_format, check_own, write_whole

ALIGNMENTS = "all alignments"

FORMAT = 1  # of the file of forgiven comparisons


class Count(NamedTuple):
    """Comparisons with one site that found another list, and that the site did not answer."""

    different: int = 0
    unanswered: int = 0

    @property
    def total(self) -> int:
        """How many of them may have been guesses."""
        return self.different + self.unanswered


class MeetCounts:
    """The counts of a site, by the other site."""

    def __init__(self, forgiven: Path | None, keep: Callable[[bool], None]) -> None:
        self._counts: dict[Party, Count] = {}
        self._forgiven: dict[Party, int] = {}  # the number of the last time
        self._path, self._keep = forgiven, keep  # writes the memory if there is something new

    def of(self, peer: Party) -> Count:
        """Return the count of a site."""
        return self._counts.get(peer, Count())

    def known(self) -> dict[Party, Count]:
        """Return the counts of all sites with comparisons that may have been guesses."""
        return dict(sorted(self._counts.items()))

    def ask(self, *peers: Party) -> None:
        """Count comparisons as unanswered, before the peers learn the outcome."""
        for peer in peers:
            different, unanswered = self.of(peer)
            self._counts[peer] = Count(different, unanswered + 1)
        self._keep(bool(peers))

    def differ(self, peer: Party, *, was_asked: bool) -> None:
        """Count a comparison that found another list, before anything else is sent to the site.

        `ask` may have counted it before.
        """
        different, unanswered = self.of(peer)
        self._counts[peer] = Count(different + 1, max(unanswered - was_asked, 0))
        self._keep(True)

    def forget(self, peer: Party) -> bool:
        """Forget the comparisons with a site; say whether there were any. Nothing is written."""
        return self._counts.pop(peer, None) is not None

    def forgive(self, peer: Party) -> bool:
        """Forget the comparisons with a site if the owner has forgiven them since the last time."""
        numbers = read_forgiven(self._path)
        if is_new := self.will_forgive(peer, numbers):
            self._forgiven[peer] = numbers[peer]
            self.forget(peer)
        self._keep(is_new)
        return is_new

    def will_forgive(self, peer: Party, numbers: Mapping[Party, int]) -> bool:
        """Whether the file of forgiven comparisons, as it was read, has a new number of a site."""
        return numbers.get(peer, 0) > self._forgiven.get(peer, 0)

    # ---- the memory's file -----------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Return what the memory's file has of the counts."""
        counts = self._counts.items()
        return {
            "failed": {peer: count.different for peer, count in counts},
            "unanswered": {peer: count.unanswered for peer, count in counts},
            "forgiven": self._forgiven,
        }

    def load(self, notes: Mapping[str, Any]) -> None:
        """Take the counts of a memory's file; one of format 0 has a single count."""
        unanswered = notes["unanswered"]
        self._counts = {
            peer: Count(int(different), int(unanswered.get(peer, 0)))
            for peer, different in notes["failed"].items()
        }
        self._forgiven = {peer: int(number) for peer, number in notes["forgiven"].items()}


def read_forgiven(path: Path | None) -> dict[Party, int]:
    """Return the number of each site's last forgiveness."""
    if path is None or not path.exists():
        return {}
    check_own(path)
    try:
        content = json.loads(path.read_bytes())
        check_format(path, content.get("format", OLDEST), FORMAT)
        return {str(peer): int(number) for peer, number in content["forgiven"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of forgiven comparisons ({error})") from None


def forgive(path: Path, peer: Party) -> None:
    """Forgive all comparisons with a site so far: a running site reads it at its next `Meet`."""
    known = read_forgiven(path)
    number = max(clock.time_ns(), known.get(peer, 0) + 1)  # also if the clock was set back since
    content = {"format": FORMAT, "forgiven": {**known, peer: number}}
    write_whole(path, json.dumps(content, indent=1).encode() + b"\n")
