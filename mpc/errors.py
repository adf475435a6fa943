"""Errors of the protocols: each blames a party by name and never carries a secret value."""

from __future__ import annotations

from collections.abc import Sequence


class ProtocolError(Exception):
    """A party did not follow the protocol.

    Parameters
    ----------
    party : str
        The party at fault.
    reason : str
        What it did, without any secret value.
    """

    def __init__(self, party: str, reason: str) -> None:
        super().__init__(party, reason)
        self.party = party
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.party}: {self.reason}"


class MalformedMessageError(ProtocolError):
    """A message that cannot be read: cut short, of a wrong shape or an unknown kind."""


class UnexpectedMessageError(ProtocolError):
    """A readable message that has no place here: another kind, session or query."""


class ReplayedMessageError(ProtocolError):
    """A message that was delivered before."""


class PartyGoneError(ProtocolError):
    """A party that is waited for has gone, and too few are left to go on without it."""


class ImpossibleTablesError(ProtocolError):
    """Opened tables that no records have: one of several parties did not follow the protocol.

    Parameters
    ----------
    sites : sequence of str
    dealer : str
    """

    def __init__(self, sites: Sequence[str], dealer: str) -> None:
        parties = f"{', '.join(sites)} or {dealer}"
        super().__init__(parties, "a table that no records have: one of them lies")


class DealReusedError(Exception):
    """One mask was about to hide two different values."""
