"""The identity of a party whose file pins a roster: it names the retired key of a packet."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.roster.roster import Retired, Roster
from vertibayes_protocols.seal import Identity


@dataclass(frozen=True)
class RosterIdentity(Identity):
    """An identity that tries, of a packet that does not open, the retired keys of its sender.

    Such a packet is refused as before. The error says which key it was sealed with, and which
    roster this party has pinned: two parties with different epochs see both epochs in their logs.
    """

    roster: Roster | None = None  # the roster that the party has pinned

    def open_statically(self, sender: Party, packet: bytes) -> bytes:
        """Open a packet that was sealed under static keys; as `Identity.open_statically`."""
        try:
            return super().open_statically(sender, packet)
        except MalformedMessageError as error:
            if self.roster is None:
                raise
            pinned = f"{self.party} has pinned {self.roster.title}"
            reason = f"{error.reason}; {pinned}: compare the epochs"
            for old, identity in self._retired.get(sender, ()):
                with suppress(MalformedMessageError):
                    identity.open_statically(sender, packet)
                    retired = f"a key that was {old.why} at epoch {old.epoch}"
                    reason = f"uses {retired}; {pinned}: fetch the newest bundle at {sender}"
                    break
            raise MalformedMessageError(sender, reason) from None

    @cached_property
    def _retired(self) -> dict[Party, list[tuple[Retired, Identity]]]:
        """Of each sender, its retired keys, each with an identity that pins it."""
        known: dict[Party, list[tuple[Retired, Identity]]] = {}
        assert self.roster is not None
        for old in self.roster.retired:
            with suppress(ValueError):  # a point of small order, which opens nothing
                identity = Identity(self.party, self.keys, {old.name: old.key})
                known.setdefault(old.name, []).append((old, identity))
        return known
