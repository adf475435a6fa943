"""Begin a broken study again, in another session: the analyst's side.

    session breaks -> wait 1 s -> another session -> wait 2 s -> ... 30 s -> the last error

Only an error of the transport breaks a session: a party or the relay that is gone, or a session
that is over. A refusal, a party that does not follow the protocol, or data that do not fit end the
study at once. The waits vary at random, so that analysts that lost one relay do not return to it in
step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Generic, TypeVar

from vertibayes_mpc.randomness import Randomness, SystemRandomness
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch
from vertibayes_protocols.session import Session

S = TypeVar("S", bound=OpenStudy)

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
MOST_BREAKS = 3  # of one query: what fails each time is not an accident


def waits(randomness: Randomness) -> Iterator[float]:
    """Yield the seconds before each try: 1, 2, 4 up to 30, each shortened by up to a half."""
    longest = FIRST_WAIT
    while True:
        share = int.from_bytes(randomness.bytes(4), "little") / (1 << 32)
        yield longest * (1 - share / 2)
        longest = min(2 * longest, LONGEST_WAIT)


class Renewing(Generic[S]):
    """Opens a study, and opens it again when its session breaks."""

    def __init__(
        self,
        begin: Callable[[], Session],
        open_: Callable[[Session], S],
        patience: float,
        watch: RunWatch = UNWATCHED,
        *,
        wait: Callable[[float], None] = sleep,
        clock: Callable[[], float] = monotonic,
        randomness: Randomness | None = None,
    ) -> None:
        self._begin, self._open = begin, open_
        self._patience, self._watch = patience, watch
        self._wait, self._clock = wait, clock
        self._randomness = randomness or SystemRandomness()
        self._breaks, self._broke_at, self.attempts = 0, 0.0, 1
        self._session: Session | None = None

    def first(self) -> S:
        """Open the study for the first time: parties that cannot be reached are not waited for."""
        self._session = self._begin()
        try:
            return self._opened(self._session)
        except TransportError as error:
            return self.renew(error)

    def renew(self, error: TransportError) -> S:
        """Open the study in another session; raise the last error when patience ends."""
        if self._breaks == 0:
            self._broke_at = self._clock()
        self._breaks += 1
        for seconds in waits(self._randomness):
            spent = self._clock() - self._broke_at
            if spent + seconds > self._patience or self._breaks > MOST_BREAKS:
                break
            self._watch.broke(error, seconds)
            self._wait(seconds)
            self.attempts += 1
            try:
                self._session = self._begin()
                return self._opened(self._session)
            except TransportError as another:
                error = another
        raise self._last(error)

    def answered(self) -> None:
        """Note that a query was answered: a later break is another one."""
        self._breaks = 0

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.close()

    def __enter__(self) -> Renewing[S]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, session: Session) -> S:
        try:
            study = self._open(session)
        except BaseException:
            session.close()
            raise
        study.renewal = self
        return study

    def _last(self, error: TransportError) -> TransportError:
        """Return the error of a study that is not begun again: the last cause, and how long."""
        if not self._patience:
            return error
        spent = self._clock() - self._broke_at
        last = TransportError(f"{error}; begun again for {spent:.0f} s, {self.attempts} sessions")
        last.__cause__ = error
        return last
