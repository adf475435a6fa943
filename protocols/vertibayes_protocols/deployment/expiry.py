"""The log of a running party warns that its certificate expires: daily, 30 days before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread

from vertibayes_protocols.deployment.certificates import SOON, check_certificate
from vertibayes_protocols.deployment.files import PartyFile, RelayFile
from vertibayes_protocols.deployment.log import EXPIRES, NOT_VALID, Tell

DAY_SECONDS = 86_400.0


@contextmanager
def expiry_logged(file: PartyFile | RelayFile, tell: Tell) -> Iterator[None]:
    """Log that a party's certificate expires soon or is not valid, until the block ends.

    The files are read each time: after a renewal the lines end without a restart.
    """
    over = Event()

    def watch() -> None:
        tell_expiry(file, tell)
        while not over.wait(DAY_SECONDS):
            tell_expiry(file, tell)

    if file.relay.certificates is not None:
        Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def tell_expiry(file: PartyFile | RelayFile, tell: Tell) -> None:
    """Log that the certificate of a party expires within 30 days, or why it is not valid."""
    assert file.relay.certificates is not None  # asked before
    now = datetime.now(UTC)
    try:
        end = check_certificate(*file.relay.certificates, file.party, now)
    except ValueError as error:
        tell(NOT_VALID, reason=str(error))
        return
    if end - now < SOON:
        tell(EXPIRES, days=(end - now).days, until=f"{end:%Y-%m-%d}")
