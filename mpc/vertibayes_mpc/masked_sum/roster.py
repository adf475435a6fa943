"""Who takes part: the advertised keys, and the circle of neighbours that is drawn from them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import FaultyPartyError, PartyGoneError, UnknownFaultyPartyError
from vertibayes_mpc.masked_sum.messages import KEYS_BYTES, Keys, Places, list_of
from vertibayes_mpc.masked_sum.plan import Neighbourhood, SumPlan
from vertibayes_mpc.randomness import KEY_BYTES, StreamKey, label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.sharing import checked
from vertibayes_mpc.signing import SIGNATURE_BYTES, is_signed


class Circle:
    """Who is whose neighbour: k/2 to each side, or all, in an order expanded from the digest."""

    def __init__(self, places: Places, neighbourhood: Neighbourhood, seed: bytes) -> None:
        draws = StreamKey(seed).elements(Ring(64), label("circle"), places.shape)
        self._order = places[np.argsort(draws, kind="stable")]
        self._half = neighbourhood.degree // 2
        self._is_complete = len(places) <= neighbourhood.degree + 1
        self._threshold = neighbourhood.threshold

    def around(self, place: int) -> Places:
        """Return a party and its neighbours, ascending."""
        members = self._order
        if not self._is_complete:
            (at,) = np.flatnonzero(members == place)
            window = range(at - self._half, at + self._half + 1)
            members = members.take(window, mode="wrap")
        ascending: Places = np.unique(members)
        return ascending

    def short(self, of: Places, left: Places) -> Places:
        """Return those `of` in whose neighbourhoods fewer than the threshold are `left`."""
        present = np.isin(self._order, left)
        members = np.full(len(present), present.sum())
        if not self._is_complete:
            members = self._window_sums(present)
        return of[np.isin(of, self._order[members < self._threshold])]

    def _window_sums(self, present: NDArray[np.bool_]) -> NDArray[np.intp]:
        wrapped = np.concatenate([present[-self._half :], present, present[: self._half]])
        sums = np.cumsum(np.concatenate([[False], wrapped]))
        members: NDArray[np.intp] = sums[2 * self._half + 1 :] - sums[: -2 * self._half - 1]
        return members


class Roster:
    """The keys that the aggregator relayed, and what follows from them."""

    def __init__(self, plan: SumPlan, message: Keys, sender: Party) -> None:
        self.plan = plan
        everybody = np.arange(len(plan.parties), dtype=np.uint32)
        self.places = list_of(message.places, sender, everybody)
        self.keys = checked(message.keys, sender, (len(self.places), KEYS_BYTES), np.uint8)
        shape = (len(self.places), SIGNATURE_BYTES)
        self.signatures = checked(message.signatures, sender, shape, np.uint8)
        if len(self.places) < plan.quorum:
            self._refuse(np.setdiff1d(everybody, self.places), self.places, everybody[:0])
        self._rows = {place: row for row, place in enumerate(self.places.tolist())}
        self.digest = label("roster", plan.label, self.places.tobytes(), self.keys.tobytes())
        self.circle = Circle(self.places, plan.neighbourhood, self.digest)

    def mask_key(self, place: int) -> bytes:
        """Return the public key with which others agree on masks with a party."""
        return self.keys[self._rows[place], :KEY_BYTES].tobytes()

    def seal_key(self, place: int) -> bytes:
        """Return the public key with which others seal shares for a party."""
        return self.keys[self._rows[place], KEY_BYTES:].tobytes()

    def check_keys(self, places: Iterable[int], sender: Party) -> None:
        """Check that parties signed their keys, and that no two share one: masks would cancel."""
        own: dict[bytes, Party] = {}
        for place in places:
            party, signature = self.plan.parties[place], self.signatures[self._rows[place]]
            both = self.mask_key(place), self.seal_key(place)
            name = keys_label(self.plan, party, b"".join(both))
            if not is_signed(name, signature.tobytes(), self.plan.signing_keys[party]):
                raise FaultyPartyError(sender, f"sent keys of {party} that {party} did not sign")
            for key in both:
                if own.setdefault(key, party) != party:
                    raise UnknownFaultyPartyError((own[key], party), "advertised the same key")

    def check_left(self, of: Places, left: Places) -> None:
        """Check that a quorum is left, and of each party `of` the threshold of its neighbours."""
        short = self.circle.short(of, left)
        if len(left) < self.plan.quorum or len(short):
            self._refuse(np.setdiff1d(self.places, left), left, short)

    def _refuse(self, gone: Places, left: Places, short: Places) -> None:
        reason = f"gone; {len(left)} are left, the sum needs {self.plan.quorum}"
        if len(short):
            threshold = self.plan.neighbourhood.threshold
            names = ", ".join(self.plan.parties_at(short))
            reason += f", {threshold} of each neighbourhood: {names} has fewer"
        raise PartyGoneError(self.plan.parties_at(gone), reason)


def keys_label(plan: SumPlan, party: Party, keys: bytes) -> bytes:
    """Return what a party signs to advertise its keys."""
    return label("sum keys", plan.label, party, keys)


def transcript(roster: Roster, sharers: Places, survivors: Places) -> bytes:
    """Return what survivors sign: everything that the aggregator sent to all."""
    return label("sum survivors", roster.digest, sharers.tobytes(), survivors.tobytes())
