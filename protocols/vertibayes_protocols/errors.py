"""Errors of sites, sessions and transports; those of protocols are in `vertibayes_mpc.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vertibayes_mpc.errors import PartyGoneError


def printable(text: str) -> str:
    """Return a peer's text with each character that a terminal might act on replaced by `?`."""
    return "".join(c if c.isprintable() else "?" for c in text)


def words(error: BaseException) -> str:
    """Return an error's text; for an error of the system, the file and the reason."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


class DataError(ValueError):
    """A site's data cannot be used; the message names the file or site, the column and the row."""


class ChangedDataError(DataError):
    """A site's data have changed since it answered for them."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.detail = detail


class RecordsDifferError(DataError):
    """The sites do not hold the same records in the same order; the message names the sites."""


class QueryRefusedError(Exception):
    """A site does not answer a query."""

    def __init__(self, site: str, reason: str, detail: str = "") -> None:
        super().__init__(site, reason, detail)
        self.site = site
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.site} refuses: {self.reason}"


@contextmanager
def refusing(party: str) -> Iterator[None]:
    """Refuse a query that the block finds to be invalid, or not to fit the party's data."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        detail = error.detail if isinstance(error, ChangedDataError) else ""
        raise QueryRefusedError(party, str(error), detail) from None


class TransportError(Exception):
    """Messages cannot be moved: the session is over, or a peer cannot be reached."""


class SessionOverError(TransportError):
    """The analyst has ended the session, or has begun another one."""


class PeerGoneError(TransportError, PartyGoneError):
    """A peer cannot be reached, and too few parties remain to continue without it."""

    @property
    def party(self) -> str:
        """The peer, or the first of several."""
        return self.parties[0]


class PeerTimeoutError(PeerGoneError):
    """A peer did not answer in time."""


class PeerAbortedError(PeerGoneError):
    """A peer reports that it, or the named party, failed in this session."""
