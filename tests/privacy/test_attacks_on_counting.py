"""Attacks on the ways of counting, through the query `Tables`: each first without what stops it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.protocols.small import change_first, committed, count, data_of, replay, study_of
from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.scalar_product import MaskedFactor, MaskedMasks
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.sharing import Share
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.queries.tables import scalar_products
from vertibayes_protocols.queries.tables.counting import grouped
from vertibayes_protocols.queries.tables.scalar_products import ProductPlan
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.variables import Family, Rows

RECORDS = 12
PAIR = [Family("x", ("y",))]
THREE = [Family("x", ("y", "z"))]


class World:
    """Sites that have committed a study by scalar products, and their dealer's keys."""

    def __init__(self, **sites):
        self.data = data_of(RECORDS, **sites)
        study = replace(study_of(self.data), count_by="scalar-product")
        policy = replace(FREE, fewest_records=1)
        self.federation, _ = committed(self.data, study, policy=policy)
        self.roles = self.federation.roles
        keys = {site: role.holder.dealer_key for site, role in self.roles.items()}
        role = self.roles["a"]
        self.dealer = DealerRole("dealer", role.keys, {}, mask_keys=keys, joined=role.joined)

    def plan(self, families, number, party="a"):
        joined = self.roles[party].joined
        return ProductPlan(joined, tuple(grouped(families)), Rows(), False, number)

    def run(self, families, number=1, dealt=None, plans=None):
        """Count; the dealer, or a site, may have been asked for something else."""
        plans = {site: self.plan(families, number, site) for site in self.roles} | (plans or {})
        parties = plans["a"].parties
        programs = {site: plans[site].run_site(self.roles[site]) for site in parties}
        dealing = self.plan(dealt or families, number)
        programs["dealer"] = dealing.run_dealer(self.dealer)
        programs["analyst"] = plans["a"].run_analyst()
        outputs, transcript = run_all(programs)
        return outputs["analyst"], transcript


# ---- dealer and analyst together -----------------------------------------------------------------


def columns_that_fit(world, plan, share):
    """Return all 0/1 columns of x = 0 that fit b's shares, for who knows all masks of the dealer.

    b's share of a cell is -sum R_b (D_a + R_a) + C_b: a linear equation in a's data.
    """
    what, ring = plan.product(0), plan.ring
    masks = {p: what.top.mask(world.dealer.mask_keys[p]) for p in "ab"}
    known = what.split(world.dealer.mask_keys["b"]) - ring.row_sums(
        ring.reduce(masks["a"] * masks["b"])
    )
    equations = ring.reduce(known - ring.unpack(share.values, what.count))[:3]  # the cells of x = 0
    factors = masks["b"][:3].astype(np.int64)
    columns = np.array(list(product((0, 1), repeat=RECORDS)))
    fit = (columns @ factors.T) % (1 << ring.bits) == equations
    return columns[fit.all(axis=1)]


def what_dealer_and_analyst_read():
    world = World(a="x", b="y")
    plan = world.plan(PAIR, 1)
    _, transcript = world.run(PAIR)
    (share,) = [s.message for s in transcript if s.sender == "b" and s.receiver == "analyst"]
    return columns_that_fit(world, plan, share), world.data["a"].codes["x"] == 0


def test_without_zero_shares_dealer_and_analyst_read_every_record(monkeypatch):
    """As the published protocol reveals its shares: three equations determine 12 records."""

    def none(party, peers, ring, label, count):
        del party, peers, label
        return np.zeros(count, ring.dtype)

    monkeypatch.setattr(scalar_products, "zero_share", none)
    read, true = what_dealer_and_analyst_read()
    assert len(read) == 1 and (read[0] == true).all()


def test_dealer_and_analyst_have_no_equation():
    read, true = what_dealer_and_analyst_read()
    assert not any((column == true).all() for column in read)


# ---- messages of other queries -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "other"), [(PAIR, [Family("y", ("x",))]), (THREE, [Family("x", ("z", "y"))])]
)
def test_a_dealer_that_was_asked_for_other_tables_is_named(asked, other):
    world = World(a="x", b="y", c="z")
    with pytest.raises(UnexpectedMessageError, match="another query") as caught:
        world.run(asked, dealt=other)
    assert caught.value.party == "dealer"


def test_a_site_that_was_asked_under_another_number_is_named():
    world = World(a="x", b="y")
    with pytest.raises(UnexpectedMessageError, match="another query"):
        world.run(PAIR, plans={"b": world.plan(PAIR, 2, "b")})


def test_a_number_is_used_once():
    world = World(a="x", b="y")
    world.run(PAIR, number=3)
    for number in (3, 2):
        with pytest.raises(DealReusedError, match="numbers must increase"):
            world.run(PAIR, number=number)


def test_no_two_queries_have_equal_masks():
    """A control for the labels: with equal masks the difference of two messages is of the data."""
    world, seen = World(a="x", b="y", c="z"), []
    for number in (1, 2):
        _, transcript = world.run(THREE, number=number)
        seen.append(
            {
                sent.message.values.tobytes()
                for sent in transcript
                if isinstance(sent.message, MaskedFactor | MaskedMasks)
            }
        )
    assert len(seen[0]) > 5 and seen[0].isdisjoint(seen[1])


CHANGES = {
    "shorter": lambda message: replace(message, values=message.values[:-1]),
    "of another type": lambda message: replace(message, values=message.values.astype("<u4")),
    "of another query": lambda message: replace(message, label=bytes(32)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sender", ["b", "dealer"])
def test_the_sender_of_an_odd_message_is_named(monkeypatch, change, sender):
    """In the session, where the packets are those of the transport."""
    world = World(a="x", b="y", c="z")
    changed = change_first(monkeypatch, Labelled, sender, CHANGES[change])
    study = world.roles["a"].joined.study
    with pytest.raises((MalformedMessageError, UnexpectedMessageError)) as caught:
        count(world.federation, study, ("x", "y", "z"))
    assert caught.value.party == sender and changed


def test_a_replayed_message_ends_the_session(monkeypatch):
    world = World(a="x", b="y")
    replay(monkeypatch, MaskedFactor)
    study = world.roles["a"].joined.study
    count(world.federation, study, ("x", "y"))
    with pytest.raises(ReplayedMessageError):
        count(world.federation, study, ("y", "x"))


def test_a_site_sends_nothing_but_masked_vectors_and_one_share():
    world = World(a="x", b="y", c="z")
    _, transcript = world.run([*PAIR, *THREE, Family("z")])
    kinds = {(s.sender, s.receiver == "analyst", type(s.message)) for s in transcript}
    assert {kind for sender, to, kind in kinds if sender in "abc" and not to} == {MaskedFactor}
    shares = [s for s in transcript if s.receiver == "analyst"]
    assert [type(s.message) for s in shares] == [Share] * 3
