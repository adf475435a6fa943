"""Lists that an aggregator tells: rosters, sharers, survivors, and the signatures of these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

from tests.sums import Contributing, World
from vertibayes_mpc.errors import MalformedMessageError, ProtocolError
from vertibayes_mpc.masked_sum import Neighbourhood, SumPlan, smallest_neighbourhood
from vertibayes_mpc.masked_sum.messages import Survivors, places_of
from vertibayes_mpc.masked_sum.party import SIGNATURES_CHECKED
from vertibayes_mpc.masked_sum.roster import Roster

# ---- signatures ----------------------------------------------------------------------------------


def confirmed(count, neighbourhood=None):
    """Return a sum before its last round, and the signatures that are sent then."""
    contributing = Contributing(World(count, neighbourhood=neighbourhood))
    return contributing, contributing.confirm()


def falsified(message, places):
    signatures = message.signatures.copy()
    signatures[list(places)] ^= 1
    return replace(message, signatures=signatures)


def refusing(contributing, message):
    """Return the parties that refuse a list of signatures."""
    found = []
    for place, ours in contributing.parties.items():
        try:
            ours.reveal(message)
        except ProtocolError:
            found.append(place)
    return found


COUNT = SIGNATURES_CHECKED + 28


@pytest.fixture(scope="module")
def circle():
    return confirmed(COUNT, Neighbourhood(4, 3))


@pytest.mark.parametrize(
    "valid",
    [range(SIGNATURES_CHECKED), range(COUNT - SIGNATURES_CHECKED, COUNT)],
    ids=["first", "last"],
)
def test_a_list_signed_at_its_first_or_last_places_only_is_refused(circle, valid):
    contributing, message = circle
    assert not refusing(contributing, message)
    false = falsified(message, set(range(COUNT)) - set(valid))
    assert len(refusing(contributing, false)) == COUNT


def test_each_party_of_a_circle_checks_signatures_of_its_own_choice(circle):
    """One false signature of 60 is found by some: 32 on average, with a deviation of 4."""
    contributing, message = circle
    for place in (0, COUNT // 2, COUNT - 1):
        found = refusing(contributing, falsified(message, [place]))
        assert abs(len(found) - SIGNATURES_CHECKED) < 20


def test_a_complete_graph_checks_every_signature():
    contributing, message = confirmed(40)
    ours = contributing.parties[7]
    for place in range(40):
        with pytest.raises(ProtocolError, match=f"sent lists to p07 that p{place:02} did not sign"):
            ours.reveal(falsified(message, [place]))


@pytest.mark.parametrize(
    ("parties", "corrupt", "dropped", "once_in"),
    [(1000, 50, 50, 242_013), (5000, 500, 500, 16_285), (400, 4, 20, 8_711)],
)
def test_how_often_a_false_list_is_missed(parties, corrupt, dropped, once_in):
    """Of two lists, one has the signatures of half the honest; drawn are 32 of a quorum."""
    quorum = smallest_neighbourhood(parties, corrupt, dropped).quorum(parties)
    signed = corrupt + (parties - corrupt) // 2
    missed = hypergeom.pmf(SIGNATURES_CHECKED, quorum, signed, SIGNATURES_CHECKED)
    assert round(1 / missed) == once_in


# ---- each list is within the one before ----------------------------------------------------------


def test_survivors_who_did_not_share_are_refused():
    """p04 is in the roster, and went before it shared: it has no masks with anybody."""
    contributing = Contributing(World(5))
    contributing.mask(sharers=range(4))
    ours = contributing.parties[2]
    assert 4 in ours.roster.places and 4 not in ours.sharers
    with pytest.raises(MalformedMessageError, match="were not in the last list") as caught:
        ours.confirm(Survivors(contributing.plan.label, places_of(range(5))))
    assert caught.value.party == "aggregator"


def test_signers_who_did_not_survive_are_refused_with_their_signature():
    """p04 shared, and its vector did not come: it counts for no quorum, whatever it signs."""
    contributing = Contributing(World(5))
    four, five = (contributing.confirm(range(4), signers) for signers in (range(4), range(5)))
    assert len(contributing.parties[2].reveal(four).shares) == 5
    with pytest.raises(MalformedMessageError, match="were not in the last list") as caught:
        contributing.parties[2].reveal(five)
    assert caught.value.party == "aggregator"


# ---- the roster and its circle -------------------------------------------------------------------


def rosters_of(w):
    """Return a roster, and others that differ from it in one key, one place or the plan."""
    told = Contributing(w).keys

    def roster(plan=w.plan, **changes):
        return Roster(plan, replace(told, **changes), "aggregator")

    keys = []
    for at in np.ndindex(told.keys.shape[0], 2):
        changed = told.keys.copy()
        changed[at[0], 32 * at[1]] ^= 1
        keys.append(roster(keys=changed))
    rows = {name: getattr(told, name)[:-1] for name in ("keys", "signatures")}
    elsewhere = [
        roster(places=np.delete(told.places, at), **rows) for at in range(len(told.places))
    ]
    plan = SumPlan(b"next", w.plan.signing_keys, 3, 100, w.plan.neighbourhood)
    return roster(), keys, elsewhere, roster(plan)


def test_a_rosters_digest_names_its_plan_and_every_place_and_key():
    one, keys, elsewhere, planned = rosters_of(World(12, neighbourhood=Neighbourhood(4, 3)))
    digests = {roster.digest for roster in (one, planned, *keys, *elsewhere)}
    assert len(digests) == 2 + 24 + 12


def test_one_key_or_the_plan_gives_other_neighbours():
    one, keys, _, planned = rosters_of(World(12, neighbourhood=Neighbourhood(4, 3)))
    graphs = {
        tuple(tuple(roster.circle.around(place).tolist()) for place in range(12))
        for roster in (one, planned, *keys)
    }
    assert len(graphs) == 2 + 24
