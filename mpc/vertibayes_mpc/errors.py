"""Errors of the protocols: each names parties and never carries a secret value.

The class says what the error proves. A proof convinces whoever raises the error and nobody else. It
assumes that each message arrives as its sender sent it, once and in order: a transport that can
only detect a changed message blames the party in whose name the message came.
"""

from __future__ import annotations

from collections.abc import Iterable


class ProtocolError(Exception):
    """The protocol cannot continue. A subclass says what that proves; this class proves nothing."""

    def __init__(self, parties: str | tuple[str, ...], reason: str) -> None:
        self.parties = (parties,) if isinstance(parties, str) else parties
        self.reason = reason
        super().__init__(parties, reason)

    @property
    def names(self) -> str:
        """The parties, in one text."""
        return ", ".join(self.parties)

    def __str__(self) -> str:
        return f"{self.names}: {self.reason}"


class FaultyPartyError(ProtocolError):
    """The party is at fault: it sent what no party that follows the protocol sends.

    Proves that `party`, or somebody who has its keys, did not follow the protocol. It does not
    prove that the other parties did.
    """

    def __init__(self, party: str, reason: str) -> None:
        super().__init__(party, reason)

    @property
    def party(self) -> str:
        """The party at fault."""
        return self.parties[0]


class UnknownFaultyPartyError(ProtocolError):
    """At least one of the parties is at fault, and nobody can know which."""

    def __init__(self, parties: Iterable[str], reason: str) -> None:
        super().__init__(tuple(parties), reason)


class MalformedMessageError(FaultyPartyError):
    """A message that cannot be read: cut short, of a wrong shape or an unknown kind."""


class UnexpectedMessageError(FaultyPartyError):
    """A readable message that has no place here: another kind, session or query."""


class ReplayedMessageError(FaultyPartyError):
    """A message that was delivered before."""


class PartyGoneError(ProtocolError):
    """All of the parties are gone, and too few are left to continue without them.

    Proves no fault: a process can have ended, or a link have failed. Whoever did not wait for the
    parties itself has only another party's word that they are gone.
    """


class ImpossibleTablesError(UnknownFaultyPartyError):
    """Revealed tables that no records have: one of the sites, or the dealer if any, is at fault.

    A site that changes what it sends learns from such an error a fact about other sites' records.
    The text is therefore the same whichever check failed.
    """

    def __init__(self, sites: Iterable[str], dealer: str, check: str = "") -> None:
        parties = (*sites, dealer) if dealer else sites
        super().__init__(parties, "a table that no records have: one of them lies")
        self.check = check

    @property
    def names(self) -> str:
        """The sites or the dealer, in one text."""
        return " or ".join(filter(None, (", ".join(self.parties[:-1]), self.parties[-1])))


class TooFewPeopleError(ProtocolError):
    """Too few people are in all lists of a study, or too few of a list are left out of it."""

    def __init__(self, parties: tuple[str, ...], reason: str, people: int) -> None:
        super().__init__(parties, reason)
        self.people = people


class PeopleNotApartError(ProtocolError):
    """Two sites whose people must be different hold the same people."""

    def __init__(self, one: str, other: str, people: int) -> None:
        reason = (
            f"both sites hold the rows of {people} people of the study; "
            "each person's rows must be at one of them"
        )
        super().__init__((one, other), reason)
        self.people = people


class DealReusedError(Exception):
    """One mask was about to hide two different values."""
