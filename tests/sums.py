"""Masked sums in one process: members, drop-outs between any two rounds, changed messages."""

from __future__ import annotations

import numpy as np

from tests.randomness import SeededRandomness
from vertibayes_mpc.masked_sum import Member, Neighbourhood, SumPlan, collect, contribute
from vertibayes_mpc.masked_sum.aggregator import Collection
from vertibayes_mpc.masked_sum.messages import Confirmations, Survivors, as_rows, places_of
from vertibayes_mpc.masked_sum.party import Contribution
from vertibayes_mpc.masked_sum.roster import transcript
from vertibayes_mpc.scheduler import ByHand, Scheduler
from vertibayes_mpc.signing import SIGNATURE_BYTES, SigningKey

MESSAGES = 5  # that a party sends in a sum


class World:
    """Parties p0, p1, .. with vectors, and the plan of a sum of these."""

    def __init__(self, count, length=3, bound=100, neighbourhood=None, seed=0, name=b"sum"):
        self.randomness = SeededRandomness(b"world %d" % seed)
        parties = [f"p{i:02}" for i in range(count)]
        self.members = {p: Member(p, SigningKey.generate(self.randomness)) for p in parties}
        neighbourhood = neighbourhood or Neighbourhood(count - 1, count // 2 + 1)
        keys = {party: member.signing.public for party, member in self.members.items()}
        self.plan = SumPlan(name, keys, length, bound, neighbourhood)
        generator = np.random.default_rng(seed)
        self.vectors = {p: generator.integers(-bound, bound + 1, length) for p in parties}

    def programs(self, aggregator=None):
        programs = {
            party: contribute(member, self.plan, self.vectors[party], "aggregator", self.randomness)
            for party, member in self.members.items()
        }
        return {"aggregator": aggregator or collect(self.plan), **programs}

    def sum_of(self, parties):
        return sum((self.vectors[p] for p in parties), np.zeros(self.plan.length, np.int64))


class Contributing:
    """All parties of a sum, and what an honest aggregator relays up to a round that one chooses.

    `confirm` tells of signers whatever list they are in, each with its signature of that list.
    """

    def __init__(self, world):
        self.plan, self.world = world.plan, world
        self.parties = {
            world.plan.place(party): Contribution(
                world.plan, member, "aggregator", world.randomness
            )
            for party, member in world.members.items()
        }
        self.aggregator = Collection(world.plan)
        advertised = {place: ours.advertise() for place, ours in self.parties.items()}
        self.keys = self.aggregator.relay_keys(advertised)[world.plan.parties[0]]

    def mask(self, sharers=None):
        """Take the sharers past their masked vectors; return these."""
        chosen = self.parties if sharers is None else sharers
        shared = {place: ours.share(self.keys) for place, ours in self.parties.items()}
        told = self.aggregator.relay_shares({place: shared[place] for place in chosen})
        zeros = np.zeros(self.plan.length, self.plan.ring.dtype)
        parties = self.plan.parties
        return {p: self.parties[p].mask(told[parties[p]], zeros) for p in chosen}

    def confirm(self, survivors=None, signers=None):
        """Take the survivors past their signatures; return what is told of the signers'."""
        masked = self.mask()
        survivors = places_of(masked if survivors is None else survivors)
        signers = survivors if signers is None else places_of(signers)
        for place in survivors.tolist():
            self.parties[place].confirm(Survivors(self.plan.label, survivors))
        ours = self.parties[int(survivors[0])]
        name = transcript(ours.roster, ours.sharers, survivors)
        members = (self.world.members[self.plan.parties[place]] for place in signers.tolist())
        signatures = as_rows([m.signing.sign(name) for m in members], SIGNATURE_BYTES)
        return Confirmations(self.plan.label, signers, signatures)


class Dropping(ByHand):
    """Drops each party after it has sent as many messages as `last` says, unless that is all."""

    def __init__(self, last):
        super().__init__()
        self.last = {party: count for party, count in last.items() if count < MESSAGES}
        self.sent = dict.fromkeys(last, 0)
        self.scheduler: Scheduler

    def pack(self, sent):
        if sent.sender in self.last:
            self.sent[sent.sender] += 1
            if self.sent[sent.sender] == self.last[sent.sender]:
                self.scheduler.drop(sent.sender)
        return super().pack(sent)


def run_dropping(programs, last, carrier=None):
    """Run a sum in which parties drop out; return the aggregator's output, and parties' by name."""
    carrier = carrier or Dropping(last)
    scheduler = carrier.scheduler = Scheduler(carrier)
    for party, program in programs.items():
        if last.get(party) == 0:
            scheduler.drop(party)
            program.close()
        else:
            scheduler.start(party, program)
    found = scheduler.finish("aggregator")
    stayed = [p for p in programs if p != "aggregator" and last.get(p, MESSAGES) >= MESSAGES]
    return found, {party: scheduler.finish(party) for party in stayed}
