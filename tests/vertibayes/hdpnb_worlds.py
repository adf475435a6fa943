"""Small worlds of HDPNB: a schema, parties with records, studies with a short modulus."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.distributed import HDPNB
from vertibayes_protocols.federation import RecordFederation
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, exact_sum
from vertibayes_protocols.variables import Variable

WAYS = ("additive", "masked")


def states(count):
    return tuple(f"s{i}" for i in range(count))


SCHEMA = Schema(
    Variable("y", states(3)), {"a": Variable("a", states(4)), "b": Variable("b", states(2))}
)


def records(count, seed=0, schema=SCHEMA):
    generator = np.random.default_rng(seed)
    draw = {n: generator.integers(0, len(v.states), count) for n, v in schema.variables.items()}
    return LocalData(schema.variables, draw)


def parties(count, each=5, schema=SCHEMA):
    return {f"p{i:02}": records(each, i, schema) for i in range(count)}


def pooled(terms, held, *, alpha=1.0):
    """Return the model of all records in one place: what releases without noise equal."""
    none = np.zeros(terms.counts, np.int64)
    sums = exact_sum([none, *(terms.schema.measure(data) for data in held)])
    return NaiveBayes(terms.schema, alpha=alpha).fit_sums(sums)


def join_all(found):
    """Return the records of all in one place."""
    found = list(found)
    names = found[0].variables
    return LocalData(names, {n: np.concatenate([d.codes[n] for d in found]) for n in names})


def federation_of(held, randomness=None, policy=ALLOW_ALL):
    """Start parties with a short modulus, which nobody may use."""
    source = randomness or SeededRandomness(b"hdpnb")
    return RecordFederation(held, policy=policy, modulus=SMALL, randomness=source)


def study(held, via, privacy=None, most_parties=20, most_records=100, **given):
    terms = {"dishonest": given.pop("dishonest", 0.0), "dropouts": given.pop("dropouts", 0.0)}
    agreed = Terms(given.pop("schema", SCHEMA), most_parties, most_records, privacy, **terms)
    federation = federation_of(held, given.pop("randomness", None), given.pop("policy", ALLOW_ALL))
    return HDPNB(agreed, held, via=via, federation=federation, **given)


def watch(federation, note):
    """Call ``note(transport, sent)`` with every message of all sessions that begin from now on.

    What it returns, if anything, is delivered in its place.
    """
    begin = type(federation).session

    def session(absent=()):
        found = begin(federation, absent)
        carrier = found.transport._scheduler.carrier
        pack = carrier.pack

        def noting(sent):
            changed = note(found.transport, sent)
            return pack(sent if changed is None else sent._replace(message=changed))

        carrier.pack = noting
        return found

    federation.session = session


def drop_after(federation, last):
    """Drop parties, each after it has sent so many messages: its answer is the first."""
    messages = Counter()

    def note(transport, sent):
        messages[sent.sender] += 1
        if sent.sender in last and messages[sent.sender] == last[sent.sender]:
            transport.drop(sent.sender)
        if last.get(sent.receiver) == 0:
            transport.drop(sent.receiver)

    watch(federation, note)
