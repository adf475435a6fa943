"""What watches an analyst's run: the run calls it, and it changes nothing.

The sessions, the transport and the learners call a `RunWatch` at what happens. It is given names,
times and sizes of messages, and no result of a query.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import PeerGoneError, TransportError


class SessionView(NamedTuple):
    """A session between machines, as the analyst's end sees it.

    Attributes
    ----------
    joined : frozenset of Party
        The parties that have said hello.
    gone : mapping of Party to PeerGoneError
        Why a party cannot be reached.
    messages : mapping of Party to int
        How many messages of each party have come.
    awaited : tuple of Party
        The parties whose messages the analyst waits for.
    sent, rounds : int
        The bytes that the analyst has sent, and the longest chain of messages.
    """

    joined: frozenset[Party]
    gone: Mapping[Party, PeerGoneError]
    messages: Mapping[Party, int]
    awaited: tuple[Party, ...]
    sent: int
    rounds: int


class RunWatch:
    """Watches a run; this one notes nothing."""

    def began(self, parties: Collection[Party]) -> None:
        """Note that a session with these parties begins."""

    def late(self, parties: Collection[Party], seconds: float) -> None:
        """Note which parties are not reached soon, and how long they are waited for."""

    def saw(self, view: SessionView) -> None:
        """Note the state of the session; called whenever the analyst waits for a packet."""

    def asked(self, kind: str) -> None:
        """Note that a query of this kind is asked."""

    def answered(self) -> None:
        """Note that the query was answered."""

    def broke(self, error: TransportError, seconds: float) -> None:
        """Note that the session broke, and the seconds until the next one begins."""

    def phase(self, name: str) -> None:
        """Note which phase of the run begins."""

    def progressed(self, stage: str, done: int, most: int, share: float, left: float) -> None:
        """Note how far a learner is.

        Parameters
        ----------
        stage : str
            What the learner does.
        done, most : int
            How many steps of the stage have ended, and how many there are at most; 0 if unknown.
        share : float
            The share of the current step's work that has been done.
        left : float
            The estimated seconds that are left in the step; 0 if there is no estimate.
        """

    def warned(self, warnings: int) -> None:
        """Note that the command has printed so many warnings."""


UNWATCHED = RunWatch()
