"""Small parameters of the aggregation schemes, which the public constructors refuse."""

from __future__ import annotations

from typing import ClassVar

from tests.randomness import SeededRandomness
from vertibayes_mpc import additive_scheme, membership, product_scheme
from vertibayes_mpc.randomness import KeyPair
from vertibayes_mpc.scheduler import run_all

# Primes; their product has 246 bits.
P, Q = 6868686868686868686868686868686868747, 10303030303030303030303030303030315531
SMALL = P * Q


class SumParameters(additive_scheme.Parameters):
    least_bits: ClassVar[int] = 0


class ProductParameters(product_scheme.Parameters):
    primes: ClassVar = {64: 9223373136366404363, 10: 563}


def sums(most=3, lowest=-5, highest=100, modulus=SMALL, study=b"study"):
    return SumParameters(modulus, study, most, lowest, highest)


def encryptors(scheme, parameters, parties, seed=b"keys"):
    """Return the aggregator's key, and each party's encryptor."""
    keys = scheme.deal_keys(parameters, parties, SeededRandomness(seed))
    return keys.aggregator, {
        party: scheme.Encryptor(parameters, party, key, last_time=scheme.NEVER)
        for party, key in keys.parties.items()
    }


class Meeting:
    """Members and an aggregator, with keys agreed as they are needed."""

    def __init__(self, parties, least=3, most=100, seed=b"meeting", **bounds):
        self.randomness = SeededRandomness(seed)
        self.parameters = sums(most, **bounds)
        self.groups = membership.Groups(parties, self.randomness, least)
        self.pairs = {}
        self.last_time = {}
        self.time = 0

    def pair(self, party):
        if party not in self.pairs:
            self.pairs[party] = KeyPair.generate(self.randomness)
        return self.pairs[party]

    def streams(self, party, peers):
        own = self.pair(party)
        return {peer: own.agree(self.pair(peer).public, "pairs") for peer in peers}

    def member(self, party):
        return membership.Member(
            self.parameters,
            party,
            "aggregator",
            self.groups.neighbourhood(party),
            self.streams(party, self.groups.neighbours(party) | {"aggregator"}),
            last_time=self.last_time.get(party, additive_scheme.NEVER),
        )

    @property
    def aggregator(self):
        streams = self.streams("aggregator", self.groups.parties)
        return membership.Aggregator(self.parameters, "aggregator", streams)

    def sum(self, counts, absent=()):
        """Run a sum over all but the absent; return it and the messages."""
        self.time += 1
        present = [party for party in self.groups.parties if party not in absent]
        programs = {
            party: membership.answer_roll(self.member(party), counts[party], self.time)
            for party in present
        }
        self.last_time |= dict.fromkeys(present, self.time)
        count = len(counts[present[0]])
        programs["aggregator"] = membership.call_roll(self.aggregator, absent, self.time, count)
        outputs, transcript = run_all(programs)
        return outputs["aggregator"].tolist(), transcript
