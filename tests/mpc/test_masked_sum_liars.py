"""Parties that lie in a sum: about their key, their shares, or another's share. All are named."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tests.randomness import SeededRandomness
from tests.sums import World, run_dropping
from vertibayes_mpc.errors import MalformedMessageError, ProtocolError
from vertibayes_mpc.masked_sum import seeds
from vertibayes_mpc.masked_sum.party import Contribution
from vertibayes_mpc.masked_sum.seeds import SeedShares
from vertibayes_mpc.scheduler import run_all


def error_of(programs):
    """Run a sum; return the error, which must come."""
    with pytest.raises(ProtocolError) as caught:
        run_all(programs)
    return caught.value


class Lying(Contribution):
    """Shares out a key that is not its own."""

    secret = 0

    def share(self, keys):
        honest = self.mask_pair
        self.mask_pair = type(honest)(honest.private)
        object.__setattr__(self.mask_pair, "private", self.secret.to_bytes(33, "big"))
        self.mask_pair.__dict__["public"] = honest.public
        return super().share(keys)


def with_lying(w, cls, party="p02"):
    """Return all programs, one party's with another class."""
    programs = w.programs()
    ours = cls(w.plan, w.members[party], "aggregator", w.randomness)
    programs[party] = ours.converse(w.plan.encode(w.vectors[party]))
    return programs


@pytest.mark.parametrize(
    ("secret", "reason"), [(5, "a key that is not its own"), (2**256 + 5, "not a seed")]
)
def test_a_party_that_shares_out_another_key_and_goes_is_named(secret, reason):
    w = World(5)
    cls = type("Lying", (Lying,), {"secret": secret})
    with pytest.raises(ProtocolError, match=reason) as caught:
        run_dropping(with_lying(w, cls), {"p02": 2})
    assert caught.value.party == "p02"


class WithKey(Contribution):
    """Advertises, signed, a key that is not its own."""

    keys: ClassVar[dict] = {}

    def advertise(self):
        for pair, public in self.keys.items():
            getattr(self, pair).__dict__["public"] = public
        return super().advertise()


@pytest.mark.parametrize("pair", ["mask_pair", "seal_pair"])
@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_signed_key_of_a_wrong_length_names_who_advertised_it(pair, length):
    w = World(5)
    cls = type("Short", (WithKey,), {"keys": {pair: bytes(length)}})
    error = error_of(with_lying(w, cls))
    assert error.party == "p02" and "invalid keys" in error.reason


def test_shares_outside_the_field_name_who_shared_them_out(monkeypatch):
    w, honest, theirs = World(5), seeds.split, SeededRandomness(b"p02")

    def beyond(secret, threshold, places, randomness):
        shares = honest(secret, threshold, places, randomness)
        return dict.fromkeys(shares, 2**263) if randomness is theirs else shares

    monkeypatch.setattr(seeds, "split", beyond)
    programs = w.programs()
    ours = Contribution(w.plan, w.members["p02"], "aggregator", theirs)
    programs["p02"] = ours.converse(w.plan.encode(w.vectors["p02"]))
    error = error_of(programs)
    assert error.party == "p02" and "not a seed" in error.reason


@pytest.mark.parametrize("pair", ["mask_pair", "seal_pair"])
def test_a_key_of_small_order_names_who_advertised_it(pair):
    w = World(5)
    cls = type("SmallOrder", (WithKey,), {"keys": {pair: bytes(32)}})
    with pytest.raises(MalformedMessageError, match="invalid public key") as caught:
        run_all(with_lying(w, cls))
    assert caught.value.party == "p02"


def test_a_share_of_the_other_seed_names_who_revealed_it():
    class Other(Contribution):
        def reveal(self, confirmations):
            self.shares = {
                place: SeedShares(*reversed(both)) for place, both in self.shares.items()
            }
            return super().reveal(confirmations)

    w = World(5)
    error = error_of(with_lying(w, Other))
    assert error.party == "p02" and "or of the other seed" in error.reason
