"""What watches an analyst's run: the run calls it, and it changes nothing.

The sessions, the transport and the learners call a `RunWatch` at what happens. It is given names,
times and sizes of messages, and no result of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import PeerGoneError, TransportError
from vertibayes_protocols.events import Fact


class SessionView(NamedTuple):
    """A session between machines, as the analyst's end sees it."""

    joined: frozenset[Party]  # the parties that have said hello
    gone: Mapping[Party, PeerGoneError]  # why a party cannot be reached
    messages: Mapping[Party, int]  # how many messages of each party have come
    awaited: tuple[Party, ...]  # the parties whose messages the analyst waits for
    # The bytes that the analyst has sent, and the longest chain of messages.
    sent: int
    rounds: int


class RunWatch:
    """Watches a run; this one writes, if at all, which parties are waited for, and why."""

    def __init__(self, say: Callable[[str], object] = lambda _line: None) -> None:
        self.say = say

    def began(self, parties: Collection[Party]) -> None:
        """Note that a session with these parties begins."""

    def late(self, parties: Collection[Party], seconds: float) -> None:
        """Note which parties are not reached soon, and how long they are waited for."""
        started = "is it running?" if len(parties) == 1 else "are they running?"
        self.say(f"waiting for {', '.join(parties)} ({seconds:g} s; {started})\n")

    def noticed(self, text: str) -> None:
        """Note what the owner of this machine should look at, as a clock that differs."""
        self.say(f"warning: {text}\n")

    def told(self, event: str, **facts: Fact) -> None:
        """Note an event of the connection to the relay, perhaps in another thread."""

    def saw(self, view: SessionView) -> None:
        """Note the state of the session; called whenever the analyst waits for a packet."""

    def asked(self, kind: str) -> None:
        """Note that a query of this kind is asked."""

    def answered(self) -> None:
        """Note that the query was answered."""

    def broke(self, error: TransportError, seconds: float) -> None:
        """Note that the session broke, and the seconds until the next one begins."""
        self.say(f"there is no session ({error}): the next try is in {seconds:.1f} s\n")

    def phase(self, name: str) -> None:
        """Note which phase of the run begins."""

    def progressed(self, stage: str, done: int, most: int, share: float, left: float) -> None:
        """Note how far a learner is."""

    def warned(self, warnings: int) -> None:
        """Note that the command has printed so many warnings."""


UNWATCHED = RunWatch()
